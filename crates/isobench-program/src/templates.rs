//! Scripts as programs of operations on rows, for the question which levels their transactions need.
//!
//! Each way through a script's `\if`s is a branch, and so is each statement that may find no row:
//! then it locks none, and is a plain read. Of a statement that is repeated in a transaction the first
//! and the last execution count, since a cycle passes through at most two operations of a transaction.
//! A variable that is assigned again is another variable.
//!
//! A statement that isobench can't analyse reads and writes any row of its tables, or of all tables if
//! it names none. Of functions and triggers whose bodies it can read, all statements may be executed, in any order and
//! any number of times: each is there twice.
//!
//! Assumption: rows of tables in which no script inserts or deletes are there when they are asked for by
//! their key. Statements of which something else is known are given as `absent`.

mod access;
mod first;
mod held;
mod passes;
mod read;
mod repeated;
mod tables;
mod tested;
mod unguarded;
mod used;
mod variables;
mod walk;
mod way;

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Branch, Columns, Kind, Operation, Program, StatementId};
use isobench_script::{Script, Symbols};
use isobench_sql::Catalog;

use crate::beyond::{Beyond, beyond};
use crate::flow::{Carried, Flows};
use crate::statement::{Fix, LockWithin, Overlap, PartialKey, Rewritten};
pub use first::{FirstLock, FirstLockKind};
use held::Sets;
use passes::{change_versions, drop_fresh, look_behind, parts_of_text, renamed, touched, wait_for_adjusted};
use read::{Read, Statements, Stored, slots_given, touches_rows};
use repeated::repeated;
pub(crate) use tables::CLOCKS;
pub use tables::Ignored;
use tables::{Changing, Freed, Replaced, Versions};
use used::Used;
use variables::Variables;
use walk::Walk;

/// The name of what advisory locks lock, in place of a table's.
const ADVISORY_LOCKS: &str = "advisory locks";

/// The same of LOCK and of the writers of tables.
const TABLE_LOCKS: &str = "table locks";

/// The name of all tables that no script names, for statements that may read and write anything.
const OTHER_TABLES: &str = "other tables";

/// The most ways through a script that are distinguished. A script with more reads and writes anything.
const MOST_BRANCHES: usize = 96;

/// The programs of scripts, and the statements that isobench can't analyse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// A program for each script, in their order.
    pub programs: Vec<Program>,
    /// Their statements on rows, in order.
    pub statements: Vec<TemplateStatement>,
    /// The tables that they use, by schema and name.
    pub tables: BTreeSet<String>,
    /// Scripts with too many ways through them, by their names.
    pub branching: BTreeSet<String>,
    /// Values that one transaction reads and a later one of the same script writes, which no level
    /// protects.
    pub carried: Vec<Carried>,
    /// Statements that count at others in the programs, wholly or in part, by their names: what they read
    /// is tested again there, or the same text is executed.
    pub stands_for: BTreeMap<StatementId, BTreeSet<StatementId>>,
    /// Rows that transactions could lock before anything else.
    pub first_locks: Vec<FirstLock>,
    /// Values whose order is left out.
    pub ignored: Ignored,
    /// Mistakes that no level prevents.
    pub beyond: Vec<Beyond>,
}

/// A statement on rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateStatement {
    /// The index of the script.
    pub script: usize,
    /// The index of its command, and the number of the statement in that.
    pub place: (usize, usize),
    /// The line of its command, from 1.
    pub line: u32,
    /// Which it is in the programs.
    pub at: StatementId,
    /// Its text with the names of variables, on one line.
    pub text: String,
    /// The same in its lines, with its comments.
    pub written: String,
    /// Why it reads and writes anything, if it does.
    pub unknown: Option<String>,
    /// It runs functions of users, whose statements are its own.
    pub runs_code: bool,
    /// How it could be written otherwise, by the tables whose rows it then locks or writes back.
    pub fixes: BTreeMap<String, Fix>,
    /// How an UPDATE could be written so that it depends on fewer values that were read before.
    pub rewritten: Option<Rewritten>,
    /// How it could lock the rows that it reads in a subquery, or the first of a queue.
    pub locks_within: Vec<LockWithin>,
    /// How it could require what the transaction read before of the row that it changes, as in `AND state = :state`.
    pub tested: Option<Rewritten>,
    /// The columns that an UPDATE sets to a constant.
    pub constants: BTreeSet<String>,
    /// The columns of numbers that an UPDATE sets, if it sets something to what follows from what was read before,
    /// which doesn't decide whether it is executed.
    pub computed: BTreeSet<String>,
    /// The rows that it looks for, as far as a partial unique index could have them once.
    pub partial_keys: BTreeSet<PartialKey>,
    /// The ranges that it looks for, as far as an exclusion constraint could keep them apart.
    pub overlaps: BTreeSet<Overlap>,
    /// Statements before it that lock the rows that it looks for, each with the table's name.
    pub set_locks: Vec<(String, String)>,
    /// The line with which its transaction begins behind BEGIN, if it has one.
    pub begins: Option<u32>,
}

/// Facts on the rows that statements look for.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Those that may find no row although no script inserts or deletes any.
    pub absent: BTreeSet<StatementId>,
    /// Those that certainly find the rows that they lock or change.
    pub found: BTreeSet<StatementId>,
}

/// Makes programs of scripts as their author wrote them. `absent` are the statements that may
/// find no row although no script inserts or deletes any.
pub fn templates(
    scripts: &[Script],
    symbols: &Symbols,
    catalog: &Catalog,
    absent: &BTreeSet<StatementId>,
) -> Templates {
    let rows = Rows { absent: absent.clone(), found: BTreeSet::new() };
    templates_with(scripts, symbols, catalog, &rows)
}

