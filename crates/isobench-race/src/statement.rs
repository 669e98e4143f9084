//! Texts of statements: which of them others can see, and which end a transaction.
//!
//! Not here: what a statement reads and writes. Every place between two statements is tried.

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_script::lexer::{Kind, Token, tokens};
use isobench_sql::normal::Normal;

/// The part of a `traceparent` by which the commands of a race are known, before their numbers.
/// Source: W3C Trace Context, "trace-id".
const TRACE: &str = "1505be9cace0000000000000";

/// Commands that neither read nor change what other sessions see.
const APART: [&str; 12] = [
    "BEGIN",
    "START",
    "SET",
    "SHOW",
    "RESET",
    "DISCARD",
    "DEALLOCATE",
    "LISTEN",
    "UNLISTEN",
    "SAVEPOINT",
    "RELEASE",
    "CLOSE",
];

/// Functions that drivers call to look whether the server is there, or to leave a session as they found it.
const PINGS: [&str; 9] = [
    "version",
    "current_schema",
    "current_database",
    "current_setting",
    "set_config",
    "pg_backend_pid",
    "pg_is_in_recovery",
    "pg_advisory_unlock_all",
    "pg_postmaster_start_time",
];

/// Schemas of the system's catalogs.
const SCHEMAS: [&str; 2] = ["pg_catalog", "information_schema"];

/// Catalogs that drivers and frameworks ask for types, tables and columns, without their schema.
const CATALOGS: [&str; 14] = [
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_database",
    "pg_description",
    "pg_enum",
    "pg_extension",
    "pg_index",
    "pg_namespace",
    "pg_range",
    "pg_settings",
    "pg_type",
];

/// A kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Nobody else sees it.
    Apart,
    /// It ends the transaction.
    End,
    /// Anything else.
    Work,
}

/// The statements that are sent together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Their texts, with values, in one line for each statement.
    pub(crate) text: String,
    /// No other session sees any of them.
    pub(crate) apart: bool,
    /// They only end the transaction.
    pub(crate) only_ends: bool,
    /// The last one that others can see ends the transaction.
    pub(crate) ends: bool,
    /// The level that they ask for.
    pub(crate) level: Option<Level>,
    /// The command whose `traceparent` is in a comment.
    pub(crate) traced: Option<usize>,
    /// Their text without values.
    pub(crate) shape: String,
}

impl Batch {
    /// The meaning of these texts.
    pub(crate) fn of(texts: &[String]) -> Self {
        let mut natures = Vec::new();
        let mut level = None;
        for text in texts {
            let all = tokens(text);
            for statement in all.split(|token| token.text == ";") {
                let words: Vec<&Token<'_>> = statement.iter().filter(|token| is_word(token)).collect();
                level = level.or_else(|| asked_level(&words));
                if !words.is_empty() {
                    natures.push(nature(&words));
                }
            }
        }
        let text = texts.join(";\n");
        Self {
            apart: natures.iter().all(|nature| *nature == Nature::Apart),
            only_ends: natures.contains(&Nature::End) && !natures.contains(&Nature::Work),
            ends: natures.iter().rfind(|nature| **nature != Nature::Apart) == Some(&Nature::End),
            level,
            traced: traced(&text),
            shape: Normal::of(&text, &[]).key,
            text,
        }
    }
}

fn is_word(token: &Token<'_>) -> bool {
    !matches!(token.kind, Kind::Blank | Kind::Comment)
}

