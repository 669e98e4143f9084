use super::*;
use crate::wal::pgoutput::Column;

const TABLE: u32 = 7;

fn assembler(limit: usize) -> Assembler {
    Assembler::new(HashMap::from([(TABLE, vec!["b".to_owned(), "a".to_owned()])]), limit)
}

fn relation(id: u32, key: [bool; 3]) -> Message<'static> {
    let columns = ["a", "b", "v"].into_iter().zip(key);
    let columns = columns.map(|(name, key)| Column { key, name, type_id: 25, modifier: -1 }).collect();
    Message::Relation(Relation { id, schema: "s", name: "t", identity: b'd', columns })
}

fn begin() -> Message<'static> {
    Message::Begin { final_lsn: 5, commit_time: 1, xid: 3 }
}

fn commit() -> Message<'static> {
    Message::Commit { commit_lsn: 5, end_lsn: 6, commit_time: 1 }
}

fn texts(values: [&'static str; 3]) -> Vec<Field<'static>> {
    values
        .into_iter()
        .map(|value| match value {
            "" => Field::Null,
            "…" => Field::Unchanged,
            text => Field::Text(text),
        })
        .collect()
}

fn insert(values: [&'static str; 3]) -> Message<'static> {
    Message::Insert { relation: TABLE, new: texts(values) }
}

fn update(old: Option<[&'static str; 3]>, new: [&'static str; 3]) -> Message<'static> {
    let old = old.map(|old| OldRow { whole: false, fields: texts(old) });
    Message::Update { relation: TABLE, old, new: texts(new) }
}

fn delete(old: [&'static str; 3]) -> Message<'static> {
    Message::Delete { relation: TABLE, old: OldRow { whole: false, fields: texts(old) } }
}

fn assemble(messages: Vec<Message<'_>>, limit: usize) -> Result<Vec<WalTransaction>, WalError> {
    let mut assembler = assembler(limit);
    let mut done = Vec::new();
    for message in messages {
        done.extend(assembler.take(message)?);
    }
    assembler.collector().at_rest()?;
    Ok(done)
}

fn error(messages: Vec<Message<'_>>) -> String {
    assemble(messages, usize::MAX).unwrap_err().to_string()
}

#[test]
fn writes_have_keys_in_the_order_of_the_primary_key() {
    let described = relation(TABLE, [true, true, false]);
    let partition = relation(99, [false, false, false]);
    let truncate = Message::Truncate { options: 0, relations: vec![TABLE] };
    let messages = vec![
        begin(),
        described,
        partition,
        insert(["1", "2", "x"]),
        update(None, ["1", "2", "…"]),
        update(Some(["1", "2", ""]), ["1", "3", ""]),
        // An old key is also sent if a part of it is stored outside of the row.
        update(Some(["1", "3", ""]), ["…", "3", "y"]),
        delete(["1", "3", ""]),
        truncate,
        commit(),
    ];
    let [transaction] = &assemble(messages, usize::MAX).unwrap()[..] else { panic!() };
    assert_eq!(transaction.xid, 3);
    let expected = [
        (WalWriteKind::Insert, "2,1"),
        (WalWriteKind::Update, "2,1"),
        (WalWriteKind::Update, "2,1 to 3,1"),
        (WalWriteKind::Update, "3,1"),
        (WalWriteKind::Delete, "3,1"),
        (WalWriteKind::Truncate, ""),
    ];
    assert_eq!(transaction.shown(), expected.map(|(kind, keys)| (kind, keys.to_owned())));
    assert_eq!(transaction.writes[0].relation.name(), "s.t");
}

#[test]
fn transactions_without_writes_are_left_out() {
    assert_eq!(assemble(vec![begin(), commit()], 0).unwrap(), []);
}

#[test]
fn messages_out_of_order_are_errors() {
    let described = || relation(TABLE, [true, true, false]);
    let other = Message::Commit { commit_lsn: 9, end_lsn: 9, commit_time: 1 };
    for (messages, expected) in [
        (vec![commit()], "a commit has no beginning"),
        (vec![begin()], "a transaction has no end"),
        (vec![begin(), begin()], "a transaction has no end"),
        (vec![begin(), other], "the commit is that of another transaction"),
        (vec![begin(), insert(["1", "2", "x"])], "a table that wasn't described"),
        (vec![described(), insert(["1", "2", "x"])], "a change outside of a transaction"),
        (vec![begin(), described(), insert(["…", "2", "x"])], "key is missing"),
        (vec![begin(), described(), update(None, ["1", "…", "x"])], "key is missing"),
        (vec![begin(), relation(TABLE, [true, false, true])], "the primary key of table \"s.t\" was changed"),
    ] {
        let error = error(messages);
        assert!(error.contains(expected), "{error}");
    }
    let short = Message::Insert { relation: TABLE, new: vec![Field::Text("1"), Field::Text("2")] };
    let error = error(vec![begin(), described(), short]);
    assert!(error.contains("doesn't have its table's columns"), "{error}");
}

#[test]
fn a_transaction_has_a_limit_of_memory() {
    let messages = |count: usize| {
        let inserts = std::iter::repeat_with(|| insert(["1", "2", "a text of some length"])).take(count);
        let start = [begin(), relation(TABLE, [true, true, false])];
        start.into_iter().chain(inserts).chain([commit()]).collect::<Vec<_>>()
    };
    assert_eq!(assemble(messages(10), 5_000).unwrap()[0].writes.len(), 10);
    let error = assemble(messages(100), 5_000).unwrap_err();
    assert!(matches!(error, WalError::TooLarge { xid: Some(3), limit: 5_000 }), "{error}");
}
