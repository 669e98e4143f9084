//! A way through a script: what has been done on it, and the values of variables.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Branch, Columns, Kind, Operation, StatementId, Strength, Term};
use isobench_script::{Slot, Symbols};

use super::used::Used;
use super::{ADVISORY_LOCKS, TABLE_LOCKS};
use isobench_sql::{Mark, RelationId};

use crate::statement::{AdvisoryLock, Operand};

/// A way through a script.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Way {
    pub(super) name: Vec<String>,
    pub(super) values: BTreeMap<Slot, Term>,
    /// Pairs of variables that differ.
    pub(super) distinct: Vec<(String, String)>,
    /// For variables that are made by adding to another one, that one.
    pub(super) lower: BTreeMap<String, String>,
    /// The lowest and the highest value of variables that are random integers.
    pub(super) ranges: BTreeMap<String, [i64; 2]>,
    /// The sets of rows that the transaction has locked.
    pub(super) held: Vec<HeldRows>,
    /// How often each variable was assigned, or used before it was.
    pub(super) times: BTreeMap<Slot, usize>,
    pub(super) operations: Vec<Operation>,
    /// The values of variables that are a column's, with the row, as the transaction read it.
    pub(super) columns: BTreeMap<String, ReadColumn>,
    /// A row wasn't found with what was read of it before: that is a refusal.
    pub(super) refused: bool,
    /// The branches of transactions that have ended.
    pub(super) ended: Vec<Branch>,
    pub(super) in_block: bool,
    /// Statements outside of a block are one transaction up to the next synchronisation.
    pub(super) in_pipeline: bool,
    /// The number of the next statement, and of what it does after its reads.
    pub(super) statement: usize,
    /// What deferrable constraints do at COMMIT.
    pub(super) at_commit: Vec<Operation>,
    /// Its savepoints, each with the number of operations before it.
    pub(super) savepoints: Vec<(String, usize)>,
    /// It has returned rows to the client.
    pub(super) shows: bool,
    /// Columns that operations read, by their places, and that count only if the transaction writes nothing.
    pub(super) idle: Vec<(usize, BTreeSet<String>)>,
    /// Statements whose reads count at another one, with that.
    pub(super) moved: Vec<[StatementId; 2]>,
    /// Checks that no row had certain values, which count only if the row that passed them is taken back, each with
    /// the number of operations before it: a row that stays keeps others out.
    pub(super) vacant: Vec<(usize, Operation)>,
    /// The variables to which its transaction gave what it read.
    pub(super) given: BTreeSet<Slot>,
    /// Its transaction does something that no end of it takes back, such as NOTIFY.
    pub(super) tells: bool,
}

/// The rows of a table that have certain values, all of which the transaction has locked. No row comes to them.
#[derive(Clone, PartialEq)]
pub(super) struct HeldRows {
    pub(super) table: RelationId,
    pub(super) values: Vec<(String, Term)>,
    pub(super) lock: Strength,
}

/// A column of a row that was read by its key.
#[derive(Clone, PartialEq)]
pub(super) struct ReadColumn {
    /// The number of the statement that read it.
    pub(super) statement: usize,
    pub(super) table: String,
    pub(super) key: Vec<(String, Term)>,
    pub(super) name: String,
}

impl Way {
    /// True if two ways have done the same and know the same, whatever their names are.
    pub(super) fn is_like(&self, other: &Way) -> bool {
        // All fields, so that none is forgotten.
        let Way {
            name: _,
            values,
            distinct,
            lower,
            ranges,
            held,
            times,
            operations,
            columns,
            refused,
            ended,
            in_block,
            in_pipeline,
            statement,
            at_commit,
            savepoints,
            shows,
            idle,
            moved,
            vacant,
            given,
            tells,
        } = self;
        let flags = (*refused, *in_block, *in_pipeline, *statement, *shows, *tells);
        flags == (other.refused, other.in_block, other.in_pipeline, other.statement, other.shows, other.tells)
            && (values, distinct, lower, times)
                == (&other.values, &other.distinct, &other.lower, &other.times)
            && (ranges, held) == (&other.ranges, &other.held)
            && (operations, columns, ended) == (&other.operations, &other.columns, &other.ended)
            && (at_commit, savepoints) == (&other.at_commit, &other.savepoints)
            && (idle, moved, given, vacant) == (&other.idle, &other.moved, &other.given, &other.vacant)
    }

