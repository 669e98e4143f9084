use isobench_capture::Datum;
use isobench_pgwire::TransactionStatus::{self, Failed, Idle, InTransaction};
use proptest::prelude::*;

use super::*;

/// A stretch of bytes of one end.
#[derive(Clone, Debug)]
pub(super) enum Bytes {
    Client(Vec<u8>),
    Server(Vec<u8>),
}

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(4 + body.len()).expect("short");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

pub(super) fn client(messages: &[(u8, &[u8])]) -> Bytes {
    Bytes::Client(messages.iter().flat_map(|(tag, body)| message(*tag, body)).collect())
}

/// Answers, a word each.
pub(super) fn answers(words: &str) -> Bytes {
    let mut out = Vec::new();
    for word in words.split_whitespace() {
        match word.split_once(':').unwrap_or((word, "")) {
            ("1", _) => server::parse_complete(&mut out),
            ("2", _) => server::bind_complete(&mut out),
            ("3", _) => server::close_complete(&mut out),
            ("n", _) => server::no_data(&mut out),
            ("s", _) => server::portal_suspended(&mut out),
            ("I", _) => server::empty_query_response(&mut out),
            ("t", _) => server::parameter_description(&mut out, &[23]),
            ("T", _) => server::row_description(&mut out, &[("a", 23)]),
            ("D", value) => server::data_row(&mut out, &[Some(value.as_bytes())]),
            ("C", tag) => server::command_complete(&mut out, &tag.replace('_', " ")),
            ("G", _) => server::copy_in_response(&mut out, 1),
            ("H", _) => {
                server::copy_out_response(&mut out, 1);
                server::copy_data(&mut out, b"7\n");
                server::copy_done(&mut out);
            }
            ("E", code) => server::error_response(&mut out, &[(b'C', code), (b'M', "no")]),
            ("N", _) => server::notice_response(&mut out, &[(b'M', "note")]),
            ("S", _) => server::parameter_status(&mut out, "TimeZone", "UTC"),
            ("A", _) => server::notification_response(&mut out, 1, "channel", ""),
            ("V", _) => out.extend(message(b'V', &(-1_i32).to_be_bytes())),
            ("Z", status) => server::ready_for_query(&mut out, status_of(status)),
            (other, _) => panic!("{other}"),
        }
    }
    Bytes::Server(out)
}

fn status_of(letter: &str) -> TransactionStatus {
    match letter {
        "T" => InTransaction,
        "E" => Failed,
        _ => Idle,
    }
}

const PARSE: (u8, &[u8]) = (b'P', b"\0SELECT a WHERE a = $1\0\0\0");
const BIND: (u8, &[u8]) = (b'B', b"\0\0\0\0\0\x01\0\0\0\x017\0\0");
const EXECUTE: (u8, &[u8]) = (b'E', b"\0\0\0\0\0");
const SYNC: (u8, &[u8]) = (b'S', b"");

/// The exchanges of [`exchanges`]: what happens, the bytes, and what they show.
type Exchange = (&'static str, Vec<Bytes>, Vec<&'static str>);

