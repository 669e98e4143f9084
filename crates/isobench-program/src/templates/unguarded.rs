//! What no level guards: data outside of the rows that snapshots have and serializable watches.
//!
//! A table that TRUNCATE or a rewriting ALTER TABLE changes is empty, or complete, for all older snapshots, too
//! (PostgreSQL manual, "Caveats" of MVCC). Materialised views, foreign tables, sequences and large objects are read
//! as they are, or not watched (`PredicateLockingNeededForRelation` in predicate.c); so are catalogs. Who reads these reads the newest
//! data, at every level.

use std::collections::BTreeSet;

use isobench_robustness::{Columns, Operation, StatementId};

use super::{Read, unknown};
use crate::statement::Access;
use isobench_sql::{Catalog, Hidden, RelationId, RelationKind, changes_with_others};

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
/// Locks, sizes, statistics, snapshots: all that shows what other transactions do at the moment.
const STATE: &str = "the state of the server";
/// Data that code may change for all others, whatever it is.
const ANYTHING: &str = "anything outside of snapshots";

/// Commands after which older snapshots have other rows.
const UNSAFE: [&str; 3] = ["truncate", "alter", "refresh"];

/// Commands that change catalogs.
const OF_CATALOGS: [&str; 8] =
    ["alter", "comment", "create", "drop", "grant", "import", "revoke", "security"];

impl Unguarded {
    /// What the functions of these names do; `own` has those of users.
    pub(super) fn of_functions<'n>(names: impl Iterator<Item = &'n str>, own: &Hidden) -> Unguarded {
        let own = |name: &str| own.is_named(name);
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
                name if !own(name) && name != "set_config" => {
                    found.reads.insert(STATE.to_owned());
                    continue;
                }
                _ => continue,
            };
            found.reads.insert(of.to_owned());
            found.writes.insert(of.to_owned());
        }
        found
    }

    /// The operations of a statement, after all else that it does.
    pub(super) fn operations(&self, at: &StatementId, statement: usize) -> Vec<Operation> {
        let search = |name: &String| {
            let [search, _] = unknown(name, at, statement);
            Operation { newest: true, ..search }
        };
        let update = |name: &String| {
            let [_, update] = unknown(name, at, statement);
            Operation { reads: Columns::NONE, ..update }
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
                    let of = match relation.name.as_str() {
                        "pg_sequences" => SEQUENCES,
                        name if changes_with_others(name) => STATE,
                        _ => CATALOGS,
                    };
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
    look_behind(read);
    find_places(read, catalog);
    take_numbers(read);
    change_state(read);
}

/// Notes what code that isn't analysed may do: all others depend on what it may change for them.
fn look_behind(read: &mut [Vec<Vec<Read>>]) {
    let is_wild = |one: &Read| one.hides.as_ref().is_some_and(|hides| hides.wild);
    let any = read.iter().flatten().flatten().any(is_wild);
    for statement in read.iter_mut().flatten().flatten() {
        let wild = is_wild(statement);
        let looks = statement.hides.as_ref().is_some_and(|hides| hides.looks);
        let touches = statement.touches();
        let own = &mut statement.unguarded;
        if looks || own_words(&statement.named) {
            own.reads.insert(STATE.to_owned());
        }
        if wild {
            own.writes.insert(ANYTHING.to_owned());
        }
        if any && touches {
            own.reads.insert(ANYTHING.to_owned());
        }
    }
}

/// True if a statement names a system column that shows what others do.
fn own_words(names: &BTreeSet<String>) -> bool {
    names.iter().any(|name| matches!(name.as_str(), "xmax" | "cmin" | "cmax"))
}

/// Lets rows that are looked for by their place be written by all that write their table: serializable doesn't watch
/// a place without a row.
fn find_places(read: &mut [Vec<Vec<Read>>], catalog: &Catalog) {
    let by_place = |access: &&Access| {
        access.equal.keys().chain(access.before.keys()).chain(&access.tested).any(|column| column == "ctid")
    };
    let tables = |one: &Read| -> BTreeSet<RelationId> {
        one.accesses.iter().flatten().filter(by_place).map(|access| access.table).collect()
    };
    let all: BTreeSet<RelationId> = read.iter().flatten().flatten().flat_map(tables).collect();
    let name = |table: &RelationId| format!("places of {}", catalog.relations[*table].qualified());
    for statement in read.iter_mut().flatten().flatten() {
        let looked = tables(statement);
        let written: BTreeSet<RelationId> = match &statement.accesses {
            Ok(accesses) => {
                accesses.iter().filter(|one| one.deed.writes()).map(|access| access.table).collect()
            }
            Err(_) => statement.tables.clone(),
        };
        statement.unguarded.reads.extend(looked.iter().map(name));
        statement.unguarded.writes.extend(written.intersection(&all).map(name));
    }
}

/// Lets all that touches rows or locks change the state of the server, if a statement looks at it.
fn change_state(read: &mut [Vec<Vec<Read>>]) {
    if !read.iter().flatten().flatten().any(|one| one.unguarded.reads.contains(STATE)) {
        return;
    }
    for statement in read.iter_mut().flatten().flatten().filter(|one| one.touches()) {
        statement.unguarded.writes.insert(STATE.to_owned());
    }
}

/// Lets statements that take numbers of sequences write them, if any statement reads sequences.
fn take_numbers(read: &mut [Vec<Vec<Read>>]) {
    let reads = |one: &Read| one.unguarded.reads.contains(SEQUENCES);
    if !read.iter().flatten().flatten().any(reads) {
        return;
    }
    for statement in read.iter_mut().flatten().flatten() {
        let inserts = match &statement.accesses {
            Ok(accesses) => accesses.iter().any(|access| access.deed.inserts()),
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
