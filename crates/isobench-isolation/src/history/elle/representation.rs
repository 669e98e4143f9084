//! Representation of a history's rows and versions in Elle's formats.

use std::collections::{HashMap, HashSet};

use super::super::{History, Initial, Key, Operation, Version};
use super::{LISTS, Notation, REGISTERS};

/// A key.
pub(super) enum Name {
    Number(i64),
    Text(String),
}

/// The mapping of a history's keys and versions to Elle's.
pub(super) struct Representation<'h> {
    history: &'h History,
    /// For each table, true if operations use rows other than 0.
    many_rows: Vec<bool>,
    /// True if only one table is used.
    one_table: bool,
    /// The lowest counter written to each row; 0 if one was written without.
    lowest: HashMap<Key, u64>,
    written: Written,
}

/// The known parts of the versions that were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// All have values.
    Values,
    /// All have counters, and the versions of a row have different ones.
    Counters,
    Neither,
}

impl<'h> Representation<'h> {
    pub fn of(history: &'h History) -> Representation<'h> {
        let mut many_rows = vec![false; history.tables.len()];
        let mut used = vec![false; history.tables.len()];
        let mut lowest: HashMap<Key, u64> = HashMap::new();
        let (mut values, mut counters) = (true, true);
        for (index, _) in history.transactions().iter().enumerate() {
            for operation in history.operations(index) {
                let (Operation::Read { key, .. }
                | Operation::Write { key, .. }
                | Operation::Append { key, .. }
                | Operation::ReadList { key, .. }
                | Operation::Insert { key, .. }) = operation
                else {
                    continue;
                };
                let table = usize::from(key.table);
                used[table] = true;
                many_rows[table] |= key.id != 0;
                if let Operation::Write { version, .. } = operation {
                    values &= version.value.is_some();
                    counters &= version.counter.is_some();
                    let counter = version.counter.unwrap_or(0);
                    lowest.entry(key).and_modify(|lowest| *lowest = counter.min(*lowest)).or_insert(counter);
                }
            }
        }
        for key in history.initial().keys() {
            used[usize::from(key.table)] = true;
            many_rows[usize::from(key.table)] |= key.id != 0;
        }
        let written = match (values, counters) {
            (true, _) => Written::Values,
            (false, true) if counters_differ(history) => Written::Counters,
            _ => Written::Neither,
        };
        let one_table = used.iter().filter(|used| **used).count() == 1;
        Representation { history, many_rows, one_table, lowest, written }
    }

    /// The key of a row: its number, if there is only one table; the table's name, if it has only
    /// one row; otherwise both.
    pub fn key(&self, key: Key) -> Name {
        let table = usize::from(key.table);
        let name = self.history.tables[table].as_str();
        let many = self.many_rows[table];
        if self.one_table && (many || name == LISTS || name == REGISTERS) {
            Name::Number(key.id)
        } else if many {
            Name::Text(format!("{name} {}", key.id))
        } else {
            Name::Text(name.to_owned())
        }
    }

    /// The value for a version that was read; `None` for the initial version.
    pub fn read(&self, key: Key, version: Version) -> Result<Option<i64>, &'static str> {
        if self.stated(key) && self.written == Written::Values {
            return Ok(version.value);
        }
        let Some(lowest) = self.lowest.get(&key) else { return Ok(None) };
        let initial = version == Version::INITIAL || version.counter.is_some_and(|counter| counter < *lowest);
        if initial { Ok(None) } else { self.written(version).map(Some) }
    }

    /// True if the history states the initial value of the row.
    fn stated(&self, key: Key) -> bool {
        let initial = self.history.initial().get(&key);
        matches!(initial, Some(Initial::Version(Version { value: Some(_), .. })))
    }

    /// True if versions are represented by their values, including initial ones.
    pub fn by_value(&self) -> bool {
        self.written == Written::Values
    }

    /// The value for a version that was written.
    pub fn written(&self, version: Version) -> Result<i64, &'static str> {
        let number = match self.written {
            Written::Values => version.value,
            Written::Counters => version.counter.and_then(|counter| i64::try_from(counter).ok()),
            Written::Neither => None,
        };
        number.ok_or("a version with an unknown value and an ambiguous counter")
    }
}

fn counters_differ(history: &History) -> bool {
    let mut seen = HashSet::new();
    let transactions = 0..history.transactions().len();
    transactions.flat_map(|index| history.operations(index)).all(|operation| match operation {
        Operation::Write { key, version } => seen.insert((key, version.counter)),
        _ => true,
    })
}

/// A name as it is written to a file.
pub(super) fn spell(name: &Name, notation: Notation) -> String {
    match name {
        Name::Number(number) => number.to_string(),
        Name::Text(text) if notation == Notation::Edn && is_keyword(text) => format!(":{text}"),
        // A JSON string is also an EDN string.
        Name::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
    }
}

fn is_keyword(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-' | b'.'))
}
