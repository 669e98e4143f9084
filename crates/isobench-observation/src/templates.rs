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
mod tables;
mod tested;
mod unguarded;
mod used;
mod variables;
mod walk;
mod way;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_robustness::{Branch, Columns, Kind, Operation, Program};
use isobench_script::Statement as StatementKind;
use isobench_script::{CommandKind, Script, Slot, Store, Symbols};

use crate::catalog::{Catalog, Hides, RelationId, RelationKind, is_system_column};
use crate::flow::{Carried, Flows};
use crate::statement::{
    Access, AdvisoryLock, ColumnName, Conditioned, Deed, Examiner, Fix, Given, Known, LockWithin, Mark,
    PartialKey, Rewritten, Surroundings, chains, changed_names, changes_meaning, savepoint,
};
use crate::tokens::{Placed, Text};

pub use first::{FirstLock, FirstLockKind};
use repeated::repeated;
pub use tables::Ignored;
use tables::{Changing, Freed, Replaced, Versions};
use unguarded::Unguarded;
use used::Used;
use variables::Variables;
use walk::Walk;

/// The name of what advisory locks lock, in place of a table's.
const ADVISORY_LOCKS: &str = "advisory locks";

/// The name of all tables that no script names, for statements that may read and write anything.
const OTHER_TABLES: &str = "other tables";

/// The types of integers, by OID (`pg_type.dat`).
const INTEGERS: [u32; 3] = [20, 21, 23];

/// The same of numbers of any kind, which are one word in a text.
const NUMBERS: [u32; 7] = [20, 21, 23, 26, 700, 701, 1700];

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
    /// Values whose order is left out.
    pub ignored: Ignored,
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
    /// Its text with the names of variables, on one line.
    pub text: String,
    /// The same in its lines, with its comments.
    pub written: String,
    /// Why it reads and writes anything, if it does.
    pub unknown: Option<String>,
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
    /// The rows that it looks for, as far as a partial unique index could have them once.
    pub partial_keys: BTreeSet<PartialKey>,
}

/// What is known of the rows that statements look for, by the statements' names.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Those that may find no row although no script inserts or deletes any.
    pub absent: BTreeSet<String>,
    /// Those that certainly find the rows that they lock or change.
    pub found: BTreeSet<String>,
}

/// Makes programs of scripts as their author wrote them. `absent` has the names of statements that may
/// find no row although no script inserts or deletes any.
pub fn templates(
    scripts: &[Script],
    symbols: &Symbols,
    catalog: &Catalog,
    absent: &BTreeSet<String>,
) -> Templates {
    let rows = Rows { absent: absent.clone(), found: BTreeSet::new() };
    templates_with(scripts, symbols, catalog, &rows)
}

