//! From a log to a history: versions get the counters that their order proves.
//!
//! The log is read three times: for the writes ([`super::resolution`]), for the reads whose writers weren't
//! seen, and for the history (`emit`). So memory is needed for writes, not for reads. If some searches are
//! made again and again, it is read once more for these ([`super::search`]).

mod commits;
mod counters;
mod emit;

use std::collections::BTreeSet;

use super::ObservedDescription;
use super::log::{Replaced, damaged};
use super::resolution::{Attempt, Resolution};
use super::search::{Counts, Repeated, Searches};
use crate::history::visibility::Visibility;
use crate::history::{FormatError, History, TransactionOutcome};

/// Turns a log into a history. `chunks` returns an iterator over the log's chunks, the same each
/// time. `worth` says for which searches it is found out what follows from others: their number, times
/// that of the rows that they can find.
///
/// # Errors
/// A chunk can't be read.
pub(super) fn resolve<I, B>(
    description: ObservedDescription,
    worth: u64,
    mut chunks: impl FnMut() -> Result<I, FormatError>,
) -> Result<History, FormatError>
where
    I: Iterator<Item = Result<B, FormatError>>,
    B: AsRef<[u8]>,
{
    let mut resolution = Resolution::new(description);
    for chunk in chunks()? {
        resolution.collect(chunk?.as_ref()).map_err(damaged)?;
    }
    resolution.shown = resolution.writes.len();
    resolution.snapshots.order();
    // By what is shown only: the second source doesn't tell the writes of subtransactions apart.
    let closed: Vec<bool> = resolution.description.tables.iter().map(|table| table.closed).collect();
    if let Some(committed) = resolution.description.committed.take() {
        resolution.commits = commits::commit_order(&mut resolution, &committed);
    }
    resolution.order();
    let mut counts = Counts::default();
    for chunk in chunks()? {
        resolution.inspect(chunk?.as_ref(), &closed, &mut counts).map_err(damaged)?;
    }
    let mut history = History::new(resolution.description.names());
    history.set_dropped(resolution.description.dropped);
    let mut searches = Searches::of(&resolution);
    searches.repeated = Repeated::of(&resolution, &mut searches, counts, worth, &mut chunks)?;
    let mut number = 0;
    for chunk in chunks()? {
        let bytes = chunk?;
        resolution.emit(bytes.as_ref(), &mut number, &mut searches, &mut history).map_err(damaged)?;
    }
    history.set_provenance(resolution.provenance(&searches));
    Ok(history)
}

impl Resolution {
    /// Proves the order of each row's versions.
    fn order(&mut self) {
        for number in 0..self.rows.len() {
            let all = std::mem::take(&mut self.rows[number].writes);
            let inserts = |write: &u32| self.writes[*write as usize].replaced == Replaced::Nothing;
            self.rows[number].unsettled = self.rows[number].doubtful && all.iter().any(inserts);
            let committed = |write: &u32| {
                let attempt = self.writes[*write as usize].attempt;
                self.attempts[attempt as usize].outcome == TransactionOutcome::Committed
            };
            let writes: Vec<u32> = all.into_iter().filter(committed).collect();
            let (ordered, contradictory) = self.order_row(number, &writes);
            self.rows[number].writes = ordered;
            self.rows[number].doubtful |= contradictory;
            let initial = self.unwritten.remove(&self.rows[number].key);
            let row = u32::try_from(number).unwrap_or(u32::MAX);
            self.rows[number].initial = initial
                .filter(|(writer, _)| {
                    !self.by_writer.contains_key(&(row, *writer)) && self.is_initial(*writer)
                })
                .map(|(_, place)| place);
        }
        // What is never written is needed for what joins missed.
        let mut joined = BTreeSet::new();
        for predicate in &self.description.predicates {
            predicate.each_linked(&mut |linked| {
                joined.insert(linked.table);
            });
        }
        self.unwritten.retain(|key, _| joined.contains(&key.table));
    }

    /// What snapshots say of the history's transactions; `None` if none was asked for.
    fn visibility(&self) -> Option<Visibility> {
        if self.snapshots.is_empty() {
            return None;
        }
        let mut attempts: Vec<_> = self.attempts.iter().map(|attempt| (attempt.outcome, None)).collect();
        // Of several (sub)transactions of an attempt the first one, by whose end all have ended.
        for (number, attempt) in &self.owners {
            let known = &mut attempts[*attempt as usize].1;
            let earlier = |known: u32| number.wrapping_sub(known).cast_signed() < 0;
            if known.is_none_or(earlier) {
                *known = Some(*number);
            }
        }
        let mut visibility = self.snapshots.visibility(&self.description, &attempts, &self.commits.covered);
        if visibility.why_not.is_none() {
            visibility.why_not = self.why_nothing_follows();
        }
        Some(visibility)
    }

    /// The reason why it isn't known who wrote what, if there is one.
    fn why_nothing_follows(&self) -> Option<String> {
        let unknown = |attempt: &&Attempt| attempt.outcome == TransactionOutcome::Unknown;
        let unknown = self.attempts.iter().filter(unknown).count();
        let reasons = [
            (!self.commits.known, "the write-ahead log wasn't read".to_owned()),
            (
                self.commits.strangers > 0,
                format!("{} transactions of others wrote at the same time", self.commits.strangers),
            ),
            (self.description.dropped > 0, "the recording isn't complete".to_owned()),
            (unknown > 0, format!("the outcome of {unknown} transactions is unknown")),
            (self.committed_reads_left > 0, "rows were read whose writers weren't seen".to_owned()),
            (self.reads_odd > 0, "rows were read whose writers weren't seen to write them".to_owned()),
            (self.commits.differ > 0, "the log and what statements showed contradict each other".to_owned()),
        ];
        reasons.into_iter().find(|(is, _)| *is).map(|(_, why)| why)
    }
}
