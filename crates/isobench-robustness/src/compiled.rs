//! Programs as numbers: tables, columns, variables and constants.

use std::collections::{BTreeMap, BTreeSet};

use crate::StatementId;
use crate::columns::Columns;
use crate::model::{Branch, Kind, Operation, Program, Strength, Term};
use crate::struck::{Strike, Struck};

/// The column that stands for a row's existence: whoever looks for a row reads it, inserts and
/// deletions write it.
const EXISTS: u128 = 1;

/// The number of columns of a table that are told apart. All further ones are taken for the same.
const TOLD_APART: usize = 127;

/// Programs as numbers.
pub(crate) struct Compiled {
    pub(crate) branches: Vec<CompiledBranch>,
    /// The texts of constants.
    pub(crate) constants: Vec<String>,
    /// Those of them that are integers.
    pub(crate) integers: Vec<Option<i64>>,
    /// The tables from which a row may go, or of which one may get another key.
    losing: BTreeSet<usize>,
    /// What was struck, with the numbers of statements' names.
    struck: BTreeSet<([usize; 4], bool)>,
}

pub(crate) struct CompiledBranch {
    pub(crate) program: usize,
    /// Its index in the program.
    pub(crate) branch: usize,
    pub(crate) operations: Vec<CompiledOperation>,
    /// The indices of those that lock a row of which the key is known.
    pub(crate) locking: Vec<usize>,
    /// The names of its variables.
    pub(crate) variables: Vec<String>,
    /// Pairs of different variables.
    pub(crate) distinct: Vec<(usize, usize)>,
    /// Those of them of which the first is lower.
    pub(crate) ascending: Vec<(usize, usize)>,
    /// Variables that are integers, with their lowest and highest value.
    pub(crate) ranges: Vec<(usize, [i64; 2])>,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Variable(usize),
    Constant(usize),
    Unknown,
}

/// A column with its value.
pub(crate) type Known = (usize, Value);

pub(crate) struct CompiledOperation {
    table: usize,
    /// Sorted; empty if the row isn't known.
    pub(crate) key: Vec<Known>,
    /// Columns with values, those of the key among them; sorted.
    pub(crate) known: Vec<Known>,
    reads: u128,
    writes: u128,
    /// The row lock that it certainly takes.
    pub(crate) lock: Option<Strength>,
    /// The strongest row lock that it may take.
    pub(crate) may_lock: Option<Strength>,
    /// It waits for rows that others have locked.
    pub(crate) waits: bool,
    /// It reads the newest data whatever the level.
    pub(crate) newest: bool,
    /// It is certainly executed.
    pub(crate) certain: bool,
    pub(crate) kind: Kind,
    /// The number of its statement's name.
    at: usize,
    /// When it is executed: plain reads of a statement before its locks and the server's checks.
    pub(crate) step: (usize, usize),
}

#[derive(Default)]
struct Names {
    tables: BTreeMap<String, usize>,
    /// By table and name.
    columns: BTreeMap<(usize, String), usize>,
    constants: BTreeMap<String, usize>,
    statements: BTreeMap<StatementId, usize>,
}

/// The number of a name, which is added if it is new.
fn number<K: Ord>(names: &mut BTreeMap<K, usize>, name: K) -> usize {
    let next = names.len();
    *names.entry(name).or_insert(next)
}

impl Names {
    fn column(&mut self, table: usize, name: &str) -> usize {
        let own = self.columns.keys().filter(|(of, _)| *of == table).count();
        *self.columns.entry((table, name.to_owned())).or_insert(own)
    }

    fn set(&mut self, table: usize, columns: &Columns) -> u128 {
        match columns {
            Columns::All => u128::MAX,
            Columns::These(names) => names.iter().fold(0, |set, name| {
                let number = self.column(table, name) + 1;
                set | 1 << number.min(TOLD_APART)
            }),
        }
    }
}