    /// The way on which a statement inserts nothing.
    pub(super) fn nothing(mut self, at: &StatementId) -> Way {
        self.name.push(format!("line {} inserts nothing", at.line));
        self
    }

    pub(super) fn with<const N: usize>(mut self, operations: [Operation; N]) -> Way {
        self.operations.extend(operations);
        self
    }

    /// Takes an advisory lock: that of a row of which nothing is read or written.
    pub(super) fn lock(&mut self, lock: &AdvisoryLock, symbols: &Symbols, at: &StatementId) {
        let mut key = vec![("key".to_owned(), Term::Constant(lock.key.clone()))];
        for (number, slot) in (1..).zip(&lock.variables) {
            key.push((format!("${number}"), self.value(*slot, symbols)));
        }
        self.push_lock(ADVISORY_LOCKS, key, lock.strength, at);
    }

    /// Takes the lock of a table, as LOCK or its writers do: that of a row of which nothing is read or written.
    pub(super) fn lock_table(&mut self, table: &str, strength: Strength, at: &StatementId) {
        let key = vec![("table".to_owned(), Term::Constant(table.to_owned()))];
        self.push_lock(TABLE_LOCKS, key, strength, at);
    }

    fn push_lock(&mut self, table: &str, key: Vec<(String, Term)>, strength: Strength, at: &StatementId) {
        self.operations.push(Operation {
            kind: Kind::Lock(strength),
            table: table.to_owned(),
            key,
            known: Vec::new(),
            reads: Columns::NONE,
            writes: Columns::NONE,
            changes_key: false,
            statement: self.statement,
            at: at.clone(),
            newest: false,
            certain: true,
            found: true,
            held: None,
            waits: true,
        });
    }

    /// A check of the server, perhaps as late as at COMMIT.
    pub(super) fn checked(mut self, check: Operation, deferrable: bool) -> Way {
        if deferrable && !self.at_commit.contains(&check) {
            self.at_commit.push(check.clone());
        }
        self.with([check])
    }

    /// Sets a savepoint, or rolls back to it: what was done since counts as read, and locks nothing.
    pub(super) fn mark(&mut self, mark: Mark, name: &str) {
        match mark {
            Mark::Set => self.savepoints.push((name.to_owned(), self.operations.len())),
            Mark::RollBack => {
                let place = self.savepoints.iter().rposition(|(own, _)| own == name);
                let from = place.map_or(0, |place| self.savepoints[place].1);
                self.count_idle();
                self.undo(from);
                // Later ones are gone, and this one stays.
                self.savepoints.truncate(place.map_or(0, |place| place + 1));
            }
            Mark::Release => {
                if let Some(place) = self.savepoints.iter().rposition(|(own, _)| own == name) {
                    self.savepoints.truncate(place);
                }
            }
        }
    }

    /// Takes back what was done from a place on: it counts as read, and locks nothing.
    fn undo(&mut self, from: usize) {
        // Locks that were taken since are given back.
        self.held.clear();
        let undone = self.operations.split_off(from);
        let first = self.vacant.iter().position(|(place, _)| *place >= from).unwrap_or(self.vacant.len());
        let checks = self.vacant.split_off(first).into_iter().map(|(_, check)| check);
        self.operations.extend(undone.into_iter().chain(checks).filter_map(rolled_back));
    }

    /// True if the transaction has locked or changed the row with this key, which stays since then. A row that it has
    /// inserted isn't the one that another transaction had there.
    pub(super) fn has_locked(&self, table: &str, key: &[(String, Term)]) -> bool {
        // The check of a foreign key may lock a row that is newer than the snapshot.
        let locks = |one: &Operation| match one.kind {
            Kind::Lock(strength) => strength > Strength::KeyShare,
            kind => kind == Kind::Update,
        };
        let of_table = || self.operations.iter().filter(|one| one.table == table);
        let is_known = !key.is_empty() && key.iter().all(|(_, term)| *term != Term::Unknown);
        let removes = |one: &Operation| {
            matches!(one.kind, Kind::Insert | Kind::Delete) || one.kind == Kind::Update && one.changes_key
        };
        is_known && of_table().any(|one| locks(one) && one.key == *key) && !of_table().any(removes)
    }

