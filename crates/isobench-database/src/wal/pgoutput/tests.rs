use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// An inverse of the decoder, for messages to decode.
fn encode(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match message {
        Message::Begin { final_lsn, commit_time, xid } => {
            out.push(b'B');
            out.extend(final_lsn.to_be_bytes());
            out.extend(commit_time.to_be_bytes());
            out.extend(xid.to_be_bytes());
        }
        Message::Commit { commit_lsn, end_lsn, commit_time } => {
            out.extend(b"C\0");
            out.extend(commit_lsn.to_be_bytes());
            out.extend(end_lsn.to_be_bytes());
            out.extend(commit_time.to_be_bytes());
        }
        Message::Origin { commit_lsn, name } => {
            out.push(b'O');
            out.extend(commit_lsn.to_be_bytes());
            push_name(&mut out, name);
        }
        Message::Relation(relation) => push_relation(&mut out, relation),
        Message::Type { id, schema, name } => {
            out.push(b'Y');
            out.extend(id.to_be_bytes());
            push_name(&mut out, schema);
            push_name(&mut out, name);
        }
        Message::Insert { relation, new } => {
            out.push(b'I');
            out.extend(relation.to_be_bytes());
            push_row(&mut out, b'N', new);
        }
        Message::Update { relation, old, new } => {
            out.push(b'U');
            out.extend(relation.to_be_bytes());
            if let Some(old) = old {
                push_row(&mut out, if old.whole { b'O' } else { b'K' }, &old.fields);
            }
            push_row(&mut out, b'N', new);
        }
        Message::Delete { relation, old } => {
            out.push(b'D');
            out.extend(relation.to_be_bytes());
            push_row(&mut out, if old.whole { b'O' } else { b'K' }, &old.fields);
        }
        Message::Truncate { options, relations } => {
            out.push(b'T');
            out.extend(u32::try_from(relations.len()).unwrap().to_be_bytes());
            out.push(*options);
            out.extend(relations.iter().flat_map(|relation| relation.to_be_bytes()));
        }
    }
    out
}

fn push_name(out: &mut Vec<u8>, name: &str) {
    out.extend(name.bytes());
    out.push(0);
}

fn push_relation(out: &mut Vec<u8>, relation: &Relation<'_>) {
    out.push(b'R');
    out.extend(relation.id.to_be_bytes());
    push_name(out, relation.schema);
    push_name(out, relation.name);
    out.push(relation.identity);
    out.extend(u16::try_from(relation.columns.len()).unwrap().to_be_bytes());
    for column in &relation.columns {
        out.push(u8::from(column.key));
        push_name(out, column.name);
        out.extend(column.type_id.to_be_bytes());
        out.extend(column.modifier.to_be_bytes());
    }
}

fn push_row(out: &mut Vec<u8>, mark: u8, fields: &[Field<'_>]) {
    out.push(mark);
    out.extend(u16::try_from(fields.len()).unwrap().to_be_bytes());
    for field in fields {
        match field {
            Field::Null => out.push(b'n'),
            Field::Unchanged => out.push(b'u'),
            Field::Text(text) => {
                out.push(b't');
                out.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
                out.extend(text.bytes());
            }
        }
    }
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), Just("t"), Just("a \"quoted\" one"), Just("Größe"), Just("数据")]
}

fn field() -> impl Strategy<Value = Field<'static>> {
    prop_oneof![Just(Field::Null), Just(Field::Unchanged), name().prop_map(Field::Text)]
}

fn row() -> impl Strategy<Value = Vec<Field<'static>>> {
    vec(field(), 0..6)
}

fn old_row_strategy() -> impl Strategy<Value = OldRow<'static>> {
    (any::<bool>(), row()).prop_map(|(whole, fields)| OldRow { whole, fields })
}

fn relation_strategy() -> impl Strategy<Value = Message<'static>> {
    let column = (any::<bool>(), name(), any::<u32>(), any::<i32>())
        .prop_map(|(key, name, type_id, modifier)| Column { key, name, type_id, modifier });
    (any::<u32>(), name(), name(), any::<u8>(), vec(column, 0..6)).prop_map(
        |(id, schema, name, identity, columns)| {
            Message::Relation(Relation { id, schema, name, identity, columns })
        },
    )
}

fn message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        (any::<u64>(), any::<i64>(), any::<u32>()).prop_map(|(final_lsn, commit_time, xid)| Message::Begin {
            final_lsn,
            commit_time,
            xid
        }),
        (any::<u64>(), any::<u64>(), any::<i64>()).prop_map(|(commit_lsn, end_lsn, commit_time)| {
            Message::Commit { commit_lsn, end_lsn, commit_time }
        }),
        (any::<u64>(), name()).prop_map(|(commit_lsn, name)| Message::Origin { commit_lsn, name }),
        relation_strategy(),
        (any::<u32>(), name(), name()).prop_map(|(id, schema, name)| Message::Type { id, schema, name }),
        (any::<u32>(), row()).prop_map(|(relation, new)| Message::Insert { relation, new }),
        (any::<u32>(), proptest::option::of(old_row_strategy()), row())
            .prop_map(|(relation, old, new)| Message::Update { relation, old, new }),
        (any::<u32>(), old_row_strategy()).prop_map(|(relation, old)| Message::Delete { relation, old }),
        (any::<u8>(), vec(any::<u32>(), 0..6))
            .prop_map(|(options, relations)| Message::Truncate { options, relations }),
    ]
}

