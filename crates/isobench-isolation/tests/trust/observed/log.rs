//! The log of a simulated run, as a runner would keep it, in a form that tests can change.

use isobench_isolation::History;
use isobench_isolation::history::{Key, Transaction};
use isobench_isolation::observed::{
    CommittedWrites, KeyForm, ObservedColumn, ObservedDescription, ObservedDraft, ObservedEncoder,
    ObservedOperation, ObservedTable, Predicate, Replaced, ValueForm, resolve,
};

/// An operation of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Read { key: Key, writer: u32, columns: Vec<i64> },
    Write { key: Key, writer: u32, replaced: Replaced, columns: Vec<i64> },
    Delete { key: Key, deleted: u32 },
    Search { table: u16, predicate: u16, key: Option<i64>, operands: Vec<i64>, found: Vec<i64> },
    Answered(u64),
    Unseen(u16),
}

impl Entry {
    /// The table of a write.
    pub fn written(&self) -> Option<u16> {
        match self {
            Entry::Write { key, .. } | Entry::Delete { key, .. } => Some(key.table),
            Entry::Unseen(table) => Some(*table),
            _ => None,
        }
    }

    /// The table of a read or a write.
    pub fn table(&self) -> Option<u16> {
        match self {
            Entry::Read { key, .. } => Some(key.table),
            Entry::Search { table, .. } => Some(*table),
            _ => self.written(),
        }
    }
}

/// An attempt in the log.
#[derive(Debug, Clone)]
pub struct Logged {
    pub transaction: Transaction,
    /// The transaction of the database; `None` for the part of an attempt that a ROLLBACK TO undid.
    pub tx: Option<usize>,
    /// The thread that kept the log of its client.
    pub thread: usize,
    /// The statements' numbers and operations.
    pub entries: Vec<(u16, Entry)>,
}

/// The log of a run.
#[derive(Debug, Clone)]
pub struct Log {
    pub attempts: Vec<Logged>,
    pub predicates: Vec<Predicate>,
    pub horizon: u32,
    /// For each table, true if all its writes are shown.
    pub closed: [bool; 2],
    /// Attempts that are missing.
    pub dropped: u64,
    /// The server's own log, if it is read.
    pub committed: Option<CommittedWrites>,
}

impl Log {
    fn description(&self) -> ObservedDescription {
        let columns =
            ["id", "a", "b"].map(|name| ObservedColumn { name: name.to_owned(), form: ValueForm::Integer });
        let tables = ["one", "two"].into_iter().zip(self.closed).map(|(name, closed)| ObservedTable {
            name: name.to_owned(),
            key: KeyForm::Integer,
            columns: columns.to_vec(),
            closed,
        });
        ObservedDescription {
            fresh: true,
            usage: Vec::new(),
            may_read: Vec::new(),
            tables: tables.collect(),
            predicates: self.predicates.clone(),
            statements: (0..16).map(|number| format!("statement {number}")).collect(),
            texts: Vec::new(),
            horizon: self.horizon,
            dropped: self.dropped,
            committed: self.committed.clone(),
        }
    }

    /// The attempts in the order of the log.
    pub fn ordered(&self) -> impl Iterator<Item = &Logged> {
        (0..2).flat_map(|thread| self.attempts.iter().filter(move |attempt| attempt.thread == thread))
    }

    /// The history that the log proves.
    pub fn resolve(&self) -> History {
        let chunks = self.chunks();
        resolve(self.description(), || Ok(chunks.iter().map(Ok))).expect("a log")
    }

    /// The history that the logs of two machines prove: one for each thread. The second's clock is
    /// wrong by at most `within`.
    pub fn resolve_adopted(&self, within: u64) -> History {
        let [own, other] = self.chunks();
        let mut adopted = ObservedEncoder::default();
        adopted.adopt(&other, &self.description(), within, &[]).expect("a log");
        let adopted = adopted.take();
        assert!(within > 0 || adopted == other, "nothing changes on the way");
        resolve(self.description(), || Ok([&own, &adopted].into_iter().map(Ok))).expect("a log")
    }

    /// The same log as if the second thread's clock were ahead by so much.
    pub fn skewed(&self, ahead: i64) -> Log {
        let mut log = self.clone();
        for attempt in log.attempts.iter_mut().filter(|attempt| attempt.thread == 1) {
            let move_on = |at: &mut u64| *at = at.saturating_add_signed(ahead);
            move_on(&mut attempt.transaction.begin);
            if attempt.transaction.end < u64::MAX {
                move_on(&mut attempt.transaction.end);
            }
            for (_, entry) in &mut attempt.entries {
                if let Entry::Answered(at) = entry {
                    move_on(at);
                }
            }
        }
        log
    }

    /// What each thread has kept.
    fn chunks(&self) -> [Vec<u8>; 2] {
        let mut encoders = [ObservedEncoder::default(), ObservedEncoder::default()];
        let mut draft = ObservedDraft::default();
        for attempt in &self.attempts {
            draft.clear();
            for (statement, entry) in &attempt.entries {
                draft.push(operation(entry), *statement);
            }
            encoders[attempt.thread].push(&attempt.transaction, &draft);
        }
        encoders.map(|mut encoder| encoder.take())
    }
}

fn operation(entry: &Entry) -> ObservedOperation<'_> {
    match entry {
        Entry::Read { key, writer, columns } => {
            ObservedOperation::Read { key: *key, writer: *writer, columns }
        }
        Entry::Write { key, writer, replaced, columns } => {
            ObservedOperation::Write { key: *key, writer: *writer, replaced: *replaced, columns }
        }
        Entry::Delete { key, deleted } => ObservedOperation::Delete { key: *key, deleted: *deleted },
        Entry::Search { table, predicate, key, operands, found } => {
            ObservedOperation::Search { table: *table, predicate: *predicate, key: *key, operands, found }
        }
        Entry::Answered(at) => ObservedOperation::Answered { at: *at, unsent: *at },
        Entry::Unseen(table) => ObservedOperation::Unseen { table: *table },
    }
}
