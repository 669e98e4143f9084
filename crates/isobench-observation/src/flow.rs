//! The flow of values through scripts: which statement's result goes, through variables, into what
//! another one writes, or into the decision whether it writes; and what could matter of what isn't
//! seen.
//!
//! A script is read once, from its first command to its last. What a branch assigns may have been
//! assigned; a value assigned before it may still be there. Where the script may not have assigned a variable,
//! its value is an older one, of any script that gives it one.

mod columns;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_isolation::observed::{Dependence, Flow, StatementUse, Unchanged};
use isobench_robustness::Columns;
use isobench_script::Statement as Kind;
use isobench_script::{Addend, Amount, Branch, CommandKind, Expr, Script, Slot, Sql, Store, Symbols};

use crate::catalog::{Catalog, ColumnType, RelationId, RelationKind, Unobservable};
use crate::dark::{Dark, Hides};
use crate::statement::{
    Access, Assigned, Assignment, ColumnName, Counted, Deed, Examiner, Finding, Operand, Passage, Raised,
    Rewritten, Role, Surroundings, chains,
};
use crate::tokens::Text;
use columns::{KeyValue, ReadValue, Row, Taken, Values, taken};

/// The flow of values through the scripts of a run.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    /// All SQL statements of all scripts, in order.
    nodes: Vec<Node>,
    /// The flows from one statement into another one that writes.
    edges: Vec<Edge>,
    values: Values,
    /// The names of tables, with that of the table where their rows are. Relations that show other
    /// tables' rows, such as views, aren't among them.
    rows_of: BTreeMap<String, String>,
    /// The columns that are only isobench's.
    forgotten: BTreeSet<String>,
    /// The statements whose results become a variable's values; true of keys, which don't age.
    handed: BTreeMap<Slot, Vec<(usize, bool)>>,
    /// Variables that are used where their script may not have assigned them: their value is of the script's run
    /// before, or of another script. With the statement there, or the next one.
    older: Vec<(Slot, usize)>,
}

/// The place of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementPlace {
    /// The script's name.
    pub file: String,
    /// The line on which its command starts, from 1.
    pub line: u32,
}

/// A value that is read in one transaction and written in a later one of the same script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The statement that reads it.
    pub read: StatementPlace,
    /// The statement that writes it, or whose writing it decides on.
    pub written: StatementPlace,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Node {
    script: usize,
    command: usize,
    place: u32,
    at: StatementPlace,
    /// The number of its transaction, among all that the scripts have.
    transaction: usize,
    verb: String,
    writes: bool,
    /// The tables that it reads; `None` if it may read any.
    reads: Option<BTreeSet<String>>,
    /// The tables that it writes; `None` if it may write any.
    written: Option<BTreeSet<String>>,
    /// The table to which it only adds rows, whatever is in it.
    adds_to: Option<String>,
    /// It has a refusal for an answer: the rows are found by their key and something else.
    conditional: bool,
    /// See [`Passage::uses`].
    uses: Option<Counted>,
    /// See [`Passage::sets`].
    sets: Option<BTreeSet<String>>,
    /// See [`Passage::kept_up`].
    kept_up: Counted,
    /// The keys of the tables whose rows it shows.
    keys: BTreeSet<String>,
    taken: Vec<Taken>,
    /// Its result becomes variables.
    stored: bool,
    /// How it could be written so that it depends on fewer values that were read before.
    rewritten: Option<Rewritten>,
    /// The columns of the row that it updates which it certainly raises.
    raises: BTreeSet<String>,
    /// The number of output columns that are a column as it is.
    shown: Counted,
    /// See [`Passage::plain`].
    plain: bool,
    /// It is in no conditional.
    sure: bool,
    row: Option<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: usize,
    to: usize,
    how: Dependence,
    /// The column that the value is of, or computed from.
    column: Option<ColumnName>,
    /// The columns of the same row of which the writing statement tests, in its condition, that they are as the
    /// reading one found them, with the names of their tables.
    tested: BTreeMap<ColumnName, Option<String>>,
    /// The value may change after it was read, so that its age matters.
    ages: bool,
}

/// What a variable's value comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    node: usize,
    /// The column that it is the value of, or computed from.
    column: Option<ColumnName>,
    /// True if it was computed.
    computed: bool,
}

type Taint = BTreeSet<Source>;

