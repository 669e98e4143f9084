//! From a log to a history: versions get the counters that their order proves.
//!
//! The log is read three times: for the writes, for the reads whose writers weren't seen, and for
//! the history. So memory is needed for writes, not for reads.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::committed::CommitOrder;
use super::log::{Chunk, ObservedOperation, Replaced};
use super::order::{Writer, prove};
use super::search::{Search, Searches};
use super::{KeyForm, ObservedDescription};
use crate::history::{Draft, FormatError, History, Key, Operation, Provenance, TransactionOutcome, Version};

/// An attempt, by its position in the log.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    outcome: TransactionOutcome,
    /// An instant at which its COMMIT hadn't been sent.
    sent: u64,
}

/// A write of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) row: u32,
    pub(super) attempt: u32,
    /// The (sub)transaction; 0 for a deletion.
    pub(super) writer: u32,
    pub(super) replaced: Replaced,
    /// An instant at which it had been answered.
    pub(super) answered: u64,
    /// The position of its columns' values.
    pub(super) columns: Option<u32>,
    /// Its place in the proved order; `None` if its transaction isn't known to be committed, or
    /// another write of its own transaction stands for it.
    pub(super) counter: Option<u64>,
    /// True if earlier writes of the row by its transaction got no counter.
    pub(super) partial: bool,
}

impl Written {
    pub(super) fn is_deletion(&self) -> bool {
        self.writer == 0
    }

    fn version(&self) -> Version {
        let value = (!self.is_deletion()).then_some(i64::from(self.writer));
        Version { counter: self.counter, value }
    }
}

/// The rows that an attempt has written so far.
pub(super) type OwnWrites = FxHashMap<u32, OwnWrite>;

/// An attempt's writes of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnWrite {
    /// The first of the latest writes that look alike to others, by position in
    /// [`Resolution::writes`].
    latest: usize,
    /// True if one of the writes inserted the row.
    inserts: bool,
}

/// What is known of a row that was written.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) key: Key,
    /// The row's writes, by position in [`Resolution::writes`], in the proved order; only those with
    /// counters once [`Resolution::order`] has run.
    pub(super) writes: Vec<u32>,
    /// True if a transaction of unknown outcome wrote it, or its order is contradictory.
    pub(super) doubtful: bool,
    /// The position of the columns' values of the initial version, if they were seen.
    pub(super) initial: Option<u32>,
    /// True if the first known write may be an insertion. If the row existed before the run, its
    /// deletion wasn't seen.
    pub(super) inserted: bool,
    /// True if the row was inserted in the run, and a transaction of unknown outcome wrote it: it may
    /// have deleted it, too, and isn't known to be of the same object as the others.
    unsettled: bool,
}

/// The origin of a version that was read.
enum Origin {
    /// This version of the history.
    Known(Version),
    /// A version that is known, but left out of the history.
    LeftOut,
    /// It existed before the run, but the first known write of the row inserts it.
    Deleted,
    /// Nobody is known to have written it.
    Unseen,
}

/// The writes of a log, and what they prove.
pub(super) struct Resolution {
    pub(super) description: ObservedDescription,
    attempts: Vec<Attempt>,
    numbers: FxHashMap<Key, u32>,
    pub(super) rows: Vec<Row>,
    pub(super) writes: Vec<Written>,
    pub(super) columns: Vec<i64>,
    /// The writes, by row and (sub)transaction; of several, the first, or of those of a committed
    /// transaction the one that others can see.
    by_writer: FxHashMap<(u32, u32), u32>,
    /// The attempt that each (sub)transaction belongs to.
    owners: FxHashMap<u32, u32>,
    /// The columns of versions that no transaction of the log wrote, before it is known that they
    /// are initial ones.
    unwritten: FxHashMap<Key, (u32, u32)>,
    reads_left: u64,
    /// Texts of keys, by table and number in the log, with the number in the history.
    keys: FxHashMap<(u16, i64), i64>,
    texts: Vec<Vec<String>>,
    /// The number of writes in the log; the others are known from the second source only.
    shown: usize,
    /// What the second source tells.
    commits: CommitOrder,
}