/// Does the same, with what is known of rows.
#[expect(clippy::too_many_lines, reason = "one walk over all statements")]
pub fn templates_with(scripts: &[Script], symbols: &Symbols, catalog: &Catalog, rows: &Rows) -> Templates {
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
                    names_by_variable: names_by_variable(&named),
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
                    numbers: None,
                    unquoted: BTreeSet::new(),
                    unguarded: Unguarded::default(),
                    hides: None,
                    behind: BTreeSet::new(),
                    fixes: BTreeMap::new(),
                    locks_within: Vec::new(),
                    conditioned: None,
                    constants: BTreeSet::new(),
                    partial_keys: BTreeSet::new(),
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
                        written: match (&text, range) {
                            (Some(text), Some(range)) => text.in_lines(text.bytes(range)),
                            _ => read.text.clone(),
                        },
                        unknown: None,
                        fixes: std::mem::take(&mut read.fixes),
                        rewritten: flows.rewritten(number).cloned(),
                        locks_within: std::mem::take(&mut read.locks_within),
                        tested: None,
                        constants: std::mem::take(&mut read.constants),
                        partial_keys: std::mem::take(&mut read.partial_keys),
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
    let used = Used::of(scripts, symbols, &read);
    let variables = Variables::of(scripts, symbols, catalog, &read);
    variables.settle_all(&mut read, catalog);
    if !catalog.sends_parameters {
        parts_of_text(&mut read, &variables, symbols);
    }
    let reasons = read.iter().flatten().flatten().filter(|read| touches_rows(read.kind, &read.text));
    for (statement, read) in found.statements.iter_mut().zip(reasons) {
        statement.unknown = read.accesses.as_ref().err().cloned();
    }
    wait_for_adjusted(&mut found.statements, &numbers, &flows);
    look_behind(&mut read, catalog);
    drop_fresh(&mut read);
    let all = touched(&mut read);
    let changed = tested::changed(read.iter().flatten().flatten());
    unguarded::note(&mut read, catalog);
    change_versions(&mut read);
    let freed = Freed::of(catalog, read.iter().flatten().flatten());
    let changing = Changing::of(catalog, read.iter().flatten().flatten());
    let replaced = Replaced::of(&read, catalog);
    found.ignored = Ignored::of(catalog, read.iter().flatten().flatten());
    let versions = Versions::of(&changing, read.iter().flatten().flatten());
    found.tables = all.iter().map(|table| catalog.relations[*table].qualified()).collect();
    for (number, (script, commands)) in scripts.iter().zip(&read).enumerate() {
        found.first_locks.extend(first::first_locks(number, script, symbols, catalog, commands));
        let mut tested = tested::tested(script, symbols, catalog, commands, &changed);
        for statement in found.statements.iter_mut().filter(|one| one.script == number) {
            statement.tested = tested.remove(&statement.at);
        }
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
            used: &used,
            rows,
            skipped: repeated.into_keys().collect(),
        };
        let program = walk.program(&mut found.stands_for).unwrap_or_else(|| {
            found.branching.insert(script.name.clone());
            let tables = all.iter().map(|table| catalog.relations[*table].qualified());
            let tables = tables.chain([OTHER_TABLES.to_owned()]);
            let mut operations: Vec<Operation> =
                tables.flat_map(|table| unknown(&table, &script.name, 0)).collect();
            operations.extend(walk.unguarded());
            Program::new(&script.name, vec![Branch { operations, ..Branch::default() }])
        });
        found.programs.push(program);
    }
    found
}

