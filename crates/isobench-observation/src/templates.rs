//! Scripts as programs of operations on rows, for the question which levels their transactions need.
//!
//! Each way through a script's `\if`s is a branch, and so is each statement that may find no row:
//! then it locks none, and is a plain read. Of a statement that is repeated in a transaction the first
//! and the last execution count, since a cycle passes through at most two operations of a transaction.
//! A variable that is assigned anew is another variable.
//!
//! What isn't known of a statement makes it read and write anything of its tables, or of all tables if
//! it has none.
//!
//! Assumption: rows of tables in which no script inserts or deletes are there when they are asked for by
//! their key. Statements of which something else is known are given as `absent`.

mod first;
mod repeated;
mod unguarded;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_robustness::{Branch, Columns, Kind, Operation, Program, Strength, Term};
use isobench_script::Statement as StatementKind;
use isobench_script::{CommandKind, Expr, Script, Slot, Store, Symbols};

use crate::catalog::{Catalog, RelationId, RelationKind, is_system_column};
use crate::flow::{Carried, Flows};
use crate::statement::{
    Access, AdvisoryLock, ColumnName, Deed, Examiner, Fix, Given, Known, LockWithin, Mark, Rewritten,
    Surroundings, anything, chains, changed_names, changes_meaning, savepoint,
};
use crate::tokens::{Placed, Text};

pub use first::FirstLock;
use repeated::repeated;
use unguarded::Unguarded;
use variables::Variables;

/// The name of what advisory locks lock, in place of a table's.
const ADVISORY_LOCKS: &str = "advisory locks";

/// The name of all tables that no script names, for statements that may read and write anything.
const OTHER_TABLES: &str = "other tables";

/// The types of integers, by OID (`pg_type.dat`).
const INTEGERS: [u32; 3] = [20, 21, 23];

/// The most ways through a script that are distinguished. A script with more reads and writes anything.
const MOST_BRANCHES: usize = 96;

/// The programs of scripts, and what of them isn't known.
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
    pub stands_for: BTreeMap<String, BTreeSet<String>>,
    /// Rows that transactions could lock before anything else.
    pub first_locks: Vec<FirstLock>,
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
    /// Its name in the programs, such as `pay.sql:7`.
    pub at: String,
    /// Its text with the names of variables.
    pub text: String,
    /// Why it reads and writes anything, if it does.
    pub unknown: Option<String>,
    /// How it could be written otherwise, by the tables whose rows it then locks or writes back.
    pub fixes: BTreeMap<String, Fix>,
    /// How an UPDATE could be written so that it depends on fewer values that were read before.
    pub rewritten: Option<Rewritten>,
    /// How it could lock the rows that it reads in a subquery, or the first of a queue.
    pub lock_within: Option<LockWithin>,
    /// The columns that an UPDATE sets to a constant.
    pub constants: BTreeSet<String>,
}

/// Makes programs of scripts as their author wrote them. `absent` has the names of statements that may
/// find no row although no script inserts or deletes any.
#[expect(clippy::too_many_lines, reason = "one walk over all statements")]
pub fn templates(
    scripts: &[Script],
    symbols: &Symbols,
    catalog: &Catalog,
    absent: &BTreeSet<String>,
) -> Templates {
    let flows = Flows::of(scripts, symbols, catalog);
    let mut found = Templates { carried: flows.carried(), ..Templates::default() };
    let mut read: Vec<Vec<Vec<Read>>> = Vec::new();
    // That of each statement among all, and of those on rows.
    let (mut number, mut numbers) = (0, Vec::new());
    for (script, parsed) in scripts.iter().enumerate() {
        let mut commands = Vec::new();
        for (command, parsed_command) in parsed.commands.iter().enumerate() {
            let CommandKind::Sql(sql) = &parsed_command.kind else {
                commands.push(Vec::new());
                continue;
            };
            let text = Text::scan(sql);
            let ranges = text.as_ref().map(Text::statements).unwrap_or_default();
            let mut statements = Vec::new();
            for (place, kind) in sql.statements.iter().enumerate() {
                let range = ranges.get(place).filter(|_| ranges.len() == sql.statements.len());
                let several = if place > 0 { format!("#{}", place + 1) } else { String::new() };
                let at = format!("{}:{}{several}", parsed.name, parsed_command.line);
                let named = match (&text, range) {
                    (Some(text), Some(range)) => text.named(range),
                    _ => sql.as_written().trim().to_owned(),
                };
                let mut read = Read {
                    kind: *kind,
                    at,
                    text: named,
                    accesses: Ok(Vec::new()),
                    but_for_triggers: Vec::new(),
                    locks: Vec::new(),
                    tables: BTreeSet::new(),
                    named: BTreeSet::new(),
                    renames: Vec::new(),
                    changes_meaning: false,
                    savepoint: text.as_ref().zip(range).and_then(|(text, range)| savepoint(text, range)),
                    chains: false,
                    finds: matches!(sql.store, Store::Gset { .. }) && place + 1 == sql.statements.len(),
                    gives: None,
                    integers: None,
                    unguarded: Unguarded::default(),
                    fixes: BTreeMap::new(),
                    lock_within: None,
                    constants: BTreeSet::new(),
                    raises: flows.raises(number),
                };
                match (&text, range) {
                    (Some(text), Some(range)) => read.examine(catalog, &flows, number, (text, range)),
                    _ if touches_rows(*kind, &read.text) => {
                        read.accesses = Err("it isn't understood".to_owned());
                    }
                    _ => {}
                }
                if touches_rows(*kind, &read.text) {
                    numbers.push(number);
                    found.statements.push(TemplateStatement {
                        script,
                        place: (command, place),
                        line: parsed_command.line,
                        at: read.at.clone(),
                        text: read.text.clone(),
                        unknown: None,
                        fixes: std::mem::take(&mut read.fixes),
                        rewritten: flows.rewritten(number).cloned(),
                        lock_within: read.lock_within.take(),
                        constants: std::mem::take(&mut read.constants),
                    });
                }
                statements.push(read);
                number += 1;
            }
            commands.push(statements);
        }
        read.push(commands);
    }
    renamed(&mut read);
    let variables = Variables::of(scripts, symbols, catalog, &read);
    variables.settle_all(&mut read, catalog);
    let reasons = read.iter().flatten().flatten().filter(|read| touches_rows(read.kind, &read.text));
    for (statement, read) in found.statements.iter_mut().zip(reasons) {
        statement.unknown = read.accesses.as_ref().err().cloned();
    }
    wait_for_adjusted(&mut found.statements, &numbers, &flows);
    let all = touched(&mut read);
    unguarded::note(&mut read, catalog);
    change_versions(&mut read);
    let freed = Freed::of(read.iter().flatten().flatten());
    let changing = Changing::of(catalog, read.iter().flatten().flatten());
    let replaced = Replaced::of(&read, catalog);
    let versions = Versions::of(&changing, read.iter().flatten().flatten());
    found.tables = all.iter().map(|table| catalog.relations[*table].qualified()).collect();
    for (number, (script, commands)) in scripts.iter().zip(&read).enumerate() {
        found.first_locks.extend(first::first_locks(number, script, symbols, catalog, commands));
        let repeated = repeated(script, symbols, commands);
        for (place, others) in &repeated {
            let names = others.iter().flat_map(|other| &commands[*other]).map(|read| read.at.clone());
            let names: BTreeSet<String> = names.collect();
            for read in &commands[*place] {
                found.stands_for.entry(read.at.clone()).or_default().extend(names.clone());
            }
        }
        let walk = Walk {
            script,
            symbols,
            catalog,
            commands,
            changing: &changing,
            replaced: &replaced,
            freed: &freed,
            versions: &versions,
            variables: &variables,
            absent,
            skipped: repeated.into_keys().collect(),
        };
        let program = walk.program(&mut found.stands_for).unwrap_or_else(|| {
            found.branching.insert(script.name.clone());
            let tables = all.iter().map(|table| catalog.relations[*table].qualified());
            let tables = tables.chain([OTHER_TABLES.to_owned()]);
            let operations = tables.flat_map(|table| unknown(&table, &script.name, 0)).collect();
            Program::new(&script.name, vec![Branch { operations, ..Branch::default() }])
        });
        found.programs.push(program);
    }
    found
}

