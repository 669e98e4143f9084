//! The replies of the null server to statements: a table of leading keywords, a table of special
//! queries, and the isolation level.
//!
//! The reply is determined only by the text, once per statement (once per `Parse` in the extended
//! protocol), independently of messages and sessions.

use super::sql::trim_start;
use super::wire::{Column, SqlError, oid};

/// The effect of a statement, and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No statement, only blanks and comments.
    Empty,
    /// A single fixed row.
    Row(&'static [Column<'static>]),
    /// A single row with a text column of this name and the requested value.
    Show(&'static str, Shown),
    /// A command tag without rows.
    Tag(&'static str),
    /// A fixed row of an UPDATE.
    Updated(&'static [Column<'static>]),
    /// Starts a transaction block, at its own level or at the session's.
    Begin(&'static str, Option<Level>),
    /// Ends the block by `COMMIT`.
    Commit,
    /// Ends the block by `ROLLBACK`.
    Rollback,
    /// Sets the level of the session.
    SetSession(Level),
    /// Sets the level of the open block.
    SetBlock(Level),
    /// An error.
    Refused(SqlError),
}

/// The value of a `SHOW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The level of the running transaction.
    Level,
    /// The level of the session.
    SessionLevel,
    /// A fixed text.
    Text(&'static str),
}

/// An isolation level, by its name in PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// `read uncommitted`.
    ReadUncommitted,
    /// `read committed`.
    #[default]
    ReadCommitted,
    /// `repeatable read`.
    RepeatableRead,
    /// `serializable`.
    Serializable,
}

/// The names of the levels.
const LEVELS: [(Level, &str); 4] = [
    (Level::ReadUncommitted, "read uncommitted"),
    (Level::ReadCommitted, "read committed"),
    (Level::RepeatableRead, "repeatable read"),
    (Level::Serializable, "serializable"),
];

impl Level {
    /// The level's name in lower case, as `SHOW transaction_isolation` prints it.
    pub fn name(self) -> &'static str {
        LEVELS.iter().find(|(level, _)| *level == self).map_or("", |(_, name)| name)
    }

    /// The level named in a lower-case text with single blanks.
    pub fn find_in(text: &str) -> Option<Level> {
        LEVELS.iter().find(|(_, name)| text.contains(name)).map(|(level, _)| *level)
    }
}

