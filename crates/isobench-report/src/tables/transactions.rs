//! The table of recorded transactions.
//!
//! A recording (`docs/reference/history-format.md`) is read chunk by chunk, so memory doesn't grow with its
//! length. Not here: the other tables.

use std::io::{Read, Write};
use std::time::Duration;

use isobench_isolation::History;
use isobench_isolation::history::binary::Reader;
use isobench_isolation::history::{Operation, Transaction};
use isobench_result::columns::{Place, place_columns};
use isobench_result::document::Round;

use super::ExportError;
use crate::csv::{field, line};

/// The columns after those of the place.
const COLUMNS: [&str; 9] =
    ["number", "client", "begin_us", "end_us", "duration_us", "warmup", "outcome", "reads", "writes"];

/// A table with a line for each recorded transaction.
pub struct TransactionsTable<W: Write> {
    output: W,
    written: u64,
}

impl<W: Write> TransactionsTable<W> {
    /// A table with its titles, without transactions yet.
    ///
    /// # Errors
    /// The output can't be written.
    pub fn new(mut output: W) -> Result<Self, ExportError> {
        let titles = place_columns().map(|column| column.name).chain(COLUMNS);
        output.write_all(line(titles.map(str::to_owned)).as_bytes())?;
        Ok(TransactionsTable { output, written: 0 })
    }

    /// Adds the recording of a round.
    ///
    /// # Errors
    /// It isn't a whole recording, or that of another run; the output can't be written.
    pub fn add(&mut self, place: &Place<'_>, recording: impl Read) -> Result<(), ExportError> {
        let mut reader = Reader::open(recording)?;
        let mut chunk = reader.blank();
        let before = line(place_columns().map(|column| field(column, place)));
        let before = before.trim_end_matches('\n');
        let from = measured_from(place.round);
        loop {
            chunk.clear();
            if !reader.next_chunk(&mut chunk)? {
                break;
            }
            for (index, transaction) in chunk.transactions().iter().enumerate() {
                let own = line(values(transaction, from, &chunk, index).into_iter());
                write!(self.output, "{before},{own}")?;
                self.written += 1;
            }
        }
        let found = reader.transactions();
        let examined = place.round.verdict.as_ref().map_or(0, |verdict| {
            let examined = &verdict.examined;
            examined.committed.saturating_add(examined.aborted).saturating_add(examined.unknown)
        });
        if examined > 0 && examined != found {
            return Err(ExportError::Foreign { found, examined });
        }
        Ok(())
    }

    /// Completes the table. Returns the number of its transactions.
    ///
    /// # Errors
    /// It can't be written.
    pub fn finish(mut self) -> Result<u64, ExportError> {
        self.output.flush()?;
        Ok(self.written)
    }
}

/// The values of [`COLUMNS`]; the measured part began `from` nanoseconds after the clock's origin.
fn values(transaction: &Transaction, from: i64, chunk: &History, index: usize) -> [String; 9] {
    let Transaction { id, client, begin, end, outcome, .. } = *transaction;
    let begin = micros(begin, from);
    let end = (end != u64::MAX).then(|| micros(end, from));
    let (mut reads, mut writes) = (0, 0);
    for operation in chunk.operations(index) {
        match operation {
            Operation::Read { .. } | Operation::ReadList { .. } | Operation::ReadGroup { .. } => reads += 1,
            Operation::Write { .. } | Operation::Insert { .. } | Operation::Append { .. } => writes += 1,
            // Rows that a search passed by: no row was read.
            Operation::Missed { .. } => {}
        }
    }
    let optional = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    [
        id.to_string(),
        client.to_string(),
        begin.to_string(),
        optional(end),
        optional(end.map(|end| end.saturating_sub(begin))),
        (begin < 0).to_string(),
        outcome.name().to_owned(),
        u64::to_string(&reads),
        u64::to_string(&writes),
    ]
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
