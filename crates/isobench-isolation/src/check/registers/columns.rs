//! The columns of a row that each version changed, in a history that is judged by use.
//!
//! Two operations on different columns of a row depend on each other no more than those on different
//! rows, although the row's lock orders them. So each column has versions of its own: a read depends on
//! the last writer of each column that it uses and precedes the next one, and a write follows the last
//! writer of each column that it changes. What changes an unknown set of columns changes all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::context::Context;
use super::versions::Versions;

/// The places in the chain at which groups of versions begin that changed a column, for each column.
#[derive(Debug)]
pub(super) struct Columns {
    by_column: BTreeMap<u16, Vec<usize>>,
    /// Those that changed all columns.
    all: Vec<usize>,
    /// The columns that each other one changed.
    known: BTreeMap<usize, Vec<u16>>,
}

/// The last place up to one, in a sorted list.
fn last(places: &[usize], up_to: usize) -> Option<usize> {
    let end = places.partition_point(|place| *place <= up_to);
    end.checked_sub(1).map(|index| places[index])
}

/// The first place from one on, in a sorted list.
fn first(places: &[usize], from: usize) -> Option<usize> {
    places.get(places.partition_point(|place| *place < from)).copied()
}

impl Columns {
    /// The columns that the versions of a chain changed; `None` if they aren't known of any.
    pub(super) fn of(context: Context<'_>, versions: &Versions) -> Option<Columns> {
        let mut columns = Columns { by_column: BTreeMap::new(), all: Vec::new(), known: BTreeMap::new() };
        let mut start = 0;
        while start < versions.chain.len() {
            let end = versions.group_end(start);
            let alone = end == start + 1 && versions.reborn.binary_search(&start).is_err();
            match context.changed(versions.chain[start].place).filter(|_| alone) {
                Some(changed) => {
                    for column in changed {
                        columns.by_column.entry(*column).or_default().push(start);
                    }
                    columns.known.insert(start, changed.to_vec());
                }
                None => columns.all.push(start),
            }
            start = end;
        }
        (!columns.known.is_empty()).then_some(columns)
    }

    /// The places of each of these columns, or of all; and none, for whether the row exists, which only
    /// what changes all columns changes.
    fn lists(&self, columns: Option<&[u16]>) -> Vec<&[usize]> {
        let list = |column: &u16| self.by_column.get(column).map_or(&[][..], Vec::as_slice);
        let mut lists: Vec<&[usize]> = match columns {
            Some(columns) => columns.iter().map(list).collect(),
            None => self.by_column.values().map(Vec::as_slice).collect(),
        };
        lists.push(&[]);
        lists
    }

    /// The groups that wrote the columns as they are at a place of the chain.
    pub(super) fn sources(&self, columns: Option<&[u16]>, seen: usize) -> BTreeSet<usize> {
        let all = last(&self.all, seen);
        self.lists(columns).into_iter().filter_map(|list| last(list, seen).max(all)).collect()
    }

    /// The groups that change one of the columns first, from a place of the chain on.
    pub(super) fn changes(&self, columns: Option<&[u16]>, from: usize) -> BTreeSet<usize> {
        let all = first(&self.all, from);
        let next = |list: &[usize]| match (first(list, from), all) {
            (Some(own), Some(all)) => Some(own.min(all)),
            (own, all) => own.or(all),
        };
        self.lists(columns).into_iter().filter_map(next).collect()
    }

    /// The groups whose versions of a column a group replaced.
    pub(super) fn replaced(&self, group: usize) -> BTreeSet<usize> {
        let columns = self.known.get(&group).map(Vec::as_slice);
        group.checked_sub(1).map_or_else(BTreeSet::new, |before| self.sources(columns, before))
    }

    /// True if two groups changed a column that both have in common.
    pub(super) fn overlap(&self, one: usize, other: usize) -> bool {
        let (Some(one), Some(other)) = (self.known.get(&one), self.known.get(&other)) else { return true };
        one.iter().any(|column| other.contains(column))
    }
}
