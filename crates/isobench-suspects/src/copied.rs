//! COPY as the statement that does the same with rows: `COPY t FROM` inserts, `COPY t TO` and `COPY (query) TO` read.
//!
//! The data of a COPY isn't recorded, so every inserted value is a variable of its own.

use isobench_script::lexer::{Kind, Token, words};
use isobench_sql::Catalog;

/// What COPY does with a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It inserts rows.
    Inserts(Target),
    /// It reads a table.
    Reads(Target),
    /// It executes a query, which stands in parentheses.
    Queries(String),
}

/// A table with the columns that COPY names; none: all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    schema: Option<String>,
    table: String,
    /// As it is written.
    written: String,
    columns: Vec<String>,
}

impl Copied {
    /// Reads a COPY; `None` for another statement, or if it isn't understood.
    pub(crate) fn of(text: &str) -> Option<Copied> {
        let words = words(text);
        words.first().filter(|first| first.is("copy"))?;
        let mut at = 1;
        if words.get(at)?.is("(") {
            return query(text, &words);
        }
        if words.get(at)?.is("binary") {
            at += 1;
        }
        let mut names = vec![words.get(at)?.name()?];
        let mut written = words.get(at)?.text.to_owned();
        at += 1;
        while words.get(at)?.is(".") {
            names.push(words.get(at + 1)?.name()?);
            written = format!("{written}.{}", words[at + 1].text);
            at += 2;
        }
        let mut columns = Vec::new();
        if words.get(at)?.is("(") {
            let end = words[at..].iter().position(|word| word.is(")"))? + at;
            columns.extend(
                words[at + 1..end].iter().filter(|word| !word.is(",")).map(|word| word.text.to_owned()),
            );
            at = end + 1;
        }
        let table = names.pop()?;
        let target = Target { schema: names.pop(), table, written, columns };
        match words.get(at)? {
            from if from.is("from") => Some(Copied::Inserts(target)),
            to if to.is("to") => Some(Copied::Reads(target)),
            _ => None,
        }
    }

    /// The statement that does the same. `value` makes the text of each inserted value, by its number.
    pub(crate) fn statement(
        &self,
        catalog: &Catalog,
        value: &mut dyn FnMut(usize) -> String,
    ) -> Option<String> {
        match self {
            Copied::Queries(query) => Some(query.clone()),
            Copied::Reads(target) => {
                let columns =
                    if target.columns.is_empty() { "*".to_owned() } else { target.columns.join(", ") };
                Some(format!("SELECT {columns} FROM {}", target.written))
            }
            Copied::Inserts(target) => {
                let columns = target.all(catalog)?;
                let mut row = |number: usize| {
                    let from = number * columns.len();
                    let values: Vec<String> = (from..from + columns.len()).map(&mut *value).collect();
                    format!("({})", values.join(", "))
                };
                let rows = [row(0), row(1)].join(", ");
                Some(format!("INSERT INTO {} ({}) VALUES {rows}", target.written, columns.join(", ")))
            }
        }
    }

    /// What it does, and the table.
    pub(crate) fn deed(&self) -> Option<String> {
        match self {
            Copied::Inserts(target) => Some(format!("insert {}", target.table)),
            Copied::Reads(target) => Some(format!("read {}", target.table)),
            Copied::Queries(_) => None,
        }
    }

    /// True if it inserts.
    pub(crate) fn writes(&self) -> bool {
        matches!(self, Copied::Inserts(_))
    }
}

impl Target {
    /// Its columns, as SQL writes them.
    fn all(&self, catalog: &Catalog) -> Option<Vec<String>> {
        if !self.columns.is_empty() {
            return Some(self.columns.clone());
        }
        let relation = &catalog.relations[catalog.resolve(self.schema.as_deref(), &self.table)?];
        let quoted =
            relation.columns.iter().map(|column| format!("\"{}\"", column.name.replace('"', "\"\"")));
        let all: Vec<String> = quoted.collect();
        (!all.is_empty()).then_some(all)
    }
}

/// The query of `COPY (query) TO`.
fn query(text: &str, words: &[Token<'_>]) -> Option<Copied> {
    let mut depth = 0_usize;
    for word in &words[1..] {
        match word.text {
            "(" if word.kind == Kind::Other => depth += 1,
            ")" if word.kind == Kind::Other => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            let start = words[1].text.as_ptr().addr() - text.as_ptr().addr() + 1;
            let end = word.text.as_ptr().addr() - text.as_ptr().addr();
            return Some(Copied::Queries(text.get(start..end)?.trim().to_owned()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Option<String> {
        Copied::of(text)?.statement(&Catalog::default(), &mut |number| format!(":v{number}"))
    }

    #[test]
    fn a_copy_is_an_insert_or_a_query() {
        for (text, expected) in [
            (
                "copy \"event\" ( \"kind\", b ) from stdin binary;",
                "INSERT INTO \"event\" (\"kind\", b) VALUES (:v0, :v1), (:v2, :v3)",
            ),
            ("COPY s.t (a) FROM STDIN WITH (FORMAT csv)", "INSERT INTO s.t (a) VALUES (:v0), (:v1)"),
            ("COPY t TO STDOUT", "SELECT * FROM t"),
            ("COPY t (a, b) TO STDOUT (DELIMITER ',')", "SELECT a, b FROM t"),
            ("COPY (SELECT a FROM t WHERE f(b) = (1)) TO STDOUT", "SELECT a FROM t WHERE f(b) = (1)"),
        ] {
            assert_eq!(statement(text).as_deref(), Some(expected), "{text}");
        }
        for other in ["COPY", "COPY t", "COPY t FROM STDIN", "COPY (SELECT 1 TO STDOUT", "SELECT 1"] {
            assert_eq!(statement(other), None, "{other}");
        }
    }
}
