//! The history by rows: the operations on each row, in the order of the transactions.
//!
//! A *row* here is anything with a single order of versions: a register, a list, or a whole group
//! of rows that are inserted and read by a predicate. `registers.rs`, `lists.rs` and `groups.rs`
//! examine the operations.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::dependencies::{Node, OperationRef};
use crate::history::{History, Operation};

/// The kind of use of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Class {
    Register,
    List,
    Group,
}

/// The identification of a row; for a group, the id is that of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) class: Class,
    pub(super) table: u16,
    pub(super) id: i64,
}

impl Row {
    /// The row of an operation.
    pub(super) fn of(operation: &Operation<'_>) -> Row {
        let (class, table, id) = match *operation {
            Operation::Read { key, .. } | Operation::Write { key, .. } | Operation::Missed { key, .. } => {
                (Class::Register, key.table, key.id)
            }
            Operation::Append { key, .. } | Operation::ReadList { key, .. } => {
                (Class::List, key.table, key.id)
            }
            Operation::Insert { key, group } => (Class::Group, key.table, group),
            Operation::ReadGroup { table, group, .. } => (Class::Group, table, group),
        };
        Row { class, table, id }
    }
}

/// All rows, numbered from 0.
#[derive(Debug)]
pub(super) struct Rows {
    numbers: FxHashMap<Row, u32>,
    all: Vec<Row>,
    starts: Vec<usize>,
    places: Vec<OperationRef>,
}

impl Rows {
    /// Indexes a history.
    pub(super) fn new(history: &History) -> Rows {
        let transactions = u32::try_from(history.transactions().len()).unwrap_or(u32::MAX);
        let mut numbers: FxHashMap<Row, u32> = FxHashMap::default();
        let mut all = Vec::new();
        let mut counts: Vec<usize> = Vec::new();
        let mut of_record = Vec::with_capacity(history.operation_count());
        for node in 0..transactions {
            for operation in history.operations(node as usize) {
                let row = Row::of(&operation);
                let number = *numbers.entry(row).or_insert_with(|| {
                    all.push(row);
                    counts.push(0);
                    u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
                });
                counts[number as usize] += 1;
                of_record.push(number);
            }
        }
        let mut starts = Vec::with_capacity(all.len() + 1);
        let mut sum = 0;
        for count in &mut counts {
            starts.push(sum);
            sum += *count;
            *count = sum - *count;
        }
        starts.push(sum);
        let mut places = vec![OperationRef { transaction: 0, record: 0 }; of_record.len()];
        let mut record = 0_u32;
        for transaction in 0..transactions {
            for _ in history.range(transaction as usize) {
                let at = &mut counts[of_record[record as usize] as usize];
                places[*at] = OperationRef { transaction, record };
                *at += 1;
                record += 1;
            }
        }
        Rows { numbers, all, starts, places }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn row(&self, number: u32) -> Row {
        self.all[number as usize]
    }

    pub(super) fn number(&self, row: &Row) -> Option<u32> {
        self.numbers.get(row).copied()
    }

    /// The operations on a row; those of one transaction are consecutive, in its order.
    pub(super) fn places(&self, number: u32) -> &[OperationRef] {
        &self.places[self.starts[number as usize]..self.starts[number as usize + 1]]
    }
}

/// Splits a row's operations by transaction.
pub(super) fn by_transaction(places: &[OperationRef]) -> impl Iterator<Item = (Node, &[OperationRef])> {
    places.chunk_by(|a, b| a.transaction == b.transaction).map(|chunk| (chunk[0].transaction, chunk))
}