impl Flows {
    /// Follows the values of scripts as their author wrote them; observed ones have further columns.
    pub fn of<'s>(
        scripts: impl IntoIterator<Item = &'s Script>,
        symbols: &Symbols,
        catalog: &Catalog,
    ) -> Flows {
        let mut flows = Flows { rows_of: rows_of(catalog), ..Flows::default() };
        for (number, script) in scripts.into_iter().enumerate() {
            let assigned = script.commands.iter().filter_map(|command| match &command.kind {
                CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => Some(*slot),
                _ => None,
            });
            let transaction = flows.nodes.last().map_or(0, |last| last.transaction + 1);
            Walk {
                flows: &mut flows,
                catalog,
                symbols,
                assigned: assigned.collect(),
                values: BTreeMap::new(),
                times: BTreeMap::new(),
                changes: BTreeMap::new(),
                control: Vec::new(),
                settled: BTreeSet::new(),
                arms: Vec::new(),
                transaction,
                in_block: false,
                in_pipeline: false,
            }
            .script(number, script);
        }
        flows.edges.sort();
        flows.edges.dedup();
        flows.values.follow_assignments();
        flows.forget_versions();
        flows
    }

    /// What the scripts do with what each observed statement reads, by the statements' numbers: in
    /// the order of the scripts, of which these are the observed ones.
    pub fn usage<'s>(&self, observed: impl IntoIterator<Item = &'s Script>) -> Vec<StatementUse> {
        let mut numbers: BTreeMap<usize, u16> = BTreeMap::new();
        let mut order = Vec::new();
        for (script, parsed) in observed.into_iter().enumerate() {
            for (command, parsed) in parsed.commands.iter().enumerate() {
                let CommandKind::Sql(sql) = &parsed.kind else { continue };
                for seen in &sql.observed {
                    let same = |node: &Node| {
                        (node.script, node.command, node.place) == (script, command, seen.statement)
                    };
                    let node = self.nodes.iter().position(same);
                    if let (Some(node), Ok(number)) = (node, u16::try_from(order.len())) {
                        numbers.insert(node, number);
                    }
                    order.push(node);
                }
            }
        }
        let columns = self.columns();
        let use_of = |node| self.use_of(node, &numbers, &columns);
        order.into_iter().map(|node: Option<usize>| node.map_or_else(unknown, use_of)).collect()
    }

    /// The numbers of the columns that any statement mentions or changes, by name.
    fn columns(&self) -> BTreeMap<&str, u16> {
        let used = self.nodes.iter().filter_map(|node| node.uses.as_ref()).flat_map(Counted::keys);
        let names = used.chain(self.nodes.iter().filter_map(|node| node.sets.as_ref()).flatten());
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        names.into_iter().zip(0..=u16::MAX).collect()
    }

    fn use_of(
        &self,
        node: usize,
        numbers: &BTreeMap<usize, u16>,
        columns: &BTreeMap<&str, u16>,
    ) -> StatementUse {
        let own = &self.nodes[node];
        let edges = || self.edges.iter().filter(move |edge| edge.from == node);
        let flow = |edge: &Edge| Some(Flow { statement: *numbers.get(&edge.to)?, how: edge.how });
        let within = |edge: &&Edge| self.within(edge);
        let number = |name: &String| columns.get(name.as_str()).copied();
        let unchanged = self
            .unchanged(node)
            .into_iter()
            .filter_map(|name| Some(Unchanged { column: *columns.get(name)?, name: name.to_owned() }));
        StatementUse {
            writes: own.writes,
            guarded: own.conditional,
            product: !self.writes(own.transaction),
            flows_unseen: edges().filter(within).any(|edge| !numbers.contains_key(&edge.to)),
            into: edges().filter(within).filter_map(flow).collect(),
            carried: edges().filter(|edge| self.carries(edge)).filter_map(flow).collect(),
            uses: own.uses.as_ref().and_then(|uses| {
                let product = !self.surely_writes(own.transaction);
                let counts = |column: &&String| own.writes || product || !self.is_idle(node, column);
                uses.keys().filter(counts).map(number).collect()
            }),
            changes: own.sets.as_ref().and_then(|sets| sets.iter().map(number).collect()),
            unchanged: unchanged.collect(),
        }
    }

    /// True if both ends of a flow are in one transaction.
    fn within(&self, edge: &Edge) -> bool {
        self.nodes[edge.from].transaction == self.nodes[edge.to].transaction
    }

    /// True if a value may be old when it is written, because another transaction read it.
    fn carries(&self, edge: &Edge) -> bool {
        !self.within(edge) && edge.ages && !self.is_guarded(edge) && self.may_change(&self.nodes[edge.from])
    }

    /// True if a value is written only where the column is as it was read: because that is tested, or the row's
    /// version is.
    fn is_guarded(&self, edge: &Edge) -> bool {
        edge.tested.iter().any(|(column, table)| {
            edge.column.as_ref() == Some(column) || self.is_version(&column.name, table.as_ref())
        })
    }

    /// True if all that writes a table is an UPDATE that raises this column of it.
    fn is_version(&self, column: &str, table: Option<&String>) -> bool {
        let may_write = |node: &&Node| {
            let tables = node.written.as_ref().zip(table);
            node.writes && tables.is_none_or(|(tables, table)| tables.contains(table))
        };
        let raises =
            |node: &Node| node.verb == "UPDATE" && node.written.is_some() && node.raises.contains(column);
        self.nodes.iter().filter(may_write).all(raises)
    }

    /// True if a script may write what a statement reads.
    fn may_change(&self, node: &Node) -> bool {
        match &node.reads {
            None => self.nodes.iter().any(|node| node.writes),
            Some(reads) => reads.iter().any(|table| self.may_change_in(node, table)),
        }
    }

    /// True if a script may write what a statement reads of a table.
    fn may_change_in(&self, node: &Node, table: &str) -> bool {
        let table = self.rows_of.get(table);
        let writes = |other: &&Node| {
            let written = other.written.as_ref().zip(table);
            other.writes && written.is_none_or(|(written, table)| written.contains(table))
        };
        self.nodes.iter().filter(writes).any(|other| !node.is_untouched_by(other))
    }

    /// True if a statement of a transaction may write.
    fn writes(&self, transaction: usize) -> bool {
        self.nodes.iter().any(|node| node.transaction == transaction && node.writes)
    }

    /// How an UPDATE could be written so that it depends on fewer values that were read before, by its
    /// number among all of the scripts' statements.
    pub(crate) fn rewritten(&self, statement: usize) -> Option<&Rewritten> {
        self.nodes.get(statement)?.rewritten.as_ref()
    }

    /// The columns of the row that an UPDATE changes which it certainly raises, such as a version: by a
    /// number, from their value or from one that it requires them to have.
    pub(crate) fn raises(&self, statement: usize) -> BTreeSet<String> {
        self.nodes.get(statement).map(|node| node.raises.clone()).unwrap_or_default()
    }

    /// The later statements of its transaction that write the tables that a statement reads, all by their
    /// numbers among all of the scripts.
    pub(crate) fn writers_after(&self, read: usize) -> Vec<usize> {
        let Some(own) = self.nodes.get(read) else { return Vec::new() };
        let same = |node: &Node| {
            let tables = own.reads.as_ref().zip(node.written.as_ref());
            node.transaction == own.transaction
                && node.writes
                && tables.is_none_or(|(reads, written)| !reads.is_disjoint(written))
        };
        (read + 1..self.nodes.len()).filter(|later| same(&self.nodes[*later])).collect()
    }

    /// True if a statement sets columns to what follows from their values: by itself, or from what an
    /// earlier one read.
    pub(crate) fn adjusts(&self, read: usize, update: usize) -> bool {
        let follows = |edge: &Edge| {
            (edge.from, edge.to) == (read, update) && edge.ages && edge.how == Dependence::Value
        };
        self.nodes.get(update).is_some_and(|node| !node.kept_up.is_empty()) || self.edges.iter().any(follows)
    }

    /// What a statement does with rows, by its number among all of the scripts, without the columns that
    /// count for nothing, and those that only become variables that nothing uses. What a transaction reads
    /// that writes nothing is what it is for.
    pub(crate) fn narrowed(&self, statement: usize, accesses: Vec<Access>) -> Vec<Access> {
        if statement >= self.nodes.len() {
            return accesses;
        }
        let narrow = |access: Access| {
            let idle = |column: &String| {
                access.deed == Deed::Read
                    && self.is_idle(statement, column)
                    && self.writes(self.nodes[statement].transaction)
            };
            let counts = |column: &String| !self.forgotten.contains(column);
            let unused: BTreeSet<String> = match &access.reads {
                Columns::These(columns) => {
                    columns.iter().filter(|column| counts(column) && idle(column)).cloned().collect()
                }
                Columns::All => BTreeSet::new(),
            };
            let uses = |column: &String| counts(column) && !unused.contains(column);
            let (reads, writes) = (kept(access.reads, uses), kept(access.writes, counts));
            Access { reads, writes, idle: unused, ..access }
        };
        accesses.into_iter().map(narrow).collect()
    }

    /// True if a statement mentions a column only to give it to a variable that nothing uses.
    fn is_idle(&self, statement: usize, column: &String) -> bool {
        let node = &self.nodes[statement];
        let only_shown = node.uses.as_ref().is_some_and(|uses| uses.get(column) == node.shown.get(column));
        let unused = !self.values.used.contains_key(&(statement, column.clone()));
        node.stored && node.plain && only_shown && unused
    }

    /// True if a statement writes that all transactions like this one execute.
    fn surely_writes(&self, transaction: usize) -> bool {
        self.nodes.iter().any(|node| node.transaction == transaction && node.writes && node.sure)
    }

    /// The values that are read in one transaction and written in another, so that no level protects
    /// them.
    pub fn carried(&self) -> Vec<Carried> {
        let mut found: Vec<Carried> = Vec::new();
        let of_runs = self.older.iter().flat_map(|(slot, to)| {
            let given = self.handed.get(slot).into_iter().flatten();
            let ages = |(from, is_key): &&(usize, bool)| !is_key && self.may_change(&self.nodes[*from]);
            given.filter(ages).map(move |(from, _)| (*from, (*to).min(self.nodes.len() - 1)))
        });
        let within = self.edges.iter().filter(|edge| self.carries(edge)).map(|edge| (edge.from, edge.to));
        for (from, to) in within.chain(of_runs) {
            let (read, written) = (self.nodes[from].at.clone(), self.nodes[to].at.clone());
            let carried = Carried { read, written };
            if !found.contains(&carried) {
                found.push(carried);
            }
        }
        found
    }

    /// How what isn't seen of a statement can matter, in few words; `None` if it is seen wholly, or the
    /// rest can't matter. The statement is given by its number among all of the scripts, and `dark` is
    /// what isn't seen of it.
    pub fn matters(&self, statement: usize, dark: &[Dark]) -> Option<String> {
        let node = self.nodes.get(statement)?;
        let hidden: Vec<&Dark> = dark.iter().filter(|dark| self.may_matter(node, dark)).collect();
        if hidden.is_empty() {
            return None;
        }
        if node.writes {
            return Some(format!("is {} that isn't seen wholly", article(&node.verb)));
        }
        let into = |edge: &&Edge| edge.from == statement;
        let mut targets = self.edges.iter().filter(into).map(|edge| (edge.how, &self.nodes[edge.to]));
        let said = |(how, to): (Dependence, &Node)| match how {
            Dependence::Decision => format!("decides {}", article(&to.verb)),
            Dependence::Value => format!("flows into {}", article(&to.verb)),
        };
        match targets.next() {
            Some(target) => Some(said(target)),
            None if !self.writes(node.transaction) => Some("is what a transaction returns".to_owned()),
            None => None,
        }
    }

    /// True if a script may write the rows that aren't seen, or they are written unseen.
    fn may_matter(&self, node: &Node, dark: &Dark) -> bool {
        match dark.hides() {
            Hides::ReadsOf(table) => self.may_change_in(node, table),
            Hides::Reads => self.nodes.iter().any(|node| node.writes),
            Hides::All if node.writes => !self.is_added_to_only(dark),
            // Of a statement that only reads nothing is seen.
            Hides::All => self.may_change(node),
        }
    }

    /// True if the scripts do nothing with a table that has no key but add rows, whatever is in it: no
    /// transaction depends on another one by such rows.
    fn is_added_to_only(&self, dark: &Dark) -> bool {
        let Dark::Table { table, reason: Unobservable::NoKey } = dark else { return false };
        let Some(table) = self.rows_of.get(table) else { return false };
        let may_be_of =
            |tables: &Option<BTreeSet<String>>| tables.as_ref().is_none_or(|tables| tables.contains(table));
        let touches = |node: &&Node| may_be_of(&node.reads) || (node.writes && may_be_of(&node.written));
        self.nodes.iter().filter(touches).all(|node| node.adds_to.as_ref() == Some(table))
    }
}

