//! The accesses of a statement that calls functions of users or fires triggers whose bodies can be read.
//!
//! All of it may happen, in any order and any number of times, with any values. So no access has a key, none locks, and
//! none is certain.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::Columns;
use isobench_sql::{Bound, BoundRelation, Catalog, RelationId, Run, is_system_column};

use super::Statement;
use super::accesses::{Access, Accesses, Deed, OfTriggers, Unknown};

impl Statement<'_> {
    /// The accesses of the statement and of all code that it reaches, each once; `None` if some can't be read, or if
    /// there is no such code.
    pub(crate) fn accesses_with_code(&self) -> Option<Vec<Access>> {
        let bound = self.understood().ok()?;
        let mut code = Code { catalog: self.catalog, runs: BTreeSet::new(), found: Vec::new() };
        code.add(bound).ok()?;
        // Serializable doesn't watch the places of rows.
        let by_place = |access: &Access| match &access.reads {
            Columns::These(names) => names.iter().any(|name| is_system_column(name)),
            Columns::All => false,
        };
        (!code.found.iter().any(by_place)).then_some(code.found)
    }
}

struct Code<'c> {
    catalog: &'c Catalog,
    /// The functions that were added.
    runs: BTreeSet<Run>,
    found: Vec<Access>,
}

impl Code<'_> {
    /// Adds a statement, with what it reaches.
    fn add(&mut self, bound: &Bound) -> Result<(), Unknown> {
        let catalog = self.catalog;
        if let Some(why) = catalog.calls_otherwise(bound) {
            return Err(why);
        }
        let mut own = Accesses { statement: None, catalog, triggers: OfTriggers::Row, found: Vec::new() };
        for relation in &bound.relations {
            own.relation(relation)?;
        }
        for access in own.found.into_iter().map(loosened) {
            if !self.found.contains(&access) {
                self.found.push(access);
            }
        }
        if let Some(table) = bound.relations.iter().find_map(|relation| self.opaque(relation)) {
            return Err(format!("isobench doesn't know what triggers of {table} do"));
        }
        for run in catalog.runs(bound) {
            if self.runs.insert(run) {
                for statement in catalog.body(run)? {
                    self.add(statement)?;
                }
            }
        }
        Ok(())
    }

    /// The name of a table that changes, if some of its triggers can't be read.
    fn opaque(&self, bound: &BoundRelation) -> Option<String> {
        let writes = bound.inserts || bound.updates || bound.deletes || bound.merges;
        let id = self.catalog.relation_of(bound).filter(|_| writes)?;
        let root = self.catalog.root(id);
        // Which columns a trigger changes of a row that an action of a foreign key changes isn't looked at.
        let is_opaque = |table: &RelationId| {
            let triggers = self.catalog.triggers(*table);
            let fires = triggers.may(|event| event.insert || event.update || event.delete);
            triggers.opaque || *table != root && fires
        };
        let opaque = self.catalog.changed_with(id).into_iter().find(is_opaque);
        opaque.map(|table| self.catalog.relations[table].name.clone())
    }
}

/// An access of which nothing is known but its table and columns.
fn loosened(access: Access) -> Access {
    let mut tested = access.tested;
    tested.extend(access.equal.into_keys().chain(access.before.into_keys()));
    let mut reads = access.reads;
    if let Columns::These(names) = &mut reads {
        names.extend(tested.iter().cloned());
    }
    Access {
        deed: if matches!(access.deed, Deed::Lock(_)) { Deed::Read } else { access.deed },
        reads,
        equal: BTreeMap::new(),
        before: BTreeMap::new(),
        tested,
        sets: BTreeMap::new(),
        idle: BTreeSet::new(),
        certain: false,
        listed: false,
        in_result: false,
        orders: false,
        ..access
    }
}
