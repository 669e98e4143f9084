//! The table of recorded transactions.
//!
//! A recording (`docs/reference/history-format.md`) is read chunk by chunk, so memory doesn't grow
//! with its length.

use std::io::{Read, Write};
use std::time::Duration;

use isobench_isolation::History;
use isobench_isolation::history::binary::Reader;
use isobench_isolation::history::{Operation, Transaction, TransactionOutcome};
use isobench_result::{Place, Round, Verdict, place_columns};

use crate::file::{Kind, TableFile, Value};
use crate::places::{field, value};
use crate::{ColumnType, ExportError};

/// The columns after those of the place.
const COLUMNS: [ColumnType; 9] = [
    ("number", Kind::Progressing, true),
    ("client", Kind::Integer, true),
    ("begin_us", Kind::Progressing, true),
    ("end_us", Kind::Progressing, false),
    ("duration_us", Kind::Progressing, false),
    ("warmup", Kind::Flag, true),
    ("outcome", Kind::Text, true),
    ("reads", Kind::Integer, true),
    ("writes", Kind::Integer, true),
];

pub(crate) fn fields() -> Vec<ColumnType> {
    place_columns().map(field).chain(COLUMNS).collect()
}

/// A file with a row for each recorded transaction.
pub struct TransactionsFile<W: Write + Send> {
    file: TableFile<W>,
    /// The outcomes' names, by their place in [`TransactionOutcome::ALL`].
    outcomes: [Value; TransactionOutcome::ALL.len()],
}

impl<W: Write + Send> TransactionsFile<W> {
    /// A file without transactions yet.
    ///
    /// # Errors
    /// The output can't be written.
    pub fn new(output: W) -> Result<Self, ExportError> {
        let outcomes = TransactionOutcome::ALL.map(|outcome| Value::text(outcome.name().to_owned()));
        Ok(TransactionsFile { file: TableFile::new("transactions", &fields(), output)?, outcomes })
    }

    /// Adds the recording of a round.
    ///
    /// # Errors
    /// It isn't a whole recording, or that of another run; the output can't be written.
    pub fn add(&mut self, place: &Place<'_>, recording: impl Read) -> Result<(), ExportError> {
        let mut reader = Reader::open(recording)?;
        let mut chunk = reader.blank();
        let before: Vec<Value> = place_columns().map(|column| value(column, place)).collect();
        let from = measured_from(place.round);
        loop {
            chunk.clear();
            if !reader.next_chunk(&mut chunk)? {
                break;
            }
            for (index, transaction) in chunk.transactions().iter().enumerate() {
                let own = self.values(transaction, from, &chunk, index);
                self.file.push(before.iter().cloned().chain(own))?;
            }
        }
        let (found, examined) = (reader.transactions(), place.round.verdict.as_ref().map_or(0, examined));
        if examined > 0 && examined != found {
            return Err(ExportError::Foreign { found, examined });
        }
        Ok(())
    }

    /// Completes the file. Returns the number of its rows.
    ///
    /// # Errors
    /// It can't be written.
    pub fn finish(self) -> Result<u64, ExportError> {
        self.file.finish()
    }

    /// The values of [`COLUMNS`]; the measured part began `from` nanoseconds after the clock's origin.
    fn values(&self, transaction: &Transaction, from: i64, chunk: &History, index: usize) -> [Value; 9] {
        let Transaction { id, client, begin, end, outcome, .. } = *transaction;
        let begin = micros(begin, from);
        let end = (end != u64::MAX).then(|| micros(end, from));
        let (mut reads, mut writes) = (0, 0);
        for operation in chunk.operations(index) {
            match operation {
                Operation::Read { .. } | Operation::ReadList { .. } | Operation::ReadGroup { .. } => {
                    reads += 1;
                }
                Operation::Write { .. } | Operation::Insert { .. } | Operation::Append { .. } => writes += 1,
                // Rows that a search passed by: no row was read.
                Operation::Missed { .. } => {}
            }
        }
        [
            Value::count(id),
            Value::Integer(client.into()),
            Value::Integer(begin),
            end.map_or(Value::Missing, Value::Integer),
            end.map_or(Value::Missing, |end| Value::Integer(end.saturating_sub(begin))),
            Value::Flag(begin < 0),
            self.outcomes[outcome as usize].clone(),
            Value::Integer(reads),
            Value::Integer(writes),
        ]
    }
}

/// When the measured part of a recording begins, in nanoseconds on its clock.
fn measured_from(round: &Round) -> i64 {
    let seconds = round.history.as_ref().map_or(0.0, |history| history.measured_from_s);
    let from = Duration::try_from_secs_f64(seconds).ok();
    from.and_then(|from| i64::try_from(from.as_nanos()).ok()).unwrap_or(0)
}

/// Whole microseconds from one instant to another, both in nanoseconds.
fn micros(instant: u64, from: i64) -> i64 {
    i64::try_from(instant).unwrap_or(i64::MAX).saturating_sub(from).div_euclid(1000)
}

/// Transactions in the history that was checked.
fn examined(verdict: &Verdict) -> u64 {
    let examined = &verdict.examined;
    examined.committed.saturating_add(examined.aborted).saturating_add(examined.unknown)
}
