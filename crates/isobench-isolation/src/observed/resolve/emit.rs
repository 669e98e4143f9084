//! The attempts of the history: the reads, each with the version that was read, the writes with their
//! counters, and the rows that searches missed.

use std::sync::Arc;

use super::super::KeyForm;
use super::super::log::{Chunk, ObservedOperation, Replaced};
use super::super::resolution::{OwnWrite, OwnWrites, ReadVersions, Resolution, Written};
use super::super::search::{Counts, Search, Searches};
use crate::history::{Draft, History, Key, Operation, Provenance, TransactionOutcome, Version};

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

impl Resolution {
    /// Reads a chunk for versions whose writers weren't seen: then others write to the table or rewrite it
    /// (`pg_repack` copies all rows), or a statement wrote more than it showed.
    ///
    /// `closed` says of each table whether all of its writes are shown, as far as was known before.
    /// Searches are counted.
    pub(super) fn inspect(
        &mut self,
        chunk: &[u8],
        closed: &[bool],
        searches: &mut Counts,
    ) -> Result<(), &'static str> {
        let mut chunk = Chunk::new(chunk);
        while let Some((transaction, operations)) = chunk.attempt()? {
            for _ in 0..operations {
                let (key, writer) = match chunk.operation()?.0 {
                    ObservedOperation::Read { key, writer, .. } => (key, writer),
                    ObservedOperation::Write { key, replaced: Replaced::By(writer), .. }
                    | ObservedOperation::Delete { key, deleted: writer } => {
                        self.note_replaced(key, writer);
                        continue;
                    }
                    ObservedOperation::Search { table, predicate, key: None, operands, .. }
                        if transaction.outcome == TransactionOutcome::Committed =>
                    {
                        searches.add(table, predicate, operands);
                        continue;
                    }
                    _ => continue,
                };
                let row = self.row(key).map(|row| &self.rows[row as usize]);
                let explained = match self.origin(key, writer) {
                    Origin::Known(_) | Origin::LeftOut => true,
                    Origin::Deleted => row.is_some_and(|row| row.doubtful || row.deleted),
                    Origin::Unseen => false,
                };
                self.reads_odd += u64::from(!explained && self.is_odd(key, writer, closed));
                if !explained && let Some(table) = self.description.tables.get_mut(usize::from(key.table)) {
                    table.closed = false;
                }
            }
        }
        Ok(())
    }

    /// Notes the writer of a version that was replaced or deleted: one that isn't known may have written
    /// more, or have written all rows anew.
    fn note_replaced(&mut self, key: Key, writer: u32) {
        let known = self.is_initial(writer) || self.owners.contains_key(&writer);
        if !known && let Some(table) = self.description.tables.get_mut(usize::from(key.table)) {
            table.closed = false;
        }
    }

    /// True if a row can't have this writer: a committed transaction of the log all of whose writes
    /// were shown, and it wasn't shown to write the row.
    fn is_odd(&self, key: Key, writer: u32, closed: &[bool]) -> bool {
        let owner = self.committed_attempt(writer).is_some();
        let row = self.row(key);
        let known = row.is_some_and(|row| self.by_writer.contains_key(&(row, writer)));
        let closed = closed.get(usize::from(key.table)).copied().unwrap_or(false);
        owner && !known && closed && self.description.dropped == 0
    }

    /// The origin of a version that was read.
    fn origin(&self, key: Key, writer: u32) -> Origin {
        let row = self.row(key);
        if let Some(written) = row.and_then(|row| self.by_writer.get(&(row, writer))) {
            let written = &self.writes[*written as usize];
            // Where writes may be unseen, the same subtransaction may have written the row again.
            let known = self.is_shown(written) && (!written.superseded || self.all_shown(written.row));
            return if known { Origin::Known(written.version()) } else { Origin::LeftOut };
        }
        if self.owners.contains_key(&writer) || !self.is_initial(writer) {
            return Origin::Unseen;
        }
        let inserted = row.is_some_and(|row| self.rows[row as usize].inserted);
        if inserted { Origin::Deleted } else { Origin::Known(Version::INITIAL) }
    }

    /// Reads a chunk and adds its attempts to the history.
    pub(super) fn emit(
        &mut self,
        chunk: &[u8],
        number: &mut u32,
        searches: &mut Searches,
        history: &mut History,
    ) -> Result<(), &'static str> {
        let mut chunk = Chunk::new(chunk);
        let mut draft = Draft::new();
        let mut next_write = self.writes[..self.shown].partition_point(|write| write.attempt < *number);
        let (mut own, mut read) = (OwnWrites::default(), ReadVersions::default());
        while let Some((transaction, operations)) = chunk.attempt()? {
            draft.clear();
            own.clear();
            read.clear();
            let mut unseen = self.commits.unseen.remove(number).unwrap_or_default();
            for place in 0..operations {
                let (operation, statement) = chunk.operation()?;
                match operation {
                    ObservedOperation::Read { key, writer, .. } => {
                        self.emit_unseen(&mut unseen, Some((key, writer)), &mut own, &mut draft);
                        let left = self.reads_left;
                        let version = self.read_of(key, writer, *number, &own);
                        if transaction.outcome == TransactionOutcome::Committed {
                            self.committed_reads_left += self.reads_left - left;
                        }
                        if let Some(version) = version {
                            if let (Some(row), Some(counter)) = (self.row(key), version.counter) {
                                let newest = read.entry(row).or_default();
                                *newest = counter.max(*newest);
                            }
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
                            let search = Search { table, predicate, key, operands, found, attempt, place };
                            let missed = searches.missed(self, &search, &own, &read);
                            if !searches.complete {
                                self.snapshots.note_search(attempt, table);
                            }
                            for (key, missed) in missed {
                                let key = self.name(key);
                                let (after, before) = missed;
                                draft.push_by(Operation::Missed { key, after, before }, statement);
                            }
                        }
                    }
                    ObservedOperation::Unsearched { table } => {
                        self.snapshots.note_search(*number, table);
                        if transaction.outcome != TransactionOutcome::Aborted {
                            self.unsearched.insert(statement);
                        }
                    }
                    ObservedOperation::Answered { .. }
                    | ObservedOperation::Unseen { .. }
                    | ObservedOperation::Script { .. } => {}
                }
            }
            self.emit_unseen(&mut unseen, None, &mut own, &mut draft);
            history.push(transaction, &draft);
            *number += 1;
        }
        Ok(())
    }

    /// Adds writes that no statement showed: that of a row by this (sub)transaction, whose version is
    /// about to be read, so that it came before; or all.
    fn emit_unseen(
        &mut self,
        unseen: &mut Vec<u32>,
        before: Option<(Key, u32)>,
        own: &mut OwnWrites,
        draft: &mut Draft,
    ) {
        unseen.retain(|index| {
            let write = self.writes[*index as usize];
            let row = self.rows[write.row as usize].key;
            let due = before.is_none_or(|(key, writer)| writer == write.writer && key == row);
            if due {
                self.add_own(own, *index as usize);
            }
            if due && write.counter.is_some() {
                let (key, version) = (self.name(row), write.version());
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
            Origin::Known(version) => (!own.is_some_and(|own| self.beside(key, own))).then_some(version),
            Origin::Unseen => {
                self.reads_left += 1;
                None
            }
            Origin::LeftOut | Origin::Deleted => None,
        }
    }

    /// True if an attempt that has written a row may see another one with the same key: a snapshot
    /// can have the row that another transaction has deleted beside the one that the attempt
    /// inserted.
    fn beside(&self, key: Key, own: &OwnWrite) -> bool {
        let deleted = self.row(key).is_some_and(|row| self.rows[row as usize].deleted);
        own.inserts || deleted || !self.closed(key)
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

    pub(super) fn provenance(self, searches: &Searches) -> Provenance {
        let visibility = self.visibility().map(Arc::new);
        let texts = (0_u16..).zip(self.texts).filter(|(_, texts)| !texts.is_empty());
        Provenance {
            statements: self.description.statements,
            keys: texts.collect(),
            searches: searches.done,
            searches_left: searches.left,
            reads_left: self.reads_left,
            reads_odd: self.reads_odd,
            orders_agreed: self.commits.agreed,
            orders_differ: self.commits.differ,
            unsearched: self.unsearched,
            usage: self.description.usage,
            by_use: false,
            visibility,
        }
    }
}
