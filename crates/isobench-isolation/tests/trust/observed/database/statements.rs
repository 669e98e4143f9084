//! The execution of statements.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::history::Key;
use isobench_isolation::observed::CommittedChange;

use super::super::condition::{Columns, Condition};
use super::super::defect::Defect;
use super::rows::Found;
use super::{Answer, Current, Database, Level, Searched, Shown, Statement, Tuple};

impl Database {
    /// Executes a statement with a condition.
    pub(super) fn search(&mut self, tx: usize, number: u16, statement: &Statement) -> Answer {
        let Some((table, condition)) = statement.search() else { return Answer::Done(Vec::new()) };
        let mut current = match self.txs[tx].current.take() {
            Some(current) => current,
            None => self.start(tx, table, condition, matches!(statement, Statement::Select { .. })),
        };
        if let Statement::Select { lock: false, .. } = statement {
            for tuple in std::mem::take(&mut current.targets) {
                self.read(tx, tuple, &mut current.shown);
            }
        }
        while let Some(&target) = current.targets.last() {
            let incarnation = self.tuples[target].incarnation;
            match self.newest(tx, target) {
                Found::Free(tuple) if condition.matches(self.tuples[tuple].columns) => {
                    self.write(tx, tuple, statement, &mut current.shown);
                }
                Found::Free(_) | Found::Gone => {}
                Found::Wait(other) => {
                    self.txs[tx].current = Some(current);
                    return Answer::Wait(other);
                }
                Found::Failed => return Answer::Failed,
            }
            current.later.insert(incarnation, self.commits);
            current.targets.pop();
        }
        let Current { snapshot, later, shown, .. } = current;
        let condition = condition.clone();
        let own = self.own_incarnations(tx, &shown);
        let searched = Searched { statement: number, table, condition, snapshot, later, own };
        self.txs[tx].searches.push(searched);
        Answer::Done(shown)
    }

    fn start(&mut self, tx: usize, table: u16, condition: &Condition, select: bool) -> Current {
        let snapshot = self.take_snapshot(tx);
        let seen = if select { self.stale(tx, snapshot) } else { snapshot };
        let mut targets: Vec<usize> = (0..self.tuples.len())
            .filter(|index| {
                let tuple = &self.tuples[*index];
                tuple.key.table == table
                    && condition.matches(tuple.columns)
                    && self.visible(tx, tuple, seen, select)
            })
            .collect();
        self.random.shuffle(&mut targets);
        if select && !targets.is_empty() && self.errs(Defect::MissedRow) {
            targets.pop();
            self.affected.push(tx);
        }
        Current { snapshot, targets, later: BTreeMap::new(), shown: Vec::new() }
    }

    /// The incarnations that a transaction wrote before the statement that showed these rows.
    fn own_incarnations(&self, tx: usize, shown: &[Shown]) -> BTreeSet<usize> {
        let now = |tuple: &Tuple| {
            shown.iter().any(|shown| match *shown {
                Shown::Wrote { key, .. } | Shown::Deleted { key, .. } => key == tuple.key,
                Shown::Read { .. } => false,
            })
        };
        let by = |sub: Option<usize>| sub.is_some_and(|sub| self.mine(tx, sub));
        let own = self.tuples.iter().filter(|tuple| by(tuple.writer) || by(tuple.ended_by));
        own.filter(|tuple| !now(tuple)).map(|tuple| tuple.incarnation).collect()
    }

    fn read(&mut self, tx: usize, tuple: usize, shown: &mut Vec<Shown>) {
        let Tuple { key, xmin, columns, writer, .. } = self.tuples[tuple];
        shown.push(Shown::Read { key, xmin, columns });
        if writer.is_none_or(|sub| self.subs[sub].tx != tx) {
            self.txs[tx].reads.push(tuple);
        }
    }

    fn write(&mut self, tx: usize, tuple: usize, statement: &Statement, shown: &mut Vec<Shown>) {
        let Tuple { key, xmin, columns, .. } = self.tuples[tuple];
        match statement {
            Statement::Update { column, value, .. } => {
                let mut columns = columns;
                columns[*column] = *value;
                self.replace(tx, tuple, columns, shown);
            }
            Statement::Delete { .. } => {
                let sub = self.sub(tx);
                let tuple = &mut self.tuples[tuple];
                (tuple.ended_by, tuple.next) = (Some(sub), None);
                self.writes.push((sub, key, CommittedChange::Deleted));
                shown.push(Shown::Deleted { key, xmin });
            }
            _ => {
                let held = self.tuples[tuple].locker.is_some_and(|sub| self.mine(tx, sub));
                if !held {
                    self.tuples[tuple].locker = Some(self.sub(tx));
                }
                self.read(tx, tuple, shown);
            }
        }
    }

    fn replace(&mut self, tx: usize, tuple: usize, columns: Columns, shown: &mut Vec<Shown>) {
        let Tuple { key, xmin: old, incarnation, .. } = self.tuples[tuple];
        let sub = self.sub(tx);
        let xmin = self.subs[sub].xid;
        shown.push(Shown::Wrote { key, xmin, old: Some(old), columns });
        if self.errs(Defect::DroppedWrite) {
            self.affected.push(tx);
            return;
        }
        self.writes.push((sub, key, CommittedChange::Updated));
        let new = self.store(key.table, columns, Some(incarnation), Some(sub), xmin);
        let tuple = &mut self.tuples[tuple];
        (tuple.ended_by, tuple.next) = (Some(sub), Some(new));
    }

    /// Executes an INSERT. `conflict` is the column to update if the key exists.
    pub(super) fn insert(
        &mut self,
        tx: usize,
        table: u16,
        columns: Columns,
        conflict: Option<usize>,
    ) -> Answer {
        let snapshot = self.take_snapshot(tx);
        let key = Key { table, id: columns[0] };
        for index in 0..self.tuples.len() {
            let Tuple { key: other, writer, ended_by, columns: old, .. } = self.tuples[index];
            if other != key || writer.is_some_and(|sub| !self.lasts(sub)) {
                continue;
            }
            if let Some(holder) = self.holder(tx, writer) {
                return Answer::Wait(holder);
            }
            let ended = ended_by.filter(|sub| self.lasts(*sub));
            if let Some(holder) = self.holder(tx, ended) {
                return Answer::Wait(holder);
            }
            if ended.is_some() {
                continue;
            }
            let Some(column) = conflict else { return Answer::Failed };
            let visible = writer.is_none_or(|sub| self.sees(tx, sub, snapshot));
            if self.level != Level::ReadCommitted && !visible {
                return Answer::Failed;
            }
            return match self.newest(tx, index) {
                Found::Free(tuple) => {
                    let (mut columns, mut shown, value) = (old, Vec::new(), columns[column]);
                    columns[column] = value;
                    self.replace(tx, tuple, columns, &mut shown);
                    Answer::Done(shown)
                }
                Found::Wait(holder) => Answer::Wait(holder),
                Found::Gone | Found::Failed => Answer::Failed,
            };
        }
        let sub = self.sub(tx);
        let xmin = self.subs[sub].xid;
        self.store(table, columns, None, Some(sub), xmin);
        self.writes.push((sub, key, CommittedChange::Inserted));
        Answer::Done(vec![Shown::Wrote { key, xmin, old: None, columns }])
    }
}
