//! Rows that a transaction could lock before anything else: those whose keys are known when it begins.
//!
//! Whoever locks the parent of rows first is alone with them: it counts and adds to them without another
//! one in between, and at read committed what it reads afterwards is new.

use std::collections::BTreeSet;

use isobench_robustness::Strength;
use isobench_script::Statement as StatementKind;
use isobench_script::{CommandKind, Script, Slot, Store, Symbols};

use super::{Read, slots_given, touches_rows};
use crate::catalog::{Catalog, ColumnType, RelationId};
use crate::statement::{Access, Deed, Known, name_in_sql};

/// The most of a transaction.
const MOST: usize = 4;

/// A row that a transaction could lock before its first statement on rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLock {
    /// The index of the script.
    pub script: usize,
    /// The line before which the lock would stand, from 1.
    pub line: u32,
    /// The table.
    pub table: String,
    /// The statement, with the names of variables, without the lock: `SELECT 1 FROM post WHERE id = :p`.
    pub text: String,
    /// The lock: that of writers, unless the transaction only reads the row.
    pub strength: Strength,
}

impl FirstLock {
    /// The whole statement.
    pub fn statement(&self) -> String {
        format!("{} {}", self.text, self.strength.clause())
    }
}

/// The rows that the transactions of a script use and could lock first.
pub(super) fn first_locks(
    number: usize,
    script: &Script,
    symbols: &Symbols,
    catalog: &Catalog,
    commands: &[Vec<Read>],
) -> Vec<FirstLock> {
    let mut found = Vec::new();
    for (begin, statements) in commands.iter().enumerate() {
        let [Read { kind: StatementKind::Begin, .. }] = statements.as_slice() else { continue };
        let after = begin + 1;
        let Some(line) = script.commands.get(after).map(|command| command.line) else { continue };
        if line == script.commands[begin].line {
            continue;
        }
        let ends = |statements: &Vec<Read>| {
            statements.iter().any(|read| matches!(read.kind, StatementKind::Commit | StatementKind::Rollback))
        };
        let end = commands[after..].iter().position(ends).map_or(commands.len(), |at| after + at);
        let block =
            script.commands[after..end].iter().map(|command| &command.kind).zip(&commands[after..end]);
        let rows = used_rows(block, symbols, catalog);
        // What isn't known may write the row: of two readers' locks each would wait for the other.
        let unknown = commands[after..end].iter().flatten().any(|read| read.accesses.is_err());
        found.extend(rows.into_iter().take(MOST).map(|(table, text, reads)| {
            let strength = if reads && !unknown { Strength::Share } else { Strength::NoKeyUpdate };
            FirstLock { script: number, line, table: catalog.relations[table].qualified(), text, strength }
        }));
    }
    found
}

/// The rows that a transaction uses and whose keys are known when it begins, each with its query; true if
/// it only reads the row. Not the one that its first statement locks anyway.
fn used_rows<'b>(
    block: impl Iterator<Item = (&'b CommandKind, &'b Vec<Read>)>,
    symbols: &Symbols,
    catalog: &Catalog,
) -> Vec<(RelationId, String, bool)> {
    let mut rows: Vec<(RelationId, String, bool)> = Vec::new();
    let (mut assigned, mut is_first) = (BTreeSet::new(), true);
    for (command, statements) in block {
        for read in statements {
            let accesses = read.accesses.as_deref().unwrap_or(&read.but_for_triggers);
            let locks = |access: &Access| matches!(access.deed, Deed::Lock(_) | Deed::Update | Deed::Delete);
            let locked_anyway = is_first && accesses.len() == 1;
            for access in accesses.iter().filter(|access| !(locked_anyway && locks(access))) {
                let Some(text) = selected(access, catalog, symbols, &assigned) else { continue };
                let reads = access.deed == Deed::Read;
                match rows.iter_mut().find(|(_, known, _)| *known == text) {
                    Some((_, _, only_read)) => *only_read &= reads,
                    None => rows.push((access.table, text, reads)),
                }
            }
            is_first &= !touches_rows(read.kind, &read.text);
        }
        assigned.extend(assigns(command, statements, symbols));
    }
    rows
}

/// The query of a row by its key, if none of the variables in it is one of those assigned.
fn selected(
    access: &Access,
    catalog: &Catalog,
    symbols: &Symbols,
    assigned: &BTreeSet<Slot>,
) -> Option<String> {
    let relation = &catalog.relations[access.table];
    if relation.has_children()
        || matches!(access.deed, Deed::Insert | Deed::InsertOrRead | Deed::InsertOrUpdate)
    {
        return None;
    }
    let value = |place: &usize| {
        let column = &relation.columns[*place];
        match access.equal.get(&column.name)? {
            Known::Variable(slot) if !assigned.contains(slot) => Some(format!(":{}", symbols.name(*slot))),
            Known::Constant(number) if column.kind == ColumnType::Integer => Some(number.clone()),
            _ => None,
        }
    };
    let condition = |key: &Vec<usize>| -> Option<String> {
        let of = |place: &usize| {
            Some(format!("{} = {}", name_in_sql(&relation.columns[*place].name), value(place)?))
        };
        let parts: Option<Vec<String>> = key.iter().map(of).collect();
        parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join(" AND "))
    };
    let condition = relation.keys().find_map(condition)?;
    Some(format!("SELECT 1 FROM {} WHERE {condition}", in_sql(catalog, access.table)))
}

/// A table's name, with its schema where that is needed.
fn in_sql(catalog: &Catalog, table: RelationId) -> String {
    let relation = &catalog.relations[table];
    let name = name_in_sql(&relation.name);
    if relation.qualified() == relation.name {
        name
    } else {
        format!("{}.{name}", name_in_sql(&relation.schema))
    }
}

/// The variables that a command assigns.
fn assigns(command: &CommandKind, statements: &[Read], symbols: &Symbols) -> Vec<Slot> {
    match command {
        CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => vec![*slot],
        CommandKind::Sql(sql) => {
            let (Store::Gset { prefix } | Store::Aset { prefix }) = &sql.store else { return Vec::new() };
            slots_given(prefix, statements, symbols)
        }
        _ => Vec::new(),
    }
}