impl Compiled {
    pub(crate) fn of(programs: &[Program], struck: &Struck) -> Compiled {
        let mut names = Names::default();
        let mut branches = Vec::new();
        for (program, of) in programs.iter().enumerate() {
            for (branch, of) in of.branches.iter().enumerate() {
                branches.push(compiled(of, (program, branch), &mut names));
            }
        }
        let mut constants: Vec<(usize, String)> =
            std::mem::take(&mut names.constants).into_iter().map(|(text, number)| (number, text)).collect();
        constants.sort();
        let constants: Vec<String> = constants.into_iter().map(|(_, text)| text).collect();
        let integers = constants.iter().map(|text| text.parse().ok()).collect();
        let statement = |name: &StatementId| names.statements.get(name).copied();
        let numbers = |one: &Strike| {
            let names = [&one.read, &one.overwritten_by, &one.by, &one.back];
            let numbers: Vec<usize> = names.into_iter().filter_map(statement).collect();
            Some((<[usize; 4]>::try_from(numbers).ok()?, one.snapshot))
        };
        let struck = struck.iter().filter_map(numbers);
        let struck = struck.collect();
        let operations = branches.iter().flat_map(|branch| &branch.operations);
        let losing = operations.filter(|operation| operation.removes()).map(|operation| operation.table);
        let losing = losing.collect();
        Compiled { branches, constants, integers, losing, struck }
    }

    /// True if a transaction may take away a row, or the key of one, from the table of an operation.
    pub(crate) fn loses_rows(&self, operation: &CompiledOperation) -> bool {
        self.losing.contains(&operation.table)
    }

    /// True if a split by these operations was struck: the read, what overwrites it, and by which
    /// operation the transaction depends on which one.
    pub(crate) fn is_struck(&self, operations: [&CompiledOperation; 4], snapshot: bool) -> bool {
        !self.struck.is_empty() && self.struck.contains(&(operations.map(|one| one.at), snapshot))
    }

    /// The greatest number of variables that a branch has.
    pub(crate) fn most_variables(&self) -> usize {
        self.branches.iter().map(|branch| branch.variables.len()).max().unwrap_or_default()
    }
}

fn compiled(of: &Branch, (program, branch): (usize, usize), names: &mut Names) -> CompiledBranch {
    let mut variables = BTreeMap::new();
    let operations: Vec<CompiledOperation> = of
        .operations
        .iter()
        .enumerate()
        .map(|(place, operation)| compiled_operation(operation, place, names, &mut variables))
        .collect();
    let mut numbers = |pairs: &[(String, String)]| -> Vec<(usize, usize)> {
        let both = |(one, other): &(String, String)| {
            (number(&mut variables, one.clone()), number(&mut variables, other.clone()))
        };
        pairs.iter().map(both).collect()
    };
    let ascending = numbers(&of.ascending);
    let mut distinct = numbers(&of.distinct);
    distinct.extend(&ascending);
    let ranges =
        of.ranges.iter().map(|(name, range)| (number(&mut variables, name.clone()), *range)).collect();
    let mut in_order: Vec<(usize, String)> =
        variables.into_iter().map(|(name, number)| (number, name)).collect();
    in_order.sort();
    let variables = in_order.into_iter().map(|(_, name)| name).collect();
    let locks = |index: &usize| operations[*index].lock.is_some() && !operations[*index].key.is_empty();
    let locking = (0..operations.len()).filter(locks).collect();
    CompiledBranch { program, branch, operations, locking, variables, distinct, ascending, ranges }
}

