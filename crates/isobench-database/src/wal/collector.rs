//! Collects the writes of one transaction after the other, within a limit of memory. No I/O.

use std::sync::Arc;

use super::error::WalError;
use super::transaction::{WalRelation, WalTransaction, WalWrite, WalWriteKind};

/// Collects writes to transactions.
#[derive(Debug)]
pub(crate) struct Collector {
    open: Option<Open>,
    /// The most memory that a transaction may use, in bytes.
    limit: usize,
}

/// A transaction whose changes are being read.
#[derive(Debug)]
struct Open {
    transaction: WalTransaction,
    /// What its commit has to bear.
    mark: u64,
    /// An estimate of the memory it uses, in bytes.
    size: usize,
}

impl Collector {
    pub(crate) fn new(limit: usize) -> Collector {
        Collector { open: None, limit }
    }

    /// The most memory that a transaction may use, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Begins a transaction, whose commit will have the same mark.
    ///
    /// # Errors
    /// Another one has no end.
    pub(crate) fn begin(&mut self, xid: u32, mark: u64) -> Result<(), WalError> {
        self.at_rest()?;
        self.open = Some(Open { transaction: WalTransaction { xid, writes: Vec::new() }, mark, size: 0 });
        Ok(())
    }

    /// Ends the transaction, and returns it unless it wrote nothing.
    ///
    /// # Errors
    /// None has begun, or it was another one.
    pub(crate) fn commit(&mut self, mark: u64) -> Result<Option<WalTransaction>, WalError> {
        match self.open.take() {
            None => Err(WalError::Disorder("a commit has no beginning")),
            Some(open) if open.mark != mark => {
                Err(WalError::Disorder("the commit is that of another transaction"))
            }
            // Version 14 sends transactions that wrote nothing, too.
            Some(open) => Ok((!open.transaction.writes.is_empty()).then_some(open.transaction)),
        }
    }

    /// Adds a write. `old` is the key before an update, if the server sent it.
    ///
    /// # Errors
    /// No transaction has begun, or it is too large.
    pub(crate) fn add(
        &mut self,
        relation: &Arc<WalRelation>,
        kind: WalWriteKind,
        key: Vec<Option<String>>,
        old: Option<Vec<Option<String>>>,
    ) -> Result<(), WalError> {
        let limit = self.limit;
        let Some(open) = &mut self.open else {
            return Err(WalError::Disorder("a change outside of a transaction"));
        };
        let old_key = old.filter(|old| *old != key);
        let write = WalWrite { relation: Arc::clone(relation), kind, key, old_key };
        open.size += size(&write);
        open.transaction.writes.push(write);
        if open.size > limit {
            let xid = open.transaction.xid;
            return Err(WalError::TooLarge { xid: Some(xid), limit });
        }
        Ok(())
    }

    /// Checks that no transaction is half read.
    ///
    /// # Errors
    /// One is.
    pub(crate) fn at_rest(&self) -> Result<(), WalError> {
        if self.open.is_none() { Ok(()) } else { Err(WalError::Disorder("a transaction has no end")) }
    }
}

/// An estimate of the memory that a write uses, in bytes.
fn size(write: &WalWrite) -> usize {
    let column =
        |column: &Option<String>| size_of::<Option<String>>() + column.as_ref().map_or(0, String::len);
    let key = |key: &[Option<String>]| key.iter().map(column).sum::<usize>();
    size_of::<WalWrite>() + key(&write.key) + write.old_key.as_deref().map_or(0, key)
}
