//! Variables in columns of several types.
//!
//! Programs take a variable for one value: rows with `:a` are the same wherever it is a key. Two values that are
//! equal as integers may differ as texts (`1` and `01`), and as `char(n)` blanks at the end don't count; `1.5` finds
//! no row by an integer, and becomes 2 where it is inserted. So a variable, and all that have its value, is one value
//! for each type of column; and one that may not be an integer is unknown in columns of integers.

use std::collections::{BTreeMap, BTreeSet};

use isobench_script::{CommandKind, Script, Slot, Store, Symbols};

use super::{Read, slots_given};
use crate::statement::{Access, Operand, WITHOUT_BLANKS};
use isobench_sql::{Catalog, ColumnType, RelationId};

/// The variables of scripts that need care.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Those that may have another value than an integer.
    inexact: BTreeSet<Slot>,
    /// Those that may be anything else than a number.
    texts: BTreeSet<Slot>,
    /// Those that may be NULL, which is equal to nothing.
    nullable: BTreeSet<Slot>,
    /// For variables that share a value with others, one of these.
    shared: BTreeMap<Slot, Slot>,
    /// The types of the columns in which they stand, by the variable that they share.
    types: BTreeMap<Slot, BTreeSet<String>>,
}

impl Variables {
    /// Those of these scripts, whose statements have been read.
    pub(super) fn of(
        scripts: &[Script],
        symbols: &Symbols,
        catalog: &Catalog,
        read: &[Vec<Vec<Read>>],
    ) -> Variables {
        let mut variables = Variables::default();
        loop {
            let count = |all: &Variables| (all.inexact.len(), all.nullable.len(), all.texts.len());
            let before = count(&variables);
            for (script, commands) in scripts.iter().zip(read) {
                for (command, statements) in script.commands.iter().zip(commands) {
                    variables.assign(&command.kind, statements, symbols);
                }
            }
            if before == count(&variables) {
                break;
            }
        }
        for statement in read.iter().flatten().flatten() {
            for access in statement.accesses.iter().flatten().chain(&statement.but_for_triggers) {
                for (column, known) in access.equal.iter().chain(&access.before) {
                    let of = type_of(catalog, access.table, column);
                    for slot in slots(known) {
                        variables.stands_in(*slot, &of);
                    }
                }
            }
        }
        for lock in read.iter().flatten().flatten().flat_map(|statement| &statement.locks) {
            let of = if lock.of_texts { TEXT } else { INTEGER };
            lock.variables.iter().for_each(|slot| variables.stands_in(*slot, of));
        }
        for (script, commands) in scripts.iter().zip(read) {
            for (command, statements) in script.commands.iter().zip(commands) {
                let Some((prefix, statements)) = given(&command.kind, statements) else { continue };
                for one in statements.iter().filter_map(|read| read.gives.as_ref()).flatten() {
                    let slot = symbols.lookup(&format!("{prefix}{}", one.name));
                    if let (Some(slot), Some(column)) = (slot, &one.column) {
                        variables.stands_in(slot, &type_of(catalog, column.table, &column.name));
                    }
                }
            }
        }
        variables
    }

    /// True if a variable is certainly an integer.
    pub(super) fn is_integer(&self, slot: Slot) -> bool {
        !self.inexact.contains(&slot)
    }

    /// True if a variable is certainly a number.
    pub(super) fn is_number(&self, slot: Slot) -> bool {
        !self.texts.contains(&slot)
    }

    /// True if one of these may be NULL.
    pub(super) fn may_be_null(&self, slots: &[Slot]) -> bool {
        slots.iter().any(|slot| self.nullable.contains(slot))
    }

    /// Notes what a command gives to variables.
    fn assign(&mut self, command: &CommandKind, statements: &[Read], symbols: &Symbols) {
        match command {
            CommandKind::Set { slot, expr } => {
                if let Some(other) = expr.variable() {
                    self.share(*slot, other);
                }
                if !expr.is_integer(&|slot| self.is_integer(slot)) {
                    self.inexact.insert(*slot);
                }
                if expr.may_be_null(&|slot| self.nullable.contains(&slot)) {
                    self.nullable.insert(*slot);
                }
            }
            CommandKind::SetShell { slot, .. } => drop(self.inexact.insert(*slot)),
            CommandKind::Sql(_) => {
                let Some((prefix, statements)) = given(command, statements) else { return };
                for slot in slots_given(prefix, statements, symbols) {
                    let name = symbols.name(slot).strip_prefix(prefix).unwrap_or_default();
                    let integers = |read: &Read| {
                        read.integers.as_ref().is_some_and(|all| all.get(name).is_none_or(|integer| *integer))
                    };
                    if !statements.iter().all(integers) {
                        self.inexact.insert(slot);
                    }
                    let numbers = |read: &Read| {
                        read.numbers.as_ref().is_some_and(|all| all.get(name).is_none_or(|number| *number))
                    };
                    if !statements.iter().all(numbers) {
                        self.texts.insert(slot);
                    }
                }
                for one in statements.iter().filter_map(|read| read.gives.as_ref()).flatten() {
                    let slot = symbols.lookup(&format!("{prefix}{}", one.name));
                    if let (Some(slot), Some(Operand::Variable(other))) = (slot, &one.known) {
                        self.share(slot, *other);
                    }
                }
            }
            _ => {}
        }
    }

