//! The normal form of a statement: what statements with other values have in common.
//!
//! Literals, parameters, lists after `IN`, rows after `VALUES` and elements of `ARRAY[…]` are values, comments
//! go. What no parameter can stand for stays: ordinals after `ORDER BY`, modifiers of types, names of objects in
//! literals (`nextval('seq')`, `'t'::regclass`).

mod item;
mod scan;

use isobench_capture::Datum;

pub use self::item::{Element, Item, Source, Value};
use self::item::{key, lists, values, written};
pub use self::scan::MODIFIED;
use self::scan::Scan;

/// A statement in its normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normal {
    /// Equal for statements that differ in their values alone.
    pub key: String,
    /// Its parts, in order.
    pub items: Vec<Item>,
}

impl Normal {
    /// Normalises a statement with these parameters.
    pub fn of(statement: &str, parameters: &[Option<Datum>]) -> Normal {
        let mut scan = Scan::new(statement, parameters);
        let items = scan.items(None);
        Normal { key: key(&items), items }
    }

    /// Its values, as many for all statements of its key: of a list those of the first and of the last element,
    /// which are absent if there is one.
    pub fn values(&self) -> Vec<Option<&Value>> {
        let mut found = Vec::new();
        values(&self.items, &mut found);
        found
    }

    /// Its text, in which `write` says what stands for each value, by its number among [`Normal::values`]. `twice` says
    /// for which of the lists two elements are written.
    pub fn text(
        &self,
        twice: &dyn Fn(usize) -> bool,
        write: &mut dyn FnMut(usize, &Value) -> String,
    ) -> String {
        written(&self.items, twice, write)
    }

    /// For each of its lists of equal elements, in order, whether there are several.
    pub fn lists(&self) -> Vec<bool> {
        let mut found = Vec::new();
        lists(&self.items, &mut found);
        found
    }

    /// The first word, in lower case.
    pub fn verb(&self) -> String {
        self.key.split([' ', '(']).next().unwrap_or_default().to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(text: &str) -> String {
        Normal::of(text, &[]).key
    }

    #[test]
    fn values_become_places_wherever_they_stand() {
        for (text, expected) in [
            (
                "select a from t /* x */ where b='x''y' and c >= -5 order by 1, 2 desc limit 21 offset 3",
                "SELECT a FROM t WHERE b = ? AND c >= ? ORDER BY 1, 2 desc LIMIT ? OFFSET ?",
            ),
            ("INSERT INTO t (a, b) SELECT 5, 'x'", "INSERT INTO t (a, b) SELECT ?, ?"),
            ("SELECT a FROM t WHERE b = ANY(ARRAY[1,2,3])", "SELECT a FROM t WHERE b = ANY (ARRAY[?])"),
            ("SELECT a FROM t WHERE b BETWEEN 1 AND $2;", "SELECT a FROM t WHERE b BETWEEN ? AND ?"),
            (
                "UPDATE t SET n = NULL, m = 5::numeric(12,2), at = now() - INTERVAL '1' DAY WHERE id=$1",
                "UPDATE t SET n = ?, m = ?::numeric(12, 2), at = now() - ? WHERE id = ?",
            ),
            ("SELECT nextval('s'), 't'::regclass, count(*)", "SELECT nextval('s'), 't'::regclass, count(*)"),
            (
                "SELECT a->>'k', b@>'{}' FROM t WHERE c IS NULL",
                "SELECT a ->> ?, b @> ? FROM t WHERE c IS NULL",
            ),
            ("SELECT a-1, -1, a - -1 FROM t", "SELECT a - ?, ?, a - ? FROM t"),
        ] {
            assert_eq!(form(text), expected, "{text}");
        }
    }

    #[test]
    fn lists_and_rows_of_any_length_are_one() {
        let one = form("SELECT a FROM t WHERE b IN (1)");
        assert_eq!(one, form("SELECT a FROM t WHERE b IN (1, $1, 'x')"));
        assert_eq!(one, "SELECT a FROM t WHERE b IN (?)");
        let rows = "INSERT INTO t (a, b) VALUES (1, lower('x')), (2, lower('y')) RETURNING a";
        assert_eq!(form(rows), "INSERT INTO t (a, b) VALUES (?, lower(?)) RETURNING a");
        let normal = Normal::of(rows, &[]);
        assert_eq!((normal.values().len(), normal.lists()), (4, vec![true]));
        assert_eq!(Normal::of("INSERT INTO t (a) VALUES (1)", &[]).values().len(), 2);
        let written = normal.text(&|_| true, &mut |number, _| format!("v{number}"));
        assert_eq!(written, "INSERT INTO t (a, b) VALUES (v0, lower(v1)), (v2, lower(v3)) RETURNING a");
        assert_ne!(form("SELECT f(1, 2) FROM t"), form("SELECT f(1) FROM t"));
    }

    #[test]
    fn values_have_columns() {
        let columns = |text: &str| -> Vec<String> {
            let normal = Normal::of(text, &[]);
            let name = |value: &&Value| value.column.clone().unwrap_or_else(|| "-".to_owned());
            normal.values().into_iter().flatten().map(|value| name(&value)).collect()
        };
        assert_eq!(columns("INSERT INTO s.t (a, \"B\") VALUES (1, $1)"), ["a", "B"]);
        assert_eq!(
            columns("UPDATE t SET a = 1, b = b + 2 WHERE t.id = 3 AND k IN (4, 5)"),
            ["a", "-", "id", "k", "k"]
        );
    }

    proptest! {
        #[test]
        fn a_normal_form_is_its_own(text in "((SELECT|select|FROM|WHERE|IN|VALUES|UPDATE t SET|INSERT INTO t|a|\"b\"|'c'|E'\\\\n'|5|1.5|-|=|\\(|\\)|,|ARRAY\\[|\\]|\\$1|t\\.a|::|INTERVAL|DAY|LIMIT|ORDER BY|/\\* x \\*/| |é|NULL){1,3} ){0,14}") {
            let normal = Normal::of(&text, &[]);
            let again = Normal::of(&normal.key.replace('?', "$1"), &[]);
            prop_assert_eq!(&again.key, &normal.key);
            let mut written = 0;
            normal.text(&|_| true, &mut |number, _| {
                written = written.max(number + 1);
                String::new()
            });
            prop_assert!(written <= normal.values().len());
        }
    }
}