/// A statement as it was read.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Read {
    fixes: BTreeMap<String, Fix>,
    locks_within: Vec<LockWithin>,
    conditioned: Option<Conditioned>,
    constants: BTreeSet<String>,
    partial_keys: BTreeSet<PartialKey>,
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
    /// A variable may be a name in it, or a part of one.
    names_by_variable: bool,
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
    /// The same for numbers of any kind.
    numbers: Option<BTreeMap<String, bool>>,
    /// The variables in it that stand outside of quotes.
    unquoted: BTreeSet<Slot>,
    /// What it does with data that no level guards.
    unguarded: Unguarded,
    /// What it may do by code that isn't analysed, if it isn't.
    hides: Option<Hides>,
    /// The tables that this code names.
    behind: BTreeSet<RelationId>,
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
        self.unquoted = text.unquoted(range);
        self.changes_meaning = changes_meaning(text, range);
        self.named = text.tokens[range.clone()].iter().filter_map(Placed::name).collect();
        self.chains = chains(text, range);
        let named = |(table, fix): (RelationId, Fix)| (catalog.relations[table].qualified(), fix);
        self.locks_within = examiner.locks_within();
        self.conditioned = examiner.conditioned();
        self.constants = examiner.constants();
        self.partial_keys = examiner.partial_keys();
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
            let those = |types: &[u32]| {
                let is = |oid: &Option<u32>| oid.is_some_and(|oid| types.contains(&oid));
                Some(bound.outputs.iter().map(|(name, of)| (name.clone(), is(of))).collect())
            };
            (self.integers, self.numbers) = (those(&INTEGERS), those(&NUMBERS));
            let names = bound.functions.iter().filter_map(|oid| catalog.called.functions.get(oid));
            self.unguarded = Unguarded::of_functions(names.map(String::as_str), &catalog.hidden);
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
        let is_same = |column: &&ColumnName| catalog.equal_is_same(column.table, &column.name);
        let known = |given: Given| Stored {
            known: equal_to(given.column.as_ref().filter(is_same), accesses),
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

    /// Its first word, in lower case.
    fn first_word(&self) -> String {
        self.text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase()
    }

    /// True if it returns rows of tables.
    fn returns_rows(&self) -> bool {
        let first = verb(&self.text);
        let queries = ["select", "with", "values", "table", ""];
        let query = queries.iter().any(|word| word.eq_ignore_ascii_case(first));
        let touches = self.accesses.as_ref().map_or(true, |accesses| !accesses.is_empty());
        touches && (query || self.named.contains("returning"))
    }

    /// True if it may do something that stays when its transaction is rolled back, or that others learn: of plain
    /// queries only these functions do.
    fn tells(&self) -> bool {
        const QUERIES: [&str; 12] = [
            "",
            "select",
            "with",
            "values",
            "table",
            "insert",
            "update",
            "delete",
            "merge",
            "savepoint",
            "release",
            "lock",
        ];
        const SETTINGS: [&str; 2] = ["set", "show"];
        const TELL: [&str; 4] = ["pg_notify", "set_config", "setseed", "pg_logical_emit_message"];
        let first = verb(&self.text);
        let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(first));
        let sets_constant = is(&SETTINGS) && !self.text.contains(':');
        let plain = is(&QUERIES) || sets_constant || self.savepoint.is_some();
        !plain || TELL.iter().any(|name| self.named.contains(*name))
    }

    /// True if it touches rows, or takes advisory locks.
    fn touches(&self) -> bool {
        let rows = self.accesses.as_ref().map_or(true, |accesses| !accesses.is_empty());
        rows || !self.locks.is_empty() || self.named.iter().any(|name| name.contains("advisory"))
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
    let statements = || read.iter().flatten().flatten();
    let mut all: BTreeSet<RelationId> = statements().flat_map(Read::touched).collect();
    all.extend(statements().flat_map(|statement| &statement.behind));
    for statement in read.iter_mut().flatten().flatten() {
        if statement.accesses.is_err() {
            statement.tables.clone_from(&all);
        }
    }
    all
}

/// Looks at the code behind statements that aren't understood.
fn look_behind(read: &mut [Vec<Vec<Read>>], catalog: &Catalog) {
    let stores = |id: &RelationId| catalog.relations[*id].kind != RelationKind::System;
    let touched: BTreeSet<RelationId> =
        read.iter().flatten().flatten().flat_map(Read::touched).map(|id| catalog.root(id)).collect();
    for statement in read.iter_mut().flatten().flatten().filter(|one| one.accesses.is_err()) {
        let mut hides = catalog.hidden.behind(&statement.text);
        let named = (0..catalog.relations.len())
            .filter(|id| hides.words.contains(&catalog.relations[*id].name.to_lowercase()))
            .filter(stores);
        statement.behind = named.map(|id| catalog.root(id)).collect();
        if hides.wild {
            statement.behind.extend(&touched);
        }
        if statement.names_by_variable {
            let all = (0..catalog.relations.len()).filter(stores);
            statement.behind.extend(all.map(|id| catalog.root(id)));
        }
        // A row that a trigger keeps as it is was read as it is.
        let keeps = |table: &RelationId| catalog.triggers(*table).before_row.update;
        hides.looks |= hides.upserts && statement.behind.iter().any(keeps);
        statement.hides = Some(hides);
    }
}

/// Takes statements for not understood in which a variable outside of quotes may be anything else than a number: a
/// column, a condition, a query.
fn parts_of_text(read: &mut [Vec<Vec<Read>>], variables: &Variables, symbols: &Symbols) {
    for statement in read.iter_mut().flatten().flatten() {
        let text = statement.unquoted.iter().find(|slot| !variables.is_number(**slot));
        if let (Some(slot), true) = (text, touches_rows(statement.kind, &statement.text)) {
            let name = symbols.name(*slot);
            statement.accesses =
                Err(format!("variable {name} stands outside of quotes, and may be more than a number"));
            statement.but_for_triggers.clear();
            statement.gives = None;
            statement.names_by_variable = true;
        }
    }
}

