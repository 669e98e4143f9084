//! Rows, and the rows by which tables differ from an earlier state.

use std::collections::BTreeMap;

/// The values of a row as text, in the order of the columns.
pub type Row = Vec<Option<String>>;

/// The rows by which tables differ from an earlier state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// Those of each table that differs, by its index.
    pub tables: BTreeMap<usize, Changed>,
}

/// The rows of a table that are gone, and those that are new, each sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Rows that are gone.
    pub removed: Vec<Row>,
    /// Rows that are new.
    pub added: Vec<Row>,
}

/// The rows by which contents of tables differ.
pub(super) fn difference(before: &[BTreeMap<Row, i64>], now: &[BTreeMap<Row, i64>]) -> Delta {
    let more = |here: &BTreeMap<Row, i64>, there: &BTreeMap<Row, i64>| -> Vec<Row> {
        let rows = here.iter().flat_map(|(row, count)| {
            let count = count - there.get(row).copied().unwrap_or(0);
            std::iter::repeat_n(row.clone(), usize::try_from(count).unwrap_or(0))
        });
        rows.collect()
    };
    let changed = |(before, now)| Changed { removed: more(before, now), added: more(now, before) };
    let tables = before.iter().zip(now).map(changed).enumerate();
    Delta { tables: tables.filter(|(_, changed)| *changed != Changed::default()).collect() }
}

impl Delta {
    /// The difference after a further one.
    #[must_use]
    pub fn then(&self, further: &Delta) -> Delta {
        let mut sum = self.clone();
        for (table, changed) in &further.tables {
            let here = sum.tables.entry(*table).or_default();
            for row in &changed.removed {
                take_or_add(row, &mut here.added, &mut here.removed);
            }
            for row in &changed.added {
                take_or_add(row, &mut here.removed, &mut here.added);
            }
            here.removed.sort();
            here.added.sort();
        }
        sum.tables.retain(|_, changed| *changed != Changed::default());
        sum
    }

    /// The difference in the other direction.
    pub(super) fn inverse(&self) -> Delta {
        let turned =
            |changed: &Changed| Changed { removed: changed.added.clone(), added: changed.removed.clone() };
        Delta { tables: self.tables.iter().map(|(table, changed)| (*table, turned(changed))).collect() }
    }
}

/// Takes a row out of one list, or adds it to the other if it isn't there.
fn take_or_add(row: &Row, from: &mut Vec<Row>, to: &mut Vec<Row>) {
    match from.iter().position(|other| other == row) {
        Some(place) => {
            from.swap_remove(place);
        }
        None => to.push(row.clone()),
    }
}

/// The text of a row as PostgreSQL writes it (manual, "Composite Type Input and Output Syntax").
pub fn composite(row: &Row) -> String {
    let quoted = |value: &str| {
        let special = |letter: char| letter.is_ascii_whitespace() || "\",()\\\u{b}".contains(letter);
        if value.is_empty() || value.contains(special) {
            format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\"\""))
        } else {
            value.to_owned()
        }
    };
    let fields: Vec<String> =
        row.iter().map(|value| value.as_deref().map(quoted).unwrap_or_default()).collect();
    format!("({})", fields.join(","))
}

/// The fields of a row that PostgreSQL has written as text.
pub fn fields(text: &str) -> Row {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let mut row = vec![None];
    let mut quoted = false;
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        let field = row.last_mut().expect("there is always a field");
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.get_or_insert_with(String::new).push('"');
            }
            '"' => {
                quoted = !quoted;
                field.get_or_insert_with(String::new);
            }
            '\\' => field.get_or_insert_with(String::new).extend(letters.next()),
            ',' if !quoted => row.push(None),
            other => field.get_or_insert_with(String::new).push(other),
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_are_read_as_postgresql_writes_them() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            fields("(1,,\"\",\"a \"\"b\"\", c\",\"x\\\\y\")"),
            [some("1"), None, some(""), some("a \"b\", c"), some("x\\y")]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(row in prop::collection::vec(prop::option::of("[a-c\"\\\\,() ']{0,5}"), 1..5)) {
            prop_assert_eq!(fields(&composite(&row)), row);
        }
    }
}
