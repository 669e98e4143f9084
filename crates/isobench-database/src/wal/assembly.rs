//! Joins decoded messages to transactions, without I/O.

use std::collections::HashMap;
use std::sync::Arc;

use super::collector::Collector;
use super::error::WalError;
use super::pgoutput::{Field, Message, OldRow, Relation};
use super::transaction::{WalRelation, WalTransaction, WalWriteKind};

/// Joins messages to transactions.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The tables read, by number: the names of their primary keys' columns, in the key's order.
    keys: HashMap<u32, Vec<String>>,
    /// The tables as last described by the server. Partitions are described, too, but not kept,
    /// because changes name their partitioned table.
    relations: HashMap<u32, Described>,
    collector: Collector,
}

/// A table as the server describes it.
#[derive(Debug, Clone)]
struct Described {
    relation: Arc<WalRelation>,
    /// The number of its columns, without generated ones.
    columns: usize,
    /// The primary key, in the key's order: places of its columns.
    key: Vec<usize>,
}

impl Assembler {
    /// Expects changes of these tables: their numbers, and the columns of their keys in the key's
    /// order. A transaction may use so much memory, in bytes.
    pub(crate) fn new(keys: HashMap<u32, Vec<String>>, limit: usize) -> Assembler {
        Assembler { keys, relations: HashMap::new(), collector: Collector::new(limit) }
    }

    /// The collector of its writes.
    pub(crate) fn collector(&self) -> &Collector {
        &self.collector
    }

    /// Takes a message. Returns a transaction when its commit has come, unless it wrote nothing.
    ///
    /// # Errors
    /// The messages aren't a sequence of transactions on the expected tables, or a transaction is
    /// too large.
    pub(crate) fn take(&mut self, message: Message<'_>) -> Result<Option<WalTransaction>, WalError> {
        match message {
            Message::Begin { final_lsn, xid, .. } => self.collector.begin(xid, final_lsn)?,
            Message::Commit { commit_lsn, .. } => return self.collector.commit(commit_lsn),
            Message::Relation(relation) => self.describe(&relation)?,
            Message::Origin { .. } | Message::Type { .. } => {}
            Message::Insert { relation, new } => {
                let table = self.table(relation)?;
                let key = table.key(&new, None)?;
                self.collector.add(&table.relation, WalWriteKind::Insert, key, None)?;
            }
            Message::Update { relation, old, new } => {
                let table = self.table(relation)?;
                let old = old.as_ref().map(|old| table.old_key(old)).transpose()?;
                let key = table.key(&new, old.as_ref())?;
                self.collector.add(&table.relation, WalWriteKind::Update, key, old)?;
            }
            Message::Delete { relation, old } => {
                let table = self.table(relation)?;
                let key = table.old_key(&old)?;
                self.collector.add(&table.relation, WalWriteKind::Delete, key, None)?;
            }
            Message::Truncate { relations, .. } => {
                for relation in relations {
                    let table = self.table(relation)?;
                    self.collector.add(&table.relation, WalWriteKind::Truncate, Vec::new(), None)?;
                }
            }
        }
        Ok(None)
    }

    fn describe(&mut self, relation: &Relation<'_>) -> Result<(), WalError> {
        let Some(key) = self.keys.get(&relation.id) else { return Ok(()) };
        let place = |name: &String| {
            let is_it = |column: &super::pgoutput::Column<'_>| column.key && column.name == name;
            relation.columns.iter().position(is_it)
        };
        let table = WalRelation { schema: relation.schema.to_owned(), table: relation.name.to_owned() };
        let places: Vec<usize> = key.iter().filter_map(place).collect();
        if places.len() != key.len() {
            return Err(WalError::KeyChanged { table: table.name() });
        }
        let (relation_of, columns) = (Arc::new(table), relation.columns.len());
        self.relations.insert(relation.id, Described { relation: relation_of, columns, key: places });
        Ok(())
    }

    fn table(&self, id: u32) -> Result<Described, WalError> {
        let unknown = WalError::Disorder("a change of a table that wasn't described");
        self.relations.get(&id).cloned().ok_or(unknown)
    }
}

impl Described {
    /// The key of a row. A value that isn't repeated is taken from the old key, which the server then
    /// sends.
    fn key(
        &self,
        row: &[Field<'_>],
        old: Option<&Vec<Option<String>>>,
    ) -> Result<Vec<Option<String>>, WalError> {
        if row.len() != self.columns {
            return Err(WalError::Disorder("a row doesn't have its table's columns"));
        }
        let column = |(number, place): (usize, &usize)| match row.get(*place) {
            Some(Field::Text(text)) => Ok(Some((*text).to_owned())),
            Some(Field::Null) => Ok(None),
            Some(Field::Unchanged) | None => old
                .and_then(|old| old.get(number).cloned())
                .ok_or(WalError::Disorder("a row's key is missing")),
        };
        self.key.iter().enumerate().map(column).collect()
    }

    /// The key of an old row.
    fn old_key(&self, old: &OldRow<'_>) -> Result<Vec<Option<String>>, WalError> {
        self.key(&old.fields, None)
    }
}

#[cfg(test)]
mod tests;