    /// Notes the key of the only row that a statement has picked, by the values that it returned.
    pub(super) fn note_picked(&mut self, at: &StatementId, table: &str, key: Vec<(String, Term)>) {
        let is_own = |one: &&mut Operation| {
            one.at == *at && one.table == table && one.key.is_empty() && matches!(one.kind, Kind::Lock(_))
        };
        let mut own = self.operations.iter_mut().filter(is_own);
        if let (Some(lock), None) = (own.next(), own.next()) {
            lock.known.retain(|(column, _)| key.iter().all(|(other, _)| other != column));
            lock.key = key;
        }
    }

    /// Notes that a value is that of a column of the row that a statement read by its key.
    pub(super) fn note_read(&mut self, value: Term, table: &str, column: &str, at: &StatementId) {
        let mut of_table = self.operations.iter().filter(|read| read.at == *at && read.table == table);
        let only = of_table.next().filter(|_| of_table.next().is_none());
        let read = only.filter(|read| read.kind == Kind::Read);
        let (Term::Variable(value), Some(read)) = (value, read) else { return };
        let (table, name) = (table.to_owned(), column.to_owned());
        let (statement, key) = (read.statement, read.key.clone());
        self.columns.insert(value, ReadColumn { statement, table, key, name });
    }

    /// Those of the columns that a change of a row requires to have values, which were read so, with the numbers
    /// of the statements that read them.
    pub(super) fn tested_again(
        &self,
        change: &Operation,
        required: Vec<(String, Term)>,
    ) -> BTreeMap<String, usize> {
        let again = |(column, term): (String, Term)| {
            let Term::Variable(value) = term else { return None };
            let same = |read: &&ReadColumn| {
                read.name == column && read.table == change.table && read.key == change.key
            };
            let statement = self.columns.get(&value).filter(same)?.statement;
            Some((column, statement))
        };
        required.into_iter().filter_map(again).collect()
    }

    /// Takes what was read of a row before for read at its change, which requires it to be the same then: these
    /// columns by the statements that read the values required, and all that was read by the one that read a
    /// version, or later.
    pub(super) fn read_then(
        &mut self,
        change: &mut Operation,
        tested: &BTreeMap<String, usize>,
        versioned: Option<usize>,
    ) {
        for read in &mut self.operations {
            let same = read.kind == Kind::Read && read.table == change.table && read.key == change.key;
            let (true, Columns::These(columns)) = (same, &mut read.reads) else { continue };
            let own: BTreeSet<&String> = read.key.iter().map(|(column, _)| column).collect();
            let moved: Vec<String> = columns
                .iter()
                .filter(|column| {
                    let again = tested.get(*column) == Some(&read.statement);
                    let same = versioned.is_some_and(|version| version <= read.statement);
                    !own.contains(column) && (same || again)
                })
                .cloned()
                .collect();
            columns.retain(|column| !moved.contains(column));
            if !moved.is_empty() {
                self.moved.push([read.at.clone(), change.at.clone()]);
            }
            if let Columns::These(reads) = &mut change.reads {
                reads.extend(moved);
            }
        }
    }

    /// Lets the columns count that only became variables that nothing uses.
    pub(super) fn count_idle(&mut self) {
        for (place, columns) in std::mem::take(&mut self.idle) {
            if let Some(Operation { reads: Columns::These(reads), .. }) = self.operations.get_mut(place) {
                reads.extend(columns);
            }
        }
    }

