//! Random statements with a secret in every kind of literal, answered by rows, notices and errors that
//! repeat it: nothing that is kept has the secret.

use std::sync::Arc;

use isobench_pgwire::server;
use proptest::prelude::*;

use super::tests::message;
use super::*;

const SECRET: &str = "TOPSECRET";

/// Commands that may hold a password, at `{}`; each word may be followed by comments.
const COMMANDS: [&str; 36] = [
    "create user u password {}",
    "Alter Role u With Encrypted Password {}",
    "ALTER USER u VALID UNTIL {}",
    "ALTER USER u PASSWRD {}",
    "ALTR USER u PASSWORD {}",
    "alter group u password {}",
    "CREATE ROLE IF NOT EXISTS u PASSWORD {}",
    "ALTER USER u SET my.pw = {}",
    "ALTER DATABASE d SET my.pw TO {}",
    "ALTER SYSTEM SET primary_conninfo = {}",
    "CREATE FOREIGN DATA WRAPPER f OPTIONS ( password {} )",
    "CREATE SERVER s FOREIGN DATA WRAPPER f OPTIONS ( x {} )",
    "ALTER SERVER s OPTIONS ( SET x {} )",
    "CREATE USER MAPPING FOR u SERVER s OPTIONS ( password {} )",
    "ALTER USER MAPPING FOR u SERVER s OPTIONS ( SET password {} )",
    "CREATE FOREIGN TABLE t ( a int ) SERVER s OPTIONS ( password {} )",
    "ALTER FOREIGN TABLE t OPTIONS ( SET password {} )",
    "ALTER TABLE t ALTER COLUMN a OPTIONS ( x {} )",
    "IMPORT FOREIGN SCHEMA x FROM SERVER s INTO y OPTIONS ( password {} )",
    "CREATE SUBSCRIPTION s CONNECTION {} PUBLICATION p",
    "ALTER SUBSCRIPTION s CONNECTION {}",
    "SELECT dblink ( {} , 'select 1' )",
    "SELECT * FROM dblink_exec ( 'x' , {} )",
    "SELECT crypt ( {} , gen_salt ( 'bf' ) )",
    "INSERT INTO t VALUES ( pgp_sym_encrypt ( a , {} ) )",
    "SELECT set_config ( 'my.pw' , {} , false )",
    "SELECT set_password ( 'u' , {} )",
    "SET my.pw = {}",
    "SET LOCAL my.pw TO {}",
    "COPY t FROM PROGRAM {}",
    "PREPARE p AS SELECT {}",
    "EXECUTE p ( {} )",
    "EXPLAIN EXECUTE p ( {} )",
    "DO {}",
    "DO LANGUAGE plpgsql {}",
    "SELECT 'password=b' , {}",
];

/// Bodies that hold such a command, as the value of a literal.
const BODIES: [&str; 6] = [
    "ALTER USER u PASSWORD 'TOPSECRET'",
    "ALTER /* x */ USER u PASSWORD $a$TOPSECRET$a$",
    "BEGIN EXECUTE 'ALTER '||'USER u PASSWORD ''TOPSECRET'''; END",
    "SELECT dblink('host=a password=TOPSECRET', 'x')",
    "SELECT crypt('TOPSECRET', 'x')",
    "postgres://u:TOPSECRET@h/d",
];

/// Commands whose literals are values of the application.
const ORDINARY: [&str; 8] = [
    "SELECT {}",
    "SELECT a FROM t WHERE b = {} AND c = 5",
    "INSERT INTO t ( a , b ) VALUES ( 1 , {} )",
    "UPDATE t SET a = {}",
    "CREATE TABLE t ( a text DEFAULT {} )",
    "COMMENT ON TABLE t IS {}",
    "NOTIFY c , {}",
    "SELECT interval {} , b FROM t",
];

/// A literal that has this value, of one of the kinds, after what makes it hard to read.
fn literal(kind: usize, value: &str, escapes: bool) -> String {
    let plain = plain(kind, value, escapes);
    match kind {
        0 if escapes => plain.replacen('\'', "'it\\'s ", 1),
        0 => plain.replacen('\'', "'it''s ", 1),
        1 if escapes => format!("'\\\\', {plain}"),
        1 => format!("'C:\\', {plain}"),
        2 => plain.replacen('\'', "'it\\'s ", 1),
        5 => format!("B'101', X'AB', {plain}"),
        _ => plain,
    }
}

/// A literal that has this value, of one of the kinds.
fn plain(kind: usize, value: &str, escapes: bool) -> String {
    let doubled = value.replace('\'', "''");
    let escaped = value.replace('\\', "\\\\").replace('\'', "\\'");
    match kind {
        0 | 1 if escapes => format!("'{escaped}'"),
        2 => format!("E'{escaped}'"),
        3 => format!("e''\n'{escaped}'"),
        4 => format!("E'' -- it's\r\n  '' -- 'x\n '{escaped}'"),
        5 => format!("$${value}$$"),
        6 => format!("$t${value}$a$'$t$"),
        7 => format!("U&'!0020{doubled}' UESCAPE '!'"),
        8 => format!("N'{doubled}'"),
        9 => format!("''\n--'\n\t'{doubled}'"),
        _ => format!("'{doubled}'"),
    }
}

fn gap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![" ", "\n", "\t", "/**/", "/* ' */ ", "--x '\n", "/*/* \" */ it's*/", " --\r"])
}