/// Turns a log into a history. `chunks` returns an iterator over the log's chunks, the same each
/// time.
///
/// # Errors
/// A chunk can't be read.
pub(super) fn resolve<I, B>(
    description: ObservedDescription,
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
    if let Some(committed) = resolution.description.committed.take() {
        resolution.commits = CommitOrder::of(&mut resolution, &committed);
    }
    resolution.order();
    for chunk in chunks()? {
        resolution.inspect(chunk?.as_ref()).map_err(damaged)?;
    }
    let mut history = History::new(resolution.description.names());
    history.set_dropped(resolution.description.dropped);
    let mut searches = Searches::of(&resolution);
    let mut number = 0;
    for chunk in chunks()? {
        let bytes = chunk?;
        resolution.emit(bytes.as_ref(), &mut number, &mut searches, &mut history).map_err(damaged)?;
    }
    history.set_provenance(resolution.provenance(&searches));
    Ok(history)
}

fn damaged(problem: &'static str) -> FormatError {
    FormatError::Damaged(format!("the log of what was observed: {problem}"))
}

impl Resolution {
    fn new(description: ObservedDescription) -> Resolution {
        let texts = vec![Vec::new(); description.tables.len()];
        Resolution {
            description,
            attempts: Vec::new(),
            numbers: FxHashMap::default(),
            rows: Vec::new(),
            writes: Vec::new(),
            columns: Vec::new(),
            by_writer: FxHashMap::default(),
            owners: FxHashMap::default(),
            unwritten: FxHashMap::default(),
            reads_left: 0,
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
                initial: None,
                inserted: false,
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
    fn collect(&mut self, chunk: &[u8]) -> Result<(), &'static str> {
        let mut chunk = Chunk::new(chunk);
        while let Some((transaction, operations)) = chunk.attempt()? {
            let attempt = u32::try_from(self.attempts.len()).map_err(|_| "there are too many attempts")?;
            let first = self.writes.len();
            let (mut unanswered, mut sent) = (first, transaction.begin);
            for _ in 0..operations {
                let (operation, _) = chunk.operation()?;
                match operation {
                    ObservedOperation::Answered { at } => {
                        self.writes[unanswered..].iter_mut().for_each(|write| write.answered = at);
                        (unanswered, sent) = (self.writes.len(), at);
                    }
                    ObservedOperation::Unseen { table }
                        if transaction.outcome != TransactionOutcome::Aborted =>
                    {
                        if let Some(table) = self.description.tables.get_mut(usize::from(table)) {
                            table.closed = false;
                        }
                    }
                    ObservedOperation::Write { key, writer, replaced, columns } => {
                        self.write(attempt, key, writer, replaced, columns);
                    }
                    ObservedOperation::Delete { key, deleted } => {
                        self.write(attempt, key, 0, Replaced::By(deleted), &[]);
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
            self.attempts.push(Attempt { outcome: transaction.outcome, sent });
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
            answered: 0,
            columns,
            counter: None,
            partial: false,
        });
        self.rows[row as usize].writes.push(index);
        if writer == 0 {
            return;
        }
        self.by_writer.entry((row, writer)).or_insert(index);
        let owner = *self.owners.entry(writer).or_insert(attempt);
        if owner != attempt {
            // One transaction of the server would be two of ours: none of its versions can be
            // attributed.
            self.rows[row as usize].doubtful = true;
            self.by_writer.remove(&(row, writer));
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
        if !write.is_deletion() {
            self.by_writer.entry((write.row, write.writer)).or_insert(index);
        }
        index
    }

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
        self.unwritten = FxHashMap::default();
    }

    /// Orders the committed writes of a row, which are in the order of the log. Returns those that
    /// got a counter, in their order, and whether the evidence is contradictory.
    fn order_row(&mut self, number: usize, writes: &[u32]) -> (Vec<u32>, bool) {
        let mut of: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut writers = Vec::new();
        for &index in writes {
            let write = self.writes[index as usize];
            let own = of.entry(write.attempt).or_default();
            if own.is_empty() {
                let replaced = match write.replaced {
                    Replaced::By(writer) => self.by_writer.get(&(write.row, writer)),
                    Replaced::Unknown | Replaced::Nothing => None,
                };
                let replaced = replaced.map(|before| self.writes[*before as usize].attempt);
                let sent = self.attempts[write.attempt as usize].sent;
                let committed =
                    |attempt: &u32| self.attempts[*attempt as usize].outcome == TransactionOutcome::Committed;
                let replaced = replaced.filter(|attempt| *attempt != write.attempt).filter(committed);
                writers.push(Writer { attempt: write.attempt, acquired: write.answered, sent, replaced });
            }
            own.push(index);
        }
        let proved = prove(&mut writers);
        let before = self.commits.differ;
        let row = u32::try_from(number).unwrap_or(u32::MAX);
        let decided = self.commits.sort(row, &mut writers, proved.as_deref());
        let contradictory = proved.is_none() || self.commits.differ > before;
        let together = || (!writers.is_empty()).then_some(0).into_iter().collect();
        let groups = match proved {
            _ if decided => (0..writers.len()).collect(),
            Some(groups) if !contradictory => groups,
            _ => together(),
        };
        (self.count(number, &writers, &of, &groups), contradictory)
    }

    /// Assigns counters to the writes of a row, in their order: `of` has those of each writer.
    ///
    /// A counter is left out before a row that is inserted again, since that is another object with
    /// the same key (Adya 1999, §4.1.2): snapshot isolation doesn't keep a transaction from inserting
    /// a key that another one has deleted meanwhile, and serializable snapshot isolation doesn't take
    /// it for a dependency.
    fn count(
        &mut self,
        number: usize,
        writers: &[Writer],
        of: &FxHashMap<u32, Vec<u32>>,
        groups: &[usize],
    ) -> Vec<u32> {
        let (mut counter, mut ordered) = (0, Vec::new());
        let mut next = |row: &mut Row, inserts: bool| {
            row.inserted |= inserts && counter == 0;
            counter += 1 + u64::from(inserts && counter > 0);
            counter
        };
        for (place, start) in groups.iter().enumerate() {
            let end = groups.get(place + 1).copied().unwrap_or(writers.len());
            let members = &writers[*start..end];
            let inserts = |write: &u32| self.writes[*write as usize].replaced == Replaced::Nothing;
            let tied = (members.len() > 1).then(|| {
                let inserts = members.iter().flat_map(|writer| &of[&writer.attempt]).any(inserts);
                next(&mut self.rows[number], inserts)
            });
            for writer in members {
                let runs = self.runs(&of[&writer.attempt]);
                self.leave_last(&runs);
                let skipped = if tied.is_some() { runs.len() - 1 } else { 0 };
                for &(first, last) in &runs[skipped..] {
                    let columns = self.writes[last as usize].columns;
                    let write = &mut self.writes[first as usize];
                    let inserts = write.replaced == Replaced::Nothing;
                    let counter = tied.unwrap_or_else(|| next(&mut self.rows[number], inserts));
                    (write.counter, write.columns, write.partial) = (Some(counter), columns, skipped > 0);
                    ordered.push(first);
                }
            }
        }
        ordered
    }

    /// Lets the last write of each (sub)transaction be the one that others can see: a transaction may
    /// write a row again after a subtransaction of its own.
    fn leave_last(&mut self, runs: &[(u32, u32)]) {
        for (first, _) in runs {
            let Written { row, writer, .. } = self.writes[*first as usize];
            if let Some(known) = self.by_writer.get_mut(&(row, writer)) {
                *known = *first;
            }
        }
    }

    /// The first and the last of the successive writes of a transaction that look alike to others,
    /// because one (sub)transaction made them. The first stands for all of them.
    fn runs(&self, own: &[u32]) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &index in own {
            match runs.last_mut() {
                Some((first, last))
                    if self.writes[*first as usize].writer == self.writes[index as usize].writer =>
                {
                    *last = index;
                }
                _ => runs.push((index, index)),
            }
        }
        runs
    }

    /// True if a (sub)transaction had begun before the run. Numbers are compared as PostgreSQL does,
    /// modulo 2^32; those below 3 are permanent (PostgreSQL manual, "Transactions and Identifiers").
    fn is_initial(&self, writer: u32) -> bool {
        writer < 3 || (writer.wrapping_sub(self.description.horizon)).cast_signed() < 0
    }

    /// Reads a chunk for versions whose writers weren't seen: then others write to the table, or a
    /// statement wrote more than it showed.
    fn inspect(&mut self, chunk: &[u8]) -> Result<(), &'static str> {
        let mut chunk = Chunk::new(chunk);
        while let Some((_, operations)) = chunk.attempt()? {
            for _ in 0..operations {
                let (ObservedOperation::Read { key, writer, .. }, _) = chunk.operation()? else { continue };
                let doubtful = || self.row(key).is_some_and(|row| self.rows[row as usize].doubtful);
                let explained = match self.origin(key, writer) {
                    Origin::Known(_) | Origin::LeftOut => true,
                    Origin::Deleted => doubtful(),
                    Origin::Unseen => false,
                };
                if !explained && let Some(table) = self.description.tables.get_mut(usize::from(key.table)) {
                    table.closed = false;
                }
            }
        }
        Ok(())
    }

    /// The origin of a version that was read.
    fn origin(&self, key: Key, writer: u32) -> Origin {
        let row = self.row(key);
        if let Some(written) = row.and_then(|row| self.by_writer.get(&(row, writer))) {
            let written = &self.writes[*written as usize];
            return if self.is_shown(written) { Origin::Known(written.version()) } else { Origin::LeftOut };
        }
        if self.owners.contains_key(&writer) || !self.is_initial(writer) {
            return Origin::Unseen;
        }
        let inserted = row.is_some_and(|row| self.rows[row as usize].inserted);
        if inserted { Origin::Deleted } else { Origin::Known(Version::INITIAL) }
    }

    /// Reads a chunk and adds its attempts to the history.
    fn emit(
        &mut self,
        chunk: &[u8],
        number: &mut u32,
        searches: &mut Searches,
        history: &mut History,
    ) -> Result<(), &'static str> {
        let mut chunk = Chunk::new(chunk);
        let mut draft = Draft::new();
        let mut next_write = self.writes[..self.shown].partition_point(|write| write.attempt < *number);
        let mut own = OwnWrites::default();
        while let Some((transaction, operations)) = chunk.attempt()? {
            draft.clear();
            own.clear();
            let mut unseen = self.commits.unseen.remove(number).unwrap_or_default();
            for _ in 0..operations {
                let (operation, statement) = chunk.operation()?;
                match operation {
                    ObservedOperation::Read { key, writer, .. } => {
                        self.emit_unseen(&mut unseen, Some(writer), &mut own, &mut draft);
                        if let Some(version) = self.read_of(key, writer, *number, &own) {
                            let key = self.name(key);
                            draft.push_by(Operation::Read { key, version }, statement);
                        }
                    }
                    ObservedOperation::Write { key, .. } | ObservedOperation::Delete { key, .. } => {
                        let write = self.writes[next_write];
                        self.add_own(&mut own, next_write);
                        next_write += 1;
                        if self.is_shown(&write) {
                            let (key, version) = (self.name(key), write.version());
                            draft.push_by(Operation::Write { key, version }, statement);
                        }
                    }
                    ObservedOperation::Search { table, predicate, key, operands, found } => {
                        if transaction.outcome == TransactionOutcome::Committed {
                            let attempt = *number;
                            let search = Search { table, predicate, key, operands, found, attempt };
                            for (key, missed) in searches.missed(self, &search, &own) {
                                let key = self.name(key);
                                let (after, before) = missed;
                                draft.push_by(Operation::Missed { key, after, before }, statement);
                            }
                        }
                    }
                    ObservedOperation::Answered { .. } | ObservedOperation::Unseen { .. } => {}
                }
            }
            self.emit_unseen(&mut unseen, None, &mut own, &mut draft);
            history.push(transaction, &draft);
            *number += 1;
        }
        Ok(())
    }

