//! What a history claims, compared with what the simulated database really did.

use std::collections::BTreeMap;

use isobench_isolation::History;
use isobench_isolation::history::{Key, Operation, TransactionOutcome, text};

use super::clients::Run;
use super::database::{Database, Searched, State};
use super::log::{Entry, Log, Logged};

/// The pairs of transactions that wrote the same row, and those of them whose order isn't proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decided {
    pub pairs: u64,
    pub open: u64,
    /// The number of rows that searches missed of which something is known.
    pub missed: u64,
}

/// The writers of each row in a history: their counters, and the places of their commits.
type Writers = BTreeMap<Key, Vec<(u64, u64)>>;

/// Compares the proved orders of versions, and what searches missed, with the truth.
pub fn compare(log: &Log, database: &Database, history: &History) -> Result<Decided, String> {
    let attempts: Vec<&Logged> = log.ordered().collect();
    let mut writers = Writers::new();
    for (index, attempt) in attempts.iter().enumerate() {
        if attempt.transaction.outcome != TransactionOutcome::Committed {
            continue;
        }
        let at = commit(database, attempt).ok_or("a transaction wasn't committed")?;
        for operation in history.operations(index) {
            if let Operation::Write { key, version } = operation {
                let counter = version.counter.ok_or("a committed write has no counter")?;
                writers.entry(key).or_default().push((counter, at));
            }
        }
    }
    let mut decided = Decided::default();
    for (key, writers) in &mut writers {
        writers.sort_unstable();
        let mut highest = 0;
        for group in writers.chunk_by(|one, other| one.0 == other.0) {
            if group[0].1 < highest {
                return Err(format!("{key:?}: the commit {} wasn't before {highest}", group[0].1));
            }
            highest = group.last().map_or(0, |last| last.1);
        }
        for (place, one) in writers.iter().enumerate() {
            for other in writers[..place].iter().filter(|other| other.1 != one.1) {
                decided.pairs += 1;
                decided.open += u64::from(other.0 == one.0);
            }
        }
    }
    decided.missed = searches(database, &attempts, history, &writers)?;
    Ok(decided)
}

/// The place of an attempt's commit.
fn commit(database: &Database, attempt: &Logged) -> Option<u64> {
    match database.txs[attempt.tx?].state {
        State::Committed(at) => Some(at),
        _ => None,
    }
}

/// Compares what searches missed, of which the text of a history tells the statements. Returns the
/// number of rows.
fn searches(
    database: &Database,
    attempts: &[&Logged],
    history: &History,
    writers: &Writers,
) -> Result<u64, String> {
    let mut count = 0;
    let printed = text::print(history);
    let lines = printed.lines().filter(|line| line.starts_with('T'));
    for (line, attempt) in lines.zip(attempts) {
        let operations = line.split_once(": ").map_or("", |(_, operations)| operations);
        for missed in operations.split(", ").filter(|operation| operation.starts_with("m ")) {
            let words: Vec<&str> = missed.split(' ').collect();
            let table = u16::from(words[1] == "two");
            let key = Key { table, id: words[2].parse().map_err(|_| "no key")? };
            let after = |word: &str| {
                let place = words.iter().position(|it| *it == word)? + 1;
                words[place].trim_start_matches('v').parse::<u64>().ok()
            };
            let statement = words.last().and_then(|word| word.trim_start_matches('@').parse().ok());
            let own = commit(database, attempt).ok_or("a search of a transaction that wasn't committed")?;
            let of = |counter: Option<u64>| {
                let all = writers.get(&key).into_iter().flatten();
                let these = all.filter(move |writer| Some(writer.0) == counter && writer.1 != own);
                these.map(|writer| writer.1).collect::<Vec<_>>()
            };
            let searches = attempt.tx.map_or(&[][..], |tx| &database.txs[tx].searches);
            let searched = searches.iter().find(|searched| Some(searched.statement) == statement);
            let (least, most) = seen(database, searched.ok_or("there was no such search")?, key);
            let too_new = of(after("after")).into_iter().any(|at| at > most);
            let too_old = of(after("before")).into_iter().any(|at| at <= least);
            if too_new || too_old {
                return Err(format!("{attempt:?}: {missed}, which saw {least} to {most} commits"));
            }
            count += 1;
        }
    }
    Ok(count)
}

/// The least and the highest number of commits that a search saw of the objects with a key.
fn seen(database: &Database, searched: &Searched, key: Key) -> (u64, u64) {
    let objects = database.tuples.iter().filter(|tuple| tuple.key == key);
    let seen: Vec<u64> = objects
        .map(|tuple| searched.later.get(&tuple.incarnation).copied().unwrap_or(searched.snapshot))
        .collect();
    let least = seen.iter().min().copied().unwrap_or(searched.snapshot);
    (least, seen.iter().max().copied().unwrap_or(searched.snapshot))
}

/// True if every write of the log shows the version that it replaced, and no row was inserted again
/// or written by a transaction whose outcome or result is unknown.
pub fn shows_all(run: &Run) -> bool {
    let known = run.log.attempts.iter().all(|it| it.transaction.outcome != TransactionOutcome::Unknown);
    let mut inserted = BTreeMap::new();
    for (_, entry) in run.log.attempts.iter().flat_map(|attempt| &attempt.entries) {
        match entry {
            Entry::Write { key, .. } | Entry::Delete { key, .. } => {
                *inserted.entry(*key).or_insert(false) |= matches!(entry, Entry::Delete { .. });
            }
            _ => {}
        }
    }
    known && run.shows_replaced && run.log.closed == [true; 2] && !inserted.values().any(|it| *it)
}