/// A text with the words of a command, gaps between them, and something before and after.
fn text(command: &str, literal: &str, gaps: &[&str], around: usize) -> String {
    let mut out = ["", "SELECT 1;", "/* ALTER */ ", "SELECT 'it''s', $a$'$a$, \"a'b\"; ", "BEGIN; -- '\n"]
        [around % 5]
        .to_owned();
    for (word, gap) in command.split(' ').zip(gaps.iter().cycle()) {
        out += if word == "{}" { literal } else { word };
        out += gap;
    }
    out + ["", "; SELECT 'x'", ";", " -- end"][around % 4]
}

/// What is kept of a simple query, or of a prepared statement, whose answer repeats the secret.
fn kept(sql: &str, prepared: bool, redact: bool, escapes: Option<bool>) -> String {
    let policy = Arc::new(Policy::new(redact).expect("random numbers"));
    let mut decoder = Decoder::new(1, policy, SessionReading::default());
    let mut out = Vec::new();
    let mut start = Vec::new();
    server::parameter_status(&mut start, "client_encoding", "UTF8");
    if let Some(escapes) = escapes {
        let value = if escapes { "off" } else { "on" };
        server::parameter_status(&mut start, "standard_conforming_strings", value);
    }
    server::ready_for_query(&mut start, isobench_pgwire::TransactionStatus::Idle);
    // The query that reports it.
    decoder.client(0, &message(b'Q', b"\0")).expect("understood");
    decoder.server(0, &start, &mut out).expect("understood");
    let mut answer = Vec::new();
    if prepared {
        let parse = [b"\0", sql.as_bytes(), b"\0\0\0"].concat();
        let bind = [b"\0\0\0\0\0\x01\0\0\0\x09", SECRET.as_bytes(), b"\0\0"].concat();
        let sent =
            [message(b'P', &parse), message(b'B', &bind), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")];
        decoder.client(0, &sent.concat()).expect("understood");
        server::parse_complete(&mut answer);
        server::bind_complete(&mut answer);
    } else {
        decoder.client(0, &message(b'Q', &[sql.as_bytes(), b"\0"].concat())).expect("understood");
        server::row_description(&mut answer, &[("a", 25)]);
    }
    server::data_row(&mut answer, &[Some(SECRET.as_bytes())]);
    server::notice_response(&mut answer, &[(b'M', SECRET), (b'D', SECRET)]);
    let fields = [(b'C', "P0001"), (b'M', SECRET), (b'D', SECRET), (b'H', SECRET), (b'W', SECRET)];
    server::error_response(&mut answer, &fields);
    server::ready_for_query(&mut answer, isobench_pgwire::TransactionStatus::Idle);
    decoder.server(0, &answer, &mut out).expect("understood");
    decoder.end(&mut out);
    let kept = format!("{out:?}");
    assert!(kept.contains("P0001"), "{kept}");
    kept
}

fn is_kept(sql: &str, redact: bool, escapes: Option<bool>) -> Option<String> {
    [false, true]
        .into_iter()
        .map(|prepared| kept(sql, prepared, redact, escapes))
        .find(|kept| kept.contains(SECRET))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn passwords_reach_no_capture(
        command in prop::sample::select(COMMANDS.to_vec()),
        (kind, around, known) in (0_usize..11, 0_usize..20, any::<bool>()),
        gaps in prop::collection::vec(gap(), 1..9),
        (escapes, cut, redact) in (any::<bool>(), 0_usize..3, any::<bool>()),
    ) {
        let literal = literal(kind, SECRET, escapes);
        let mut sql = text(command, &literal, &gaps, around);
        if cut == 0 {
            sql.truncate(sql.find(SECRET).unwrap_or(0) + SECRET.len());
        }
        let found = is_kept(&sql, redact, known.then_some(escapes));
        prop_assert_eq!(found, None, "{}", sql);
    }

    #[test]
    fn bodies_and_values_with_passwords_reach_no_capture(
        body in prop::sample::select(BODIES.to_vec()),
        (kind, around) in (0_usize..11, 0_usize..20),
        (escapes, create) in (any::<bool>(), any::<bool>()),
    ) {
        let create_function = "CREATE OR REPLACE FUNCTION f ( ) RETURNS void LANGUAGE sql AS {}";
        let command = if create { create_function } else { "INSERT INTO t VALUES ( {} )" };
        let sql = text(command, &plain(kind, body, escapes), &[" "], around);
        prop_assert_eq!(is_kept(&sql, false, Some(escapes)), None, "{}", sql);
    }

    #[test]
    fn redacted_captures_have_no_literal(
        command in prop::sample::select(ORDINARY.iter().chain(&COMMANDS).copied().collect::<Vec<_>>()),
        (kind, around, known) in (0_usize..11, 0_usize..20, any::<bool>()),
        gaps in prop::collection::vec(gap(), 1..9),
        (escapes, cut) in (any::<bool>(), 0_usize..4),
    ) {
        let literal = literal(kind, SECRET, escapes);
        let mut sql = text(command, &literal, &gaps, around);
        if cut == 0 {
            sql.truncate(sql.find(SECRET).unwrap_or(0) + SECRET.len());
        }
        prop_assert_eq!(is_kept(&sql, true, known.then_some(escapes)), None, "{}", sql);
    }
}

#[test]
fn ordinary_values_are_kept() {
    assert!(kept("SELECT a FROM t WHERE b = 'TOPSECRET'", false, false, Some(false)).contains(SECRET));
}