/// Exchanges, and what they show: each statement as text, tags and codes of its answers, and status.
#[expect(clippy::too_many_lines, reason = "a table")]
fn exchanges() -> Vec<Exchange> {
    vec![
        (
            "a simple query of several statements",
            vec![
                client(&[(b'Q', b"SELECT 1; INSERT 1; SELECT x\0")]),
                answers("T D:1 D:2 C:SELECT_2 N S A C:INSERT_0_1 E:42703 Z:I"),
            ],
            vec!["SELECT 1; INSERT 1; SELECT x | SELECT 2 | INSERT 0 1 | 42703 | I"],
        ),
        ("an empty query", vec![client(&[(b'Q', b"\0")]), answers("I Z:I")], vec![" | I"]),
        (
            "a statement of the extended protocol",
            vec![
                client(&[PARSE, (b'D', b"S\0"), BIND, EXECUTE, SYNC]),
                answers("1 t T 2 D:7 C:SELECT_1 Z:T"),
            ],
            vec!["SELECT a WHERE a = $1 [7] | SELECT 1 | T"],
        ),
        (
            "Flush, and a portal in parts",
            vec![
                client(&[PARSE, BIND, (b'D', b"P\0"), (b'E', b"\0\0\0\0\x01"), (b'H', b"")]),
                answers("1 2 T D:7 s"),
                client(&[EXECUTE, (b'C', b"P\0"), SYNC]),
                answers("D:8 C:SELECT_1 3 Z:I"),
            ],
            vec!["SELECT a WHERE a = $1 [7] | suspended | -", "SELECT a WHERE a = $1 [7] | SELECT 1 | I"],
        ),
        (
            "an error in Parse skips to Sync, also what is sent later",
            vec![
                client(&[PARSE, BIND, EXECUTE]),
                answers("E:42601"),
                client(&[PARSE, BIND, EXECUTE, SYNC, (b'Q', b"SELECT 2\0")]),
                answers("Z:I C:SELECT_1 Z:I"),
            ],
            vec!["SELECT a WHERE a = $1 | 42601 | I", "SELECT 2 | SELECT 1 | I"],
        ),
        (
            "an error in Bind, with the values",
            vec![client(&[PARSE, BIND, EXECUTE, SYNC]), answers("1 E:22P02 Z:E")],
            vec!["SELECT a WHERE a = $1 [7] | 22P02 | E"],
        ),
        (
            "a pipeline whose transaction can't be committed",
            vec![
                client(&[PARSE, BIND, EXECUTE, BIND, EXECUTE, SYNC]),
                answers("1 2 C:SELECT_0 2 C:SELECT_0 E:40001 Z:I"),
            ],
            vec!["SELECT a WHERE a = $1 [7] | SELECT 0 | -", "SELECT a WHERE a = $1 [7] | 40001 | I"],
        ),
        (
            "a name that a failed Parse didn't take",
            vec![
                client(&[(b'P', b"s\0ONE\0\0\0"), SYNC]),
                answers("1 Z:I"),
                client(&[(b'P', b"s\0TWO\0\0\0"), SYNC]),
                answers("E:42P05 Z:I"),
                client(&[(b'B', b"\0s\0\0\0\0\0\0\0"), EXECUTE, SYNC]),
                answers("2 C:ONE Z:I"),
            ],
            vec!["TWO | 42P05 | I", "ONE | ONE | I"],
        ),
        (
            "COPY in a simple query",
            vec![
                client(&[(b'Q', b"COPY t FROM STDIN\0")]),
                answers("G"),
                client(&[(b'd', b"7\n"), (b'c', b"")]),
                answers("C:COPY_1 Z:I"),
                client(&[(b'Q', b"COPY t TO STDOUT\0")]),
                answers("H C:COPY_1 Z:I"),
            ],
            vec!["COPY t FROM STDIN | COPY 1 | I", "COPY t TO STDOUT | COPY 1 | I"],
        ),
        (
            "COPY in the extended protocol: the Sync before its end has no answer",
            vec![
                client(&[(b'P', b"\0COPY t FROM STDIN\0\0\0"), (b'B', b"\0\0\0\0\0\0\0\0"), EXECUTE, SYNC]),
                answers("1 2 G"),
                client(&[(b'd', b"7\n"), SYNC, (b'c', b""), SYNC, (b'Q', b"SELECT 1\0")]),
                answers("C:COPY_1 Z:I C:SELECT_1 Z:I"),
            ],
            vec!["COPY t FROM STDIN | COPY 1 | I", "SELECT 1 | SELECT 1 | I"],
        ),
        (
            "COPY that fails",
            vec![
                client(&[(b'P', b"\0COPY t FROM STDIN\0\0\0"), (b'B', b"\0\0\0\0\0\0\0\0"), EXECUTE, SYNC]),
                answers("1 2 G"),
                client(&[(b'd', b"x\n")]),
                answers("E:22P02"),
                client(&[(b'd', b"7\n"), (b'f', b"no\0"), SYNC]),
                answers("Z:I"),
            ],
            vec!["COPY t FROM STDIN | 22P02 | I"],
        ),
        (
            "a function call",
            vec![client(&[(b'F', b"\0\0\0\x01\0\0\0\0\0\0")]), answers("V Z:I")],
            vec!["unseen: a function call by a message"],
        ),
        (
            "a session that is ended during a statement",
            vec![client(&[(b'Q', b"SELECT 1\0")]), answers("E:57P01")],
            vec!["SELECT 1 | 57P01 | -"],
        ),
    ]
}

fn decoder() -> Decoder {
    Decoder::new(1, Arc::new(Policy::new(false).expect("random numbers")), SessionReading::default())
}

/// What pieces show, each as long as the next of the sizes.
fn seen(exchange: &[Bytes], sizes: &[usize]) -> Vec<Seen> {
    let mut decoder = decoder();
    let mut out = Vec::new();
    let mut sizes = sizes.iter().copied().cycle();
    for bytes in exchange {
        let (Bytes::Client(all) | Bytes::Server(all)) = bytes;
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(usize::MAX).clamp(1, rest.len());
            let (piece, after) = rest.split_at(size);
            rest = after;
            match bytes {
                Bytes::Client(_) => decoder.client(5, piece).expect("understood"),
                Bytes::Server(_) => decoder.server(5, piece, &mut out).expect("understood"),
            }
        }
    }
    decoder.end(&mut out);
    out
}

