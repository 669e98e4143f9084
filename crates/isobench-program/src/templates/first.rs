//! What a transaction could lock before anything else: rows whose keys are known when it begins, numbers that stand
//! for them (advisory locks), and tables.
//!
//! A transaction that locks the parent of rows first is alone with them: it counts and adds to them without another
//! one in between, and at read committed what it reads afterwards is new. A row that it only reads it can write back,
//! too, which others notice by their snapshots (PostgreSQL manual, 13.4.2).

use std::collections::BTreeSet;
use std::ops::Range;

use isobench_robustness::Strength;
use isobench_script::Statement as StatementKind;
use isobench_script::{Command, CommandKind, Script, Slot, Store, Symbols};

use super::tables::Changing;
use super::{Read, slots_given, touches_rows};
use crate::statement::{Access, Deed, Operand};
use isobench_sql::{Catalog, ColumnType, ForeignKey, Inheritance, RelationId, RelationKind, name_in_sql};

/// The most rows of a transaction.
const MOST: usize = 4;

/// A statement that a transaction could begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLock {
    /// The index of the script.
    pub script: usize,
    /// The line before which it would stand, from 1.
    pub line: u32,
    /// For a statement that is a transaction of its own, which would need BEGIN and COMMIT: the index of its command.
    pub alone: Option<usize>,
    /// The table.
    pub table: String,
    /// The statement, with the names of variables: `SELECT 1 FROM post WHERE id = :p FOR SHARE`.
    pub text: String,
    /// What it does.
    pub kind: FirstLockKind,
}

/// What a transaction could begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FirstLockKind {
    /// It locks a row: as writers do, unless it only reads the row.
    Lock,
    /// It writes back a row that it otherwise only reads.
    WriteBack,
    /// It locks the row to which one that it uses refers. Theory doesn't know that two rows refer to the same one.
    Parent,
    /// It takes an advisory lock of a value by which it finds or inserts rows. All scripts that do so have to.
    Advisory,
    /// It locks a table that it writes. All writers of the table wait, too.
    Table,
}

