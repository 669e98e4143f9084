//! Every schedule of a few small transactions that PostgreSQL may execute, at any levels.
//!
//! Rows are locked for writing until the end. A statement of read committed sees what was committed
//! before it; all of a stronger transaction sees what was committed before its first statement, and it
//! fails if it writes a row that somebody has written since. Schedules with a dangerous structure of
//! serializable transactions are left out (Ports and Grittner 2012, §3.3: the last transaction of the
//! structure committed first; if the first one only reads, before that one's snapshot).

use std::collections::BTreeMap;

use isobench_isolation::history::{
    Draft, Key, Mode, Operation, Provenance, Transaction, TransactionOutcome, Version,
};
use isobench_isolation::{History, Level};

/// A statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Read(i64),
    Write(i64),
}

impl Step {
    /// All of two rows.
    pub const ALL: [Step; 4] = [Step::Read(0), Step::Read(1), Step::Write(0), Step::Write(1)];
}

/// A version of a row.
#[derive(Debug, Clone, Copy)]
struct Stored {
    writer: usize,
    /// The instant of the commit; `None` before it.
    published: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Running {
    next: usize,
    /// The instant of the first statement.
    begun: Option<usize>,
    ended: Option<usize>,
    failed: bool,
    /// For each read, the row and the number of versions before and with the one read.
    reads: Vec<(i64, usize)>,
    operations: Vec<Operation<'static>>,
}

/// The state of all transactions between two statements.
#[derive(Clone)]
struct State<'p> {
    programs: &'p [Vec<Step>],
    levels: &'p [Level],
    now: usize,
    rows: BTreeMap<i64, Vec<Stored>>,
    running: Vec<Running>,
}

/// Calls `found` with the history of each schedule of these programs at these levels.
pub fn each_schedule(programs: &[Vec<Step>], levels: &[Level], found: &mut dyn FnMut(&History)) {
    let running = vec![Running::default(); programs.len()];
    State { programs, levels, now: 0, rows: BTreeMap::new(), running }.all(found);
}

