//! Locks of whole sets of rows, and of tables.
//!
//! At read committed `SELECT … WHERE parent = 1 FOR UPDATE` waits for each row that its snapshot has, and tests its
//! condition again on the newest version (PostgreSQL manual, "Read Committed Isolation Level"). If no transaction
//! adds rows to the set, all of it is locked then, and whatever the transaction reads of the set later stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Columns, Strength};
use isobench_sql::{Catalog, Inheritance, Placed, RelationId, RelationKind, Token};

use super::Read;
use super::tables::add;
use crate::statement::{Access, Deed, Operand, Statement};

/// What scripts do to sets of rows, taken together.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// A statement may do anything.
    anything: bool,
    /// The tables to which rows come.
    gaining: BTreeSet<RelationId>,
    /// The columns that are changed, by table.
    written: BTreeMap<RelationId, Columns>,
    /// What UPDATEs set these columns to; `None` if that may be anything.
    assigned: BTreeMap<(RelationId, String), Vec<Option<Operand>>>,
    /// The tables that a script locks as a whole.
    pub(super) locked: BTreeSet<RelationId>,
}

impl Sets {
    pub(super) fn of<'r>(statements: impl Iterator<Item = &'r Read>) -> Sets {
        let mut sets = Sets::default();
        for statement in statements {
            sets.anything |= statement.accesses.is_err();
            sets.locked.extend(&statement.table_locks);
            for access in statement.accesses.iter().flatten().filter(|access| access.deed.writes()) {
                if access.deed.inserts() {
                    sets.gaining.insert(access.table);
                }
                if access.deed == Deed::Delete {
                    continue;
                }
                add(&mut sets.written, access.table, &access.writes);
                if let Columns::These(columns) = &access.writes {
                    for column in columns {
                        let value = access.sets.get(column).filter(|_| access.deed == Deed::Update);
                        let all = sets.assigned.entry((access.table, column.clone())).or_default();
                        all.push(value.cloned());
                    }
                }
            }
        }
        sets
    }

    /// The lock of all rows that an access finds, if it locks all of them and no row comes to them.
    pub(super) fn lock_of(&self, access: &Access, catalog: &Catalog) -> Option<Strength> {
        let Deed::Lock(strength @ (Strength::Share | Strength::NoKeyUpdate | Strength::Update)) = access.deed
        else {
            return None;
        };
        let relation = &catalog.relations[access.table];
        let plain = relation.kind == RelationKind::Table && matches!(relation.inheritance, Inheritance::None);
        let stays = access.equal.iter().all(|(column, value)| self.keeps(access.table, column, value));
        let all = access.certain && access.tested.is_empty() && !access.equal.is_empty();
        (plain && all && stays && !self.anything && !self.gaining.contains(&access.table)).then_some(strength)
    }

    /// True if no UPDATE gives a column a value that it may be required to have.
    fn keeps(&self, table: RelationId, column: &str, value: &Operand) -> bool {
        if self.written.get(&table) == Some(&Columns::All) {
            return false;
        }
        let others = self.assigned.get(&(table, column.to_owned())).into_iter().flatten();
        let is_other = |other: &Option<Operand>| match (value, other) {
            (Operand::Constant(own), Some(Operand::Constant(other))) => own != other,
            _ => false,
        };
        others.into_iter().all(is_other)
    }

    /// The accesses of a statement without reads of rows that it locks as a set, of columns that no script changes: their
    /// order, for example.
    pub(super) fn without_order(&self, accesses: Vec<Access>, catalog: &Catalog) -> Vec<Access> {
        let locked: Vec<(RelationId, BTreeMap<String, Operand>)> = accesses
            .iter()
            .filter(|access| self.lock_of(access, catalog).is_some())
            .map(|access| (access.table, access.equal.clone()))
            .collect();
        let changed = |access: &Access| match (&access.reads, self.written.get(&access.table)) {
            (_, None) => false,
            (Columns::These(reads), Some(Columns::These(written))) => !reads.is_disjoint(written),
            _ => true,
        };
        let is_order = |access: &Access| {
            let same = |(table, equal): &(RelationId, _)| (*table, equal) == (access.table, &access.equal);
            access.orders && !changed(access) && locked.iter().any(same)
        };
        accesses.into_iter().filter(|access| !is_order(access)).collect()
    }
}

/// The tables that LOCK locks so that no other session writes them or locks them so: in SHARE ROW EXCLUSIVE mode or a
/// stronger one (PostgreSQL manual, "Conflicting Lock Modes"). Partitions and tables that inherit are left out.
pub(super) fn locked_tables(statement: &Statement<'_>) -> Vec<RelationId> {
    let tokens = &statement.text.tokens[statement.range.clone()];
    if !tokens.first().is_some_and(|first| first.is("lock"))
        || !statement.text.unquoted(&statement.range).is_empty()
    {
        return Vec::new();
    }
    let end = tokens.iter().position(|token| token.is("in")).unwrap_or(tokens.len());
    let mode: Vec<String> = tokens[end..].iter().filter_map(Placed::name).collect();
    let mode: Vec<&str> = mode.iter().map(String::as_str).filter(|word| *word != "nowait").collect();
    let strong = matches!(
        mode.as_slice(),
        [] | ["in", "share", "row", "exclusive", "mode"]
            | ["in", "exclusive", "mode"]
            | ["in", "access", "exclusive", "mode"]
    );
    if !strong {
        return Vec::new();
    }
    let names =
        tokens[1..end].iter().filter(|token| !token.is("table") && !token.is("only") && !token.is("nowait"));
    let names: Vec<&Placed> = names.collect();
    let mut found = Vec::new();
    for name in names.split(|token| token.token.token == Token::Comma) {
        let name: Vec<&&Placed> = name.iter().filter(|token| token.token.token != Token::Mul).collect();
        let table = match name.as_slice() {
            [table] => table.name().and_then(|table| statement.catalog.resolve(None, &table)),
            [schema, _, table] => schema
                .name()
                .zip(table.name())
                .and_then(|(schema, table)| statement.catalog.resolve(Some(&schema), &table)),
            _ => None,
        };
        found.extend(table.filter(|table| {
            let relation = &statement.catalog.relations[*table];
            relation.kind == RelationKind::Table && matches!(relation.inheritance, Inheritance::None)
        }));
    }
    found
}

/// Forgets which tables LOCK locks if a script changes what names mean.
pub(super) fn forget_renamed(read: &mut [Vec<Vec<Read>>]) {
    let renames = |statement: &Read| statement.changes_meaning || !statement.renames.is_empty();
    if read.iter().flatten().flatten().any(renames) {
        read.iter_mut().flatten().flatten().for_each(|statement| statement.table_locks.clear());
    }
}

/// True if a statement certainly takes the lock of a table that its writers take.
pub(super) fn writes_table(access: &Access) -> bool {
    access.deed.writes() && access.deed != Deed::Cascade
}