fn compiled_operation(
    of: &Operation,
    place: usize,
    names: &mut Names,
    variables: &mut BTreeMap<String, usize>,
) -> CompiledOperation {
    let table = number(&mut names.tables, of.table.clone());
    let mut reads = names.set(table, &of.reads);
    let mut writes = names.set(table, &of.writes);
    match of.kind {
        Kind::Read | Kind::Search | Kind::Lock(_) => reads |= EXISTS,
        Kind::Insert | Kind::Delete => writes = u128::MAX,
        Kind::Update | Kind::Vacant => {}
    }
    // What an update changes says nothing of the row before or after it.
    let stays = |name: &str| of.kind != Kind::Update || !contains(&of.writes, name);
    let mut values = |entries: &[(String, Term)]| -> Vec<Known> {
        let mut values: Vec<Known> = entries
            .iter()
            .filter(|(name, _)| stays(name))
            .map(|(name, term)| {
                let value = match term {
                    Term::Variable(name) => Value::Variable(number(variables, name.clone())),
                    Term::Constant(text) => Value::Constant(number(&mut names.constants, text.clone())),
                    Term::Unknown => Value::Unknown,
                };
                (names.column(table, name), value)
            })
            .collect();
        values.sort_by_key(|(column, _)| *column);
        values
    };
    let key = values(&of.key);
    let mut known = values(&of.known);
    known.extend(key.iter().copied());
    known.sort_by_key(|(column, _)| *column);
    let at = number(&mut names.statements, of.at.clone());
    let whole = key.len() == of.key.len();
    let later = of.strength().is_some() || of.newest;
    let step = (of.statement, if later { place + 1 } else { 0 });
    let key = if whole { key } else { Vec::new() };
    CompiledOperation {
        table,
        key,
        known,
        reads,
        writes,
        lock: of.certain_strength().max(of.held),
        may_lock: of.strength(),
        waits: of.waits,
        newest: of.newest,
        certain: of.certain,
        kind: of.kind,
        at,
        step,
    }
}

fn contains(columns: &Columns, name: &str) -> bool {
    match columns {
        Columns::All => true,
        Columns::These(names) => names.contains(name),
    }
}

impl CompiledOperation {
    /// True if it may take away a row, or its key.
    fn removes(&self) -> bool {
        matches!(self.kind, Kind::Delete | Kind::Update) && self.may_lock == Some(Strength::Update)
    }

    pub(crate) fn is_on_table_of(&self, other: &CompiledOperation) -> bool {
        self.table == other.table
    }

    /// True if it reads rows that are there, or may be.
    pub(crate) fn has_reads(&self) -> bool {
        self.reads != 0 && self.kind != Kind::Vacant
    }

    pub(crate) fn has_writes(&self) -> bool {
        self.writes != 0
    }

    /// True if it depends on columns that another one changes, as far as columns decide.
    pub(crate) fn reads_from(&self, other: &CompiledOperation) -> bool {
        self.has_reads() && self.table == other.table && self.reads & other.writes != 0
    }

    /// True if it can find that there is no such row because another one took it away, as far as columns
    /// decide. A row that comes makes it fail, and who fails doesn't commit.
    pub(crate) fn is_freed_by(&self, other: &CompiledOperation) -> bool {
        self.kind == Kind::Vacant
            && matches!(other.kind, Kind::Update | Kind::Delete)
            && self.table == other.table
            && self.reads & other.writes != 0
    }

    /// True if it sees what another transaction committed after its own transaction's snapshot.
    pub(crate) fn sees_newest(&self, other: &CompiledOperation) -> bool {
        self.newest && (self.is_freed_by(other) || self.reads_from(other))
    }

    /// True if their order matters, as far as columns decide. The order of two inserts doesn't matter
    /// unless they may be of one row.
    pub(crate) fn depends(&self, other: &CompiledOperation) -> bool {
        let apart = [self, other].iter().all(|one| one.kind == Kind::Insert)
            && [self, other].iter().any(|one| one.key.is_empty());
        self.reads_from(other)
            || other.reads_from(self)
            || self.is_freed_by(other)
            || other.is_freed_by(self)
            || self.table == other.table && self.writes & other.writes != 0 && !apart
    }

    /// The value of a column.
    pub(crate) fn value(&self, column: usize) -> Option<Value> {
        let place = self.known.binary_search_by_key(&column, |(known, _)| *known).ok()?;
        Some(self.known[place].1)
    }
}
