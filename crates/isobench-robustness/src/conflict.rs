//! Which operations depend on each other, and which exclude each other.
//!
//! Dependencies are by columns, and possible if nothing excludes that both operations concern the same
//! row. Locks are of rows, and exclude only what certainly is the same row.

use crate::compiled::{Compiled, CompiledBranch, CompiledOperation};
use crate::model::Kind;
use crate::unification::{Instance, Transaction, Unification};

/// A part of a transaction that ran before another one runs as a whole.
#[derive(Clone, Copy)]
pub(crate) enum Before {
    /// What a transaction of read committed ran up to an operation, whose own lock counts.
    Operation(usize),
    /// The snapshot of a transaction of repeatable read or serializable.
    Snapshot,
}

impl Before {
    /// True if a transaction that runs within has to wait for the lock of an operation.
    fn locks(self, instance: Instance<'_>, operation: usize) -> bool {
        match self {
            Before::Operation(at) => {
                let operations = &instance.branch.operations;
                operation == at || operations[operation].step < operations[at].step
            }
            Before::Snapshot => false,
        }
    }
}

/// True if two operations can concern the same row.
pub(crate) fn may_meet(compiled: &Compiled, one: &CompiledOperation, other: &CompiledOperation) -> bool {
    Unification::new(compiled).unify((0, &one.known), (1, &other.known))
}

/// True if transactions of two branches can depend on each other.
pub(crate) fn may_depend(compiled: &Compiled, one: &CompiledBranch, other: &CompiledBranch) -> bool {
    let mut pairs = one.operations.iter().flat_map(|a| other.operations.iter().map(move |b| (a, b)));
    pairs.any(|(a, b)| a.depends(b) && may_meet(compiled, a, b))
}

/// True if two operations certainly concern the same row.
pub(crate) fn same_row(
    equal: &Unification,
    (one, a): (Transaction, &CompiledOperation),
    (other, b): (Transaction, &CompiledOperation),
) -> bool {
    let same = |((column, value), (with, against)): (&(usize, _), &(usize, _))| {
        column == with && equal.equal((one, *value), (other, *against))
    };
    a.is_on_table_of(b)
        && !a.key.is_empty()
        && a.key.len() == b.key.len()
        && a.key.iter().zip(&b.key).all(same)
}

/// True if operations that concern the same row exclude each other before `before`, one of the
/// transaction that is split and one that runs within.
pub(crate) fn bars(
    before: Before,
    split: Instance<'_>,
    operation: usize,
    within: &CompiledOperation,
) -> bool {
    let own = &split.branch.operations[operation];
    let locks = own.lock.zip(within.lock).is_some_and(|(own, other)| own.conflicts(other));
    // The first updater wins, also against one who only locks. Who inserts doesn't mind a deletion.
    let replaced = own.kind == Kind::Insert && within.kind == Kind::Delete;
    // A check of the newest data doesn't mind what is newer than the snapshot.
    let updated = matches!(before, Before::Snapshot) && within.has_writes() && !replaced && !own.newest;
    locks && (updated || before.locks(split, operation))
}

/// True if the row of the key that an operation inserts is certainly there after a transaction that ran within, which
/// did something else with it: if it only waited for an insertion, it goes on where the row was deleted again, by
/// that transaction or by one that ran after it.
fn stays(compiled: &Compiled, before: Before, own: &CompiledOperation) -> bool {
    matches!(before, Before::Operation(_)) || !compiled.loses_rows(own)
}

/// True if two operations insert a row with the same key, and none goes from the table: then the second one fails.
pub(crate) fn is_taken(compiled: &Compiled, own: &CompiledOperation, other: &CompiledOperation) -> bool {
    let inserts = [own, other].iter().all(|one| one.kind == Kind::Insert && !one.key.is_empty());
    inserts && own.is_on_table_of(other) && !compiled.loses_rows(own)
}

/// True if a transaction can't run as a whole within another one that is split.
pub(crate) fn excludes(
    compiled: &Compiled,
    equal: &Unification,
    before: Before,
    split: Instance<'_>,
    within: Instance<'_>,
) -> bool {
    // Only locks of rows that are certainly the same exclude each other, and most operations take none.
    split.branch.locking.iter().any(|number| {
        let own = &split.branch.operations[*number];
        within.branch.locking.iter().map(|other| &within.branch.operations[*other]).any(|other| {
            own.is_on_table_of(other)
                && bars(before, split, *number, other)
                && (own.kind != Kind::Insert || stays(compiled, before, own))
                && same_row(equal, (split.number, own), (within.number, other))
        })
    })
}

/// True if a transaction that has one snapshot, and is split after `read`, sees by `own` what `other` wrote
/// within: by a check of the newest data that comes later.
pub(crate) fn sees_later(
    read: &CompiledOperation,
    own: &CompiledOperation,
    other: &CompiledOperation,
) -> bool {
    own.sees_newest(other) && (!read.newest || own.step > read.step)
}

/// True if serializable transactions watch both ends of a split after `read` that is closed by `own` and
/// `other`: the server's checks of the newest data don't count for them.
pub(crate) fn is_watched(
    read: &CompiledOperation,
    own: &CompiledOperation,
    other: &CompiledOperation,
) -> bool {
    other.reads_from(own) && !other.newest && !read.newest
}

/// True if a transaction certainly reads a row that another one writes, so that predicate locks of
/// serializable transactions show it.
pub(crate) fn surely_reads(equal: &Unification, reader: Instance<'_>, writer: Instance<'_>) -> bool {
    let meets = |a: &CompiledOperation, b: &CompiledOperation| {
        // A search locks all that has its values, whether it is there or not.
        let found = |(column, value): &(usize, _)| {
            b.value(*column).is_some_and(|other| equal.equal((reader.number, *value), (writer.number, other)))
        };
        let searched = a.kind == Kind::Search && a.is_on_table_of(b) && a.known.iter().all(found);
        searched || same_row(equal, (reader.number, a), (writer.number, b))
    };
    let mut writes = writer.branch.operations.iter().filter(|operation| operation.has_writes());
    writes.any(|write| {
        reader
            .branch
            .operations
            .iter()
            .filter(|read| read.certain && !read.newest)
            .any(|read| (read.has_reads() || read.lock.is_some()) && meets(read, write))
    })
}