impl Node {
    /// True if another statement changes none of the columns that this one uses.
    fn is_untouched_by(&self, other: &Node) -> bool {
        let apart =
            |(uses, sets): (&Counted, &BTreeSet<String>)| !sets.iter().any(|set| uses.contains_key(set));
        self.uses.as_ref().zip(other.sets.as_ref()).is_some_and(apart)
    }
}

/// A statement of which nothing is known: everything of it counts.
fn unknown() -> StatementUse {
    StatementUse { product: true, ..StatementUse::default() }
}

fn kept(columns: Columns, keep: impl Fn(&String) -> bool) -> Columns {
    match columns {
        Columns::All => Columns::All,
        Columns::These(names) => Columns::These(names.into_iter().filter(keep).collect()),
    }
}

fn article(verb: &str) -> String {
    let vowel = verb.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {verb}", if vowel { "an" } else { "a" })
}

/// See [`Flows::rows_of`].
fn rows_of(catalog: &Catalog) -> BTreeMap<String, String> {
    let of = |table: RelationId| {
        let relation = &catalog.relations[table];
        let storing = match relation.kind {
            // Its rows may be those of a table here.
            RelationKind::Foreign => None,
            _ if relation.temporary => Some(relation),
            _ => catalog.storing(table),
        };
        Some((relation.qualified(), storing?.qualified()))
    };
    (0..catalog.relations.len()).filter_map(of).collect()
}