    /// Ends the transaction. One that was rolled back, or that only read and whose change was refused, is as none,
    /// unless somebody uses what it read.
    pub(super) fn end(&mut self, kept: bool, used: &Used) {
        let writes = |one: &Operation| matches!(one.kind, Kind::Update | Kind::Insert | Kind::Delete);
        let shown = std::mem::take(&mut self.shows) || std::mem::take(&mut self.tells);
        let shown = used.any_of(&std::mem::take(&mut self.given)) || shown;
        if !kept {
            self.operations =
                std::mem::take(&mut self.operations).into_iter().filter_map(rolled_back).collect();
            self.at_commit.clear();
        }
        let only_reads = !self.operations.iter().any(writes);
        if only_reads {
            self.count_idle();
        }
        self.idle.clear();
        let mut operations = std::mem::take(&mut self.operations);
        let statement = self.statement;
        let at_commit = std::mem::take(&mut self.at_commit).into_iter();
        operations.extend(at_commit.map(|check| Operation { statement, ..check }));
        self.columns.clear();
        self.held.clear();
        self.savepoints.clear();
        let refused = std::mem::take(&mut self.refused) && only_reads;
        if !operations.is_empty() && (shown || kept && !refused) {
            let name = self.name.join(", ");
            let ascending = self.ascending(&operations);
            let terms = operations.iter().flat_map(|one| one.key.iter().chain(&one.known));
            let used: BTreeSet<&Term> = terms.map(|(_, term)| term).collect();
            let is_used = |name: &String| used.contains(&Term::Variable(name.clone()));
            let ranges = self.ranges.iter().filter(|(name, _)| is_used(name));
            let ranges = ranges.map(|(name, range)| (name.clone(), *range)).collect();
            self.ended.push(Branch { name, operations, distinct: self.distinct.clone(), ascending, ranges });
        }
        self.statement = 0;
    }

    /// Pairs of variables of these operations of which the first is lower.
    pub(super) fn ascending(&self, operations: &[Operation]) -> Vec<(String, String)> {
        let terms = operations.iter().flat_map(|operation| operation.key.iter().chain(&operation.known));
        let used: BTreeSet<&String> = terms
            .filter_map(|(_, term)| match term {
                Term::Variable(name) => Some(name),
                _ => None,
            })
            .collect();
        let below = |name: &String| std::iter::successors(self.lower.get(name), |one| self.lower.get(*one));
        let pairs = used.iter().flat_map(|higher| below(higher).map(move |lower| (lower, *higher)));
        pairs
            .filter(|(lower, _)| used.contains(lower))
            .map(|(lower, higher)| (lower.clone(), higher.clone()))
            .collect()
    }

    /// Notes that two values differ.
    pub(super) fn differ(&mut self, one: Term, other: Term) {
        if let (Term::Variable(one), Term::Variable(other)) = (one, other) {
            self.distinct.push((one, other));
        }
    }

    /// The value of a variable.
    pub(super) fn value(&mut self, slot: Slot, symbols: &Symbols) -> Term {
        let times = self.times.entry(slot).or_insert(1);
        let name = named(symbols.name(slot), *times);
        self.values.get(&slot).cloned().unwrap_or(Term::Variable(name))
    }

    /// Gives a variable a value that isn't known.
    pub(super) fn assign(&mut self, slot: Slot, symbols: &Symbols) {
        let times = self.times.entry(slot).or_insert(0);
        *times += 1;
        let name = named(symbols.name(slot), *times);
        self.values.insert(slot, Term::Variable(name));
    }

    pub(super) fn term(&mut self, known: &Operand, symbols: &Symbols) -> Term {
        match known {
            Operand::Variable(slot) => self.value(*slot, symbols),
            Operand::Constant(text) => Term::Constant(text.clone()),
            Operand::Computed(text, slots) => {
                let mut text = text.clone();
                for (number, slot) in slots.iter().enumerate().rev() {
                    let value = match self.value(*slot, symbols) {
                        Term::Variable(name) => format!(":{name}"),
                        Term::Constant(constant) => constant,
                        Term::Unknown => return Term::Unknown,
                    };
                    text = text.replace(&format!("${}", number + 1), &value);
                }
                Term::Variable(format!("({text})"))
            }
        }
    }
}

/// The name of a variable's value after so many assignments.
pub(super) fn named(name: &str, times: usize) -> String {
    if times < 2 { name.to_owned() } else { format!("{name}'{times}") }
}

/// What an operation that was rolled back leaves: what it read. `None` if that is nothing.
pub(super) fn rolled_back(operation: Operation) -> Option<Operation> {
    let kind = match operation.kind {
        // That there was no such row is a check of its own.
        Kind::Insert => return None,
        Kind::Vacant => Kind::Search,
        Kind::Lock(_) | Kind::Update | Kind::Delete if operation.key.is_empty() => Kind::Search,
        Kind::Lock(_) | Kind::Update | Kind::Delete => Kind::Read,
        kind => kind,
    };
    Some(Operation {
        kind,
        writes: Columns::NONE,
        changes_key: false,
        certain: false,
        held: None,
        ..operation
    })
}
