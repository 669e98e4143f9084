//! The writes of a log, and what they prove of rows and attempts.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::ObservedDescription;
use super::committed::CommitOrder;
use super::log::{Chunk, ObservedOperation, Replaced};
use super::snapshots::Snapshots;
use crate::history::{Key, Transaction, TransactionOutcome, Version};

/// An attempt, by its position in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) outcome: TransactionOutcome,
    /// An instant before it sent its first statement.
    pub(super) begin: u64,
    /// An instant after the reply to its last statement.
    pub(super) end: u64,
    /// An instant at which its COMMIT hadn't been sent.
    pub(super) sent: u64,
}

/// A write of a row.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Written {
    pub(super) row: u32,
    pub(super) attempt: u32,
    /// The (sub)transaction; 0 for a deletion.
    pub(super) writer: u32,
    pub(super) replaced: Replaced,
    /// True if an earlier statement of its transaction may have written rows of the table unseen.
    pub(super) after_unseen: bool,
    /// True if it inserted the row, or its transaction may have done so before, unseen: then the row may
    /// be another one than those with its key before.
    pub(super) may_insert: bool,
    /// An instant at which it had been answered.
    pub(super) answered: u64,
    /// The position of its columns' values.
    pub(super) columns: Option<u32>,
    /// Its place in the proved order; `None` if its transaction isn't known to be committed, or
    /// another write of its own transaction stands for it.
    pub(super) counter: Option<u64>,
    /// True if earlier writes of the row by its transaction got no counter.
    pub(super) partial: bool,
    /// True if another write of the row by its own transaction came later.
    pub(super) superseded: bool,
}

impl Written {
    pub(super) fn is_deletion(&self) -> bool {
        self.writer == 0
    }

    pub(super) fn version(&self) -> Version {
        let value = (!self.is_deletion()).then_some(i64::from(self.writer));
        Version { counter: self.counter, value }
    }
}

/// What is known of a row that was written.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Row {
    pub(super) key: Key,
    /// The row's writes, by position in [`Resolution::writes`], in the proved order; only those with
    /// counters once [`Resolution::order`] has run.
    pub(super) writes: Vec<u32>,
    /// True if a transaction of unknown outcome wrote it, or its order is contradictory.
    pub(super) doubtful: bool,
    /// True if a second source has writes of it that were not shown, or may not have been.
    pub(super) partly_shown: bool,
    /// The position of the columns' values of the initial version, if they were seen.
    pub(super) initial: Option<u32>,
    /// True if the first known write may be an insertion. If the row existed before the run, its
    /// deletion wasn't seen.
    pub(super) inserted: bool,
    /// True if a transaction deleted it, which may have been rolled back.
    pub(super) deleted: bool,
    /// True if the row was inserted in the run, and a transaction of unknown outcome wrote it: it may
    /// have deleted it, too, and isn't known to be of the same object as the others.
    pub(super) unsettled: bool,
}

/// The writes of a log, and what they prove.
pub(super) struct Resolution {
    pub(super) description: ObservedDescription,
    pub(super) attempts: Vec<Attempt>,
    pub(super) numbers: FxHashMap<Key, u32>,
    pub(super) rows: Vec<Row>,
    pub(super) writes: Vec<Written>,
    pub(super) columns: Vec<i64>,
    /// The writes, by row and (sub)transaction; of several, the first, or of those of a committed
    /// transaction the one that others can see.
    pub(super) by_writer: FxHashMap<(u32, u32), u32>,
    /// The attempt that each (sub)transaction belongs to.
    pub(super) owners: FxHashMap<u32, u32>,
    /// The columns of versions that no transaction of the log wrote: before the order is proved, all of
    /// which may be initial ones; afterwards those of rows that aren't written.
    pub(super) unwritten: FxHashMap<Key, (u32, u32)>,
    pub(super) reads_left: u64,
    /// Those of them in committed transactions.
    pub(super) committed_reads_left: u64,
    /// Reads of rows with a writer that can't have written them.
    pub(super) reads_odd: u64,
    /// See [`Provenance::unsearched`].
    pub(super) unsearched: BTreeSet<u16>,
    /// Texts of keys, by table and number in the log, with the number in the history.
    pub(super) keys: FxHashMap<(u16, i64), i64>,
    pub(super) texts: Vec<Vec<String>>,
    /// The number of writes in the log; the others are known from the second source only.
    pub(super) shown: usize,
    /// What the second source tells.
    pub(super) commits: CommitOrder,
    /// What snapshots say.
    pub(super) snapshots: Snapshots,
}

/// The rows that an attempt has written so far.
pub(super) type OwnWrites = FxHashMap<u32, OwnWrite>;

/// The newest versions that an attempt has read so far, by row: their counters.
pub(super) type ReadVersions = FxHashMap<u32, u64>;