/// What is known of a statement by itself.
struct Examined {
    finding: Finding,
    passage: Passage,
    /// See [`Node::adds_to`].
    adds_to: Option<String>,
    row: Option<Row>,
    rewritten: Option<Rewritten>,
    /// See [`Node::raises`].
    raises: BTreeSet<String>,
}

/// A value that is a column's, changed by something.
struct Changed {
    of: Source,
    /// What changes it, as SQL: ` - :quantity`.
    text: String,
    /// The variable with it, if it is raised by a number, with the number of times that it had been assigned.
    raised: Option<(Slot, usize)>,
    /// The variable in it, with the number of times that it had been assigned.
    variable: Option<(Slot, usize)>,
    /// The number of times that the variable with the value had been assigned.
    time: usize,
}

/// A conditional: the variables that had been assigned before it, and in all of its arms up to here.
struct Arms {
    before: BTreeSet<Slot>,
    all: Option<BTreeSet<Slot>>,
    has_else: bool,
}

/// The walk over a script.
struct Walk<'a> {
    flows: &'a mut Flows,
    catalog: &'a Catalog,
    symbols: &'a Symbols,
    /// The variables that meta-commands assign.
    assigned: BTreeSet<Slot>,
    values: BTreeMap<Slot, Taint>,
    /// The number of times that each variable was assigned.
    times: BTreeMap<Slot, usize>,
    /// The variables whose last value is another one's, changed by something.
    changes: BTreeMap<Slot, Changed>,
    /// For each open `\if`, what its conditions depend on.
    control: Vec<Taint>,
    /// The variables that have certainly been assigned.
    settled: BTreeSet<Slot>,
    /// The open conditionals.
    arms: Vec<Arms>,
    transaction: usize,
    in_block: bool,
    /// Statements outside of a block are one transaction up to the next synchronisation.
    in_pipeline: bool,
}