fn nature(words: &[&Token<'_>]) -> Nature {
    let Some(first) = words.first() else { return Nature::Apart };
    let second = |options: &[&str]| words.iter().skip(1).take(2).any(|word| word.is_any(options));
    if first.is("ROLLBACK") && second(&["TO"]) {
        return Nature::Apart;
    }
    if first.is_any(&["COMMIT", "END", "ROLLBACK", "ABORT"]) {
        return Nature::End;
    }
    if first.is_any(&APART) || is_ping(words) || reads_catalogs(words) {
        return Nature::Apart;
    }
    Nature::Work
}

/// True for `SELECT 1`, `SELECT version()` and the like.
fn is_ping(words: &[&Token<'_>]) -> bool {
    let [select, rest @ ..] = words else { return false };
    if !select.is("SELECT") {
        return false;
    }
    match rest {
        [] => true,
        [one, after @ ..] if one.kind == Kind::Number || one.kind == Kind::Text => {
            matches!(after, [] | [_] | [_, _]) && !after.iter().any(|word| word.is_any(&["FROM", ","]))
        }
        [schema, dot, call @ ..] if schema.is("pg_catalog") && dot.is(".") => is_call_of_ping(call),
        [value] if value.is_any(&["current_user", "session_user", "current_schema"]) => true,
        call => is_call_of_ping(call),
    }
}

/// True for one call of such a function with nothing but literals.
fn is_call_of_ping(call: &[&Token<'_>]) -> bool {
    let [function, open, .., close] = call else { return false };
    let calls = call.iter().filter(|word| word.is("(")).count();
    function.is_any(&PINGS)
        && open.is("(")
        && close.is(")")
        && calls == 1
        && !call.iter().any(|word| word.is("FROM"))
}

/// True for a query on nothing but the system's catalogs: each has its schema, or a name that only they
/// have.
fn reads_catalogs(words: &[&Token<'_>]) -> bool {
    let first = words.first().is_some_and(|first| first.is("SELECT"));
    let changes = words.iter().any(|word| word.is_any(&["INSERT", "UPDATE", "DELETE", "MERGE"]));
    let sources = words.windows(2).filter(|pair| pair[0].is_any(&["FROM", "JOIN"]));
    let is_catalog = |name: &str| SCHEMAS.contains(&name) || CATALOGS.contains(&name);
    let named: Vec<bool> = sources.map(|pair| pair[1].name().is_some_and(|name| is_catalog(&name))).collect();
    first && !changes && !named.is_empty() && named.iter().all(|catalog| *catalog) && !lists_sources(words)
}

/// True if a comma separates sources of the query.
fn lists_sources(words: &[&Token<'_>]) -> bool {
    let mut depth = 0_i32;
    let list = words.iter().skip_while(|word| !word.is("FROM"));
    for word in list.take_while(|word| !word.is_any(&["WHERE", "GROUP", "ORDER"])) {
        match word.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            "," if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// The level that a statement asks for: `ISOLATION LEVEL …`, or a setting.
fn asked_level(words: &[&Token<'_>]) -> Option<Level> {
    let named = |level: &Level| {
        let name: Vec<&str> = level.name().split(' ').collect();
        let is_there = |at: usize| {
            let found = words.get(at..at + name.len());
            found.is_some_and(|found| found.iter().zip(&name).all(|(word, name)| word.is(name)))
        };
        let after = |pair: &[&Token<'_>]| pair[0].is("ISOLATION") && pair[1].is("LEVEL");
        words.windows(2).enumerate().any(|(at, pair)| after(pair) && is_there(at + 2))
    };
    let set = |level: &Level| {
        let setting =
            words.iter().any(|word| word.is_any(&["default_transaction_isolation", "transaction_isolation"]));
        let literal = |word: &&Token<'_>| {
            word.literal().is_some_and(|(_, text, _)| text.eq_ignore_ascii_case(level.name()))
        };
        setting && words.first().is_some_and(|first| first.is("SET")) && words.iter().any(literal)
    };
    Level::ALL.into_iter().find(|level| named(level) || set(level))
}

/// The `traceparent` of a command.
pub(crate) fn traceparent(command: usize) -> String {
    format!("00-{TRACE}{:08x}-{:016x}-01", command + 1, command + 1)
}

fn traced(text: &str) -> Option<usize> {
    let at = text.find(TRACE)? + TRACE.len();
    let number = u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?;
    usize::try_from(number).ok()?.checked_sub(1)
}

/// The text with values in place of its parameters, for people.
pub(crate) fn filled(sql: &str, values: &[String]) -> String {
    let value = |token: &Token<'_>| {
        let number: usize = token.text.get(1..)?.parse().ok()?;
        values.get(number.checked_sub(1)?)
    };
    let mut out = String::new();
    for token in tokens(sql) {
        match (token.kind == Kind::Parameter).then(|| value(&token)).flatten() {
            Some(value) => out.push_str(value),
            None => out.push_str(token.text),
        }
    }
    out
}

/// The words of a text that may be names of tables.
pub(crate) fn names(sql: &str) -> Vec<String> {
    tokens(sql).iter().filter_map(Token::name).collect()
}

/// True if a text has a word of those that write or lock rows.
pub(crate) fn may_write(sql: &str) -> bool {
    let words = ["INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY", "SHARE", "CALL"];
    tokens(sql).iter().any(|token| token.is_any(&words))
}

/// True if a statement with this tag asks for no change: nothing by its words and no call of these functions, or a row
/// that was there already (`INSERT … ON CONFLICT DO NOTHING`). An update that finds no row does ask for one: the
/// application may take it for done.
pub(crate) fn asks_for_no_change(sql: &str, tag: &str, functions: &BTreeSet<String>) -> bool {
    let all = tokens(sql);
    let words: Vec<&Token<'_>> = all.iter().filter(|token| is_word(token)).collect();
    if words.iter().any(|word| word.name().is_some_and(|name| functions.contains(&name))) {
        return false;
    }
    let is_one = all
        .iter()
        .rev()
        .skip_while(|token| !is_word(token) || token.text == ";")
        .all(|token| token.text != ";");
    if is_one && tag == "INSERT 0 0" {
        return true;
    }
    let writes = ["INSERT", "DELETE", "MERGE", "TRUNCATE", "COPY", "CALL", "DO", "EXECUTE", "REFRESH"];
    // FOR UPDATE and FOR NO KEY UPDATE only lock.
    let updates = |at: usize| {
        words[at].is("UPDATE")
            && !at.checked_sub(1).is_some_and(|before| words[before].is_any(&["FOR", "KEY"]))
    };
    !words.iter().any(|word| word.is_any(&writes)) && !(0..words.len()).any(updates)
}

/// A text in one line, without comments.
pub(crate) fn in_one_line(sql: &str) -> String {
    let mut out = String::new();
    for token in tokens(sql) {
        match token.kind {
            Kind::Blank | Kind::Comment if out.ends_with(' ') || out.is_empty() => {}
            Kind::Blank | Kind::Comment => out.push(' '),
            _ => out.push_str(token.text),
        }
    }
    out.truncate(out.trim_end_matches([' ', ';']).len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sql: &str) -> Batch {
        Batch::of(&[sql.to_owned()])
    }

    #[test]
    fn statements_that_no_other_session_sees() {
        for sql in [
            "BEGIN",
            "/* x */ begin isolation level serializable;",
            "SET application_name = 'x'; SHOW timezone",
            "",
            "SELECT 1",
            "select 'ping'",
            "SELECT version()",
            "select pg_catalog.version()",
            "SELECT set_config('a', 'b', false)",
            "ROLLBACK TO SAVEPOINT a",
            "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
            "SELECT current_user",
            "SELECT current_schema",
            "SELECT pg_is_in_recovery()",
            "SELECT t.oid, t.typname FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid",
            "SELECT table_name FROM information_schema.tables",
            "SELECT t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON true",
        ] {
            assert!(batch(sql).apart, "{sql}");
        }
        for sql in [
            "SELECT 1 FROM item",
            "UPDATE item SET stock = 1",
            "SELECT f(1)",
            "SELECT version(), f()",
            "SELECT version(f())",
            "BEGIN; UPDATE item SET stock = 1",
            "SELECT * FROM pg_catalog.pg_class, item",
            "SELECT nextval('s')",
            "SELECT pg_advisory_unlock(1)",
            "SELECT pg_advisory_unlock_all(), f()",
            "SELECT * FROM pg_type, item",
            "SELECT * FROM pg_typed",
            "SELECT current_user FROM item",
            "COMMIT",
        ] {
            assert!(!batch(sql).apart, "{sql}");
        }
    }

    #[test]
    fn ends_of_transactions() {
        assert!(batch("commit").only_ends && batch("ROLLBACK;").only_ends && batch("END").ends);
        let whole = batch("UPDATE item SET stock = 1; COMMIT; SELECT 1");
        assert!(whole.ends && !whole.only_ends);
        assert!(!batch("COMMIT; UPDATE item SET stock = 1").ends);
    }

    #[test]
    fn levels_that_are_asked_for() {
        assert_eq!(batch("BEGIN ISOLATION LEVEL REPEATABLE READ").level, Some(Level::RepeatableRead));
        let session = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE";
        assert_eq!(batch(session).level, Some(Level::Serializable));
        let setting = "SET default_transaction_isolation TO 'read committed'";
        assert_eq!(batch(setting).level, Some(Level::ReadCommitted));
        assert_eq!(batch("SELECT 'ISOLATION LEVEL SERIALIZABLE'").level, None);
    }

    #[test]
    fn a_traceparent_in_a_comment_names_the_command() {
        let text = format!("SELECT * FROM item /*traceparent='{}'*/", traceparent(1));
        assert_eq!(batch(&text).traced, Some(1));
        assert_eq!(batch("SELECT * FROM item").traced, None);
    }

    #[test]
    fn statements_that_ask_for_no_change() {
        let functions = BTreeSet::from(["pay".to_owned()]);
        let nothing = |sql: &str, tag: &str| asks_for_no_change(sql, tag, &functions);
        for (sql, tag) in [
            ("SELECT pg_try_advisory_lock(7)", "SELECT 1"),
            ("select id from job for update skip locked", "SELECT 0"),
            ("SELECT 1 FROM job FOR NO KEY UPDATE;", "SELECT 1"),
            ("INSERT INTO item VALUES (1) ON CONFLICT DO NOTHING", "INSERT 0 0"),
            ("COMMIT", "COMMIT"),
        ] {
            assert!(nothing(sql, tag), "{sql}");
        }
        for (sql, tag) in [
            ("SELECT pay(7)", "SELECT 1"),
            ("WITH u AS (UPDATE item SET stock = 1 RETURNING 1) SELECT * FROM u", "SELECT 0"),
            ("UPDATE item SET stock = 1 WHERE version = 7", "UPDATE 0"),
            ("UPDATE a SET b = 1; INSERT INTO item VALUES (1) ON CONFLICT DO NOTHING", "INSERT 0 0"),
            ("CALL pay_all()", "CALL"),
        ] {
            assert!(!nothing(sql, tag), "{sql}");
        }
    }

    #[test]
    fn texts_for_people() {
        let values = ["7".to_owned(), "'a'".to_owned()];
        assert_eq!(
            filled("WHERE a = $1 AND b = $2 AND c = '$1'", &values),
            "WHERE a = 7 AND b = 'a' AND c = '$1'"
        );
        assert_eq!(in_one_line("SELECT  a, -- x\n b /* y */ FROM t ;"), "SELECT a, b FROM t");
        assert!(may_write("select * from t for update") && !may_write("select updated from t"));
    }
}
