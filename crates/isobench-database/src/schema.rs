//! Adds the schema of our own tables to SQL statements.
//!
//! A session's search path can be lost behind a proxy, and then a bare `DROP TABLE registers` would
//! hit a user's table. So on a server that isn't ours, every administrative statement names the
//! schema of its tables. The statements are our own, so matching whole words suffices; there is no
//! SQL parser here.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::database::Database;
use crate::table::Table;

/// pgbench's tables.
const PGBENCH: [Table; 4] = [Table::Accounts, Table::Branches, Table::History, Table::Tellers];

/// The kinds of objects in a schema that our set-ups create.
const KINDS: [&str; 4] = ["TABLE", "SEQUENCE", "FUNCTION", "PROCEDURE"];

/// The names of isobench's tables, sequences and functions: pgbench's, and those created by a
/// set-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnNames(BTreeSet<String>);

impl OwnNames {
    /// The names that these statements create or drop, in addition to pgbench's tables.
    pub fn made_by<'a>(statements: impl IntoIterator<Item = &'a str>) -> OwnNames {
        let mut names = BTreeSet::new();
        for sql in statements {
            let mut words = words(sql).filter(|word| word.kind == TokenKind::Name).map(|word| word.text);
            while let Some(word) = words.next() {
                if word == "CREATE" || word == "DROP" {
                    let mut rest = words.by_ref().skip_while(|word| matches!(*word, "OR" | "REPLACE"));
                    let made = rest.next().filter(|kind| KINDS.contains(kind));
                    let name = made.and_then(|_| rest.find(|word| !matches!(*word, "IF" | "EXISTS")));
                    names.extend(name.map(str::to_owned));
                }
            }
        }
        OwnNames(names)
    }

    /// The names created or dropped by the set-up, without pgbench's.
    pub(crate) fn of_set_up(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn contains(&self, name: &str) -> bool {
        let of_pgbench = |table: &Table| name.strip_prefix(table.name()).is_some_and(is_partition);
        PGBENCH.iter().any(of_pgbench) || self.0.contains(name)
    }
}

/// True if the text after a table's name makes the whole the name of the table or of one of its
/// partitions.
fn is_partition(rest: &str) -> bool {
    rest.is_empty()
        || rest.strip_prefix('_').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Database {
    /// The name of one of our tables, with its schema if one is to be named.
    pub fn placed(&self, table: &str) -> String {
        self.schema.as_ref().map_or_else(|| table.to_owned(), |schema| format!("{schema}.{table}"))
    }

    /// Adds the schema to each of these names in a statement of our own. Returns it unchanged if
    /// the search path decides.
    pub fn place<'a>(&self, sql: &'a str, names: &OwnNames) -> Cow<'a, str> {
        let Some(schema) = &self.schema else { return Cow::Borrowed(sql) };
        let mut placed = String::with_capacity(sql.len() + 64);
        for word in words(sql) {
            let name = match word.kind {
                TokenKind::Name => Some(word.text),
                TokenKind::Quoted => Some(word.text.trim_matches('\'')),
                TokenKind::Other => None,
            };
            match name.filter(|name| names.contains(name)) {
                Some(name) if word.kind == TokenKind::Quoted => {
                    placed.extend(["'", schema.as_str(), ".", name, "'"]);
                }
                Some(name) => placed.extend([schema.as_str(), ".", name]),
                None => placed.push_str(word.text),
            }
        }
        Cow::Owned(placed)
    }
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// A word that may be a table's name: neither a variable nor a part of a dotted name.
    Name,
    /// A string in single quotes, with the quotes. Functions such as `nextval` take names in this
    /// form.
    Quoted,
    /// Anything else, including comments.
    Other,
}

/// A token of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SqlToken<'a> {
    text: &'a str,
    kind: TokenKind,
}

