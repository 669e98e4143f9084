//! Joins decoded messages to transactions, without I/O.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::WalError;
use super::pgoutput::{Field, Message, OldRow, Relation};
use super::transaction::{WalRelation, WalTransaction, WalValue, WalWrite, WalWriteKind};

/// The time from 1970-01-01 to 2000-01-01, PostgreSQL's epoch, in microseconds.
const POSTGRESQL_EPOCH: i64 = 946_684_800_000_000;

/// Joins messages to transactions.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The tables read, by number: the names of their primary keys' columns, in the key's order.
    keys: HashMap<u32, Vec<String>>,
    /// The tables as last described by the server. Partitions are described, too, but not kept,
    /// because changes name their partitioned table.
    relations: HashMap<u32, Arc<WalRelation>>,
    open: Option<Open>,
    /// The most memory that a transaction may use, in bytes.
    limit: usize,
}

/// A transaction whose changes are being read.
#[derive(Debug)]
struct Open {
    transaction: WalTransaction,
    /// An estimate of the memory it uses, in bytes.
    size: usize,
}

impl Assembler {
    /// Expects changes of these tables: their numbers, and the columns of their keys in the key's
    /// order.
    pub(crate) fn new(keys: HashMap<u32, Vec<String>>, limit: usize) -> Assembler {
        Assembler { keys, relations: HashMap::new(), open: None, limit }
    }

    /// The most memory that a transaction may use, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a message. Returns a transaction when its commit has come, unless it wrote nothing.
    ///
    /// # Errors
    /// The messages aren't a sequence of transactions on the expected tables, or a transaction is
    /// too large.
    pub(crate) fn take(&mut self, message: Message<'_>) -> Result<Option<WalTransaction>, WalError> {
        match message {
            Message::Begin { final_lsn, commit_time, xid } => self.begin(final_lsn, commit_time, xid)?,
            Message::Commit { commit_lsn, .. } => return self.commit(commit_lsn),
            Message::Relation(relation) => self.describe(&relation)?,
            Message::Origin { .. } | Message::Type { .. } => {}
            Message::Insert { relation, new } => {
                let relation = self.relation(relation)?;
                let key = new_key(&relation, &new, None)?;
                self.add(relation, WalWriteKind::Insert, key, None, &new)?;
            }
            Message::Update { relation, old, new } => {
                let relation = self.relation(relation)?;
                let old = old.as_ref().map(|old| old_key(&relation, old)).transpose()?;
                let key = new_key(&relation, &new, old.as_ref())?;
                let old = old.filter(|old| *old != key);
                self.add(relation, WalWriteKind::Update, key, old, &new)?;
            }
            Message::Delete { relation, old } => {
                let relation = self.relation(relation)?;
                let key = old_key(&relation, &old)?;
                self.add(relation, WalWriteKind::Delete, key, None, &[])?;
            }
            Message::Truncate { relations, .. } => {
                for relation in relations {
                    let relation = self.relation(relation)?;
                    self.add(relation, WalWriteKind::Truncate, Vec::new(), None, &[])?;
                }
            }
        }
        Ok(None)
    }

    /// Checks that no transaction is half read.
    ///
    /// # Errors
    /// One is.
    pub(crate) fn at_rest(&self) -> Result<(), WalError> {
        if self.open.is_none() { Ok(()) } else { Err(WalError::Disorder("a transaction has no end")) }
    }

    fn begin(&mut self, commit_lsn: u64, commit_time: i64, xid: u32) -> Result<(), WalError> {
        self.at_rest()?;
        let commit_time_micros = commit_time.saturating_add(POSTGRESQL_EPOCH);
        let transaction = WalTransaction { xid, commit_lsn, commit_time_micros, writes: Vec::new() };
        self.open = Some(Open { transaction, size: 0 });
        Ok(())
    }

