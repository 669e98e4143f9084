//! Mistakes that no level prevents, as far as the texts of scripts show them: a reader that remembers how far it came,
//! a lease that is written for after it has ended, a number that a client counts for itself.
//!
//! A finding says that something *may* go wrong. Without one, nothing is said.

mod lease;
mod watermark;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use isobench_robustness::StatementId;
use isobench_script::{Command, CommandKind, Script, Slot, Store, Symbols};
use isobench_sql::{Bound, BoundRelation, Catalog, Placed, Relation, Text};

use crate::flow::Flows;
use crate::statement::Statement;

/// A mistake that no level prevents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beyond {
    /// A statement reads the rows above a value that the script remembers, and rows with smaller values may be
    /// committed later.
    Watermark {
        /// The statement.
        read: StatementId,
        /// The table.
        table: String,
        /// The column that is compared.
        column: String,
        /// The order of its values.
        order: Order,
    },
    /// A transaction claims a row, and a later one writes without testing the claim, which may have passed to another
    /// transaction.
    Lease {
        /// The statement that claims.
        claim: StatementId,
        /// The table.
        table: String,
        /// The column with the time or the owner.
        column: String,
        /// The first statement that writes later.
        write: StatementId,
    },
    /// A statement writes a number that each client counts for itself.
    Counter {
        /// The line on which it is counted.
        line: u32,
        /// The name of the variable.
        variable: String,
        /// The statement that writes it.
        write: StatementId,
    },
}

/// How values come into an order that isn't that of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A sequence gives numbers.
    Sequence,
    /// A clock gives times.
    Clock,
}

/// A statement with what the server says of it.
struct One<'a> {
    statement: Statement<'a>,
    bound: &'a Bound,
    at: StatementId,
    script: usize,
    /// Its command.
    command: usize,
    /// The number of its transaction, among all that the scripts have.
    transaction: usize,
    /// What its result's columns become, by their numbers.
    gives: Vec<Option<Slot>>,
    /// All names in it.
    names: BTreeSet<String>,
}

/// A statement of which the server says nothing: LOCK, for example.
static NOTHING: LazyLock<Bound> = LazyLock::new(Bound::default);

/// A column of a relation, by OID and number.
type ColumnNumber = (u32, i32);

/// What texts show of mistakes that no level prevents, in the order of the scripts.
pub(crate) fn beyond(scripts: &[Script], symbols: &Symbols, catalog: &Catalog, flows: &Flows) -> Vec<Beyond> {
    let texts: Vec<Vec<Option<Text<'_>>>> =
        scripts.iter().map(|script| script.commands.iter().map(scanned).collect()).collect();
    let all = statements(scripts, &texts, symbols, catalog, flows);
    let mut found = watermark::find(&all, catalog);
    found.extend(lease::find(&all, catalog));
    for (number, script) in scripts.iter().enumerate() {
        found.extend(counters(number, script, &all, symbols));
    }
    found
}

/// The text of a command of SQL.
fn scanned(command: &Command) -> Option<Text<'_>> {
    match &command.kind {
        CommandKind::Sql(sql) => Text::scan(sql),
        _ => None,
    }
}

/// All statements, as far as they can be split.
fn statements<'a>(
    scripts: &'a [Script],
    texts: &'a [Vec<Option<Text<'a>>>],
    symbols: &Symbols,
    catalog: &'a Catalog,
    flows: &Flows,
) -> Vec<One<'a>> {
    let (mut all, mut number) = (Vec::new(), 0);
    for (script, parsed) in scripts.iter().enumerate() {
        for (command, one) in parsed.commands.iter().enumerate() {
            let CommandKind::Sql(sql) = &one.kind else { continue };
            let first = number;
            number += sql.statements.len();
            let Some(text) = &texts[script][command] else { continue };
            let ranges = text.statements();
            let count = ranges.len();
            if count != sql.statements.len() {
                continue;
            }
            for (place, range) in ranges.into_iter().enumerate() {
                let prefix = match &sql.store {
                    Store::Gset { prefix } if place + 1 == count => Some(prefix),
                    Store::Aset { prefix } => Some(prefix),
                    _ => None,
                };
                let statement = Statement::new(catalog, text, range.clone());
                let bound = *statement.bound.as_ref().unwrap_or(&&*NOTHING);
                let slot = |name: &str| symbols.lookup(&format!("{}{name}", prefix?));
                all.push(One {
                    gives: bound.outputs.iter().map(|output| slot(&output.name)).collect(),
                    names: text.tokens[range].iter().filter_map(Placed::name).collect(),
                    statement,
                    bound,
                    at: StatementId { script: parsed.name.clone(), line: one.line, place },
                    script,
                    command,
                    transaction: flows.transaction(first + place),
                });
            }
        }
    }
    all
}

impl<'a> One<'a> {
    /// True if it changes rows.
    fn writes(&self) -> bool {
        self.bound.relations.iter().any(changes)
    }

    /// The relations that it names, as the catalog has them.
    fn relations(&self, catalog: &'a Catalog) -> impl Iterator<Item = (&'a BoundRelation, &'a Relation)> {
        let known = |relation: &'a BoundRelation| {
            Some((relation, &catalog.relations[catalog.relation_of(relation)?]))
        };
        self.bound.relations.iter().filter_map(known)
    }

    /// The columns to which it gives values.
    fn given(&self) -> BTreeSet<ColumnNumber> {
        let of = |relation: &BoundRelation| {
            let oid = relation.oid;
            let numbers = relation.updated.iter().chain(&relation.inserted);
            numbers.map(move |number| (oid, *number)).collect::<Vec<_>>()
        };
        self.bound.relations.iter().flat_map(of).collect()
    }

    /// The tokens of the statement.
    fn tokens(&self) -> &'a [Placed] {
        &self.statement.text.tokens[self.statement.range.clone()]
    }
}

/// True if a statement changes rows of a relation where it names it.
fn changes(relation: &BoundRelation) -> bool {
    relation.inserts || relation.updates || relation.deletes || relation.merges
}

/// The numbers that clients of a script count for themselves, and write.
fn counters(number: usize, script: &Script, all: &[One<'_>], symbols: &Symbols) -> Vec<Beyond> {
    let (mut assigned, mut found) = (BTreeSet::new(), Vec::new());
    for (command, one) in script.commands.iter().enumerate() {
        match &one.kind {
            CommandKind::Set { slot, expr } => {
                let counts = expr.change().is_some_and(|(of, _)| of == *slot);
                if assigned.insert(*slot) && counts {
                    let writes = |other: &&One<'_>| {
                        let takes = || other.statement.passage().takes;
                        other.script == number && other.writes() && takes().contains(&(*slot, true))
                    };
                    let write = all.iter().filter(|other| other.command != command).find(writes);
                    found.extend(write.map(|write| Beyond::Counter {
                        line: one.line,
                        variable: symbols.name(*slot).to_owned(),
                        write: write.at.clone(),
                    }));
                }
            }
            CommandKind::SetShell { slot, .. } => drop(assigned.insert(*slot)),
            CommandKind::Sql(_) => {
                let own = all.iter().filter(|other| (other.script, other.command) == (number, command));
                assigned.extend(own.flat_map(|other| other.gives.iter().copied().flatten()));
            }
            _ => {}
        }
    }
    found
}