/// Drops the checks of unique indexes for values of sequences and random UUIDs, unless rows get such values otherwise,
/// too.
fn drop_fresh(read: &mut [Vec<Vec<Read>>]) {
    let statements = || read.iter().flatten().flatten();
    let accesses = statements().flat_map(|statement| statement.accesses.iter().flatten());
    let given = accesses.filter(|access| access.deed == Deed::Vacant && !access.fresh);
    let given: Vec<(RelationId, Columns)> =
        given.map(|access| (access.table, access.reads.clone())).collect();
    let behind: BTreeSet<RelationId> = statements().flat_map(|statement| statement.behind.clone()).collect();
    let is_given = |access: &Access| {
        let same = |(table, reads): &(RelationId, Columns)| *table == access.table && *reads == access.reads;
        behind.contains(&access.table) || given.iter().any(same)
    };
    for statement in read.iter_mut().flatten().flatten() {
        if let Ok(accesses) = &mut statement.accesses {
            accesses.retain(|access| !access.fresh || is_given(access));
        }
    }
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
        for lock in statements[at].locks_within.iter_mut().filter(|_| waits) {
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
    // What an outer join may leave out is NULL then.
    let shown = |access: &&Access| match access.deed {
        Deed::Read | Deed::Lock(_) => access.in_result,
        deed => deed != Deed::Refer,
    };
    let access = of_table.next().filter(shown)?;
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
    let first = verb(text);
    let of_session = OF_THE_SESSION.iter().any(|word| word.eq_ignore_ascii_case(first));
    matches!(kind, StatementKind::Other | StatementKind::Copy) && !of_session
}

/// True if a variable may be a name in a statement, or a part of one: `pgbench_:x`, `FROM :table`.
fn names_by_variable(text: &str) -> bool {
    const BEFORE_NAME: [&str; 9] =
        ["from", "into", "update", "join", "table", "only", "call", "copy", "truncate"];
    let of_name = |letter: char| letter.is_alphanumeric() || "_$\".".contains(letter);
    let (mut quoted, mut depth, mut lists) = (false, 0, false);
    let mut word = String::new();
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            ':' if matches!(letters.peek(), Some(':' | '=')) => drop(letters.next()),
            ':' if letters.peek().is_some_and(|next| next.is_alphabetic() || *next == '_') => {
                while letters.next_if(|next| next.is_alphanumeric() || *next == '_').is_some() {}
                let in_list = lists && depth == 0 && before == ',';
                let after = letters.peek().is_some_and(|next| of_name(*next) || *next == '(');
                if of_name(before) || after || in_list || BEFORE_NAME.contains(&word.as_str()) {
                    return true;
                }
                word.clear();
                before = ' ';
                continue;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if letter.is_alphabetic() {
            if !before.is_alphabetic() {
                word.clear();
            }
            word.extend(letter.to_lowercase());
            lists |= word == "from";
        } else if !letter.is_whitespace() {
            word.clear();
        }
        // Between a comma and a name there may be blanks.
        if !(letter.is_whitespace() && before == ',') {
            before = letter;
        }
    }
    false
}

/// The letters with which a statement begins; none before a parenthesis.
fn verb(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default()
}

/// The line in a statement's name.
fn line(at: &str) -> &str {
    at.rsplit(':').next().unwrap_or(at)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_names_are_found() {
        for text in [
            "INSERT INTO u:s(name) VALUES (1)",
            "SELECT * FROM :t",
            "SELECT * FROM a, :t WHERE x = 1",
            "UPDATE :t SET a = 1",
            "SELECT a FROM x.:t",
            "SELECT :f(1)",
            "call :p (1)",
        ] {
            assert!(names_by_variable(text), "{text}");
        }
        for text in [
            "CALL transfer(:a, :b)",
            "SELECT a::text, :b FROM t WHERE c = :c AND d IN (:d, :e)",
            "SELECT 'from :t' FROM t WHERE name = 'n:k'",
            "UPDATE t SET a = :a, b = :b",
            "DO 'BEGIN x := 1; END'",
        ] {
            assert!(!names_by_variable(text), "{text}");
        }
    }
}