/// An attempt's writes of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnWrite {
    /// The first of the latest writes that look alike to others, by position in
    /// [`Resolution::writes`].
    pub(super) latest: usize,
    /// True if one of the writes inserted the row.
    pub(super) inserts: bool,
}

impl Resolution {
    pub(super) fn new(description: ObservedDescription) -> Resolution {
        let texts = vec![Vec::new(); description.tables.len()];
        let snapshots = Snapshots::new(description.horizon);
        Resolution {
            description,
            snapshots,
            attempts: Vec::new(),
            numbers: FxHashMap::default(),
            rows: Vec::new(),
            writes: Vec::new(),
            columns: Vec::new(),
            by_writer: FxHashMap::default(),
            owners: FxHashMap::default(),
            unwritten: FxHashMap::default(),
            reads_left: 0,
            committed_reads_left: 0,
            reads_odd: 0,
            unsearched: BTreeSet::new(),
            keys: FxHashMap::default(),
            texts,
            shown: 0,
            commits: CommitOrder::default(),
        }
    }

    /// The number of a row that was written.
    pub(super) fn row(&self, key: Key) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    pub(super) fn row_to_write(&mut self, key: Key) -> u32 {
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.rows.push(Row {
                key,
                writes: Vec::new(),
                doubtful: false,
                partly_shown: false,
                initial: None,
                inserted: false,
                deleted: false,
                unsettled: false,
            });
        }
        number
    }

    fn keep(&mut self, columns: &[i64]) -> Option<u32> {
        let place = u32::try_from(self.columns.len()).ok()?;
        self.columns.extend_from_slice(columns);
        (!columns.is_empty()).then_some(place)
    }

    /// Reads a chunk for the writes.
    pub(super) fn collect(&mut self, chunk: &[u8]) -> Result<(), &'static str> {
        let (mut chunk, mut unseen) = (Chunk::new(chunk), Vec::new());
        while let Some((transaction, operations)) = chunk.attempt()? {
            unseen.clear();
            let attempt = u32::try_from(self.attempts.len()).map_err(|_| "there are too many attempts")?;
            let first = self.writes.len();
            let (mut unanswered, mut sent) = (first, transaction.begin);
            for _ in 0..operations {
                let (operation, _) = chunk.operation()?;
                match operation {
                    ObservedOperation::Answered { at, unsent: instant } => {
                        self.writes[unanswered..].iter_mut().for_each(|write| write.answered = at);
                        (unanswered, sent) = (self.writes.len(), instant);
                    }
                    ObservedOperation::Unseen { table }
                        if transaction.outcome != TransactionOutcome::Aborted =>
                    {
                        unseen.push(table);
                        if let Some(table) = self.description.tables.get_mut(usize::from(table)) {
                            table.closed = false;
                        }
                    }
                    ObservedOperation::Write { key, writer, replaced, columns } => {
                        self.write(attempt, key, writer, replaced, columns);
                        self.note_after_unseen(&unseen, key);
                    }
                    ObservedOperation::Delete { key, deleted } => {
                        self.write(attempt, key, 0, Replaced::By(deleted), &[]);
                        self.note_after_unseen(&unseen, key);
                    }
                    ObservedOperation::Script { script, snapshot } => {
                        self.snapshots.note(attempt, script, snapshot);
                        if let Some(own) = snapshot.and_then(|snapshot| snapshot.own) {
                            self.owners.entry(own).or_insert(attempt);
                        }
                    }
                    ObservedOperation::Read { key, writer, columns }
                        if !columns.is_empty() && self.is_initial(writer) =>
                    {
                        if let Entry::Vacant(entry) = self.unwritten.entry(key) {
                            let place = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
                            entry.insert((writer, place));
                            self.columns.extend_from_slice(columns);
                        }
                    }
                    _ => {}
                }
            }
            self.writes[unanswered..].iter_mut().for_each(|write| write.answered = transaction.end);
            if transaction.outcome == TransactionOutcome::Unknown {
                for write in first..self.writes.len() {
                    let row = self.writes[write].row;
                    self.rows[row as usize].doubtful = true;
                }
            }
            let Transaction { outcome, begin, end, .. } = transaction;
            self.attempts.push(Attempt { outcome, begin, end, sent });
        }
        Ok(())
    }

    fn write(&mut self, attempt: u32, key: Key, writer: u32, replaced: Replaced, columns: &[i64]) {
        let row = self.row_to_write(key);
        let columns = self.keep(columns);
        let index = u32::try_from(self.writes.len()).unwrap_or(u32::MAX);
        self.writes.push(Written {
            row,
            attempt,
            writer,
            replaced,
            after_unseen: false,
            may_insert: replaced == Replaced::Nothing,
            answered: 0,
            columns,
            counter: None,
            partial: false,
            superseded: false,
        });
        self.supersede(row, attempt, writer);
        self.rows[row as usize].writes.push(index);
        if writer == 0 {
            self.rows[row as usize].deleted = true;
            return;
        }
        self.by_writer.entry((row, writer)).or_insert(index);
        if let Some(first) = self.by_writer.get(&(row, writer)) {
            self.writes[*first as usize].superseded = false;
        }
        let owner = *self.owners.entry(writer).or_insert(attempt);
        if owner != attempt {
            // One transaction of the server would be two of ours: none of its versions can be
            // attributed.
            self.rows[row as usize].doubtful = true;
            self.by_writer.remove(&(row, writer));
        }
    }

    /// Notes whether the last write comes after statements that may have written these tables unseen.
    fn note_after_unseen(&mut self, unseen: &[u16], key: Key) {
        if let Some(write) = self.writes.last_mut() {
            write.after_unseen = unseen.contains(&key.table);
        }
    }

    /// True if the transaction of its first write of a row may have inserted the row before, unseen.
    pub(super) fn may_have_inserted(&self, first: &Written) -> bool {
        match first.replaced {
            Replaced::Nothing => false,
            Replaced::By(writer) => match self.owners.get(&writer) {
                Some(owner) => *owner == first.attempt,
                None => !self.is_initial(writer),
            },
            Replaced::Unknown => first.after_unseen && !self.all_shown(first.row),
        }
    }

    /// True if all writes of a row are shown.
    pub(super) fn all_shown(&self, row: u32) -> bool {
        let row = &self.rows[row as usize];
        self.closed(row.key) && !row.partly_shown
    }

    /// True if all writes of a row's table are shown, or known from the second source.
    pub(super) fn closed(&self, key: Key) -> bool {
        self.description.tables.get(usize::from(key.table)).is_some_and(|table| table.closed)
    }

    /// Notes that an attempt writes a row again, if it has written it before.
    fn supersede(&mut self, row: u32, attempt: u32, writer: u32) {
        let before = self.rows[row as usize].writes.last().map(|before| self.writes[*before as usize]);
        let own = before.filter(|before| before.attempt == attempt && before.writer != writer);
        if let Some(first) = own.and_then(|own| self.by_writer.get(&(row, own.writer))) {
            self.writes[*first as usize].superseded = true;
        }
    }

    /// The committed attempt that a transaction of the server is.
    pub(super) fn committed_attempt(&self, transaction: u32) -> Option<u32> {
        let committed =
            |attempt: &u32| self.attempts[*attempt as usize].outcome == TransactionOutcome::Committed;
        self.owners.get(&transaction).copied().filter(committed)
    }

    /// Adds a write that is known from the second source only.
    pub(super) fn add_unseen(&mut self, write: Written) -> u32 {
        let index = u32::try_from(self.writes.len()).unwrap_or(u32::MAX);
        self.writes.push(write);
        self.rows[write.row as usize].writes.push(index);
        self.rows[write.row as usize].deleted |= write.is_deletion();
        if !write.is_deletion() {
            self.by_writer.entry((write.row, write.writer)).or_insert(index);
        }
        index
    }

    /// True if a (sub)transaction had begun before the run. Numbers are compared as PostgreSQL does,
    /// modulo 2^32; those below 3 are permanent (PostgreSQL manual, "Transactions and Identifiers").
    pub(super) fn is_initial(&self, writer: u32) -> bool {
        writer < 3 || (writer.wrapping_sub(self.description.horizon)).cast_signed() < 0
    }

    /// True if every snapshot of one attempt has what another one committed, because that was
    /// acknowledged before the former sent anything, or because the former's snapshot says so. By time
    /// not where snapshots may lag behind.
    pub(super) fn precedes(&self, writer: u32, reader: u32) -> bool {
        if let Some(sees) = self.snapshots.sees(reader, writer) {
            return sees && self.attempts[writer as usize].outcome == TransactionOutcome::Committed;
        }
        let (writer, reader) = (&self.attempts[writer as usize], &self.attempts[reader as usize]);
        self.description.fresh
            && writer.outcome == TransactionOutcome::Committed
            && reader.begin > 0
            && writer.end < reader.begin
    }

    /// True if no snapshot of one attempt can have what another one committed, because its COMMIT was
    /// sent after the former's last reply, or because the former's snapshot says so.
    pub(super) fn succeeds(&self, writer: u32, reader: u32) -> bool {
        if let Some(sees) = self.snapshots.sees(reader, writer) {
            return !sees;
        }
        let (writer, reader) = (&self.attempts[writer as usize], &self.attempts[reader as usize]);
        reader.end < writer.sent
    }

    /// The text with a number.
    pub(super) fn text(&self, number: i64) -> Option<&str> {
        let number = usize::try_from(number).ok()?;
        self.description.texts.get(number).map(String::as_str)
    }

    /// The values of a version's columns.
    pub(super) fn values(&self, place: u32, count: usize) -> &[i64] {
        let place = place as usize;
        self.columns.get(place..place + count).unwrap_or(&[])
    }
}
