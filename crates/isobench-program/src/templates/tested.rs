//! UPDATEs and DELETEs that could require what was read of their row before: of two that read the same the second one
//! finds no row then (compare and set).

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Columns, StatementId};
use isobench_script::{CommandKind, Script, Slot, Store, Symbols};

use super::first::assigns;
use super::tables::add;
use super::{Read, Stored};
use crate::statement::{Access, Deed, Operand, Rewritten};
use isobench_sql::{Catalog, ColumnType, RelationId, name_in_sql};

/// Columns of a row, with the variables that have their values.
struct ReadRow {
    table: RelationId,
    key: BTreeMap<String, Operand>,
    columns: Vec<(String, Slot)>,
}

/// The columns that any script changes in rows, by the tables.
pub(super) fn changed<'r>(statements: impl Iterator<Item = &'r Read>) -> BTreeMap<RelationId, Columns> {
    let mut found: BTreeMap<RelationId, Columns> = BTreeMap::new();
    for access in statements.flat_map(|read| read.accesses.iter().flatten()) {
        if matches!(access.deed, Deed::Update | Deed::InsertOrUpdate) {
            add(&mut found, access.table, &access.writes);
        }
    }
    found
}

/// Such statements of a script, by their names, with the columns that any script changes.
pub(super) fn tested(
    script: &Script,
    symbols: &Symbols,
    catalog: &Catalog,
    commands: &[Vec<Read>],
    changed: &BTreeMap<RelationId, Columns>,
) -> BTreeMap<StatementId, Rewritten> {
    let mut found = BTreeMap::new();
    let mut rows: Vec<ReadRow> = Vec::new();
    for (command, statements) in script.commands.iter().zip(commands) {
        for read in statements {
            for access in read.accesses.iter().flatten().filter(|one| is_change(one)) {
                let conditions = conditions(access, &rows, catalog, symbols, changed);
                if let (Some(place), false) = (&read.conditioned, conditions.is_empty()) {
                    let sets = format!("AND {}", conditions.join(" AND "));
                    let text = format!("{} {sets}{}", place.before, place.after);
                    found.insert(read.at.clone(), Rewritten { text, sets });
                }
            }
        }
        let assigned: BTreeSet<Slot> = assigns(&command.kind, statements, symbols).into_iter().collect();
        rows.retain(|row| {
            let has = |known: &Operand| matches!(known, Operand::Variable(slot) if assigned.contains(slot));
            !row.key.values().any(has)
        });
        for row in &mut rows {
            row.columns.retain(|(_, slot)| !assigned.contains(slot));
        }
        let CommandKind::Sql(sql) = &command.kind else { continue };
        if let (Store::Gset { prefix }, [.., last]) = (&sql.store, statements.as_slice()) {
            rows.extend(shown_rows(last, prefix, symbols, catalog));
        }
    }
    found
}

fn may_have(columns: &Columns, name: &str) -> bool {
    match columns {
        Columns::These(names) => names.contains(name),
        Columns::All => true,
    }
}

fn is_change(access: &Access) -> bool {
    matches!(access.deed, Deed::Update | Deed::Delete)
}

/// The conditions that a change of a row could have.
fn conditions(
    access: &Access,
    rows: &[ReadRow],
    catalog: &Catalog,
    symbols: &Symbols,
    changed: &BTreeMap<RelationId, Columns>,
) -> Vec<String> {
    let has = |column: &String| access.equal.get(column).or_else(|| access.before.get(column));
    let same = |row: &&ReadRow| {
        row.table == access.table && row.key.iter().all(|(column, known)| has(column) == Some(known))
    };
    let relation = &catalog.relations[access.table];
    let columns = rows.iter().filter(same).flat_map(|row| &row.columns);
    let required = columns.filter(|(name, slot)| {
        let column = relation.columns.iter().find(|column| column.name == *name);
        // A variable in quotes would be needed for others, and NULL is equal to nothing.
        let plain = column.is_some_and(|column| column.kind == ColumnType::Integer && column.not_null);
        plain
            && has(name) != Some(&Operand::Variable(*slot))
            && changed.get(&access.table).is_some_and(|columns| may_have(columns, name))
    });
    let written: BTreeSet<String> =
        required.map(|(name, slot)| format!("{} = :{}", name_in_sql(name), symbols.name(*slot))).collect();
    written.into_iter().collect()
}

/// The only rows of tables that a query shows by their keys, with the variables that it gives their columns to.
fn shown_rows<'r>(
    read: &'r Read,
    prefix: &'r str,
    symbols: &'r Symbols,
    catalog: &'r Catalog,
) -> impl Iterator<Item = ReadRow> + 'r {
    let shows = |access: &&Access| {
        matches!(access.deed, Deed::Read | Deed::Lock(_) | Deed::Pick(_)) && access.in_result
    };
    read.accesses.iter().flatten().filter(shows).filter_map(move |access| {
        let relation = &catalog.relations[access.table];
        let name = |place: &usize| relation.columns[*place].name.clone();
        let key = relation.keys().find_map(|key| {
            let of = |place: &usize| Some((name(place), access.equal.get(&name(place))?.clone()));
            key.iter().map(of).collect::<Option<BTreeMap<_, _>>>().filter(|key| !key.is_empty())
        })?;
        let given = |one: &Stored| {
            let column = one.column.as_ref().filter(|column| column.table == access.table)?;
            let slot = symbols.lookup(&format!("{prefix}{}", one.name))?;
            (!key.contains_key(&column.name)).then(|| (column.name.clone(), slot))
        };
        let columns = read.gives.iter().flatten().filter_map(given).collect();
        Some(ReadRow { table: access.table, key, columns })
    })
}