impl Walk<'_> {
    fn script(mut self, number: usize, script: &Script) {
        for (place, command) in script.commands.iter().enumerate() {
            match &command.kind {
                CommandKind::Set { slot, expr } => {
                    let variables = expr.variables();
                    self.note_older(&variables);
                    let uses = variables.iter().map(|variable| (*variable, self.columns_in(*variable)));
                    let uses: Vec<_> = uses.collect();
                    self.flows.values.assigned.push((*slot, uses));
                    if self.may_fail(expr) {
                        // It decides whether the rest of the script runs.
                        self.taint(&variables);
                    }
                    let changed = self.changed(expr);
                    let taint = computed(self.sources(&variables));
                    self.assign(*slot, taint);
                    self.note_change(*slot, changed);
                }
                CommandKind::Shell { args } => {
                    self.taint(&shell_variables(args));
                }
                CommandKind::SetShell { slot, args } => {
                    let taint = computed(self.taint(&shell_variables(args)));
                    self.assign(*slot, taint);
                }
                CommandKind::If(branch) => {
                    self.note_older(&condition(branch));
                    self.arms.push(Arms { before: self.settled.clone(), all: None, has_else: false });
                    let taint = branch.cond.as_ref().map(|cond| self.taint(&cond.variables()));
                    self.control.push(taint.unwrap_or_default());
                }
                CommandKind::Elif(branch) => {
                    self.next_arm(false);
                    self.note_older(&condition(branch));
                    let taint = branch.cond.as_ref().map(|cond| self.taint(&cond.variables()));
                    if let Some(open) = self.control.last_mut() {
                        open.extend(taint.unwrap_or_default());
                    }
                }
                CommandKind::Else(_) => self.next_arm(true),
                CommandKind::Endif => {
                    self.control.pop();
                    self.end_arms();
                }
                CommandKind::StartPipeline | CommandKind::SyncPipeline | CommandKind::EndPipeline => {
                    self.in_pipeline = !matches!(command.kind, CommandKind::EndPipeline);
                    self.transaction += usize::from(!self.in_block);
                }
                CommandKind::Sql(sql) => {
                    let at = StatementPlace { file: script.name.clone(), line: command.line };
                    self.sql((number, place), &at, sql);
                }
                CommandKind::Sleep { duration, .. } => {
                    // What isn't a number ends the script.
                    if let isobench_script::Operand::Variable(slot) = duration {
                        self.note_use(*slot);
                    }
                }
            }
        }
    }

    /// True if an expression may fail, as far as it isn't about numbers that have no room in a bigint: only the sum
    /// of integers never does.
    fn may_fail(&self, expr: &Expr) -> bool {
        if expr.integer().is_some() {
            return false;
        }
        let is_number = |source: &Source| {
            let plain = self.flows.nodes[source.node].plain;
            let column = source.column.as_ref().filter(|_| plain);
            let number = |column: &ColumnName| {
                let relation = &self.catalog.relations[column.table];
                relation.column(&column.name).is_some_and(|at| {
                    let column = &relation.columns[at];
                    column.not_null && column.kind == ColumnType::Integer
                })
            };
            source.computed || column.is_some_and(number)
        };
        let sum = expr.variable().is_some() || expr.change().is_some();
        !sum || !self.sources(&expr.variables()).iter().all(is_number)
    }

    /// Notes those of variables that are used and may be older than this run of the script.
    fn note_older(&mut self, slots: &[Slot]) {
        let place = self.flows.nodes.len();
        let older = slots.iter().filter(|slot| !self.settled.contains(*slot));
        self.flows.older.extend(older.map(|slot| (*slot, place)));
    }

    /// An arm of a conditional ends, and the next one begins.
    fn next_arm(&mut self, is_else: bool) {
        let Some(arms) = self.arms.last_mut() else { return };
        let settled = std::mem::replace(&mut self.settled, arms.before.clone());
        arms.all = Some(match arms.all.take() {
            Some(all) => &all & &settled,
            None => settled,
        });
        arms.has_else |= is_else;
    }

    /// The last arm of a conditional ends.
    fn end_arms(&mut self) {
        self.next_arm(false);
        let Some(Arms { before, all, has_else }) = self.arms.pop() else { return };
        self.settled = if has_else { all.unwrap_or(before) } else { before };
    }

    /// What variables depend on that are used.
    fn taint(&mut self, slots: &[Slot]) -> Taint {
        for slot in slots {
            self.note_use(*slot);
        }
        self.sources(slots)
    }

    /// Notes a use of a variable.
    fn note_use(&mut self, slot: Slot) {
        let columns = self.columns_in(slot);
        self.flows.values.note_use(slot, columns);
    }

    /// The columns of which a variable has a value, or one computed from it.
    fn columns_in(&mut self, slot: Slot) -> Vec<ReadValue> {
        if !self.values.contains_key(&slot) {
            self.flows.values.inherited.insert(slot);
        }
        let sources = self.values.get(&slot).into_iter().flatten();
        sources.filter_map(|source| Some((source.node, source.column.as_ref()?.name.clone()))).collect()
    }

    /// The variable that an expression changes by something, if it has a column's value as it is.
    fn changed(&self, expr: &Expr) -> Option<Changed> {
        let (of, addend) = expr.change().filter(|_| self.control.is_empty())?;
        let (by, variable) = match addend.of {
            Amount::Integer(number) => (number.to_string(), None),
            Amount::Variable(by) => (format!(":{}", self.symbols.name(by)), Some((by, self.time(by)))),
        };
        let sign = if addend.minus { '-' } else { '+' };
        let raises = matches!(addend, Addend { minus: false, of: Amount::Integer(1..) });
        let raised = raises.then(|| (of, self.time(of)));
        Some(Changed {
            raised,
            of: self.value_of(of)?.clone(),
            text: format!(" {sign} {by}"),
            variable,
            time: 0,
        })
    }

    fn note_change(&mut self, slot: Slot, changed: Option<Changed>) {
        match changed {
            Some(changed) => self.changes.insert(slot, Changed { time: self.time(slot), ..changed }),
            None => self.changes.remove(&slot),
        };
    }

    fn time(&self, slot: Slot) -> usize {
        self.times.get(&slot).copied().unwrap_or_default()
    }

    /// The column whose value a variable has as it is.
    fn value_of(&self, slot: Slot) -> Option<&Source> {
        let sources = self.values.get(&slot).filter(|sources| sources.len() == 1)?;
        sources.first().filter(|source| source.column.is_some() && !source.computed)
    }

    fn raises(&self, examiner: &Examiner<'_>, passage: &Passage) -> BTreeSet<String> {
        let Some((assignments, _)) = examiner.assignments() else { return BTreeSet::new() };
        // A version has the number of the transaction that wrote it.
        let own = std::iter::once("xmin".to_owned());
        let raised = |assignment: &Assignment| {
            let required = |slot: Slot| {
                passage
                    .tests
                    .iter()
                    .any(|(tested, column)| *tested == slot && column.name == assignment.column)
            };
            let from = match (assignment.raised, assignment.whole()) {
                (Some(Raised::Itself), _) => return true,
                (Some(Raised::Variable(slot)), _) => Some(slot),
                // A variable that was raised before.
                (None, Some(whole)) => self
                    .changes
                    .get(&whole)
                    .filter(|changed| changed.time == self.time(whole))
                    .and_then(|changed| changed.raised)
                    .filter(|(slot, time)| self.time(*slot) == *time)
                    .map(|(slot, _)| slot),
                (None, None) => None,
            };
            from.is_some_and(required)
        };
        let columns = assignments.into_iter().filter(raised).map(|assignment| assignment.column);
        columns
            .filter(|column| self.is_integer(passage, column) && !self.is_set_by_triggers(passage, column))
            .chain(own)
            .collect()
    }

    /// True if adding a number to a column's values gives another one, always: to infinity and large numbers of
    /// floating point it doesn't.
    fn is_integer(&self, passage: &Passage, column: &str) -> bool {
        let Some(table) = passage.target else { return false };
        let relation = &self.catalog.relations[table];
        relation.column(column).is_some_and(|at| relation.columns[at].kind == ColumnType::Integer)
    }

    /// True if triggers may give a column another value than the UPDATE.
    fn is_set_by_triggers(&self, passage: &Passage, column: &str) -> bool {
        passage.target.is_some_and(|table| self.catalog.triggers(table).on_update.contains(column))
    }

    /// How an UPDATE of a row could be written that was read before.
    fn rewritten(&self, examiner: &Examiner<'_>, row: Option<&Row>) -> Option<Rewritten> {
        let row = row?;
        let (assignments, place) = examiner.assignments()?;
        let is_own = |source: &Source, column: &str| {
            let origin = &self.flows.nodes[source.node];
            let same = source.column.as_ref().is_some_and(|read| read.name == column);
            same && !origin.writes && origin.row.as_ref() == Some(row)
        };
        let assigned = assignments.into_iter().map(|assignment| {
            let own = |slot: Slot| self.value_of(slot).filter(|source| is_own(source, &assignment.column));
            let change = |slot: Slot| {
                let changed = self.changes.get(&slot).filter(|changed| changed.time == self.time(slot))?;
                let unchanged = changed.variable.is_none_or(|(by, time)| self.time(by) == time);
                (unchanged && is_own(&changed.of, &assignment.column)).then(|| changed.text.clone())
            };
            let returned = |slot: Slot| {
                own(slot).is_some_and(|source| self.flows.nodes[source.node].transaction == self.transaction)
            };
            let assigned = match assignment.whole() {
                Some(slot) if returned(slot) => Assigned::LeftOut,
                whole => {
                    let relative = assignment.added.iter().find_map(|(slot, at)| {
                        let after = own(*slot).filter(|_| whole.is_none()).map(|_| String::new());
                        Some(Assigned::Relative(*at, after.or_else(|| change(*slot))?))
                    });
                    relative.unwrap_or(Assigned::Kept)
                }
            };
            (assignment, assigned)
        });
        examiner.with_assignments(&assigned.collect::<Vec<_>>(), &place)
    }

    /// What variables depend on.
    fn sources(&self, slots: &[Slot]) -> Taint {
        slots.iter().filter_map(|slot| self.values.get(slot)).flatten().cloned().collect()
    }

    /// What decided that the present command is executed.
    fn decided_by(&self) -> Taint {
        self.control.iter().flatten().cloned().collect()
    }

    fn assign(&mut self, slot: Slot, mut taint: Taint) {
        *self.times.entry(slot).or_default() += 1;
        self.settled.insert(slot);
        if self.control.is_empty() {
            self.values.insert(slot, taint);
        } else {
            taint.extend(self.decided_by());
            self.values.entry(slot).or_default().extend(taint);
        }
    }

    fn sql(&mut self, (script, command): (usize, usize), at: &StatementPlace, sql: &Sql) {
        let text = Text::scan(sql);
        let ranges = text.as_ref().map(Text::statements).unwrap_or_default();
        let split = ranges.len() == sql.statements.len();
        if !self.in_block && !self.in_pipeline {
            self.transaction += 1;
        }
        for (place, kind) in sql.statements.iter().enumerate() {
            let Examined { finding, passage, adds_to, row, rewritten, raises } = match &text {
                Some(text) if split => self.examine(text, ranges[place].clone()),
                _ => not_understood(sql),
            };
            let mut after = 0;
            match kind {
                Kind::Begin if !self.in_block => {
                    self.transaction += usize::from(!self.in_pipeline);
                    self.in_block = true;
                }
                Kind::Commit | Kind::Rollback => {
                    self.in_block =
                        text.as_ref().filter(|_| split).is_some_and(|text| chains(text, &ranges[place]));
                    // What follows is another transaction; this statement still counts for the one it ends.
                    after = usize::from(self.in_block || self.in_pipeline);
                }
                _ => {}
            }
            let alone = sql.statements.len() == 1;
            let plain = passage.plain;
            let shown = passage.gives.iter().flatten().filter_map(|given| given.column.as_ref());
            let node = Node {
                script,
                command,
                place: u32::try_from(place).unwrap_or(u32::MAX),
                at: at.clone(),
                transaction: self.transaction,
                verb: passage.verb.clone(),
                writes: passage.writes || writes(&finding),
                reads: self.reads(&finding),
                written: self.written(&finding),
                adds_to,
                conditional: passage.conditional,
                uses: passage.uses.clone(),
                // Cascades and triggers change what the statement doesn't name.
                sets: passage.sets.clone().filter(|_| !finding.writes_anything && finding.unseen.is_empty()),
                kept_up: passage.kept_up.clone(),
                keys: keys(&finding, self.catalog),
                taken: if alone { taken(sql, &passage, self.symbols) } else { Vec::new() },
                shown: shown.fold(Counted::new(), |mut shown, column| {
                    *shown.entry(column.name.clone()).or_default() += 1;
                    shown
                }),
                stored: alone && sql.store != Store::None,
                plain,
                sure: self.control.is_empty(),
                rewritten,
                raises,
                row,
            };
            self.transaction += after;
            for (slot, _) in &passage.takes {
                self.note_use(*slot);
            }
            self.note_returned(&node, &passage);
            self.flow_into(node, &passage);
            if sql.computes_elsewhere() {
                self.flow_from_all_reads();
            }
            let last = place + 1 == sql.statements.len();
            match &sql.store {
                Store::Gset { prefix } if last => self.give(&passage, prefix, true),
                Store::Aset { prefix } => self.give(&passage, prefix, false),
                _ => {}
            }
        }
    }

    fn examine(&self, text: &Text<'_>, range: Range<usize>) -> Examined {
        let surroundings = Surroundings::default();
        let examiner = || Examiner::new(self.catalog, &surroundings, text, range.clone());
        let passage = examiner().passage();
        let row = self.row(&passage);
        Examined {
            raises: self.raises(&examiner(), &passage),
            rewritten: self.rewritten(&examiner(), row.as_ref()),
            row,
            passage,
            adds_to: examiner().only_inserts().and_then(|table| self.rows_of(table)),
            finding: examiner().examine(),
        }
    }

    /// The tables that a statement reads; `None` if it may read any.
    fn reads(&self, finding: &Finding) -> Option<BTreeSet<String>> {
        let shown = finding.shown.iter().map(|shown| self.rows_of(shown.table));
        let dark = finding.dark.iter().map(|dark| match dark.hides() {
            Hides::ReadsOf(table) => self.rows_in(table),
            Hides::Reads => None,
            Hides::All => self.rows_in(dark.table()?),
        });
        shown.chain(dark).collect()
    }

    /// The tables that a statement writes; `None` if it may write any.
    fn written(&self, finding: &Finding) -> Option<BTreeSet<String>> {
        if finding.writes_anything {
            return None;
        }
        let shown = finding.shown.iter().filter(|shown| shown.role != Role::Read).map(|shown| shown.table);
        let named = shown.chain(finding.unseen.iter().copied()).map(|table| self.rows_of(table));
        let dark = finding.dark.iter().filter_map(|dark| dark.table().map(|table| self.rows_in(table)));
        named.chain(dark).collect()
    }

    fn rows_of(&self, table: RelationId) -> Option<String> {
        self.rows_in(&self.catalog.relations[table].qualified())
    }

    /// The table where the rows of a relation are, by its name; `None` if they may be any table's.
    fn rows_in(&self, name: &str) -> Option<String> {
        self.flows.rows_of.get(name).cloned()
    }

    /// The row that a statement finds by its key.
    fn row(&self, passage: &Passage) -> Option<Row> {
        let (table, key) = passage.row.as_ref()?;
        let value = |(place, (name, operand)): (usize, &(String, Operand))| match operand {
            Operand::Literal(text) => KeyValue::Literal(text.clone()),
            Operand::Variable(slot) => {
                self.key_read(*slot, &ColumnName { table: *table, name: name.clone() }, place).unwrap_or_else(
                    || KeyValue::Variable(*slot, self.times.get(slot).copied().unwrap_or_default()),
                )
            }
        };
        Some((*table, key.iter().enumerate().map(value).collect()))
    }

    /// The value of a variable that has the key of a row as a statement found it, by just that key.
    fn key_read(&self, slot: Slot, column: &ColumnName, place: usize) -> Option<KeyValue> {
        let sources = self.values.get(&slot).filter(|sources| sources.len() == 1)?;
        let source =
            sources.first().filter(|source| !source.computed && source.column.as_ref() == Some(column))?;
        let (table, key) = self.flows.nodes[source.node].row.as_ref()?;
        key.get(place).filter(|_| *table == column.table).cloned()
    }

    /// Notes the values that a statement writes back where its transaction read them.
    fn note_returned(&mut self, node: &Node, passage: &Passage) {
        let to = self.flows.nodes.len();
        for (column, slot) in &passage.assigns {
            if self.is_set_by_triggers(passage, column) {
                continue;
            }
            let Some(sources) = self.values.get(slot).filter(|sources| sources.len() == 1) else { continue };
            let Some(Source { node: from, column: Some(read), computed: false }) = sources.first() else {
                continue;
            };
            let origin = &self.flows.nodes[*from];
            let here = node.row.is_some() && node.row == origin.row;
            if here && origin.transaction == node.transaction && read.name == *column {
                self.flows.values.returned.entry((*from, column.clone())).or_default().push(to);
            }
        }
    }

    /// Adds a statement, and the flows into it if it writes.
    fn flow_into(&mut self, node: Node, passage: &Passage) {
        let to = self.flows.nodes.len();
        if node.writes {
            // Of which statement's row a column is as it was.
            let tests = passage.tests.iter().filter(|(_, column)| {
                let same = self.catalog.equal_is_same(column.table, &column.name);
                passage.conditional && node.row.is_some() && same
            });
            let tested: Vec<(usize, ColumnName)> = tests
                .flat_map(|(slot, column)| {
                    let as_read = self.values.get(slot).filter(|sources| sources.len() == 1);
                    let same = |source: &&Source| {
                        source.column.as_ref() == Some(column)
                            && !source.computed
                            && self.flows.nodes[source.node].row == node.row
                    };
                    as_read.into_iter().flatten().filter(same).map(|source| (source.node, column.clone()))
                })
                .collect();
            let edge = |source: &Source, how: Dependence, address: bool| {
                let from = &self.flows.nodes[source.node];
                // What a transaction wrote itself is known to it; a key doesn't change.
                let key = source.column.as_ref().is_some_and(|column| self.is_key(column));
                let own = from.writes && from.transaction == node.transaction;
                let of_row = tested.iter().filter(|(read, _)| *read == source.node);
                Edge {
                    from: source.node,
                    to,
                    how,
                    column: source.column.clone(),
                    tested: of_row.map(|(_, column)| (column.clone(), self.rows_of(column.table))).collect(),
                    ages: !own && !key && !address,
                }
            };
            // A variable that a column has to equal only says which row is meant.
            let addresses = |slot: &Slot| passage.tests.iter().any(|(tested, _)| tested == slot);
            let taken = passage.takes.iter().flat_map(|(slot, value)| {
                let how = if *value { Dependence::Value } else { Dependence::Decision };
                let address = !value && addresses(slot);
                self.values.get(slot).into_iter().flatten().map(move |source| (source, how, address))
            });
            let decided = self.control.iter().flatten().map(|source| {
                // Who overwrites a row because of what it read in it has made the one from the other.
                let table = source.column.as_ref().map(|column| column.table);
                let same = table.is_some() && table == passage.target;
                (source, if same { Dependence::Value } else { Dependence::Decision }, false)
            });
            let used = passage.takes.iter().filter(|(slot, value)| *value || !addresses(slot));
            let used: Vec<Slot> = used.map(|(slot, _)| *slot).collect();
            let edges: Vec<Edge> =
                taken.chain(decided).map(|(source, how, address)| edge(source, how, address)).collect();
            self.flows.edges.extend(edges);
            self.note_older(&used);
        }
        self.flows.nodes.push(node);
    }

    /// Adds flows into the last statement, if it writes, from all that its transaction read before.
    fn flow_from_all_reads(&mut self) {
        let Some((node, before)) = self.flows.nodes.split_last().filter(|(node, _)| node.writes) else {
            return;
        };
        let of_transaction = before.iter().enumerate().filter(|(_, other)| {
            other.transaction == node.transaction
                && other.reads.as_ref().is_none_or(|reads| !reads.is_empty())
        });
        let edge = |(from, _)| Edge {
            from,
            to: before.len(),
            how: Dependence::Value,
            column: None,
            tested: BTreeMap::new(),
            ages: true,
        };
        self.flows.edges.extend(of_transaction.map(edge));
    }

    fn is_key(&self, column: &ColumnName) -> bool {
        self.catalog.relations[column.table].key_names().contains(&column.name.as_str())
    }

    /// The result of the last statement goes into variables.
    fn give(&mut self, passage: &Passage, prefix: &str, always: bool) {
        let Some(node) = self.flows.nodes.len().checked_sub(1) else { return };
        let taken: Vec<Slot> = passage.takes.iter().map(|(slot, _)| *slot).collect();
        let through = self.sources(&taken);
        let given: Vec<(Slot, Option<ColumnName>)> = match &passage.gives {
            Some(given) => given
                .iter()
                .filter_map(|one| {
                    let slot = self.symbols.lookup(&format!("{prefix}{}", one.name))?;
                    Some((slot, one.column.clone()))
                })
                .collect(),
            // Any variable that nothing else assigns may be a column of it.
            None => self
                .symbols
                .names()
                .filter(|name| name.starts_with(prefix))
                .filter_map(|name| self.symbols.lookup(name))
                .filter(|slot| !self.assigned.contains(slot))
                .map(|slot| (slot, None))
                .collect(),
        };
        for (slot, column) in given {
            if let Some(column) = &column {
                self.flows.values.given.entry(slot).or_default().push((node, column.name.clone()));
            }
            let is_key = column.as_ref().is_some_and(|column| self.is_key(column));
            self.flows.handed.entry(slot).or_default().push((node, is_key));
            let mut taint = through.clone();
            taint.insert(Source { node, column, computed: false });
            if always {
                self.assign(slot, taint);
            } else {
                // Without a row the variable stays as it was.
                taint.extend(self.decided_by());
                self.values.entry(slot).or_default().extend(taint);
            }
        }
    }
}

