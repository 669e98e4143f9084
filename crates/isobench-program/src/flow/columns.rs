//! The columns that don't count: those that only isobench reads, and those that a statement writes back
//! as it read them.
//!
//! A workload that is observed by lines `--@` has columns for its rows' versions, which every statement
//! writes. They are isobench's and not the workload's: its transactions do without them.

use std::collections::{BTreeMap, BTreeSet};

use isobench_script::{Annotated, Slot, Source, Sql, Store, Symbols, VersionSource};
use isobench_sql::RelationId;

use super::{Flows, Node};
use crate::statement::{Counted, Passage};

/// A value of the result that a line `--@` takes for a row's version.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    /// The columns that it is made of.
    of: Counted,
    /// The variable that it becomes, too.
    into: Option<Slot>,
}

/// The only row that a statement can find: its table, and the values of the key's columns.
pub(super) type Row = (RelationId, Vec<KeyValue>);

/// The value of a key's column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyValue {
    /// A variable's, with the number of times that it had been assigned.
    Variable(Slot, usize),
    /// A constant, in a form in which equal values of the column's type are the same text.
    Constant(String),
}

/// A column's value, as a statement read it.
pub(super) type ReadValue = (usize, String);

/// Variables that are used, each with the values in it.
pub(super) type Uses = Vec<(Slot, Vec<ReadValue>)>;

/// What became of the values that were read: the number of times that variables with them were used.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// Anyhow.
    pub(super) used: BTreeMap<ReadValue, usize>,
    /// To write the value back where it was read, by these statements.
    pub(super) returned: BTreeMap<ReadValue, Vec<usize>>,
    /// All variables that were used.
    pub(super) read: BTreeSet<Slot>,
    /// The variables that `\set` assigns, each with those in its expression and the values in them. They
    /// are used as soon as it is.
    pub(super) assigned: Vec<(Slot, Uses)>,
    /// The values that variables were given.
    pub(super) given: BTreeMap<Slot, Vec<ReadValue>>,
    /// The variables that are used in a script before it assigns them: another script may have, or the
    /// same one before.
    pub(super) inherited: BTreeSet<Slot>,
}

impl Values {
    pub(super) fn note_use(&mut self, slot: Slot, values: Vec<ReadValue>) {
        self.read.insert(slot);
        for value in values {
            *self.used.entry(value).or_default() += 1;
        }
    }

    /// Notes the uses of what is assigned to variables that are used, or handed on to other scripts.
    pub(super) fn follow_assignments(&mut self) {
        for slot in self.inherited.clone() {
            let given = self.given.get(&slot).cloned().unwrap_or_default();
            self.note_use(slot, given);
        }
        while let Some(place) = self.assigned.iter().position(|(slot, _)| self.read.contains(slot)) {
            for (slot, values) in self.assigned.swap_remove(place).1 {
                self.note_use(slot, values);
            }
        }
    }
}

/// The values of a statement's result that lines `--@` take for versions.
pub(super) fn taken(sql: &Sql, passage: &Passage, symbols: &Symbols) -> Vec<Taken> {
    let versions = sql.annotations.iter().filter_map(|line| match &line.what {
        Annotated::Read { version, .. } | Annotated::Write { version, .. } => Some(*version),
        _ => None,
    });
    let columns = versions.flat_map(|VersionSource { counter, value }| [counter, value]).flatten();
    let places = columns.filter_map(|source| match source {
        Source::Column(number) => usize::from(number).checked_sub(1),
        _ => None,
    });
    let places: BTreeSet<usize> = places.collect();
    let into = |place: usize| match &sql.store {
        Store::Gset { prefix } | Store::Aset { prefix } => {
            symbols.lookup(&format!("{prefix}{}", passage.gives.as_ref()?.get(place)?.name))
        }
        Store::None => None,
    };
    let known = |place: usize| Some(Taken { of: passage.outputs.get(place)?.clone(), into: into(place) });
    places.into_iter().filter_map(known).collect()
}