/// A statement as it was read.
struct Read {
    fixes: BTreeMap<String, Fix>,
    lock_within: Option<LockWithin>,
    constants: BTreeSet<String>,
    kind: StatementKind,
    at: String,
    text: String,
    accesses: Result<Vec<Access>, String>,
    /// What is known of them all the same if they aren't, because of a trigger.
    but_for_triggers: Vec<Access>,
    /// The advisory locks that it takes.
    locks: Vec<AdvisoryLock>,
    /// The tables that it names.
    tables: BTreeSet<RelationId>,
    /// All names in it.
    named: BTreeSet<String>,
    /// The names that it creates, alters or drops.
    renames: Vec<String>,
    /// It may change what names mean in later statements.
    changes_meaning: bool,
    /// The savepoint that it sets, or to which it rolls back.
    savepoint: Option<(Mark, String)>,
    /// It has to return a row, or the script ends: each of its tables in FROM has a row then.
    finds: bool,
    /// It ends a transaction and begins another one: `COMMIT AND CHAIN`.
    chains: bool,
    /// The columns of its result, if they are known.
    gives: Option<Vec<Stored>>,
    /// The columns of its result with the names that become variables; true of integers. `None` if they aren't
    /// known.
    integers: Option<BTreeMap<String, bool>>,
    /// What it does with data that no level guards.
    unguarded: Unguarded,
    /// The columns that it certainly raises, if it is an UPDATE.
    raises: BTreeSet<String>,
}

/// A column of a result, that may become a variable.
struct Stored {
    name: String,
    /// The column whose value it is.
    column: Option<ColumnName>,
    /// What that is equal to.
    known: Option<Known>,
}

impl Read {
    /// Reads the statement in its text; it has this number among all.
    fn examine(
        &mut self,
        catalog: &Catalog,
        flows: &Flows,
        number: usize,
        (text, range): (&Text<'_>, &Range<usize>),
    ) {
        let surroundings = Surroundings::default();
        let examiner = Examiner::new(catalog, &surroundings, text, range.clone());
        self.renames = changed_names(text, range);
        self.changes_meaning = changes_meaning(text, range);
        self.named = text.tokens[range.clone()].iter().filter_map(Placed::name).collect();
        self.chains = chains(text, range);
        let named = |(table, fix): (RelationId, Fix)| (catalog.relations[table].qualified(), fix);
        self.lock_within = examiner.lock_within();
        self.constants = examiner.constants();
        self.fixes = examiner.fixes().into_iter().map(named).collect();
        if touches_rows(self.kind, &self.text) {
            self.tables = examiner.named_tables();
            let accesses = examiner.accesses();
            if accesses.is_err() {
                self.but_for_triggers = examiner.accesses_but_for_triggers().unwrap_or_default();
            }
            self.accesses = accesses.map(|accesses| flows.narrowed(number, accesses));
            self.locks = examiner.advisory_locks();
        }
        if let Ok(bound) = catalog.reading(&text.asked(range).text) {
            let integer = |oid: &Option<u32>| oid.is_some_and(|oid| INTEGERS.contains(&oid));
            self.integers =
                Some(bound.outputs.iter().map(|(name, of)| (name.clone(), integer(of))).collect());
            let names = bound.functions.iter().filter_map(|oid| catalog.called.functions.get(oid));
            self.unguarded = Unguarded::of_functions(names.map(String::as_str));
        }
        let gives = examiner.passage().gives;
        let named = |gives: &Vec<Given>| {
            let names = self.integers.iter().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>();
            gives.iter().map(|given| &given.name).collect::<BTreeSet<_>>() == names
        };
        if self.accesses.is_ok() && gives.as_ref().is_some_and(|gives| !named(gives)) {
            self.accesses = Err("isobench doesn't know the names of its result's columns".to_owned());
        }
        let accesses = self.accesses.as_deref().unwrap_or_default();
        let known = |given: Given| Stored {
            known: equal_to(given.column.as_ref(), accesses),
            name: given.name,
            column: given.column,
        };
        // What isn't understood may give variables any values.
        let gives = gives.filter(|_| self.accesses.is_ok());
        // A count has a row where there are none; it has no column as it is, and locks nothing.
        let locks = accesses.iter().any(|access| matches!(access.deed, Deed::Lock(_)));
        self.finds &= locks || gives.iter().flatten().any(|given| given.column.is_some());
        self.gives = gives.map(|given| given.into_iter().map(known).collect());
    }

    /// True if it returns rows of tables.
    fn returns_rows(&self) -> bool {
        let first = self.text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        let queries = ["select", "with", "values", "table", ""];
        let query = queries.iter().any(|word| word.eq_ignore_ascii_case(first));
        let touches = self.accesses.as_ref().map_or(true, |accesses| !accesses.is_empty());
        touches && (query || self.named.contains("returning"))
    }

    /// The tables that it may touch.
    fn touched(&self) -> BTreeSet<RelationId> {
        let accessed = self.accesses.iter().flatten().map(|access| access.table);
        accessed.chain(self.tables.iter().copied()).collect()
    }
}

/// The variables that the results of statements may become, by the prefix of their names.
fn slots_given(prefix: &str, reads: &[Read], symbols: &Symbols) -> Vec<Slot> {
    let gives = |column: &str| {
        let of =
            |read: &Read| read.gives.as_ref().is_none_or(|gives| gives.iter().any(|one| one.name == column));
        reads.iter().any(of)
    };
    let given = |name: &&str| name.strip_prefix(prefix).is_some_and(gives);
    symbols.names().filter(given).filter_map(|name| symbols.lookup(name)).collect()
}

/// The tables that statements may touch: one that isn't understood may touch all of these, and others.
fn touched(read: &mut [Vec<Vec<Read>>]) -> BTreeSet<RelationId> {
    let all: BTreeSet<RelationId> = read.iter().flatten().flatten().flat_map(Read::touched).collect();
    for statement in read.iter_mut().flatten().flatten() {
        if statement.accesses.is_err() {
            statement.tables.clone_from(&all);
        }
    }
    all
}

/// Takes statements for not understood whose names may mean something else by then, because a script
/// changes what names mean.
fn renamed(read: &mut [Vec<Vec<Read>>]) {
    let all = || read.iter().flatten().flatten();
    let names: BTreeSet<String> = all().flat_map(|statement| &statement.renames).cloned().collect();
    let everything = all().rfind(|statement| statement.changes_meaning);
    let everything = everything.map(|statement| statement.at.clone());
    // A statement that creates something names it itself.
    let own = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        matches!(first.as_str(), "create" | "alter" | "drop" | "import")
    };
    for statement in read.iter_mut().flatten().flatten() {
        if !touches_rows(statement.kind, &statement.text) || own(&statement.text) {
            continue;
        }
        let named = statement.named.iter().find(|name| names.contains(*name));
        let why = match (&everything, named) {
            (Some(at), _) => format!("{at} changes what names mean"),
            (None, Some(name)) => format!("a script makes or changes {name}"),
            (None, None) => continue,
        };
        statement.accesses = Err(why);
        statement.but_for_triggers.clear();
        statement.gives = None;
    }
}

