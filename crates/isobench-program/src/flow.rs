//! The flow of values through scripts: which statement's result goes, through variables, into what
//! another one writes, or into the decision whether it writes; and what could matter of what isn't
//! seen.
//!
//! A script is read once, from its first command to its last. What a branch assigns may have been
//! assigned; a value assigned before it may still be there. Where the script may not have assigned a variable,
//! its value is an older one, of any script that gives it one.

mod columns;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::observed::{Dependence, Flow, StatementUse, Unchanged};
use isobench_observation::{Dark, HiddenRows};
use isobench_robustness::Columns;
use isobench_script::{CommandKind, Script, Slot, Symbols};
use isobench_sql::{Catalog, RelationId, RelationKind, Unobservable};

use crate::statement::{Access, ColumnName, Counted, Deed, Given, Passage, Rewritten};
use columns::{Row, Taken, Values};
use walk::Walk;

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
    /// It only decides whether the statement is executed.
    pub decides: bool,
}

#[derive(Debug, Clone)]
struct Node {
    script: usize,
    command: usize,
    place: u32,
    at: StatementPlace,
    /// The number of its transaction, among all that the scripts have.
    transaction: usize,
    /// The values that pass through it.
    passage: Passage,
    writes: bool,
    /// The tables that it reads; `None` if it may read any.
    reads: Option<BTreeSet<String>>,
    /// The tables that it writes; `None` if it may write any.
    written: Option<BTreeSet<String>>,
    /// The table to which it only adds rows, whatever is in it.
    adds_to: Option<String>,
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
            Walk::new(&mut flows, (catalog, symbols), script).script(number, script);
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
        let used = self.nodes.iter().filter_map(|node| node.passage.uses.as_ref()).flat_map(Counted::keys);
        let names = used.chain(self.nodes.iter().filter_map(|node| node.passage.sets.as_ref()).flatten());
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
            guarded: own.passage.conditional,
            product: !self.writes(own.transaction),
            flows_unseen: edges().filter(within).any(|edge| !numbers.contains_key(&edge.to)),
            into: edges().filter(within).filter_map(flow).collect(),
            carried: edges().filter(|edge| self.carries(edge)).filter_map(flow).collect(),
            uses: own.passage.uses.as_ref().and_then(|uses| {
                let product = !self.surely_writes(own.transaction);
                let counts = |column: &&String| own.writes || product || !self.is_idle(node, column);
                uses.keys().filter(counts).map(number).collect()
            }),
            changes: own.passage.sets.as_ref().and_then(|sets| sets.iter().map(number).collect()),
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
        let raises = |node: &Node| {
            node.passage.verb == "UPDATE" && node.written.is_some() && node.raises.contains(column)
        };
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

    /// The number of a statement's transaction, by its number among all of the scripts' statements.
    pub(crate) fn transaction(&self, statement: usize) -> usize {
        self.nodes.get(statement).map_or(usize::MAX, |node| node.transaction)
    }

    /// The columns of a statement's result, by its number among all of the scripts' statements; `None` if they aren't
    /// known.
    pub(crate) fn gives(&self, statement: usize) -> Option<Vec<Given>> {
        self.nodes.get(statement)?.passage.gives.clone()
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
        self.nodes.get(update).is_some_and(|node| !node.passage.kept_up.is_empty())
            || self.edges.iter().any(follows)
    }

    /// True if a statement sets columns to what follows from what an earlier one read.
    pub(crate) fn follows(&self, update: usize) -> bool {
        let of_value = |edge: &Edge| edge.to == update && edge.from < update && edge.ages;
        self.edges.iter().any(|edge| of_value(edge) && edge.how == Dependence::Value)
    }

    /// True if what an earlier statement read decides whether a statement is executed.
    pub(crate) fn is_decided(&self, statement: usize) -> bool {
        let decides = |edge: &Edge| edge.to == statement && edge.from < statement && edge.ages;
        self.edges.iter().any(|edge| decides(edge) && edge.how == Dependence::Decision)
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
        let only_shown =
            node.passage.uses.as_ref().is_some_and(|uses| uses.get(column) == node.shown.get(column));
        let unused = !self.values.used.contains_key(&(statement, column.clone()));
        node.stored && node.passage.plain && only_shown && unused
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
            given.filter(ages).map(move |(from, _)| (*from, (*to).min(self.nodes.len() - 1), false))
        });
        let within = self
            .edges
            .iter()
            .filter(|edge| self.carries(edge))
            .map(|edge| (edge.from, edge.to, edge.how == Dependence::Decision));
        for (from, to, decides) in within.chain(of_runs) {
            let (read, written) = (self.nodes[from].at.clone(), self.nodes[to].at.clone());
            match found.iter_mut().find(|known| known.read == read && known.written == written) {
                Some(known) => known.decides &= decides,
                None => found.push(Carried { read, written, decides }),
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
            return Some(format!("is {} that isn't seen wholly", article(&node.passage.verb)));
        }
        let into = |edge: &&Edge| edge.from == statement;
        let mut targets = self.edges.iter().filter(into).map(|edge| (edge.how, &self.nodes[edge.to]));
        let said = |(how, to): (Dependence, &Node)| match how {
            Dependence::Decision => format!("decides {}", article(&to.passage.verb)),
            Dependence::Value => format!("flows into {}", article(&to.passage.verb)),
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
            HiddenRows::ReadsOf(table) => self.may_change_in(node, table),
            HiddenRows::Reads => self.nodes.iter().any(|node| node.writes),
            HiddenRows::All if node.writes => !self.is_added_to_only(dark),
            // Of a statement that only reads nothing is seen.
            HiddenRows::All => self.may_change(node),
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
        self.passage.uses.as_ref().zip(other.passage.sets.as_ref()).is_some_and(apart)
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
