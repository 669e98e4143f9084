//! What no level guards: data outside of the rows that snapshots have and serializable watches.
//!
//! A table that TRUNCATE or a rewriting ALTER TABLE changes is empty, or complete, for all older snapshots, too
//! (PostgreSQL manual, "Caveats" of MVCC). Materialised views, foreign tables, sequences and large objects are read
//! as they are, or not watched (`PredicateLockingNeededForRelation` in predicate.c); so are catalogs. Who reads these reads the newest
//! data, at every level.

use std::collections::BTreeSet;

use isobench_robustness::Operation;

use super::{Read, unknown};
use crate::catalog::{Catalog, RelationId, RelationKind};
use crate::statement::Deed;

/// What a statement reads and writes of such data, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Unguarded {
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
}

/// The names of what isn't a relation.
const LARGE_OBJECTS: &str = "large objects";
const SEQUENCES: &str = "sequences";
const CATALOGS: &str = "catalogs";

/// Commands after which older snapshots have other rows.
const UNSAFE: [&str; 3] = ["truncate", "alter", "refresh"];

/// Commands that change catalogs.
const OF_CATALOGS: [&str; 8] =
    ["alter", "comment", "create", "drop", "grant", "import", "revoke", "security"];

impl Unguarded {
    /// What the functions of these names do.
    pub(super) fn of_functions<'n>(names: impl Iterator<Item = &'n str>) -> Unguarded {
        let mut found = Unguarded::default();
        for name in names {
            let of = match name {
                name if name.starts_with("to_reg") => {
                    found.reads.insert(CATALOGS.to_owned());
                    continue;
                }
                "loread" | "lowrite" => LARGE_OBJECTS,
                "setval" | "pg_sequence_last_value" => SEQUENCES,
                name if name.starts_with("lo_") => LARGE_OBJECTS,
                _ => continue,
            };
            found.reads.insert(of.to_owned());
            found.writes.insert(of.to_owned());
        }
        found
    }

    /// The operations of a statement, after all else that it does.
    pub(super) fn operations(&self, at: &str, statement: usize) -> Vec<Operation> {
        let search = |name: &String| {
            let [search, _] = unknown(name, at, statement);
            Operation { newest: true, ..search }
        };
        let update = |name: &String| {
            let [_, update] = unknown(name, at, statement);
            update
        };
        self.reads.iter().map(search).chain(self.writes.iter().map(update)).collect()
    }
}

/// Notes for all statements what they do with such data. The tables that they touch are known.
pub(super) fn note(read: &mut [Vec<Vec<Read>>], catalog: &Catalog) {
    let changed: Vec<BTreeSet<RelationId>> =
        read.iter().flatten().flatten().map(|one| changed(one, catalog)).collect();
    let all: BTreeSet<RelationId> = changed.iter().flatten().copied().collect();
    for (statement, changed) in read.iter_mut().flatten().flatten().zip(changed) {
        let touched = statement.touched();
        let first = statement.first_word();
        let own = &mut statement.unguarded;
        for table in touched.intersection(&all) {
            own.reads.insert(outside(*table, catalog));
        }
        for table in changed {
            own.reads.insert(outside(table, catalog));
            own.writes.insert(outside(table, catalog));
        }
        if OF_CATALOGS.contains(&first.as_str()) {
            own.reads.insert(CATALOGS.to_owned());
            own.writes.insert(CATALOGS.to_owned());
        }
        for table in touched {
            let relation = &catalog.relations[table];
            let name = match relation.kind {
                RelationKind::System => {
                    let of = if relation.name == "pg_sequences" { SEQUENCES } else { CATALOGS };
                    own.reads.insert(of.to_owned());
                    continue;
                }
                RelationKind::Other => SEQUENCES.to_owned(),
                RelationKind::Materialized | RelationKind::Foreign | RelationKind::Stored => {
                    relation.qualified()
                }
                _ => continue,
            };
            if matches!(
                first.as_str(),
                "insert" | "update" | "delete" | "merge" | "with" | "copy" | "call" | "do"
            ) {
                own.writes.insert(name.clone());
            }
            own.reads.insert(name);
        }
    }
    take_numbers(read);
}

/// Lets statements that take numbers of sequences write them, if any statement reads sequences.
fn take_numbers(read: &mut [Vec<Vec<Read>>]) {
    let reads = |one: &Read| one.unguarded.reads.contains(SEQUENCES);
    if !read.iter().flatten().flatten().any(reads) {
        return;
    }
    for statement in read.iter_mut().flatten().flatten() {
        let inserting = [Deed::Insert, Deed::InsertOrRead, Deed::InsertOrUpdate];
        let inserts = match &statement.accesses {
            Ok(accesses) => accesses.iter().any(|access| inserting.contains(&access.deed)),
            Err(_) => true,
        };
        if inserts || statement.named.contains("nextval") {
            statement.unguarded.writes.insert(SEQUENCES.to_owned());
        }
    }
}

/// The relations whose rows a command changes for older snapshots, too.
fn changed(statement: &Read, catalog: &Catalog) -> BTreeSet<RelationId> {
    let first = statement.first_word();
    if !UNSAFE.contains(&first.as_str()) {
        return BTreeSet::new();
    }
    let cascades = statement.named.contains("cascade");
    let meant = |id: &RelationId| {
        let relation = &catalog.relations[*id];
        relation.kind != RelationKind::System && (cascades || statement.named.contains(&relation.name))
    };
    (0..catalog.relations.len()).filter(meant).map(|id| catalog.root(id)).collect()
}

fn outside(table: RelationId, catalog: &Catalog) -> String {
    let relation = &catalog.relations[table];
    match relation.kind {
        RelationKind::Other => SEQUENCES.to_owned(),
        RelationKind::Materialized | RelationKind::Foreign | RelationKind::Stored => relation.qualified(),
        _ => format!("{} outside of snapshots", relation.qualified()),
    }
}