/// Lets who takes the first of several rows wait for it where the transaction doesn't take it out of their
/// number: it changes what is left of a credit, rather than the state of a job.
fn wait_for_adjusted(statements: &mut [TemplateStatement], numbers: &[usize], flows: &Flows) {
    for at in 0..statements.len() {
        let writers = flows.writers_after(numbers[at]);
        let adjusted = |writer: &usize| {
            let place = numbers.iter().position(|number| number == writer);
            place.is_some_and(|place| statements[place].constants.is_empty())
                && flows.adjusts(numbers[at], *writer)
        };
        let waits = !writers.is_empty() && writers.iter().all(adjusted);
        if let Some(lock) = statements[at].lock_within.as_mut().filter(|_| waits) {
            lock.skips_locked = false;
        }
    }
}

/// Lets each change of a row change also the columns by which scripts read its version, if any does.
fn change_versions(read: &mut [Vec<Vec<Read>>]) {
    let accesses =
        || read.iter().flatten().flatten().flat_map(|statement| statement.accesses.iter().flatten());
    let mentioned = accesses().flat_map(|access| match &access.reads {
        Columns::These(names) => names.iter().filter(|name| is_system_column(name)).cloned().collect(),
        Columns::All => Vec::new(),
    });
    let versions: BTreeSet<String> = mentioned.collect();
    for statement in read.iter_mut().flatten().flatten() {
        for access in statement.accesses.iter_mut().flatten() {
            if let (Deed::Update | Deed::InsertOrUpdate, Columns::These(set)) =
                (access.deed, &mut access.writes)
            {
                set.extend(versions.iter().cloned());
            }
        }
    }
}

/// What a column of a statement's result is equal to, by the condition on the rows that it shows.
fn equal_to(column: Option<&ColumnName>, accesses: &[Access]) -> Option<Known> {
    let column = column?;
    let mut of_table = accesses.iter().filter(|access| access.table == column.table);
    let access = of_table.next().filter(|access| access.deed != Deed::Refer)?;
    of_table.next().is_none().then(|| access.equal.get(&column.name).cloned()).flatten()
}

/// True for statements that may read or write rows; not for those that only concern the session or its
/// transaction.
fn touches_rows(kind: StatementKind, text: &str) -> bool {
    // LOCK reads and writes nothing; that others wait for it is left out.
    const OF_THE_SESSION: [&str; 13] = [
        "rollback",
        "abort",
        "set",
        "reset",
        "show",
        "savepoint",
        "listen",
        "unlisten",
        "notify",
        "deallocate",
        "discard",
        "checkpoint",
        "lock",
    ];
    let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    let of_session = OF_THE_SESSION.iter().any(|word| word.eq_ignore_ascii_case(first));
    matches!(kind, StatementKind::Other | StatementKind::Copy) && !of_session
}

/// The tables of which rows come and go, or change their keys.
struct Changing(BTreeSet<RelationId>);

impl Changing {
    fn of<'r>(catalog: &Catalog, statements: impl Iterator<Item = &'r Read>) -> Changing {
        let mut tables = BTreeSet::new();
        for statement in statements {
            match &statement.accesses {
                Ok(accesses) => tables.extend(
                    accesses
                        .iter()
                        .filter(|access| {
                            let stays = access.deed == Deed::Update && keeps_keys(access, catalog);
                            !stays
                                && !matches!(
                                    access.deed,
                                    Deed::Read | Deed::Lock(_) | Deed::Refer | Deed::Vacant
                                )
                        })
                        .map(|access| access.table),
                ),
                Err(_) => tables.extend(&statement.tables),
            }
        }
        Changing(tables)
    }
}

/// True if an access changes no column of a key.
fn keeps_keys(access: &Access, catalog: &Catalog) -> bool {
    let relation = &catalog.relations[access.table];
    let mut of_keys = relation.keys().flatten().map(|place| &relation.columns[*place].name);
    match &access.writes {
        Columns::These(names) => !of_keys.any(|name| names.contains(name)),
        Columns::All => false,
    }
}

/// The tables in which a script may take a key away from a row and give it to another one: who waits for the row at
/// read committed finds none, though one was there all the time.
struct Replaced(BTreeSet<RelationId>);

impl Replaced {
    fn of(read: &[Vec<Vec<Read>>], catalog: &Catalog) -> Replaced {
        let mut tables = BTreeSet::new();
        for script in read {
            let (mut gone, mut there) = (BTreeSet::new(), BTreeSet::new());
            for statement in script.iter().flatten() {
                for access in statement.accesses.iter().flatten() {
                    let moves = matches!(access.deed, Deed::Update | Deed::InsertOrUpdate | Deed::Cascade)
                        && !keeps_keys(access, catalog);
                    let inserts =
                        matches!(access.deed, Deed::Insert | Deed::InsertOrRead | Deed::InsertOrUpdate);
                    if moves || access.deed == Deed::Delete {
                        gone.insert(access.table);
                    }
                    if moves || inserts {
                        there.insert(access.table);
                    }
                }
                if statement.accesses.is_err() {
                    gone.extend(&statement.tables);
                    there.extend(&statement.tables);
                }
            }
            tables.extend(gone.intersection(&there));
        }
        Replaced(tables)
    }
}

