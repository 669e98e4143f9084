//! Committed transactions and their writes, as the write-ahead log has them.

use std::sync::Arc;

/// A committed transaction that wrote rows of the tables read. They come in the order of their commit
/// records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalTransaction {
    /// The number of the transaction. The log names only top-level transactions: what was written
    /// under a savepoint, in which rows bear another number, is here, too.
    pub xid: u32,
    /// What it wrote, in its own order. What it rolled back to a savepoint isn't here.
    pub writes: Vec<WalWrite>,
}

/// A row written, or a table truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalWrite {
    /// The table; for a partition, its partitioned table.
    pub relation: Arc<WalRelation>,
    /// What was done.
    pub kind: WalWriteKind,
    /// The values of the primary key's columns, in the key's order: those of the new row, for a
    /// delete of the old one; empty for TRUNCATE. `None` is NULL, which PostgreSQL's primary keys
    /// don't have.
    pub key: Vec<Option<String>>,
    /// The key before an update that changed it.
    pub old_key: Option<Vec<Option<String>>>,
}

/// What was done to a row or table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalWriteKind {
    /// A row was inserted.
    Insert,
    /// A row was updated. An update that moves a row to another partition is a delete and an
    /// insert.
    Update,
    /// A row was deleted.
    Delete,
    /// The table was truncated.
    Truncate,
}

/// A table whose writes are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalRelation {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
}

impl WalRelation {
    /// The name, with its schema unless that is `public`.
    pub fn name(&self) -> String {
        if self.schema == "public" { self.table.clone() } else { format!("{}.{}", self.schema, self.table) }
    }
}

/// One text for a key: the value of its only column; or those of several, separated by commas, with
/// a backslash before commas and backslashes in them. Keys that differ have different texts.
pub fn key_text<T: AsRef<str>>(columns: &[T]) -> String {
    if let [only] = columns {
        return only.as_ref().to_owned();
    }
    let mut text = String::new();
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        for letter in column.as_ref().chars() {
            if matches!(letter, ',' | '\\') {
                text.push('\\');
            }
            text.push(letter);
        }
    }
    text
}

impl WalWrite {
    /// The texts of the keys of the rows written: the new one, and the old one if it differs. None
    /// for TRUNCATE.
    pub fn key_texts(&self) -> impl Iterator<Item = String> {
        let keys = [self.old_key.as_ref(), Some(&self.key)];
        keys.into_iter().flatten().filter(|key| !key.is_empty()).map(|key| {
            let columns: Vec<&str> = key.iter().map(|column| column.as_deref().unwrap_or("")).collect();
            key_text(&columns)
        })
    }
}

#[cfg(test)]
impl WalTransaction {
    /// What it wrote, in order: the kinds with the keys before and after.
    pub(crate) fn shown(&self) -> Vec<(WalWriteKind, String)> {
        let one = |write: &WalWrite| (write.kind, write.key_texts().collect::<Vec<_>>().join(" to "));
        self.writes.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_one_column_are_unchanged() {
        assert_eq!(key_text(&["a,b\\c"]), "a,b\\c");
        assert_eq!(key_text(&["a,b", "\\"]), "a\\,b,\\\\");
    }

    proptest! {
        #[test]
        fn different_keys_have_different_texts(
            one in prop::collection::vec("[a,\\\\]{0,3}", 2),
            other in prop::collection::vec("[a,\\\\]{0,3}", 2),
        ) {
            prop_assert_eq!(key_text(&one) == key_text(&other), one == other);
        }
    }
}