proptest! {
    #[test]
    fn messages_are_decoded(message in message()) {
        let bytes = encode(&message);
        prop_assert_eq!(decode(&bytes), Ok(message));
    }

    #[test]
    fn cut_off_and_longer_messages_are_errors(message in message(), cut in any::<prop::sample::Index>()) {
        let mut bytes = encode(&message);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(decode(&bytes).is_err());
    }

    /// Changed bytes make an error or another message, which is then made of the same bytes.
    #[test]
    fn changed_bytes_never_panic(
        message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = encode(&message);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(other) = decode(&bytes) {
            prop_assert_eq!(encode(&other).len(), bytes.len());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(kind in "[BCORYIUDTM]", body in vec(any::<u8>(), 0..200)) {
        let bytes = [kind.as_bytes(), &body].concat();
        if let Ok(message) = decode(&bytes) {
            prop_assert_eq!(encode(&message).len(), bytes.len());
        }
    }
}

#[test]
fn large_counts_use_no_memory() {
    // A table with 65,535 columns, a row with as many values, and 4,294,967,295 truncated tables.
    for bytes in
        [&b"R\0\0\0\x01s\0t\0d\xff\xff"[..], b"I\0\0\0\x01N\xff\xff", b"T\xff\xff\xff\xff\0\0\0\0\x01"]
    {
        let error = decode(bytes).unwrap_err().to_string();
        assert!(error.contains("cut off"), "{error}");
    }
}

#[test]
fn errors_name_message_place_and_problem() {
    for (bytes, expected) in [
        (&b""[..], "a message of type '\\0' is malformed at byte 0: it is empty"),
        (b"M\0", "a message of type 'M' is malformed at byte 1: there is no such message in version 1"),
        (b"I\0\0\0\x01N\0\x01b", "at byte 9: a binary value, which wasn't asked for"),
        (b"I\0\0\0\x01N\0\x01x", "at byte 9: an unknown form of value"),
        (b"I\0\0\0\x01K\0\0", "at byte 6: the new row is missing"),
        (b"D\0\0\0\x01N\0\0", "at byte 6: the old row is missing"),
        (b"I\0\0\0\x01N\0\x01t\0\0\0\x01\xff", "at byte 14: a text isn't UTF-8"),
        (b"Y\0\0\0\x01abc", "at byte 5: a name has no end"),
        (b"I\0\0\0\x01N\0\0!", "at byte 8: surplus bytes"),
    ] {
        let error = decode(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Messages as PostgreSQL 15.18 and 18.4 sent them, for a table (b text, a int, v text, c int,
/// PRIMARY KEY (a, b)).
#[test]
fn messages_of_real_servers_are_decoded() {
    let key = [Field::Text("k"), Field::Text("1"), Field::Null, Field::Null];
    let column = |key, name, type_id| Column { key, name, type_id, modifier: -1 };
    let cases = [
        (
            "420000000001542e50000303e10b0b2b97000002db",
            Message::Begin { final_lsn: 0x0154_2e50, commit_time: 848_690_017_938_327, xid: 731 },
        ),
        (
            "4300000000000179e720000000000179e750000303e10b0beab6",
            Message::Commit {
                commit_lsn: 0x0179_e720,
                end_lsn: 0x0179_e750,
                commit_time: 848_690_017_987_254,
            },
        ),
        (
            "52000040007075626c696300740064000401620000000019ffffffff01610000000017ffffffff\
             00760000000019ffffffff00630000000017ffffffff",
            Message::Relation(Relation {
                id: 16384,
                schema: "public",
                name: "t",
                identity: b'd',
                columns: vec![
                    column(true, "b", 25),
                    column(true, "a", 23),
                    column(false, "v", 25),
                    column(false, "c", 23),
                ],
            }),
        ),
        (
            "55000040004b000474000000016b7400000001316e6e4e000474000000016b74000000013275740000000135",
            Message::Update {
                relation: 16384,
                old: Some(OldRow { whole: false, fields: key.to_vec() }),
                new: vec![Field::Text("k"), Field::Text("2"), Field::Unchanged, Field::Text("5")],
            },
        ),
        (
            "49000040004e000474000000033270637400000001316e6e",
            Message::Insert {
                relation: 16384,
                new: vec![Field::Text("2pc"), Field::Text("1"), Field::Null, Field::Null],
            },
        ),
        (
            "44000040004b000474000000016b7400000001316e6e",
            Message::Delete { relation: 16384, old: OldRow { whole: false, fields: key.to_vec() } },
        ),
        ("5400000002000000400000004007", Message::Truncate { options: 0, relations: vec![16384, 16391] }),
    ];
    for (hex, expected) in cases {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        assert_eq!(decode(&bytes), Ok(expected), "{hex}");
    }
}