/// The columns of rows whose values transactions give free: all of those of tables that they delete from.
struct Freed(BTreeMap<RelationId, Columns>);

impl Freed {
    fn of<'r>(statements: impl Iterator<Item = &'r Read>) -> Freed {
        let mut found: BTreeMap<RelationId, Columns> = BTreeMap::new();
        let mut free = |table: RelationId, columns: &Columns| match (
            found.entry(table).or_insert(Columns::NONE),
            columns,
        ) {
            (Columns::These(all), Columns::These(more)) => all.extend(more.iter().cloned()),
            (all, _) => *all = Columns::All,
        };
        for statement in statements {
            for access in statement.accesses.iter().flatten() {
                match access.deed {
                    Deed::Update | Deed::InsertOrUpdate => free(access.table, &access.writes),
                    Deed::Delete | Deed::Cascade => free(access.table, &Columns::All),
                    _ => {}
                }
            }
            if statement.accesses.is_err() {
                statement.tables.iter().for_each(|table| free(*table, &Columns::All));
            }
        }
        Freed(found)
    }

    /// True if a transaction may give values of these columns free.
    fn has(&self, table: RelationId, columns: &Columns) -> bool {
        match (self.0.get(&table), columns) {
            (None, _) => false,
            (Some(Columns::These(freed)), Columns::These(columns)) => !freed.is_disjoint(columns),
            (Some(freed), _) => !freed.is_empty(),
        }
    }
}

/// The columns that every UPDATE of their table raises: with the same value of such a column a row is the
/// same. By tables in which rows neither come nor go.
struct Versions(BTreeMap<RelationId, BTreeSet<String>>);

impl Versions {
    fn of<'r>(changing: &Changing, statements: impl Iterator<Item = &'r Read>) -> Versions {
        let mut found: BTreeMap<RelationId, BTreeSet<String>> = BTreeMap::new();
        for statement in statements {
            for access in statement.accesses.iter().flatten().filter(|access| access.deed == Deed::Update) {
                let known = found.entry(access.table).or_insert_with(|| statement.raises.clone());
                known.retain(|column| statement.raises.contains(column));
            }
        }
        found.retain(|table, _| !changing.0.contains(table));
        Versions(found)
    }
}

/// A way through a script.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Way {
    name: Vec<String>,
    values: BTreeMap<Slot, Term>,
    /// Pairs of variables that differ.
    distinct: Vec<(String, String)>,
    /// For variables that are made by adding to another one, that one.
    lower: BTreeMap<String, String>,
    /// How often each variable was assigned, or used before it was.
    times: BTreeMap<Slot, usize>,
    operations: Vec<Operation>,
    /// The values of variables that are a column's, with the row, as the transaction read it.
    columns: BTreeMap<String, ReadColumn>,
    /// A row wasn't found with what was read of it before: that is a refusal.
    refused: bool,
    /// The branches of transactions that have ended.
    ended: Vec<Branch>,
    in_block: bool,
    /// Statements outside of a block are one transaction up to the next synchronisation.
    in_pipeline: bool,
    /// The number of the next statement, and of what it does after its reads.
    statement: usize,
    /// What deferrable constraints do at COMMIT.
    at_commit: Vec<Operation>,
    /// Its savepoints, each with the number of operations before it.
    savepoints: Vec<(String, usize)>,
    /// It has returned rows to the client.
    shows: bool,
    /// Columns that operations read, by their places, and that count only if the transaction writes nothing.
    idle: Vec<(usize, BTreeSet<String>)>,
    /// Statements whose reads count at another one, with that.
    moved: Vec<[String; 2]>,
}

/// A column of a row that was read by its key.
#[derive(Clone, PartialEq)]
struct ReadColumn {
    /// The number of the statement that read it.
    statement: usize,
    table: String,
    key: Vec<(String, Term)>,
    name: String,
}

struct Walk<'a> {
    script: &'a Script,
    symbols: &'a Symbols,
    catalog: &'a Catalog,
    commands: &'a [Vec<Read>],
    changing: &'a Changing,
    replaced: &'a Replaced,
    freed: &'a Freed,
    versions: &'a Versions,
    variables: &'a Variables,
    absent: &'a BTreeSet<String>,
    /// Commands that are left out, because the same were executed before and will be once more.
    skipped: BTreeSet<usize>,
}