/// What a value depends on that is computed from others.
fn computed(taint: Taint) -> Taint {
    taint.into_iter().map(|source| Source { computed: true, ..source }).collect()
}

fn condition(branch: &Branch) -> Vec<Slot> {
    branch.cond.as_ref().map(Expr::variables).unwrap_or_default()
}

fn shell_variables(args: &[isobench_script::Argument]) -> Vec<Slot> {
    let variable = |argument: &isobench_script::Argument| match argument {
        isobench_script::Argument::Variable(slot) => Some(*slot),
        isobench_script::Argument::Literal(_) => None,
    };
    args.iter().filter_map(variable).collect()
}

/// What is assumed of a command that can't be split into statements.
fn not_understood(sql: &Sql) -> Examined {
    let finding = Finding { dark: vec![Dark::NotUnderstood], writes_anything: true, ..Finding::default() };
    let takes = sql.params.iter().map(|slot| (*slot, true)).collect();
    let passage = Passage { verb: "STATEMENT".to_owned(), takes, writes: true, ..Passage::default() };
    Examined { finding, passage, adds_to: None, row: None, rewritten: None, raises: BTreeSet::new() }
}

fn writes(finding: &Finding) -> bool {
    finding.writes_anything
        || !finding.unseen.is_empty()
        || finding.shown.iter().any(|shown| shown.role != Role::Read)
}

/// The names of the keys of the tables whose rows a statement shows.
fn keys(finding: &Finding, catalog: &Catalog) -> BTreeSet<String> {
    let tables = finding.shown.iter().map(|shown| &catalog.relations[shown.table]);
    tables.flat_map(|relation| relation.key_names().into_iter().map(str::to_owned)).collect()
}