    /// Adds writes that no statement showed: those of this (sub)transaction, whose version is about
    /// to be read, or all.
    fn emit_unseen(
        &mut self,
        unseen: &mut Vec<u32>,
        before: Option<u32>,
        own: &mut OwnWrites,
        draft: &mut Draft,
    ) {
        unseen.retain(|index| {
            let write = self.writes[*index as usize];
            let due = before.is_none_or(|writer| writer == write.writer);
            if due {
                self.add_own(own, *index as usize);
            }
            if due && write.counter.is_some() {
                let (key, version) = (self.name(self.rows[write.row as usize].key), write.version());
                draft.push(Operation::Write { key, version });
            }
            !due
        });
    }

    /// Adds a write to those of its attempt.
    fn add_own(&self, own: &mut OwnWrites, index: usize) {
        let Written { row, writer, replaced, .. } = self.writes[index];
        let own = own.entry(row).or_insert(OwnWrite { latest: index, inserts: false });
        if self.writes[own.latest].writer != writer {
            own.latest = index;
        }
        own.inserts |= replaced == Replaced::Nothing;
    }

    /// The version that an attempt read after its own writes; `None` if nothing follows from the
    /// read.
    fn read_of(&mut self, key: Key, writer: u32, attempt: u32, own: &OwnWrites) -> Option<Version> {
        let own = self.row(key).and_then(|row| own.get(&row));
        let latest = own.map(|own| self.writes[own.latest]);
        if let Some(latest) = latest.filter(|latest| latest.writer == writer) {
            return self.is_shown(&latest).then(|| latest.version());
        }
        let written = self.row(key).and_then(|row| self.by_writer.get(&(row, writer)));
        if written.is_some_and(|written| self.writes[*written as usize].attempt == attempt) {
            // Its own, of before or after a write that wasn't seen.
            return None;
        }
        match self.origin(key, writer) {
            // A snapshot can have the row that another transaction has deleted beside the one that
            // its own transaction inserted.
            Origin::Known(version) => (!own.is_some_and(|own| own.inserts)).then_some(version),
            Origin::Unseen => {
                self.reads_left += 1;
                None
            }
            Origin::LeftOut | Origin::Deleted => None,
        }
    }