impl Walk<'_> {
    /// The script's program; `None` if there are too many ways. Adds to [`Templates::stands_for`].
    fn program(&self, stands_for: &mut BTreeMap<String, BTreeSet<String>>) -> Option<Program> {
        let ways = self.through(0..self.commands.len(), vec![Way::default()])?;
        let mut branches: Vec<Branch> = Vec::new();
        for mut way in ways {
            way.end(true);
            for [read, change] in way.moved {
                stands_for.entry(read).or_default().insert(change);
            }
            for branch in way.ended {
                let same = |known: &Branch| {
                    known.operations == branch.operations
                        && known.distinct == branch.distinct
                        && known.ascending == branch.ascending
                };
                if !branch.operations.is_empty() && !branches.iter().any(same) {
                    branches.push(branch);
                }
            }
        }
        // Names are unique, although a script may have several transactions.
        let mut names = BTreeMap::new();
        for branch in &mut branches {
            let times: &mut usize = names.entry(branch.name.clone()).or_default();
            *times += 1;
            if *times > 1 && branch.name.is_empty() {
                branch.name = format!("transaction {times}");
            } else if *times > 1 {
                let times = format!(" ({times})");
                branch.name.push_str(&times);
            }
        }
        (branches.len() <= MOST_BRANCHES).then(|| Program::new(&self.script.name, branches))
    }

    /// The ways through a range of commands.
    fn through(&self, range: Range<usize>, mut ways: Vec<Way>) -> Option<Vec<Way>> {
        let mut at = range.start;
        while at < range.end {
            let command = &self.script.commands[at];
            match &command.kind {
                CommandKind::If(first) => {
                    ways = self.conditional(at, first.end, ways)?;
                    at = first.end;
                }
                CommandKind::Set { slot, expr } => {
                    let alias = expr.variable();
                    let constant = expr.integer();
                    for way in &mut ways {
                        match (alias, &constant) {
                            (Some(other), _) => {
                                let term = way.value(other, self.symbols);
                                way.values.insert(*slot, term);
                            }
                            (None, Some(number)) => {
                                way.values.insert(*slot, Term::Constant(number.to_string()));
                            }
                            (None, None) => {
                                let integers = |other: &Slot| {
                                    self.variables.is_integer(*other) && self.variables.is_integer(*slot)
                                };
                                let above = expr.above().filter(integers);
                                let above = above.map(|other| way.value(other, self.symbols));
                                way.assign(*slot, self.symbols);
                                let own = way.value(*slot, self.symbols);
                                if let (Some(Term::Variable(lower)), Term::Variable(own)) = (above, own) {
                                    way.lower.insert(own, lower);
                                }
                            }
                        }
                    }
                }
                CommandKind::SetShell { slot, .. } => {
                    for way in &mut ways {
                        way.assign(*slot, self.symbols);
                    }
                }
                CommandKind::StartPipeline => ways.iter_mut().for_each(|way| way.in_pipeline = true),
                CommandKind::SyncPipeline | CommandKind::EndPipeline => {
                    for way in &mut ways {
                        way.in_pipeline &= matches!(command.kind, CommandKind::SyncPipeline);
                        if !way.in_block {
                            way.end(true);
                        }
                    }
                }
                CommandKind::Sql(sql) if self.skipped.contains(&at) => {
                    if let Store::Gset { prefix } | Store::Aset { prefix } = &sql.store {
                        for read in &self.commands[at] {
                            for way in &mut ways {
                                self.forget(way, prefix, read);
                            }
                        }
                    }
                }
                CommandKind::Sql(sql) => {
                    for (place, read) in self.commands[at].iter().enumerate() {
                        ways = self.statement(read, ways)?;
                        let last = place + 1 == self.commands[at].len();
                        let prefix = match &sql.store {
                            Store::Gset { prefix } if last => Some(prefix),
                            Store::Aset { prefix } => Some(prefix),
                            _ => None,
                        };
                        if let Some(prefix) = prefix {
                            let found = matches!(sql.store, Store::Gset { .. });
                            for way in &mut ways {
                                self.stored(way, prefix, read, found);
                            }
                        } else if read.returns_rows() {
                            for way in &mut ways {
                                way.shows = true;
                            }
                        }
                        if ways.iter().map(|way| way.ended.len() + 1).sum::<usize>() > 4 * MOST_BRANCHES {
                            return None;
                        }
                    }
                    // Outside of a block the statements of a command are one transaction.
                    for way in ways.iter_mut().filter(|way| !way.in_block && !way.in_pipeline) {
                        way.end(true);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Some(ways)
    }

    /// The ways through the arms of a conditional from its `\if` to its `\endif`.
    fn conditional(&self, first: usize, end: usize, ways: Vec<Way>) -> Option<Vec<Way>> {
        let matters = (first..end).any(|at| {
            let of_pipeline = matches!(
                self.script.commands[at].kind,
                CommandKind::StartPipeline | CommandKind::SyncPipeline | CommandKind::EndPipeline
            );
            of_pipeline || !self.commands[at].is_empty() && !self.skipped.contains(&at)
        });
        if !matters {
            let assigned: BTreeSet<Slot> = (first..end)
                .flat_map(|at| match &self.script.commands[at].kind {
                    CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => vec![*slot],
                    CommandKind::Sql(sql) => match &sql.store {
                        Store::Gset { prefix } | Store::Aset { prefix } => {
                            slots_given(prefix, &self.commands[at], self.symbols)
                        }
                        Store::None => Vec::new(),
                    },
                    _ => Vec::new(),
                })
                .collect();
            let mut ways = ways;
            for way in &mut ways {
                for slot in &assigned {
                    way.assign(*slot, self.symbols);
                }
            }
            return Some(ways);
        }
        let (mut all, mut arm, mut otherwise) = (Vec::new(), first, true);
        while arm < end {
            let (CommandKind::If(branch) | CommandKind::Elif(branch) | CommandKind::Else(branch)) =
                &self.script.commands[arm].kind
            else {
                break;
            };
            otherwise &= branch.cond.is_some();
            let mut taken = ways.clone();
            let line = self.script.commands[arm].line;
            for way in &mut taken {
                way.name.push(format!("\\{} of line {line}", self.script.commands[arm].kind.name()));
            }
            // What is so if this arm is taken.
            let apart = branch.cond.as_ref().and_then(Expr::apart);
            if let Some((one, other)) = apart {
                for way in &mut taken {
                    let other = way.value(other, self.symbols);
                    let one = way.value(one, self.symbols);
                    way.differ(one, other);
                }
            }
            all.extend(self.through(arm + 1..branch.next, taken)?);
            arm = branch.next;
        }
        if otherwise {
            let line = self.script.commands[first].line;
            let mut none = ways;
            for way in &mut none {
                way.name.push(format!("without the \\if of line {line}"));
            }
            all.extend(none);
        }
        // Ways that have done the same and know the same are one.
        let mut kept: Vec<Way> = Vec::new();
        for way in all {
            if !kept.iter().any(|known| known.is_like(&way)) {
                kept.push(way);
            }
        }
        (kept.len() <= 4 * MOST_BRANCHES).then_some(kept)
    }

    /// Gives all variables that a statement's result may become values that aren't known.
    fn forget(&self, way: &mut Way, prefix: &str, read: &Read) {
        for slot in slots_given(prefix, std::slice::from_ref(read), self.symbols) {
            way.assign(slot, self.symbols);
        }
    }

    /// Assigns what a statement returns to variables; `found` if it certainly returns something.
    fn stored(&self, way: &mut Way, prefix: &str, read: &Read, found: bool) {
        let Some(columns) = &read.gives else {
            self.forget(way, prefix, read);
            return;
        };
        let slot = |stored: &Stored| self.symbols.lookup(&format!("{prefix}{}", stored.name));
        let all: Vec<(Slot, &Stored)> =
            columns.iter().filter_map(|stored| Some((slot(stored)?, stored))).collect();
        // What they are equal to is of before.
        let mut term = |known: &Known| way.term(known, self.symbols);
        let terms: Vec<Option<Term>> = all.iter().map(|(_, one)| one.known.as_ref().map(&mut term)).collect();
        for ((slot, stored), term) in all.into_iter().zip(terms) {
            match (term, &stored.column) {
                (Some(term), _) => {
                    way.values.insert(slot, term);
                }
                (None, Some(column)) if found => {
                    way.assign(slot, self.symbols);
                    let value = way.value(slot, self.symbols);
                    let table = self.catalog.relations[column.table].qualified();
                    way.note_read(value, &table, &column.name, &read.at);
                }
                (None, _) => way.assign(slot, self.symbols),
            }
        }
    }

    /// The ways after a statement; `None` if there are too many.
    fn statement(&self, read: &Read, ways: Vec<Way>) -> Option<Vec<Way>> {
        let mut ways = ways;
        match read.kind {
            StatementKind::Begin => {
                for way in &mut ways {
                    way.in_block = true;
                }
            }
            StatementKind::Commit | StatementKind::Rollback => {
                let kept = read.kind == StatementKind::Commit;
                for way in &mut ways {
                    way.end(kept);
                    way.in_block = read.chains;
                }
            }
            _ => {
                if let Some((mark, name)) = &read.savepoint {
                    for way in &mut ways {
                        way.mark(*mark, name);
                    }
                }
                let accesses = if let Ok(accesses) = &read.accesses {
                    accesses.clone()
                } else {
                    for way in &mut ways {
                        let statement = way.statement;
                        way.operations.extend(unknown(OTHER_TABLES, &read.at, statement));
                    }
                    let all =
                        |table: &RelationId| [Deed::Read, Deed::Update].map(|deed| anything(*table, deed));
                    read.tables.iter().flat_map(all).collect()
                };
                for way in &mut ways {
                    for lock in &read.locks {
                        way.lock(lock, self.symbols, &read.at);
                    }
                }
                for access in &accesses {
                    let found = read.finds && access.in_result;
                    ways =
                        ways.into_iter().flat_map(|way| self.access(way, access, found, &read.at)).collect();
                    if ways.len() > 4 * MOST_BRANCHES {
                        return None;
                    }
                }
                for way in &mut ways {
                    way.operations.extend(read.unguarded.operations(&read.at, way.statement + 1));
                    way.statement += 2;
                }
            }
        }
        Some(ways)
    }

    /// The ways that an access can take; `found` if it certainly finds a row.
    #[expect(clippy::too_many_lines, reason = "a table: each kind of access with its operations")]
    fn access(&self, way: Way, access: &Access, found: bool, at: &str) -> Vec<Way> {
        let mut way = way;
        // Only plain reads have any, which are one operation.
        way.idle.push((way.operations.len(), access.idle.clone()));
        let relation = &self.catalog.relations[access.table];
        let terms: BTreeMap<&str, Term> = access
            .equal
            .iter()
            .map(|(column, known)| (column.as_str(), way.term(known, self.symbols)))
            .collect();
        // The key, or another unique index, all of whose columns are known.
        let names = |key: &Vec<usize>| -> Vec<&str> {
            key.iter().map(|place| relation.columns[*place].name.as_str()).collect()
        };
        let mut keys = relation.keys().map(names);
        let whole = |key: &Vec<&str>| !key.is_empty() && key.iter().all(|name| terms.contains_key(name));
        let key_names = keys.find(whole).filter(|_| !relation.has_children()).unwrap_or_default();
        let one_row = !key_names.is_empty();
        let key: Vec<(String, Term)> =
            key_names.iter().map(|name| ((*name).to_owned(), terms[name].clone())).collect();
        let rest: Vec<(String, Term)> = terms
            .iter()
            .filter(|(column, _)| !key_names.contains(column))
            .map(|(column, term)| ((*column).to_owned(), term.clone()))
            .collect();
        let tested = access.tested.iter().map(|column| (column.clone(), Term::Unknown));
        let conditions: BTreeSet<String> = access.equal.keys().chain(&access.tested).cloned().collect();
        let changes_key = match &access.writes {
            Columns::All => true,
            Columns::These(set) => {
                let referred = self.catalog.foreign_keys.iter().filter(|key| {
                    self.catalog.ends(key).is_some_and(|(referenced, _)| referenced == access.table)
                });
                let referred = referred.flat_map(|key| &key.referenced_columns).map(String::as_str);
                let unique = relation.keys().flat_map(names);
                referred.chain(unique).any(|column| set.contains(column))
            }
        };
        let (statement, later) = (way.statement, way.statement + 1);
        let guarded = conditions.iter().any(|column| !key_names.contains(&column.as_str()));
        let may_be_absent = !found
            && (guarded
                || !access.certain
                || self.changing.0.contains(&access.table)
                || self.absent.contains(at));
        let operation = |kind: Kind,
                         key: &[(String, Term)],
                         known: Vec<(String, Term)>,
                         reads: Columns,
                         writes: Columns| Operation {
            kind,
            table: relation.qualified(),
            key: key.to_vec(),
            known,
            reads,
            writes,
            changes_key,
            statement,
            at: at.to_owned(),
            newest: false,
            certain: access.certain,
            found: !may_be_absent,
        };
        let single =
            |kind: Kind| operation(kind, &key, rest.clone(), access.reads.clone(), access.writes.clone());
        let searched = |reads: Columns| {
            let known =
                terms.iter().map(|(column, term)| ((*column).to_owned(), term.clone())).chain(tested.clone());
            operation(Kind::Search, &[], known.collect(), reads, Columns::NONE)
        };
        let absent = || {
            let reads = Columns::These(conditions.clone());
            // Who waits for a row finds that it isn't there any more after the other reads.
            let read = operation(Kind::Read, &key, Vec::new(), reads, Columns::NONE);
            Operation { statement: later, certain: false, ..read }
        };
        let known = || terms.iter().map(|(column, term)| ((*column).to_owned(), term.clone())).collect();
        let kind = match access.deed {
            Deed::Read if one_row => {
                let certain = access.certain && !guarded;
                return vec![way.with([Operation { known: Vec::new(), certain, ..single(Kind::Read) }])];
            }
            Deed::Read => return vec![way.with([searched(access.reads.clone())])],
            Deed::Refer => {
                let newest = relation.kind == RelationKind::Partitioned;
                let lock = Kind::Lock(Strength::KeyShare);
                if one_row && access.certain && !access.deferrable {
                    return vec![way.with([Operation { newest, ..single(lock) }])];
                }
                // It may not be executed: then it keeps nobody out.
                let any = operation(lock, &[], known(), access.reads.clone(), Columns::NONE);
                return vec![way.checked(Operation { newest, statement: later, ..any }, access.deferrable)];
            }
            Deed::Vacant => {
                if !self.freed.has(access.table, &access.reads) {
                    return vec![way];
                }
                let vacant = operation(Kind::Vacant, &[], known(), access.reads.clone(), Columns::NONE);
                let vacant = Operation { newest: true, statement: later, ..vacant };
                return vec![way.checked(vacant, access.deferrable)];
            }
            Deed::Cascade => {
                let search = operation(Kind::Search, &[], Vec::new(), Columns::All, Columns::NONE);
                let update = operation(Kind::Update, &[], Vec::new(), Columns::All, Columns::All);
                return vec![way.with([search, update].map(|one| Operation { statement: later, ..one }))];
            }
            Deed::Lock(strength) => Kind::Lock(strength),
            Deed::Update => Kind::Update,
            Deed::Delete => Kind::Delete,
            Deed::Insert => {
                // A query may find no row for it, so that nobody waits for the key.
                let inserts = way.clone().with([single(Kind::Insert)]);
                return if access.listed || !one_row {
                    vec![inserts]
                } else {
                    vec![inserts, way.nothing(at)]
                };
            }
            Deed::InsertOrRead | Deed::InsertOrUpdate => {
                let insert = Operation { reads: Columns::NONE, writes: Columns::All, ..single(Kind::Insert) };
                // Another unique index may have prevented it, because of another row.
                let other = match (access.deed, one_row && relation.only_key) {
                    (Deed::InsertOrRead, true) => absent(),
                    (Deed::InsertOrRead, false) => {
                        let search = operation(Kind::Search, &[], Vec::new(), Columns::All, Columns::NONE);
                        Operation { statement: later, certain: false, ..search }
                    }
                    // The row that is there has the key, and other values.
                    (_, true) => Operation { known: Vec::new(), ..single(Kind::Update) },
                    (_, false) => Operation { key: Vec::new(), known: Vec::new(), ..single(Kind::Update) },
                };
                if key.is_empty() && !access.listed {
                    // It may be several rows, of which some are new.
                    return vec![way.with([other, insert])];
                }
                // DO UPDATE WHERE: then the row is locked, and read as it is, which serializable doesn't watch.
                let kept = access.may_keep.then(|| {
                    let lock = Kind::Lock(Strength::NoKeyUpdate);
                    let kept = Operation { known: Vec::new(), newest: true, certain: false, ..single(lock) };
                    let mut way = way.clone();
                    way.name.push(format!("row of line {} is there and stays", line(at)));
                    way.with([Operation { reads: Columns::All, writes: Columns::NONE, ..kept }])
                });
                let nothing = (!access.listed && one_row).then(|| way.clone().nothing(at));
                let mut inserted = way.clone();
                inserted.name.push(format!("row of line {} is new", line(at)));
                way.name.push(format!("row of line {} is there", line(at)));
                return [inserted.with([insert]), way.with([other])]
                    .into_iter()
                    .chain(kept)
                    .chain(nothing)
                    .collect();
            }
        };
        if !one_row {
            let found = operation(kind, &[], rest.clone(), access.reads.clone(), access.writes.clone());
            let reads = match &access.reads {
                Columns::All => Columns::All,
                Columns::These(_) => Columns::These(conditions.clone()),
            };
            return vec![way.with([searched(reads), found])];
        }
        if !may_be_absent {
            return vec![way.with([single(kind)])];
        }
        let required = access.equal.iter().chain(&access.before);
        let required: Vec<(String, Term)> = required
            .map(|(column, known)| (column.clone(), way.term(known, self.symbols)))
            .filter(|(column, _)| !key_names.contains(&column.as_str()))
            .collect();
        let (mut found, missed) = (single(kind), absent());
        let mut without = way.clone();
        without.name.push(format!("row of line {} isn't there", line(at)));
        let tested = way.tested_again(&found, required);
        if !tested.is_empty() {
            without.refused = true;
            let versions = self.versions.0.get(&access.table);
            let of_version = |(column, statement): (&String, &usize)| {
                versions.is_some_and(|all| all.contains(column)).then_some(*statement)
            };
            let versioned = tested.iter().filter_map(of_version).min();
            way.read_then(&mut found, &tested, versioned);
        }
        if self.replaced.0.contains(&access.table) {
            // It may have waited for a row that is gone, when another one has the key.
            without = without.with([Operation { statement, ..missed.clone() }]);
        }
        vec![way.with([found]), without.with([missed])]
    }
}

/// The line in a statement's name.
fn line(at: &str) -> &str {
    at.rsplit(':').next().unwrap_or(at)
}

impl Way {
    /// True if two ways have done the same and know the same, whatever their names are.
    fn is_like(&self, other: &Way) -> bool {
        // All fields, so that none is forgotten.
        let Way {
            name: _,
            values,
            distinct,
            lower,
            times,
            operations,
            columns,
            refused,
            ended,
            in_block,
            in_pipeline,
            statement,
            at_commit,
            savepoints,
            shows,
            idle,
            moved,
        } = self;
        let flags = (*refused, *in_block, *in_pipeline, *statement, *shows);
        flags == (other.refused, other.in_block, other.in_pipeline, other.statement, other.shows)
            && (values, distinct, lower, times)
                == (&other.values, &other.distinct, &other.lower, &other.times)
            && (operations, columns, ended) == (&other.operations, &other.columns, &other.ended)
            && (at_commit, savepoints) == (&other.at_commit, &other.savepoints)
            && (idle, moved) == (&other.idle, &other.moved)
    }

    /// The way on which a statement inserts nothing.
    fn nothing(mut self, at: &str) -> Way {
        self.name.push(format!("line {} inserts nothing", line(at)));
        self
    }

    fn with<const N: usize>(mut self, operations: [Operation; N]) -> Way {
        self.operations.extend(operations);
        self
    }

    /// Takes an advisory lock: that of a row of which nothing is read or written.
    fn lock(&mut self, lock: &AdvisoryLock, symbols: &Symbols, at: &str) {
        let mut key = vec![("key".to_owned(), Term::Constant(lock.key.clone()))];
        for (number, slot) in (1..).zip(&lock.variables) {
            key.push((format!("${number}"), self.value(*slot, symbols)));
        }
        self.operations.push(Operation {
            kind: Kind::Lock(lock.strength),
            table: ADVISORY_LOCKS.to_owned(),
            key,
            known: Vec::new(),
            reads: Columns::NONE,
            writes: Columns::NONE,
            changes_key: false,
            statement: self.statement,
            at: at.to_owned(),
            newest: false,
            certain: true,
            found: true,
        });
    }

    /// A check of the server, perhaps as late as at COMMIT.
    fn checked(mut self, check: Operation, deferrable: bool) -> Way {
        if deferrable && !self.at_commit.contains(&check) {
            self.at_commit.push(check.clone());
        }
        self.with([check])
    }

    /// Sets a savepoint, or rolls back to it: what was done since counts as read, and locks nothing.
    fn mark(&mut self, mark: Mark, name: &str) {
        match mark {
            Mark::Set => self.savepoints.push((name.to_owned(), self.operations.len())),
            Mark::RollBack => {
                let place = self.savepoints.iter().rposition(|(own, _)| own == name);
                let from = place.map_or(0, |place| self.savepoints[place].1);
                self.count_idle();
                let undone = self.operations.split_off(from);
                self.operations.extend(undone.into_iter().filter_map(rolled_back));
                // Later ones are gone, and this one stays.
                self.savepoints.truncate(place.map_or(0, |place| place + 1));
            }
            Mark::Release => {
                if let Some(place) = self.savepoints.iter().rposition(|(own, _)| own == name) {
                    self.savepoints.truncate(place);
                }
            }
        }
    }

    /// Notes that a value is that of a column of the row that a statement read by its key.
    fn note_read(&mut self, value: Term, table: &str, column: &str, at: &str) {
        let mut of_table = self.operations.iter().filter(|read| read.at == at && read.table == table);
        let only = of_table.next().filter(|_| of_table.next().is_none());
        let read = only.filter(|read| read.kind == Kind::Read);
        let (Term::Variable(value), Some(read)) = (value, read) else { return };
        let (table, name) = (table.to_owned(), column.to_owned());
        let (statement, key) = (read.statement, read.key.clone());
        self.columns.insert(value, ReadColumn { statement, table, key, name });
    }

    /// Those of the columns that a change of a row requires to have values, which were read so, with the numbers
    /// of the statements that read them.
    fn tested_again(&self, change: &Operation, required: Vec<(String, Term)>) -> BTreeMap<String, usize> {
        let again = |(column, term): (String, Term)| {
            let Term::Variable(value) = term else { return None };
            let same = |read: &&ReadColumn| {
                read.name == column && read.table == change.table && read.key == change.key
            };
            let statement = self.columns.get(&value).filter(same)?.statement;
            Some((column, statement))
        };
        required.into_iter().filter_map(again).collect()
    }

    /// Takes what was read of a row before for read at its change, which requires it to be the same then: these
    /// columns by the statements that read the values required, and all that was read by the one that read a
    /// version, or later.
    fn read_then(
        &mut self,
        change: &mut Operation,
        tested: &BTreeMap<String, usize>,
        versioned: Option<usize>,
    ) {
        for read in &mut self.operations {
            let same = read.kind == Kind::Read && read.table == change.table && read.key == change.key;
            let (true, Columns::These(columns)) = (same, &mut read.reads) else { continue };
            let own: BTreeSet<&String> = read.key.iter().map(|(column, _)| column).collect();
            let moved: Vec<String> = columns
                .iter()
                .filter(|column| {
                    let again = tested.get(*column) == Some(&read.statement);
                    let same = versioned.is_some_and(|version| version <= read.statement);
                    !own.contains(column) && (same || again)
                })
                .cloned()
                .collect();
            columns.retain(|column| !moved.contains(column));
            if !moved.is_empty() {
                self.moved.push([read.at.clone(), change.at.clone()]);
            }
            if let Columns::These(reads) = &mut change.reads {
                reads.extend(moved);
            }
        }
    }

    /// Lets the columns count that only became variables that nothing uses.
    fn count_idle(&mut self) {
        for (place, columns) in std::mem::take(&mut self.idle) {
            if let Some(Operation { reads: Columns::These(reads), .. }) = self.operations.get_mut(place) {
                reads.extend(columns);
            }
        }
    }

    /// Ends the transaction. One that only read, and whose change was refused, is as none.
    fn end(&mut self, kept: bool) {
        let writes = |one: &Operation| matches!(one.kind, Kind::Update | Kind::Insert | Kind::Delete);
        if !self.operations.iter().any(writes) {
            self.count_idle();
        }
        self.idle.clear();
        let mut operations = std::mem::take(&mut self.operations);
        let statement = self.statement;
        let at_commit = std::mem::take(&mut self.at_commit).into_iter();
        operations.extend(at_commit.map(|check| Operation { statement, ..check }));
        self.columns.clear();
        self.savepoints.clear();
        let shows = std::mem::take(&mut self.shows);
        let refused = std::mem::take(&mut self.refused) && !shows && !operations.iter().any(writes);
        if kept && !refused && !operations.is_empty() {
            let name = self.name.join(", ");
            let ascending = self.ascending(&operations);
            self.ended.push(Branch { name, operations, distinct: self.distinct.clone(), ascending });
        }
        self.statement = 0;
    }

    /// Pairs of variables of these operations of which the first is lower.
    fn ascending(&self, operations: &[Operation]) -> Vec<(String, String)> {
        let terms = operations.iter().flat_map(|operation| operation.key.iter().chain(&operation.known));
        let used: BTreeSet<&String> = terms
            .filter_map(|(_, term)| match term {
                Term::Variable(name) => Some(name),
                _ => None,
            })
            .collect();
        let below = |name: &String| std::iter::successors(self.lower.get(name), |one| self.lower.get(*one));
        let pairs = used.iter().flat_map(|higher| below(higher).map(move |lower| (lower, *higher)));
        pairs
            .filter(|(lower, _)| used.contains(lower))
            .map(|(lower, higher)| (lower.clone(), higher.clone()))
            .collect()
    }

    /// Notes that two values differ.
    fn differ(&mut self, one: Term, other: Term) {
        if let (Term::Variable(one), Term::Variable(other)) = (one, other) {
            self.distinct.push((one, other));
        }
    }

    /// The value of a variable.
    fn value(&mut self, slot: Slot, symbols: &Symbols) -> Term {
        let times = self.times.entry(slot).or_insert(1);
        let name = named(symbols.name(slot), *times);
        self.values.get(&slot).cloned().unwrap_or(Term::Variable(name))
    }

    /// Gives a variable a value that isn't known.
    fn assign(&mut self, slot: Slot, symbols: &Symbols) {
        let times = self.times.entry(slot).or_insert(0);
        *times += 1;
        let name = named(symbols.name(slot), *times);
        self.values.insert(slot, Term::Variable(name));
    }

    fn term(&mut self, known: &Known, symbols: &Symbols) -> Term {
        match known {
            Known::Variable(slot) => self.value(*slot, symbols),
            Known::Constant(text) => Term::Constant(text.clone()),
            Known::Computed(text, slots) => {
                let mut text = text.clone();
                for (number, slot) in slots.iter().enumerate().rev() {
                    let value = match self.value(*slot, symbols) {
                        Term::Variable(name) => format!(":{name}"),
                        Term::Constant(constant) => constant,
                        Term::Unknown => return Term::Unknown,
                    };
                    text = text.replace(&format!("${}", number + 1), &value);
                }
                Term::Variable(format!("({text})"))
            }
        }
    }
}

/// The name of a variable's value after so many assignments.
fn named(name: &str, times: usize) -> String {
    if times < 2 { name.to_owned() } else { format!("{name}'{times}") }
}

/// What an operation that was rolled back leaves: what it read. `None` if that is nothing.
fn rolled_back(operation: Operation) -> Option<Operation> {
    let kind = match operation.kind {
        Kind::Insert => return None,
        Kind::Lock(_) | Kind::Update | Kind::Delete if operation.key.is_empty() => Kind::Search,
        Kind::Lock(_) | Kind::Update | Kind::Delete => Kind::Read,
        kind => kind,
    };
    Some(Operation { kind, writes: Columns::NONE, changes_key: false, certain: false, ..operation })
}

/// Everything that may be done with a table.
fn unknown(table: &str, at: &str, statement: usize) -> [Operation; 2] {
    [(Kind::Search, Columns::NONE), (Kind::Update, Columns::All)].map(|(kind, writes)| Operation {
        kind,
        table: table.to_owned(),
        key: Vec::new(),
        known: Vec::new(),
        reads: Columns::All,
        writes,
        changes_key: true,
        statement,
        at: at.to_owned(),
        newest: false,
        certain: false,
        found: false,
    })
}
