//! Counters for the committed writes of a row, in their proved order.

use rustc_hash::FxHashMap;

use super::super::log::Replaced;
use super::super::order::{Writer, prove};
use super::super::resolution::{Resolution, Row, Written};
use crate::history::TransactionOutcome;

impl Resolution {
    /// Orders the committed writes of a row, which are in the order of the log. Returns those that
    /// got a counter, in their order, and whether the evidence is contradictory.
    pub(super) fn order_row(&mut self, number: usize, writes: &[u32]) -> (Vec<u32>, bool) {
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
                self.writes[index as usize].may_insert |= self.may_have_inserted(&write);
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
    /// A counter is left out between a row and the one that is inserted again, since that is another
    /// object with the same key (Adya 1999, §4.1.2): snapshot isolation doesn't keep a transaction
    /// from inserting a key that another one has deleted meanwhile, and serializable snapshot
    /// isolation doesn't take it for a dependency. What follows a deletion is inserted, even if that
    /// wasn't seen; so may be what a transaction writes after statements that may have inserted it unseen.
    /// Of several writers whose order is unknown, each may be the first.
    fn count(
        &mut self,
        number: usize,
        writers: &[Writer],
        of: &FxHashMap<u32, Vec<u32>>,
        groups: &[usize],
    ) -> Vec<u32> {
        let (mut counter, mut deleted, mut ordered) = (0, false, Vec::new());
        let mut next = |row: &mut Row, writes: &mut dyn Iterator<Item = &Written>, tied: bool| {
            let (mut inserts, mut deletes) = (deleted, false);
            for write in writes {
                inserts |= write.may_insert;
                deletes |= write.is_deletion();
            }
            row.inserted |= inserts && counter == 0;
            counter += 1 + u64::from(inserts && (tied || counter > 0));
            deleted = deletes;
            counter
        };
        for (place, start) in groups.iter().enumerate() {
            let end = groups.get(place + 1).copied().unwrap_or(writers.len());
            let members = &writers[*start..end];
            let tied = (members.len() > 1).then(|| {
                let all = members.iter().flat_map(|writer| &of[&writer.attempt]);
                let mut writes = all.map(|write| &self.writes[*write as usize]);
                next(&mut self.rows[number], &mut writes, true)
            });
            for writer in members {
                let runs = self.runs(&of[&writer.attempt]);
                self.leave_last(&runs);
                let skipped = if tied.is_some() { runs.len() - 1 } else { 0 };
                for &(first, last) in &runs[skipped..] {
                    let columns = self.writes[last as usize].columns;
                    let write = &mut self.writes[first as usize];
                    let counter = tied.unwrap_or_else(|| {
                        next(&mut self.rows[number], &mut std::iter::once(&*write), false)
                    });
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
        for (place, (first, _)) in runs.iter().enumerate() {
            let Written { row, writer, .. } = self.writes[*first as usize];
            self.writes[*first as usize].superseded = place + 1 < runs.len();
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
}
