//! Logs from which something is missing, as if the observation hadn't seen it.
//!
//! A read or a search that isn't seen needs no mark. A write that isn't seen does: the log says that
//! its statement may have written rows of the table ([`Entry::Unseen`]), or that the table isn't
//! closed.

use isobench_isolation::history::Key;
use isobench_isolation::observed::Replaced;

use super::log::{Entry, Log};

/// Something that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// What a statement of one attempt did.
    StatementOnce,
    /// What the statements in one place did, in all attempts.
    Statement,
    /// A table.
    Table,
    /// A row.
    Row,
    /// The columns of versions.
    Columns,
    /// Which versions were replaced.
    Replaced,
    /// Instants.
    Instants,
    /// Reads.
    Reads,
    /// Searches.
    Searches,
    /// All attempts but those that ended within a time, as in a check while the run goes on.
    Attempts,
}

impl Omission {
    pub const ALL: [Omission; 10] = [
        Omission::StatementOnce,
        Omission::Statement,
        Omission::Table,
        Omission::Row,
        Omission::Columns,
        Omission::Replaced,
        Omission::Instants,
        Omission::Reads,
        Omission::Searches,
        Omission::Attempts,
    ];

    /// The log without it.
    pub fn apply(self, log: &Log, random: &mut fastrand::Rng) -> Log {
        let mut log = log.clone();
        let statement = random.u16(0..4);
        let table = random.u16(0..2);
        let key = Key { table: 0, id: random.i64(1..4) };
        let only = (self == Omission::StatementOnce).then(|| random.usize(0..log.attempts.len().max(1)));
        let share = random.u8(0..=4);
        for (index, attempt) in log.attempts.iter_mut().enumerate() {
            if only.is_some_and(|only| only != index) {
                continue;
            }
            for (number, entry) in std::mem::take(&mut attempt.entries) {
                let some = random.u8(0..4) < share;
                let left = match self {
                    Omission::StatementOnce | Omission::Statement => {
                        if number == statement && !matches!(entry, Entry::Answered(_)) {
                            entry.written().map(Entry::Unseen)
                        } else {
                            Some(entry)
                        }
                    }
                    Omission::Table => Some(entry).filter(|entry| entry.table() != Some(table)),
                    Omission::Row => without_row(entry, key),
                    Omission::Columns if some => Some(without_columns(entry)),
                    Omission::Replaced if some => Some(without_replaced(entry)),
                    Omission::Instants if some => {
                        Some(entry).filter(|entry| !matches!(entry, Entry::Answered(_)))
                    }
                    Omission::Reads if some => {
                        Some(entry).filter(|entry| !matches!(entry, Entry::Read { .. }))
                    }
                    Omission::Searches if some => {
                        Some(entry).filter(|entry| !matches!(entry, Entry::Search { .. }))
                    }
                    _ => Some(entry),
                };
                attempt.entries.extend(left.map(|entry| (number, entry)));
            }
        }
        if self == Omission::Attempts {
            let mut ends: Vec<u64> = log.attempts.iter().map(|attempt| attempt.transaction.end).collect();
            ends.sort_unstable();
            let (from, to) = (random.usize(0..=ends.len() / 2), random.usize(ends.len() / 2..=ends.len()));
            let kept = &ends[from..to];
            log.attempts.retain(|attempt| kept.contains(&attempt.transaction.end));
            log.dropped = 1;
        }
        if self == Omission::Row {
            log.closed[usize::from(key.table)] = false;
        }
        log
    }
}

fn without_row(entry: Entry, row: Key) -> Option<Entry> {
    match entry {
        Entry::Read { key, .. } | Entry::Write { key, .. } | Entry::Delete { key, .. } if key == row => None,
        _ => Some(entry),
    }
}

fn without_columns(entry: Entry) -> Entry {
    match entry {
        Entry::Read { key, writer, .. } => Entry::Read { key, writer, columns: Vec::new() },
        Entry::Write { key, writer, replaced, .. } => {
            Entry::Write { key, writer, replaced, columns: Vec::new() }
        }
        _ => entry,
    }
}

/// That a row was inserted is known from the statement.
fn without_replaced(entry: Entry) -> Entry {
    match entry {
        Entry::Write { key, writer, replaced: Replaced::By(_), columns } => {
            Entry::Write { key, writer, replaced: Replaced::Unknown, columns }
        }
        _ => entry,
    }
}