    /// True if a write becomes part of the history. What another transaction must never read needs
    /// only its writer.
    fn is_shown(&self, write: &Written) -> bool {
        match self.attempts[write.attempt as usize].outcome {
            TransactionOutcome::Committed => write.counter.is_some(),
            TransactionOutcome::Aborted => !write.is_deletion(),
            TransactionOutcome::Unknown => !write.is_deletion() && !self.rows[write.row as usize].unsettled,
        }
    }

    /// The key in the history.
    fn name(&mut self, key: Key) -> Key {
        let table = usize::from(key.table);
        if self.description.tables.get(table).is_none_or(|table| table.key == KeyForm::Integer) {
            return key;
        }
        let texts = &mut self.texts[table];
        let known = &self.description.texts;
        let id = *self.keys.entry((key.table, key.id)).or_insert_with(|| {
            let text = usize::try_from(key.id).ok().and_then(|number| known.get(number));
            texts.push(text.cloned().unwrap_or_default());
            i64::try_from(texts.len() - 1).unwrap_or(i64::MAX)
        });
        Key { id, ..key }
    }

    fn provenance(self, searches: &Searches) -> Provenance {
        let texts = (0_u16..).zip(self.texts).filter(|(_, texts)| !texts.is_empty());
        Provenance {
            statements: self.description.statements,
            keys: texts.collect(),
            searches: searches.done,
            searches_left: searches.left,
            reads_left: self.reads_left,
            orders_agreed: self.commits.agreed,
            orders_differ: self.commits.differ,
        }
    }

    /// The values of a version's columns.
    pub(super) fn values(&self, place: u32, count: usize) -> &[i64] {
        let place = place as usize;
        self.columns.get(place..place + count).unwrap_or(&[])
    }
}
