//! The table or row that a conflict was about, as far as the server reports it.
//!
//! Where a product reports it is part of its facts. Not here: which errors are conflicts, and their
//! reasons (`conflict.rs`).

use std::borrow::Cow;
use std::collections::HashMap;

use isobench_pgwire::{Connection, ServerError};

use crate::database::Database;
use crate::facts::object::{ObjectMark, Part};

/// The most characters of a name: keys may contain long texts.
const LONGEST: usize = 100;

/// The text before a table's number in PostgreSQL's errors.
const RELATION: &str = "relation ";

/// The text before a table's number in `CockroachDB`'s errors.
const TABLE: &str = "/Table/";

impl ObjectMark {
    fn find(self, error: &ServerError) -> Option<&str> {
        let context = error.context.as_deref().unwrap_or("");
        match self {
            ObjectMark::Quoted(part, before) => {
                let text = if part == Part::Message { &error.message } else { context };
                let (_, rest) = text.split_once(before)?;
                rest.split_once('"').map(|(name, _)| name)
            }
            ObjectMark::Statement => {
                let (_, statement) = context.split_once("SQL statement \"")?;
                target(statement)
            }
            ObjectMark::Number => {
                let line = error.detail.as_deref()?.lines().next()?;
                let relation = &line[line.find(RELATION)?..];
                let digits = relation[RELATION.len()..].bytes().take_while(u8::is_ascii_digit).count();
                (digits > 0).then_some(&relation[..RELATION.len() + digits])
            }
            ObjectMark::Key => {
                let about = error.message.split("meta={").next()?;
                let key = &about[about.find(TABLE)?..];
                Some(&key[..end_of_key(key)])
            }
            ObjectMark::DocKey => {
                let detail = error.detail.as_deref()?;
                let key = &detail[detail.find("DocKey(DocKey(")? + "DocKey(".len()..];
                // Hash and values; the end of the second list ends the key.
                let end = key.find("])")? + "])".len();
                Some(&key[..end])
            }
        }
    }
}

/// Names of tables by their numbers in errors. The numbers change whenever the tables are
/// recreated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relations(HashMap<u32, String>);

impl Relations {
    /// Reads the names, if the server's errors use numbers. Empty if the server refuses.
    pub fn read(conn: &mut Connection, db: &Database) -> Relations {
        let answer = db.product.relations.map(|sql| conn.query(sql).map(|answer| answer.rows));
        let rows = answer.and_then(Result::ok).unwrap_or_default();
        let pair = |row: Vec<Option<String>>| match &row[..] {
            [Some(number), Some(name)] => Some((number.parse().ok()?, name.clone())),
            _ => None,
        };
        Relations(rows.into_iter().filter_map(pair).collect())
    }

    /// Replaces a table's number in the object of a conflict by the table's name, if it is known:
    /// `relation 16409` → `t`, `/Table/110/5/5/0` → `t/5/5/0`.
    pub fn name(&self, object: Cow<'static, str>) -> Cow<'static, str> {
        let number = object.strip_prefix(TABLE).or_else(|| object.strip_prefix(RELATION));
        let Some(number) = number else { return object };
        let (number, rest) =
            number.split_at(number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len()));
        let name = number.parse().ok().and_then(|number: u32| self.0.get(&number));
        name.map(|name| Cow::Owned(format!("{name}{rest}"))).unwrap_or(object)
    }
}

/// The object of a conflict, by the first mark that finds one.
pub(crate) fn object(marks: &[ObjectMark], error: &ServerError) -> Option<Cow<'static, str>> {
    let named = error.table.as_deref().or_else(|| marks.iter().find_map(|mark| mark.find(error)))?;
    let (name, rest) = named.split_at(named.char_indices().nth(LONGEST).map_or(named.len(), |(at, _)| at));
    match (name, rest) {
        ("", _) => None,
        (name, "") => Some(Cow::Owned(name.to_owned())),
        (name, _) => Some(Cow::Owned(format!("{name}…"))),
    }
}

/// The table that a statement updates, deletes from or inserts into, or that it reads to check a
/// foreign key; without its schema.
fn target(statement: &str) -> Option<&str> {
    let mut words = statement.split_ascii_whitespace().peekable();
    let mut is = |word: &str| words.next_if(|next| next.eq_ignore_ascii_case(word)).is_some();
    if is("select") {
        words.find(|word| word.eq_ignore_ascii_case("from"))?;
        words.next_if(|next| next.eq_ignore_ascii_case("only"))?;
    } else {
        if !(is("update") || is("delete") && is("from") || is("insert") && is("into")) {
            return None;
        }
        is("only");
    }
    let name = words.next()?.split('(').next()?;
    let table = name.rsplit('.').next()?;
    Some(table.trim_matches(['"', ';']))
}

/// The length of a key at the start of a text, up to a blank or a bracket outside quotation marks.
fn end_of_key(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    let end = text.find(|letter: char| {
        let ends = !quoted && (letter.is_whitespace() || matches!(letter, ')' | ']' | ',' | '@'));
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    text[..end.unwrap_or(text.len())].trim_end_matches(':').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_names() {
        let relations = Relations(HashMap::from([(110, "t".to_owned()), (16409, "u".to_owned())]));
        for (object, name) in [
            ("relation 16409", "u"),
            ("relation 16410", "relation 16410"),
            ("/Table/110/5/5/0", "t/5/5/0"),
            ("/Table/11/5/5/0", "/Table/11/5/5/0"),
            ("/Table/110", "t"),
            ("/Table/", "/Table/"),
            ("110", "110"),
        ] {
            assert_eq!(relations.name(Cow::Borrowed(object)), name);
        }
    }
}