/// Does the same, with what is known of rows.
pub fn templates_with(scripts: &[Script], symbols: &Symbols, catalog: &Catalog, rows: &Rows) -> Templates {
    let flows = Flows::of(scripts, symbols, catalog);
    let beyond = beyond(scripts, symbols, catalog, &flows);
    let mut found = Templates { carried: flows.carried(), beyond, ..Templates::default() };
    let Statements { mut read, on_rows, numbers } = Statements::of(scripts, catalog, &flows);
    found.statements = on_rows;
    renamed(&mut read);
    held::forget_renamed(&mut read);
    let used = Used::of(scripts, symbols, &read);
    let variables = Variables::of(scripts, symbols, catalog, &read);
    variables.settle_all(&mut read, catalog);
    if !catalog.sends_parameters {
        parts_of_text(&mut read, &variables, symbols);
    }
    let reasons = read.iter().flatten().flatten().filter(|read| touches_rows(read.kind, &read.text));
    for (statement, read) in found.statements.iter_mut().zip(reasons) {
        statement.unknown = read.accesses.as_ref().err().filter(|_| read.is_unknown()).cloned();
        statement.runs_code = read.code.is_some();
    }
    wait_for_adjusted(&mut found.statements, &numbers, &flows);
    look_behind(&mut read, catalog);
    drop_fresh(&mut read);
    let all = touched(&mut read);
    let tables: BTreeSet<String> = all.iter().map(|table| catalog.relations[*table].qualified()).collect();
    let changed = tested::changed(read.iter().flatten().flatten());
    unguarded::note(&mut read, catalog);
    change_versions(&mut read);
    let statements = || read.iter().flatten().flatten();
    let freed = Freed::of(catalog, statements());
    let changing = Changing::of(catalog, statements());
    let replaced = Replaced::of(&read, catalog);
    let versions = Versions::of(&changing, statements());
    let sets = Sets::of(statements());
    found.ignored = Ignored::of(catalog, statements());
    for (number, (script, commands)) in scripts.iter().zip(&read).enumerate() {
        found.first_locks.extend(first::first_locks(number, script, symbols, catalog, commands, &changing));
        let tested = tested::tested(script, symbols, catalog, commands, &changed);
        found.note_script(number, (script, commands), tested);
        let repeated = repeated(script, symbols, commands);
        found.note_repeated(&repeated, commands);
        let (changing, replaced, freed, versions, sets) = (&changing, &replaced, &freed, &versions, &sets);
        let (variables, used, skipped) = (&variables, &used, repeated.into_keys().collect());
        let walk = Walk {
            script,
            symbols,
            catalog,
            commands,
            changing,
            replaced,
            freed,
            versions,
            sets,
            variables,
            used,
            rows,
            skipped,
        };
        let program = walk.program(&mut found.stands_for).unwrap_or_else(|| {
            found.branching.insert(script.name.clone());
            any_program(script, &tables, walk.unguarded())
        });
        found.programs.push(program);
    }
    found.tables = tables;
    found
}

impl Templates {
    /// Notes where the transactions of a script's statements begin, and what these could require.
    fn note_script(
        &mut self,
        number: usize,
        (script, commands): (&Script, &[Vec<Read>]),
        mut tested: BTreeMap<StatementId, Rewritten>,
    ) {
        for (own, _) in first::transactions(script, commands).into_iter().filter(|(_, alone)| !alone) {
            let begins = Some(script.commands[own.start].line);
            let within = |one: &&mut TemplateStatement| one.script == number && own.contains(&one.place.0);
            for statement in self.statements.iter_mut().filter(within) {
                statement.begins = begins;
            }
        }
        for statement in self.statements.iter_mut().filter(|one| one.script == number) {
            statement.tested = tested.remove(&statement.at);
        }
    }

    /// Notes the statements that count at the first or the last execution of the same text.
    fn note_repeated(&mut self, repeated: &BTreeMap<usize, [usize; 2]>, commands: &[Vec<Read>]) {
        for (place, others) in repeated {
            let names = others.iter().flat_map(|other| &commands[*other]).map(|read| read.at.clone());
            let names: BTreeSet<StatementId> = names.collect();
            for read in &commands[*place] {
                self.stands_for.entry(read.at.clone()).or_default().extend(names.clone());
            }
        }
    }
}

/// The program of a script that may read and write any row of any table.
fn any_program(script: &Script, tables: &BTreeSet<String>, unguarded: Vec<Operation>) -> Program {
    let others = OTHER_TABLES.to_owned();
    let tables = tables.iter().chain(std::iter::once(&others));
    let whole = StatementId::whole(&script.name);
    let mut operations: Vec<Operation> = tables.flat_map(|table| unknown(table, &whole, 0)).collect();
    operations.extend(unguarded);
    Program::new(&script.name, vec![Branch { operations, ..Branch::default() }])
}

/// Everything that may be done with a table.
fn unknown(table: &str, at: &StatementId, statement: usize) -> [Operation; 2] {
    [(Kind::Search, Columns::NONE), (Kind::Update, Columns::All)].map(|(kind, writes)| Operation {
        kind,
        table: table.to_owned(),
        key: Vec::new(),
        known: Vec::new(),
        reads: Columns::All,
        writes,
        changes_key: true,
        statement,
        at: at.clone(),
        newest: false,
        certain: false,
        found: false,
        held: None,
        waits: true,
    })
}