fn shown(seen: &Seen) -> String {
    match seen {
        Seen::Unseen { what, .. } => format!("unseen: {what}"),
        Seen::Statement(recorded) => {
            let statement = &recorded.statement;
            let mut text = recorded.sql.to_string();
            for parameter in &statement.parameters {
                let Some(Datum::Text(value)) = parameter else { panic!("{parameter:?}") };
                text.extend([" [", value, "]"]);
            }
            for answer in &statement.answers {
                let code = answer.error.as_ref().map(|error| error.code.clone());
                text += " | ";
                text += &answer.tag.clone().or(code).unwrap_or_else(|| "suspended".to_owned());
            }
            format!("{text} | {}", statement.status.unwrap_or('-'))
        }
    }
}

#[test]
fn exchanges_become_statements() {
    for (name, exchange, expected) in exchanges() {
        let found: Vec<String> = seen(&exchange, &[]).iter().map(shown).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn rows_keep_their_first_values_and_their_columns() {
    let words = "T ".to_owned() + &"D:7 ".repeat(25) + "C:SELECT_25 Z:I";
    let found = seen(&[client(&[(b'Q', b"SELECT a\0")]), answers(&words)], &[]);
    let [Seen::Statement(recorded)] = found.as_slice() else { panic!("{found:?}") };
    let answer = &recorded.statement.answers[0];
    assert_eq!((answer.rows, answer.values.len()), (25, 20));
    assert_eq!(recorded.columns[0].as_ref().map(|columns| columns[0].type_oid), Some(23));
}

/// As pgjdbc does: it asks for the columns of a portal once, and then only binds and executes.
#[test]
fn a_statement_that_is_described_by_a_portal_keeps_its_columns() {
    let parse: (u8, &[u8]) = (b'P', b"s\0SELECT a WHERE a = $1\0\0\0");
    let bind: (u8, &[u8]) = (b'B', b"\0s\0\0\0\0\x01\0\0\0\x017\0\x01\0\x01");
    let other: (u8, &[u8]) = (b'P', b"s\0SELECT b WHERE a = $1\0\0\0");
    let close: (u8, &[u8]) = (b'C', b"Ss\0");
    let found = seen(
        &[
            client(&[parse, bind, (b'D', b"P\0"), EXECUTE, SYNC, bind, EXECUTE, SYNC]),
            answers("1 2 T D:\0\0\0\u{7} C:SELECT_1 Z:I 2 D:\0\0\0\u{8} C:SELECT_1 Z:I"),
            client(&[close, other, bind, EXECUTE, SYNC]),
            answers("3 1 2 D:\0\0\0\u{10} C:SELECT_1 Z:I"),
        ],
        &[],
    );
    let values: Vec<Option<Datum>> = found
        .iter()
        .map(|seen| match seen {
            Seen::Statement(recorded) => recorded.statement.answers[0].values[0][0].clone(),
            Seen::Unseen { what, .. } => panic!("{what}"),
        })
        .collect();
    let text = |value: &str| Some(Datum::Text(value.to_owned()));
    let unknown = Some(Datum::Hex { hex: "00000010".to_owned() });
    assert_eq!(values, [text("7"), text("8"), unknown], "another statement of that name has other columns");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_make_no_difference(sizes in prop::collection::vec(1_usize..40, 1..30)) {
        for (name, exchange, _) in exchanges() {
            prop_assert_eq!(seen(&exchange, &sizes), seen(&exchange, &[]), "{}", name);
        }
    }

    #[test]
    fn no_bytes_end_it_in_a_panic(
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 0..20)
    ) {
        let mut decoder = decoder();
        let mut out = Vec::new();
        for (of_client, bytes) in pieces {
            let outcome = if of_client { decoder.client(0, &bytes) } else { decoder.server(0, &bytes, &mut out) };
            if outcome.is_err() {
                break;
            }
        }
        decoder.end(&mut out);
    }

    #[test]
    fn messages_out_of_turn_end_it_in_no_panic(
        order in prop::collection::vec((any::<bool>(), 0_usize..14), 0..40)
    ) {
        let sent = [PARSE, BIND, EXECUTE, SYNC, (b'Q', b"COPY\0"), (b'D', b"S\0"), (b'c', b""), (b'F', b"")];
        let words = ["1", "2", "C:X", "Z:I", "T", "D:1", "G", "E:40001", "s", "n", "I", "3", "t", "V"];
        let mut decoder = decoder();
        let mut out = Vec::new();
        for (of_client, index) in order {
            let bytes = if of_client { client(&[sent[index % sent.len()]]) } else { answers(words[index]) };
            let outcome = match bytes {
                Bytes::Client(bytes) => decoder.client(0, &bytes),
                Bytes::Server(bytes) => decoder.server(0, &bytes, &mut out),
            };
            if outcome.is_err() {
                break;
            }
        }
        decoder.end(&mut out);
    }
}