/// The statements that the transactions of a script could begin with.
pub(super) fn first_locks(
    number: usize,
    script: &Script,
    symbols: &Symbols,
    catalog: &Catalog,
    commands: &[Vec<Read>],
    changing: &Changing,
) -> Vec<FirstLock> {
    transactions(script, commands)
        .into_iter()
        .flat_map(|(own, alone)| {
            let line = script.commands[own.start].line;
            let block =
                script.commands[own.clone()].iter().map(|command| &command.kind).zip(&commands[own.clone()]);
            let used = Used::of(block, symbols, catalog, changing);
            // A statement that isobench can't analyse may write the row: of two readers' locks each would wait for
            // the other.
            let unknown = commands[own.clone()].iter().flatten().any(|read| read.accesses.is_err());
            let lock = move |kind, table: RelationId, text: String| {
                let (alone, table) = (alone.then_some(own.start), catalog.relations[table].qualified());
                FirstLock { script: number, line, alone, table, text, kind }
            };
            let parents: Vec<_> = used.rows.iter().take(MOST).flat_map(|row| parents(row, catalog)).collect();
            let referred = used.referred.into_iter().filter(|row| !used.rows.iter().any(|one| one.is(row)));
            let referred: Vec<UsedRow> = referred.filter(|_| used.writes).collect();
            let unlocked = used.rows.into_iter().filter(|row| !row.is_locked);
            let rows = unlocked.chain(referred).take(MOST).flat_map(|row| {
                let strength =
                    if row.only_read && !unknown { Strength::Share } else { Strength::NoKeyUpdate };
                let locked =
                    format!("SELECT 1 FROM {} WHERE {} {}", row.name, row.condition, strength.clause());
                let back = written_back(&row, catalog).filter(|_| row.only_read);
                let back = back.map(|text| (FirstLockKind::WriteBack, row.table, text));
                std::iter::once((FirstLockKind::Lock, row.table, locked)).chain(back)
            });
            let numbers =
                used.numbers.into_iter().map(|(table, text)| (FirstLockKind::Advisory, table, text));
            let tables = used.written.iter().filter(|table| can_lock(catalog, **table));
            let tables = tables.map(|table| {
                let text = format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", in_sql(catalog, *table));
                (FirstLockKind::Table, *table, text)
            });
            rows.chain(numbers)
                .chain(parents)
                .chain(tables)
                .map(|(kind, table, text)| lock(kind, table, text))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The commands of each transaction on rows, from the one before which a statement can stand; true of a statement that
/// is one by itself.
pub(super) fn transactions(script: &Script, commands: &[Vec<Read>]) -> Vec<(Range<usize>, bool)> {
    let line = |at: usize| script.commands.get(at).map(|command| command.line);
    let pipelined = script.commands.iter().any(|command| matches!(command.kind, CommandKind::StartPipeline));
    let (mut found, mut at) = (Vec::new(), 0);
    while at < commands.len() {
        let ends = |statements: &Vec<Read>| {
            statements.iter().any(|read| matches!(read.kind, StatementKind::Commit | StatementKind::Rollback))
        };
        // Two commands on one line can't be told apart.
        let apart = line(at) != line(at + 1) && (at == 0 || line(at) != line(at - 1));
        match commands[at].as_slice() {
            [Read { kind: StatementKind::Begin, .. }] => {
                // Variables that are assigned at once are known before its first statement.
                let sets = |command: &&Command| matches!(command.kind, CommandKind::Set { .. });
                let after = at + 1 + script.commands[at + 1..].iter().take_while(sets).count();
                let end = commands[after..].iter().position(ends).map_or(commands.len(), |end| after + end);
                if after < end && apart {
                    found.push((after..end, false));
                }
                at = end;
            }
            [read] if apart && !pipelined && touches_rows(read.kind, &read.text) => {
                found.push((at..at + 1, true));
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// A row that a transaction uses and whose key is known when it begins.
struct UsedRow {
    table: RelationId,
    /// The table's name in SQL.
    name: String,
    condition: String,
    /// The columns in the condition, by their places.
    key: Vec<usize>,
    only_read: bool,
    /// Its first statement locks it anyway.
    is_locked: bool,
}

impl UsedRow {
    /// True of the same row.
    fn is(&self, other: &UsedRow) -> bool {
        (self.table, &self.condition) == (other.table, &other.condition)
    }
}

/// What a transaction uses whose values are known when it begins.
#[derive(Default)]
struct Used {
    rows: Vec<UsedRow>,
    /// Rows to which others refer that it uses.
    referred: Vec<UsedRow>,
    /// Advisory locks of values of columns, with the tables.
    numbers: Vec<(RelationId, String)>,
    /// Tables that it writes, but for a row that its first statement locks anyway.
    written: BTreeSet<RelationId>,
    /// It writes.
    writes: bool,
}

impl Used {
    fn of<'b>(
        block: impl Iterator<Item = (&'b CommandKind, &'b Vec<Read>)>,
        symbols: &Symbols,
        catalog: &Catalog,
        changing: &Changing,
    ) -> Used {
        let mut used = Used::default();
        let (mut assigned, mut is_first) = (BTreeSet::new(), true);
        for (command, statements) in block {
            for read in statements {
                let accesses = read.accesses.as_deref().unwrap_or(&read.but_for_triggers);
                let locks =
                    |access: &Access| matches!(access.deed, Deed::Lock(_) | Deed::Update | Deed::Delete);
                let locked_anyway = is_first && accesses.len() == 1;
                for access in accesses {
                    let is_locked = locked_anyway && locks(access);
                    used.note(access, is_locked, (catalog, symbols), &assigned, changing);
                }
                is_first &= !touches_rows(read.kind, &read.text);
            }
            assigned.extend(assigns(command, statements, symbols));
        }
        used
    }

    fn note(
        &mut self,
        access: &Access,
        is_locked: bool,
        (catalog, symbols): (&Catalog, &Symbols),
        assigned: &BTreeSet<Slot>,
        changing: &Changing,
    ) {
        let relation = &catalog.relations[access.table];
        self.writes |= access.deed.writes();
        if access.deed.writes() && !is_locked {
            self.written.insert(access.table);
        }
        for (place, column) in relation.columns.iter().enumerate() {
            let unique = relation.keys().any(|key| *key == [place]);
            // The row may not be there, and then no lock of it is taken.
            let locks = if unique { !changing.0.contains(&access.table) } else { is_locked };
            let Some(Operand::Variable(slot)) = access.equal.get(&column.name) else { continue };
            if column.kind == ColumnType::Integer && !locks && !assigned.contains(slot) {
                let name = name_in_sql(&relation.name);
                let text = format!(
                    "SELECT pg_advisory_xact_lock(hashtext('{}.{}'), :{})",
                    name.replace('\'', "''"),
                    name_in_sql(&column.name).replace('\'', "''"),
                    symbols.name(*slot)
                );
                if !self.numbers.iter().any(|(_, known)| *known == text) {
                    self.numbers.push((access.table, text));
                }
            }
        }
        for row in referred(access, catalog, symbols, assigned) {
            if !self.referred.iter().any(|one| one.is(&row)) {
                self.referred.push(row);
            }
        }
        let Some((condition, key)) = condition(access, catalog, symbols, assigned) else { return };
        let reads = access.deed == Deed::Read;
        let same = |row: &&mut UsedRow| (row.table, &row.condition) == (access.table, &condition);
        if let Some(row) = self.rows.iter_mut().find(same) {
            row.only_read &= reads;
        } else {
            let name = in_sql(catalog, access.table);
            let table = access.table;
            self.rows.push(UsedRow { table, name, condition, key, only_read: reads, is_locked });
        }
    }
}

/// The rows to which those refer that an access finds by the column of a foreign key: `WHERE account = :a`.
fn referred(
    access: &Access,
    catalog: &Catalog,
    symbols: &Symbols,
    assigned: &BTreeSet<Slot>,
) -> Vec<UsedRow> {
    let row = |key: &ForeignKey| {
        let (parent, child) = catalog.ends(key)?;
        let ([column], [referenced]) = (key.columns.as_slice(), key.referenced_columns.as_slice()) else {
            return None;
        };
        let Operand::Variable(slot) = access.equal.get(column)? else { return None };
        let own = child == access.table && parent != child && !assigned.contains(slot);
        let place = catalog.relations[parent].columns.iter().position(|column| column.name == *referenced)?;
        own.then(|| UsedRow {
            table: parent,
            name: in_sql(catalog, parent),
            condition: format!("{} = :{}", name_in_sql(referenced), symbols.name(*slot)),
            key: vec![place],
            only_read: false,
            is_locked: false,
        })
    };
    catalog.foreign_keys.iter().filter_map(row).collect()
}

/// The statements that lock the rows to which a row refers by one column.
fn parents(row: &UsedRow, catalog: &Catalog) -> Vec<(FirstLockKind, RelationId, String)> {
    let lock = |key: &ForeignKey| {
        let (parent, child) = catalog.ends(key)?;
        let ([column], [referenced]) = (key.columns.as_slice(), key.referenced_columns.as_slice()) else {
            return None;
        };
        (child == row.table && parent != child).then(|| {
            let (column, referenced) = (name_in_sql(column), name_in_sql(referenced));
            let text = format!(
                "SELECT 1 FROM {} WHERE {referenced} = (SELECT {column} FROM {} WHERE {}) {}",
                in_sql(catalog, parent),
                row.name,
                row.condition,
                Strength::NoKeyUpdate.clause()
            );
            (FirstLockKind::Parent, parent, text)
        })
    };
    catalog.foreign_keys.iter().filter_map(lock).collect()
}

/// The statement that writes a row back as it is.
fn written_back(row: &UsedRow, catalog: &Catalog) -> Option<String> {
    let relation = &catalog.relations[row.table];
    let mut columns = relation.columns.iter().enumerate().filter(|(_, column)| !column.generated);
    let other = columns.clone().find(|(place, _)| !relation.keys().any(|key| key.contains(place)));
    let (_, column) = other.or_else(|| columns.find(|(place, _)| row.key.contains(place)))?;
    let column = name_in_sql(&column.name);
    Some(format!("UPDATE {} SET {column} = {column} WHERE {}", row.name, row.condition))
}

/// The condition on a row by its key, with the places of its columns, if none of the variables in it is one of those
/// assigned.
fn condition(
    access: &Access,
    catalog: &Catalog,
    symbols: &Symbols,
    assigned: &BTreeSet<Slot>,
) -> Option<(String, Vec<usize>)> {
    let relation = &catalog.relations[access.table];
    if relation.has_children()
        || matches!(access.deed, Deed::Insert | Deed::InsertOrRead | Deed::InsertOrUpdate)
    {
        return None;
    }
    let value = |place: &usize| {
        let column = &relation.columns[*place];
        match access.equal.get(&column.name)? {
            Operand::Variable(slot) if !assigned.contains(slot) => Some(format!(":{}", symbols.name(*slot))),
            Operand::Constant(number) if column.kind == ColumnType::Integer => Some(number.clone()),
            _ => None,
        }
    };
    let condition = |key: &Vec<usize>| -> Option<(String, Vec<usize>)> {
        let of = |place: &usize| {
            Some(format!("{} = {}", name_in_sql(&relation.columns[*place].name), value(place)?))
        };
        let parts: Option<Vec<String>> = key.iter().map(of).collect();
        parts.filter(|parts| !parts.is_empty()).map(|parts| (parts.join(" AND "), key.clone()))
    };
    relation.keys().find_map(condition)
}

/// True of a table of which LOCK locks all rows.
fn can_lock(catalog: &Catalog, table: RelationId) -> bool {
    let relation = &catalog.relations[table];
    relation.kind == RelationKind::Table && matches!(relation.inheritance, Inheritance::None)
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
pub(super) fn assigns(command: &CommandKind, statements: &[Read], symbols: &Symbols) -> Vec<Slot> {
    match command {
        CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => vec![*slot],
        CommandKind::Sql(sql) => {
            let (Store::Gset { prefix } | Store::Aset { prefix }) = &sql.store else { return Vec::new() };
            slots_given(prefix, statements, symbols)
        }
        _ => Vec::new(),
    }
}