impl Node {
    /// True if it may read or write rows.
    fn has_rows(&self) -> bool {
        [&self.reads, &self.written]
            .iter()
            .any(|tables| tables.as_ref().is_none_or(|tables| !tables.is_empty()))
    }

    /// The number of times that it mentions a column only to keep its version, or to show it to isobench.
    fn keeping(&self, column: &str) -> usize {
        let shown = self.taken.iter().filter_map(|taken| taken.of.get(column));
        shown.chain(self.passage.kept_up.get(column)).sum()
    }

    /// True if it may write a table that another statement reads.
    fn writes_what_reads(&self, other: &Node) -> bool {
        let both = self.written.as_ref().zip(other.reads.as_ref());
        self.writes && both.is_none_or(|(written, reads)| !written.is_disjoint(reads))
    }

    /// True if it uses nothing of its rows but these columns and their keys, and others change those of
    /// its tables, or if it changes nothing else.
    fn is_of(&self, columns: &BTreeSet<String>, all: &[Node]) -> bool {
        let only =
            |mut names: Box<dyn Iterator<Item = &String> + '_>| names.all(|name| columns.contains(name));
        match (&self.passage.sets, &self.passage.uses) {
            (Some(sets), _) => only(Box::new(sets.iter())),
            (None, Some(uses)) if !self.writes => {
                let others = uses.keys().filter(|name| !self.keys.contains(*name));
                let changed = |name| {
                    let sets =
                        |other: &Node| other.passage.sets.as_ref().is_some_and(|sets| sets.contains(name));
                    all.iter().any(|other| sets(other) && other.writes_what_reads(self))
                };
                uses.keys().any(changed) && only(Box::new(others))
            }
            _ => false,
        }
    }
}

impl Flows {
    /// Forgets the columns that are only for isobench: those that lines `--@` take for versions, and that
    /// nothing else depends on. Where a statement has to do with nothing else they are the data, and
    /// stay.
    pub(super) fn forget_versions(&mut self) {
        let shown = self.nodes.iter().flat_map(|node| &node.taken);
        let mut columns: BTreeSet<String> = shown.flat_map(|taken| taken.of.keys().cloned()).collect();
        let read = &self.values.read;
        for node in &self.nodes {
            let passed_on = |taken: &&Taken| taken.into.is_some_and(|slot| read.contains(&slot));
            for taken in node.taken.iter().filter(passed_on) {
                columns.retain(|column| !taken.of.contains_key(column));
            }
            match &node.passage.uses {
                Some(uses) => columns.retain(|column| {
                    !node.keys.contains(column)
                        && uses.get(column).copied().unwrap_or_default() <= node.keeping(column)
                }),
                None if node.has_rows() => columns.clear(),
                None => {}
            }
        }
        if columns.is_empty() || self.nodes.iter().any(|node| node.is_of(&columns, &self.nodes)) {
            return;
        }
        for node in &mut self.nodes {
            if let Some(uses) = &mut node.passage.uses {
                uses.retain(|column, _| !columns.contains(column));
            }
            if let Some(sets) = &mut node.passage.sets {
                sets.retain(|column| !columns.contains(column));
            }
        }
        self.forgotten = columns;
    }

    /// The columns of a statement that could be left out of it: those that it writes back as they were
    /// read, or whose values are only written back.
    pub(super) fn unchanged(&self, node: usize) -> BTreeSet<&str> {
        let own = &self.nodes[node];
        let values = &self.values;
        let written = values.returned.iter().filter(|(_, by)| by.contains(&node));
        let written = written.map(|((_, column), _)| column.as_str());
        // What a statement reads in its condition as well it needs.
        let only_shown = |column: &String| {
            own.passage.uses.as_ref().and_then(|uses| uses.get(column)) == own.shown.get(column)
        };
        let mine = values.returned.iter().filter(|((from, _), _)| *from == node);
        let mine = mine.filter(|(value, by)| values.used.get(*value) == Some(&by.len()));
        let mine = mine.map(|((_, column), _)| column).filter(|column| only_shown(column));
        written.chain(mine.map(String::as_str)).collect()
    }
}