impl State<'_> {
    fn all(&self, found: &mut dyn FnMut(&History)) {
        let mut done = true;
        for tx in (0..self.running.len()).filter(|tx| self.running[*tx].ended.is_none()) {
            done = false;
            let mut next = self.clone();
            if next.step(tx) {
                next.all(found);
            }
        }
        if done && !self.is_dangerous() {
            found(&self.history(false));
            found(&self.history(true));
        }
    }

    /// Executes a statement, or COMMIT; returns false if it has to wait. (A deadlock ends nowhere.)
    fn step(&mut self, tx: usize) -> bool {
        self.now += 1;
        let begun = *self.running[tx].begun.get_or_insert(self.now);
        let snapshot = if self.levels[tx] < Level::RepeatableRead { self.now } else { begun };
        let Some(step) = self.programs[tx].get(self.running[tx].next).copied() else {
            self.running[tx].ended = Some(self.now);
            let own = self.rows.values_mut().flatten().filter(|stored| stored.writer == tx);
            own.for_each(|stored| stored.published = Some(self.now));
            return true;
        };
        self.running[tx].next += 1;
        match step {
            Step::Read(row) => {
                let versions = self.rows.get(&row).map_or(&[][..], Vec::as_slice);
                let sees =
                    |stored: &Stored| stored.writer == tx || stored.published.is_some_and(|at| at < snapshot);
                let seen = versions.iter().rposition(sees).map_or(0, |place| place + 1);
                if seen == 0 || versions[seen - 1].writer != tx {
                    self.running[tx].reads.push((row, seen));
                }
                let version = Version::counted(seen as u64);
                self.running[tx].operations.push(Operation::Read { key: key(row), version });
            }
            Step::Write(row) => {
                let versions = self.rows.entry(row).or_default();
                let last = versions.last().copied();
                if let Some(last) = last.filter(|last| last.writer != tx) {
                    match last.published {
                        None => return false,
                        Some(at) if at >= snapshot => {
                            self.fail(tx);
                            return true;
                        }
                        Some(_) => {}
                    }
                }
                if last.is_none_or(|last| last.writer != tx) {
                    versions.push(Stored { writer: tx, published: None });
                    let version = Version::counted(versions.len() as u64);
                    self.running[tx].operations.push(Operation::Write { key: key(row), version });
                }
            }
        }
        true
    }

    fn fail(&mut self, tx: usize) {
        self.running[tx].ended = Some(self.now);
        self.running[tx].failed = true;
        self.rows.values_mut().for_each(|versions| versions.retain(|stored| stored.writer != tx));
    }

    /// True if one transaction read a row that another one wrote without the former seeing it.
    fn overlooks(&self, reader: usize, writer: usize) -> bool {
        self.running[reader].reads.iter().any(|(row, seen)| {
            let versions = self.rows.get(row).map_or(&[][..], Vec::as_slice);
            versions.iter().skip(*seen).any(|stored| stored.writer == writer)
        })
    }

    /// True if PostgreSQL doesn't let all of these transactions commit.
    fn is_dangerous(&self) -> bool {
        let all = || {
            let committed = |tx: &usize| self.levels[*tx] == Level::Serializable && !self.running[*tx].failed;
            (0..self.running.len()).filter(committed)
        };
        let begun = |tx: usize| self.running[tx].begun.unwrap_or(usize::MAX);
        let ended = |tx: usize| self.running[tx].ended.unwrap_or(usize::MAX);
        let conflict = |reader: usize, writer: usize| {
            let concurrent = begun(reader) < ended(writer) && begun(writer) < ended(reader);
            reader != writer && concurrent && self.overlooks(reader, writer)
        };
        let writes = |tx: usize| self.programs[tx].iter().any(|step| matches!(step, Step::Write(_)));
        all().any(|pivot| {
            all().filter(|first| conflict(*first, pivot)).any(|first| {
                all().filter(|last| conflict(pivot, *last)).any(|last| {
                    ended(last) <= ended(first)
                        && ended(last) < ended(pivot)
                        && (writes(first) || ended(last) < begun(first))
                })
            })
        })
    }

    /// The history as it was recorded, or as it was observed, with statements.
    fn history(&self, observed: bool) -> History {
        let mut history = History::new(vec!["rows".to_owned()]);
        if observed {
            let statements = (0..4).map(|number| format!("a.sql:{number}: SELECT")).collect();
            history.set_provenance(Provenance { statements, ..Provenance::default() });
        }
        for (tx, running) in self.running.iter().enumerate() {
            let mut draft = Draft::new();
            for (operation, statement) in running.operations.iter().zip(0..) {
                if observed {
                    draft.push_by(self.observed(tx, *operation), statement);
                } else {
                    draft.push(*operation);
                }
            }
            let outcome =
                if running.failed { TransactionOutcome::Aborted } else { TransactionOutcome::Committed };
            let (begin, end) = (running.begun.unwrap_or(0) as u64, running.ended.unwrap_or(0) as u64);
            let client = u32::try_from(tx).unwrap_or(u32::MAX);
            let mode = Some(Mode::of(self.levels[tx]));
            history.push(Transaction { id: tx as u64 + 1, client, begin, end, outcome, mode }, &draft);
        }
        history
    }
}

impl State<'_> {
    /// An operation with the writer of its version as the server shows it.
    fn observed(&self, tx: usize, operation: Operation<'static>) -> Operation<'static> {
        let version = |key: Key, Version { counter, .. }: Version| {
            let place = counter.and_then(|counter| usize::try_from(counter).ok()?.checked_sub(1));
            let stored = place.and_then(|place| self.rows.get(&key.id)?.get(place));
            let value =
                stored.and_then(|stored| i64::try_from(stored.writer).ok()).map(|writer| writer + 100);
            if place.is_some() { Version { counter, value } } else { Version::INITIAL }
        };
        let own = Version::valued(i64::try_from(tx).unwrap_or(0) + 100);
        match operation {
            // What was rolled back has no place in the order of versions.
            Operation::Write { key, .. } if self.running[tx].failed => Operation::Write { key, version: own },
            Operation::Write { key, version: of } => Operation::Write { key, version: version(key, of) },
            Operation::Read { key, version: of } => Operation::Read { key, version: version(key, of) },
            other => other,
        }
    }
}

fn key(id: i64) -> Key {
    Key { table: 0, id }
}