/// The kind of reply to statements with a certain keyword.
enum Kind {
    Answer(Answer),
    Begin(&'static str),
    Rollback,
    Update,
    Select,
    Set,
    Show,
}

const ONE: &[Column<'static>] = &[Column { name: "abalance", type_oid: oid::INT4, value: Some("0") }];

/// A row of the registers that `bench recording` reads and writes.
const REGISTER: &[Column<'static>] = &[
    Column { name: "id", type_oid: oid::INT8, value: Some("417") },
    Column { name: "version", type_oid: oid::INT8, value: Some("1234") },
    Column { name: "writer", type_oid: oid::INT8, value: Some("1234567") },
];

/// The leading keyword, in upper case, and its kind; frequent ones first.
const KEYWORDS: &[(&str, Kind)] = &[
    ("SELECT", Kind::Select),
    ("UPDATE", Kind::Update),
    ("INSERT", Kind::Answer(Answer::Tag("INSERT 0 1"))),
    ("BEGIN", Kind::Begin("BEGIN")),
    ("END", Kind::Answer(Answer::Commit)),
    ("COMMIT", Kind::Answer(Answer::Commit)),
    ("ROLLBACK", Kind::Rollback),
    ("ABORT", Kind::Rollback),
    ("START", Kind::Begin("START TRANSACTION")),
    ("DELETE", Kind::Answer(Answer::Tag("DELETE 1"))),
    ("SET", Kind::Set),
    ("SHOW", Kind::Show),
    ("VALUES", Kind::Select),
    ("WITH", Kind::Select),
    ("VACUUM", Kind::Answer(Answer::Tag("VACUUM"))),
    ("TRUNCATE", Kind::Answer(Answer::Tag("TRUNCATE TABLE"))),
    ("ANALYZE", Kind::Answer(Answer::Tag("ANALYZE"))),
    ("CHECKPOINT", Kind::Answer(Answer::Tag("CHECKPOINT"))),
    ("SAVEPOINT", Kind::Answer(Answer::Tag("SAVEPOINT"))),
    ("RELEASE", Kind::Answer(Answer::Tag("RELEASE"))),
    ("LOCK", Kind::Answer(Answer::Tag("LOCK TABLE"))),
    ("CREATE", Kind::Answer(Answer::Tag("CREATE TABLE"))),
    ("ALTER", Kind::Answer(Answer::Tag("ALTER TABLE"))),
    ("DROP", Kind::Answer(Answer::Tag("DROP TABLE"))),
    ("RESET", Kind::Answer(Answer::Tag("RESET"))),
    ("DEALLOCATE", Kind::Answer(Answer::Tag("DEALLOCATE"))),
    ("DISCARD", Kind::Answer(Answer::Tag("DISCARD ALL"))),
    (
        "COPY",
        Kind::Answer(Answer::Refused(SqlError {
            sqlstate: "0A000",
            message: "the null server has no tables to copy to or from",
        })),
    ),
];

/// Queries whose result matters to the client, identified by a part of their lower-case text. The
/// first three are those of pgbench 15 to 18 before a run; all others get [`ONE`].
const QUERIES: &[(&str, Answer)] = &[
    (
        "count(*) from pgbench_branches",
        Answer::Row(&[Column { name: "count", type_oid: oid::INT8, value: Some("1") }]),
    ),
    (
        "pg_partitioned_table",
        Answer::Row(&[
            Column { name: "n", type_oid: oid::INT4, value: Some("2") },
            Column { name: "partstrat", type_oid: oid::TEXT, value: None },
            Column { name: "count", type_oid: oid::INT8, value: Some("0") },
        ]),
    ),
    (
        "version()",
        Answer::Row(&[Column {
            name: "version",
            type_oid: oid::TEXT,
            value: Some("PostgreSQL 15.0 (isobench null server)"),
        }]),
    ),
    ("current_setting('transaction_isolation')", Answer::Show("current_setting", Shown::Level)),
    (
        "current_setting('default_transaction_isolation')",
        Answer::Show("current_setting", Shown::SessionLevel),
    ),
];

/// The settings for `SHOW`; the first of them are also reported at start-up.
pub const SETTINGS: &[(&str, &str)] = &[
    ("server_version", "15.0"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("server_version_num", "150000"),
    ("max_connections", "20000"),
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "0"),
];

/// The number of [`SETTINGS`] reported at start-up.
pub const REPORTED: usize = 7;

/// Determines the reply to a statement (without a semicolon, except inside quotes).
pub fn answer(statement: &[u8]) -> Answer {
    let statement = trim_start(statement);
    let length = statement.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (keyword, rest) = statement.split_at(length);
    let kind = KEYWORDS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(keyword));
    match kind {
        Some((_, Kind::Answer(answer))) => *answer,
        Some((_, Kind::Begin(tag))) => Answer::Begin(tag, Level::find_in(&lower(rest))),
        Some((_, Kind::Rollback)) if lower(rest).split(' ').any(|word| word == "to") => {
            Answer::Tag("ROLLBACK")
        }
        Some((_, Kind::Rollback)) => Answer::Rollback,
        Some((_, Kind::Update)) if rest.trim_ascii_end().ends_with(b"RETURNING id, version, writer") => {
            Answer::Updated(REGISTER)
        }
        Some((_, Kind::Update)) => Answer::Tag("UPDATE 1"),
        Some((_, Kind::Select)) => select(rest),
        Some((_, Kind::Set)) => set(&lower(rest)),
        Some((_, Kind::Show)) => show(&lower(rest)),
        None if statement.is_empty() => Answer::Empty,
        None => Answer::Refused(SqlError {
            sqlstate: "42601",
            message: "the null server does not know this command",
        }),
    }
}

fn select(rest: &[u8]) -> Answer {
    // The benchmark's own query doesn't have to be compared with all others millions of times.
    if rest.starts_with(b" abalance FROM") {
        return Answer::Row(ONE);
    }
    if rest.starts_with(b" id, version, writer FROM") {
        return Answer::Row(REGISTER);
    }
    let text = lower(rest);
    QUERIES.iter().find(|(part, _)| text.contains(part)).map_or(Answer::Row(ONE), |(_, answer)| *answer)
}

fn set(text: &str) -> Answer {
    let Some(level) = Level::find_in(text) else { return Answer::Tag("SET") };
    if text.contains("session characteristics") || text.contains("default_transaction_isolation") {
        Answer::SetSession(level)
    } else if text.contains("transaction") {
        Answer::SetBlock(level)
    } else {
        Answer::Tag("SET")
    }
}

/// An unknown setting has an empty value, so that a client can record any setting.
fn show(text: &str) -> Answer {
    match text.trim() {
        "transaction_isolation" | "transaction isolation level" => {
            Answer::Show("transaction_isolation", Shown::Level)
        }
        "default_transaction_isolation" => Answer::Show("default_transaction_isolation", Shown::SessionLevel),
        name => SETTINGS
            .iter()
            .find(|(setting, _)| setting.eq_ignore_ascii_case(name))
            .map_or(Answer::Show("setting", Shown::Text("")), |(setting, value)| {
                Answer::Show(setting, Shown::Text(value))
            }),
    }
}

/// Lower case, with each run of blanks replaced by one.
pub fn lower(text: &[u8]) -> String {
    let mut result = String::with_capacity(text.len());
    for &byte in text {
        let blank = byte.is_ascii_whitespace();
        if !blank || !result.ends_with(' ') {
            result.push(if blank { ' ' } else { char::from(byte.to_ascii_lowercase()) });
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_decide_whatever_their_case() {
        assert_eq!(answer(b"update t set a = 1"), Answer::Tag("UPDATE 1"));
        assert_eq!(answer(b" -- x\n InSeRt into t values (1)"), Answer::Tag("INSERT 0 1"));
        assert_eq!(answer(b"END"), Answer::Commit);
        assert_eq!(answer(b"rollback to savepoint a"), Answer::Tag("ROLLBACK"));
        assert_eq!(answer(b"rollback"), Answer::Rollback);
        assert_eq!(answer(b"  "), Answer::Empty);
        assert!(matches!(answer(b"frobnicate"), Answer::Refused(_)));
        assert!(matches!(answer(b"(select 1)"), Answer::Refused(_)));
    }

    #[test]
    fn levels_are_found_where_they_are_set() {
        for (level, name) in LEVELS {
            let name = name.to_uppercase();
            let session = format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {name}");
            assert_eq!(answer(session.as_bytes()), Answer::SetSession(level));
            let default = format!("set default_transaction_isolation = '{name}'");
            assert_eq!(answer(default.as_bytes()), Answer::SetSession(level));
            let block = format!("set transaction isolation\n level {name}");
            assert_eq!(answer(block.as_bytes()), Answer::SetBlock(level));
            let begin = format!("begin isolation level {name}");
            assert_eq!(answer(begin.as_bytes()), Answer::Begin("BEGIN", Some(level)));
            assert_eq!(Level::find_in(level.name()), Some(level));
        }
        assert_eq!(answer(b"begin"), Answer::Begin("BEGIN", None));
        assert_eq!(answer(b"set search_path = public"), Answer::Tag("SET"));
    }

    #[test]
    fn special_queries_get_their_own_rows() {
        let Answer::Row(columns) = answer(b"select count(*) from pgbench_branches") else { panic!("no row") };
        assert_eq!(columns[0].value, Some("1"));
        assert_eq!(answer(b"SELECT id, version, writer FROM registers WHERE id = 1"), Answer::Row(REGISTER));
        assert_eq!(answer(b"UPDATE r SET v = 1 RETURNING id, version, writer "), Answer::Updated(REGISTER));
        let Answer::Row(columns) = answer(b"SELECT version()") else { panic!("no row") };
        assert!(columns[0].value.unwrap().starts_with("PostgreSQL "));
        assert_eq!(answer(b"SHOW Server_Version"), Answer::Show("server_version", Shown::Text("15.0")));
        assert_eq!(answer(b"show nothing_like_it"), Answer::Show("setting", Shown::Text("")));
    }
}