/// The tokens of a statement, which together are the whole text. Bodies in dollar quotes are
/// statements, too.
fn words(sql: &str) -> impl Iterator<Item = SqlToken<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = sql.get(at..).filter(|rest| !rest.is_empty())?;
        let length = match rest.as_bytes() {
            [b'-', b'-', ..] => rest.find('\n').unwrap_or(rest.len()),
            // A meta-command of a script: its words are variables.
            [b'\\', letter, ..] if letter.is_ascii_alphabetic() => rest.find('\n').unwrap_or(rest.len()),
            [b'\'', inside @ ..] => {
                inside.iter().position(|byte| *byte == b'\'').map_or(rest.len(), |end| end + 2)
            }
            _ => rest
                .find(|c| !is_word(c))
                .unwrap_or(rest.len())
                .max(rest.chars().next().map_or(1, char::len_utf8)),
        };
        let text = &rest[..length];
        let (before, after) = (sql[..at].chars().next_back(), rest[length..].chars().next());
        at += length;
        let kind = match text.chars().next() {
            Some('\'') => TokenKind::Quoted,
            Some(first) if is_word(first) && !matches!(before, Some('.' | ':')) && after != Some('.') => {
                TokenKind::Name
            }
            _ => TokenKind::Other,
        };
        Some(SqlToken { text, kind })
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn elsewhere() -> Database {
        let mut database = Database::from_version_text("PostgreSQL 18.3 on x");
        database.schema = Some("isobench".to_owned());
        database
    }

    #[test]
    fn what_a_set_up_makes_and_drops_is_ours() {
        let names = OwnNames::made_by([
            "DROP TABLE IF EXISTS lists",
            "CREATE TABLE lists (id bigint)",
            "CREATE SEQUENCE turns",
            "CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE sql AS $f$ SELECT 1 $f$",
            "-- CREATE TABLE comment\nINSERT INTO users SELECT 'CREATE TABLE quoted (id int)'",
        ]);
        assert_eq!(names.0.iter().map(String::as_str).collect::<Vec<_>>(), ["f", "lists", "turns"]);
    }

    #[test]
    fn our_names_get_the_schema_and_nothing_else_does() {
        let (db, names) = (elsewhere(), OwnNames::made_by(["CREATE TABLE t (v int)", "CREATE SEQUENCE s"]));
        for (sql, placed) in [
            ("SELECT v FROM t WHERE t.v = :t", "SELECT v FROM isobench.t WHERE t.v = :t"),
            ("SELECT nextval('s'), 't and s'", "SELECT nextval('isobench.s'), 't and s'"),
            ("-- t\nINSERT INTO t(v) VALUES (1)", "-- t\nINSERT INTO isobench.t(v) VALUES (1)"),
            ("DO $do$BEGIN DELETE FROM t; END$do$", "DO $do$BEGIN DELETE FROM isobench.t; END$do$"),
            (
                "select pgbench_accounts.aid from pgbench_accounts",
                "select pgbench_accounts.aid from isobench.pgbench_accounts",
            ),
            (
                "drop table if exists pgbench_accounts, pgbench_history",
                "drop table if exists isobench.pgbench_accounts, isobench.pgbench_history",
            ),
            (
                "\\set t 1\nSELECT s FROM t\n\\gset t",
                "\\set t 1\nSELECT isobench.s FROM isobench.t\n\\gset t",
            ),
            (
                "alter table pgbench_accounts_12 add constraint pgbench_accounts_bid_fkey",
                "alter table isobench.pgbench_accounts_12 add constraint pgbench_accounts_bid_fkey",
            ),
            ("SELECT * FROM public.t, tt, T", "SELECT * FROM public.t, tt, T"),
        ] {
            assert_eq!(db.place(sql, &names), placed);
        }
        let own = Database::from_version_text("PostgreSQL 18.3 on x");
        assert_eq!(own.place("SELECT v FROM t", &names), "SELECT v FROM t");
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole(sql in "[a-z'$:. \\n-]{0,40}|\\PC{0,40}") {
            prop_assert_eq!(words(&sql).map(|word| word.text).collect::<String>(), sql);
        }
    }
}