    /// The variable that stands for all that share its value.
    fn root(&self, slot: Slot) -> Slot {
        std::iter::successors(Some(slot), |slot| self.shared.get(slot).copied()).last().unwrap_or(slot)
    }

    fn share(&mut self, one: Slot, other: Slot) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.shared.insert(one, other);
        }
    }

    fn stands_in(&mut self, slot: Slot, of: &str) {
        self.types.entry(self.root(slot)).or_default().insert(of.to_owned());
    }

    fn has_several_types(&self, slot: Slot) -> bool {
        self.types.get(&self.root(slot)).is_some_and(|types| types.len() > 1)
    }

    /// The value in a column of a type: the variable itself, another one for this type, or `None` if it is unknown.
    fn settled(&self, known: &Operand, of: &str) -> Option<Operand> {
        let slots = slots(known);
        // The text of an integer has no blanks.
        if let Operand::Computed(text, _) = known
            && let ([slot], WITHOUT_BLANKS) = (slots, text.as_str())
            && self.is_integer(*slot)
        {
            return self.settled(&Operand::Variable(*slot), of);
        }
        if of == INTEGER && !slots.iter().all(|slot| self.is_integer(*slot)) {
            return None;
        }
        if of == INTEGER || !slots.iter().any(|slot| self.has_several_types(*slot)) {
            return Some(known.clone());
        }
        Some(match known {
            Operand::Variable(slot) => Operand::Computed(format!("$1::{of}"), vec![*slot]),
            Operand::Computed(text, slots) => Operand::Computed(format!("({text})::{of}"), slots.clone()),
            Operand::Constant(_) => known.clone(),
        })
    }

    /// Settles the values of an access.
    fn settle(&self, access: &mut Access, catalog: &Catalog) {
        for values in [&mut access.equal, &mut access.before] {
            for (column, known) in std::mem::take(values) {
                access.certain &= !self.may_be_null(slots(&known));
                if let Some(known) = self.settled(&known, &type_of(catalog, access.table, &column)) {
                    values.insert(column, known);
                } else {
                    access.certain = false;
                    access.tested.insert(column);
                }
            }
        }
    }

    /// Settles the values in all statements.
    pub(super) fn settle_all(&self, read: &mut [Vec<Vec<Read>>], catalog: &Catalog) {
        for statement in read.iter_mut().flatten().flatten() {
            let accesses = statement.accesses.iter_mut().flatten().chain(&mut statement.but_for_triggers);
            accesses.for_each(|access| self.settle(access, catalog));
            // Rows whose keys are equal may have locks of other texts.
            let is_one = |slot: &Slot| self.is_integer(*slot) || !self.has_several_types(*slot);
            statement
                .locks
                .retain(|lock| !self.may_be_null(&lock.variables) && lock.variables.iter().all(is_one));
            for stored in statement.gives.iter_mut().flatten() {
                let Some(column) = &stored.column else { continue };
                let of = type_of(catalog, column.table, &column.name);
                stored.known = stored.known.take().and_then(|known| self.settled(&known, &of));
            }
        }
    }
}

/// The prefix of the variables to which a command gives a result, and the statements whose result that is.
fn given<'c>(command: &'c CommandKind, statements: &'c [Read]) -> Option<(&'c str, &'c [Read])> {
    let CommandKind::Sql(sql) = command else { return None };
    match &sql.store {
        Store::Gset { prefix } => Some((prefix, &statements[statements.len().saturating_sub(1)..])),
        Store::Aset { prefix } => Some((prefix, statements)),
        Store::None => None,
    }
}

/// Columns of texts, of which equal ones are the same.
const TEXT: &str = "text";

/// Columns of integers, of which all types have the same values.
const INTEGER: &str = "integer";

/// The type of a column, in which equal values are equal in all columns of it; of unknown types it is the column
/// itself.
fn type_of(catalog: &Catalog, table: RelationId, column: &str) -> String {
    let relation = &catalog.relations[table];
    let kind = relation.column(column).map(|at| relation.columns[at].kind);
    let known = match kind {
        Some(ColumnType::Integer) => INTEGER,
        Some(ColumnType::Boolean) => "boolean",
        Some(ColumnType::Text) => TEXT,
        Some(ColumnType::Uuid) => "uuid",
        Some(ColumnType::Decimal) => "numeric",
        Some(ColumnType::Date) => "date",
        Some(ColumnType::Timestamp) => "timestamp",
        Some(ColumnType::Instant) => "timestamptz",
        None | Some(ColumnType::Enum | ColumnType::Scalar | ColumnType::Composite) => {
            return format!("{}.{column}", relation.qualified());
        }
    };
    known.to_owned()
}

fn slots(known: &Operand) -> &[Slot] {
    match known {
        Operand::Variable(slot) => std::slice::from_ref(slot),
        Operand::Constant(_) => &[],
        Operand::Computed(_, slots) => slots,
    }
}