    fn commit(&mut self, lsn: u64) -> Result<Option<WalTransaction>, WalError> {
        let Some(Open { transaction, .. }) = self.open.take() else {
            return Err(WalError::Disorder("a commit has no beginning"));
        };
        if transaction.commit_lsn != lsn {
            return Err(WalError::Disorder("the commit is that of another transaction"));
        }
        // Version 14 sends transactions that wrote nothing, too.
        Ok((!transaction.writes.is_empty()).then_some(transaction))
    }

    fn describe(&mut self, relation: &Relation<'_>) -> Result<(), WalError> {
        let Some(key) = self.keys.get(&relation.id) else { return Ok(()) };
        let place = |name: &String| {
            let is_it = |column: &super::pgoutput::Column<'_>| column.key && column.name == name;
            relation.columns.iter().position(is_it)
        };
        let table = WalRelation {
            schema: relation.schema.to_owned(),
            table: relation.name.to_owned(),
            columns: relation.columns.iter().map(|column| column.name.to_owned()).collect(),
            key: key.iter().filter_map(place).collect(),
        };
        if table.key.len() != key.len() {
            return Err(WalError::KeyChanged { table: table.name() });
        }
        self.relations.insert(relation.id, Arc::new(table));
        Ok(())
    }

    fn relation(&self, id: u32) -> Result<Arc<WalRelation>, WalError> {
        let unknown = WalError::Disorder("a change of a table that wasn't described");
        self.relations.get(&id).cloned().ok_or(unknown)
    }

    fn add(
        &mut self,
        relation: Arc<WalRelation>,
        kind: WalWriteKind,
        key: Vec<Option<String>>,
        old_key: Option<Vec<Option<String>>>,
        new: &[Field<'_>],
    ) -> Result<(), WalError> {
        let limit = self.limit;
        let Some(open) = &mut self.open else {
            return Err(WalError::Disorder("a change outside of a transaction"));
        };
        if !new.is_empty() && new.len() != relation.columns.len() {
            return Err(WalError::Disorder("a row doesn't have its table's columns"));
        }
        let values = new.iter().map(|field| match field {
            Field::Null => WalValue::Null,
            Field::Unchanged => WalValue::Unchanged,
            Field::Text(text) => WalValue::Text((*text).to_owned()),
        });
        let write = WalWrite { relation, kind, key, old_key, values: values.collect() };
        open.size += size(&write);
        open.transaction.writes.push(write);
        if open.size > limit {
            let xid = open.transaction.xid;
            return Err(WalError::TooLarge { xid: Some(xid), limit });
        }
        Ok(())
    }
}

/// The key of a new row. A value that isn't repeated is taken from the old key, which the server
/// then sends.
fn new_key(
    relation: &WalRelation,
    new: &[Field<'_>],
    old: Option<&Vec<Option<String>>>,
) -> Result<Vec<Option<String>>, WalError> {
    let column = |(number, place): (usize, &usize)| match new.get(*place) {
        Some(Field::Text(text)) => Ok(Some((*text).to_owned())),
        Some(Field::Null) => Ok(None),
        Some(Field::Unchanged) | None => {
            old.and_then(|old| old.get(number).cloned()).ok_or(WalError::Disorder("a row's key is missing"))
        }
    };
    relation.key.iter().enumerate().map(column).collect()
}

/// The key of an old row.
fn old_key(relation: &WalRelation, old: &OldRow<'_>) -> Result<Vec<Option<String>>, WalError> {
    new_key(relation, &old.fields, None)
}

/// An estimate of the memory that a write uses, in bytes.
fn size(write: &WalWrite) -> usize {
    let text = |text: &String| size_of::<String>() + text.len();
    let column = |column: &Option<String>| column.as_ref().map_or(size_of::<Option<String>>(), text);
    let key = |key: &[Option<String>]| key.iter().map(column).sum::<usize>();
    let value = |value: &WalValue| match value {
        WalValue::Text(value) => text(value),
        WalValue::Null | WalValue::Unchanged => size_of::<WalValue>(),
    };
    size_of::<WalWrite>()
        + key(&write.key)
        + write.old_key.as_deref().map_or(0, key)
        + write.values.iter().map(value).sum::<usize>()
}

#[cfg(test)]
mod tests;
