//! What is read in one transaction of a request and written in a later one: no level protects that.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_replay::{Recorded, Transaction};
use isobench_robustness::{Columns, Kind as Does, Operation};

use crate::programs::Programs;
use crate::suspect::Kind;
use crate::template::{Run, Template, is_write, runs, templates_of};
use crate::touched::{meet, writes};

/// The longest pause between transactions of a connection that count as one request, in microseconds.
const LONGEST_PAUSE: u64 = 1_000_000;

/// How many transactions before a write are looked at.
const BACK: usize = 20;

/// A value that is read in one transaction, and a write in a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// A lost update, or a duplicate.
    pub kind: Kind,
    /// The number of the template that reads, and of the one that writes.
    pub templates: [usize; 2],
    /// Their statements.
    pub steps: [usize; 2],
    /// The table.
    pub table: String,
    /// The columns that are read, and then written; empty for a row that is inserted.
    pub columns: BTreeSet<String>,
    /// How often it was recorded.
    pub count: u64,
    /// The route of one such request.
    pub route: Option<String>,
    /// True if a trace says that they are of one request; else they follow one another on a connection.
    pub traced: bool,
}

/// The templates of a capture, and what is carried between their transactions once there are programs.
pub struct History<'a> {
    pub(crate) recorded: &'a Recorded,
    /// The templates.
    pub templates: Vec<Template>,
    /// The number of the template of each transaction.
    pub(crate) numbers: Vec<Option<usize>>,
    /// The same of [`Recorded::beyond`].
    pub(crate) beyond: Vec<Option<usize>>,
}

impl<'a> History<'a> {
    /// Finds the templates. `default`: the level of sessions that set none.
    pub fn of(recorded: &'a Recorded, default: Level) -> History<'a> {
        let (templates, mut numbers) = templates_of(recorded, default);
        let beyond = numbers.split_off(recorded.transactions.len());
        History { recorded, templates, numbers, beyond }
    }

    /// What is read in one transaction and written in a later one of the same request, the most frequent first.
    pub fn carried(&self, programs: &Programs) -> Vec<Carried> {
        let mut found: BTreeMap<(usize, usize, String), Carried> = BTreeMap::new();
        // How often a kind wrote after another kind that reads its tables.
        let mut followed: BTreeMap<[usize; 2], u64> = BTreeMap::new();
        for request in self.requests().into_iter().filter(|request| request.len() > 1) {
            for (place, later) in request.iter().enumerate() {
                let Some(written) = self.writing(*later, programs) else { continue };
                let (mut seen, mut before) = (BTreeSet::new(), None);
                for earlier in request[..place].iter().rev().take(BACK) {
                    let (Some(first), Some(second)) = (self.numbers[*earlier], self.numbers[*later]) else {
                        continue;
                    };
                    let traced = self.recorded.transactions[*later].request.is_some();
                    let last = seen.insert(first);
                    if last {
                        *followed.entry([first, second]).or_default() += 1;
                    }
                    // Of each kind those count that come last, one after another.
                    if last || traced || before == Some(first) {
                        self.compare(*earlier, *later, &written, programs, &mut found);
                    }
                    before = Some(first);
                }
            }
        }
        // Connections of a pool serve one request after another. Who reads what it then writes mostly does so.
        let is_usual = |one: &Carried| one.traced || 3 * one.count >= 2 * followed[&one.templates];
        let mut found: Vec<Carried> = found.into_values().filter(is_usual).collect();
        found.sort_by(|a, b| (a.kind, b.count, a.templates).cmp(&(b.kind, a.count, b.templates)));
        found
    }

    /// The transactions of each request, in order: those of a trace, or those that follow one another on a
    /// connection within a second.
    pub(crate) fn requests(&self) -> Vec<Vec<usize>> {
        let mut traced: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut sessions: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut found = Vec::new();
        for (number, one) in self.recorded.transactions.iter().enumerate() {
            if let Some(request) = &one.request {
                traced.entry(request).or_default().push(number);
                continue;
            }
            let own = sessions.entry(one.session).or_default();
            let before = own.last().map(|last: &usize| end(&self.recorded.transactions[*last]));
            if before.is_some_and(|before| one.at.saturating_sub(before) > LONGEST_PAUSE) {
                found.push(std::mem::take(own));
            }
            own.push(number);
        }
        found.extend(traced.into_values().chain(sessions.into_values()));
        found
    }

    /// What a transaction writes, with its statements as they ran, if it writes.
    fn writing(&self, transaction: usize, programs: &Programs) -> Option<Vec<Run>> {
        let number = self.numbers[transaction]?;
        let program = programs.program(number)?;
        let mut operations = program.branches.iter().flat_map(|branch| &branch.operations);
        operations.any(writes).then(|| runs(&self.recorded.transactions[transaction]))
    }

    fn compare(
        &self,
        earlier: usize,
        later: usize,
        written: &[Run],
        programs: &Programs,
        found: &mut BTreeMap<(usize, usize, String), Carried>,
    ) {
        let (Some(first), Some(second)) = (self.numbers[earlier], self.numbers[later]) else { return };
        let reads =
            operations(first, programs, |one| !writes(one) && matches!(one.kind, Does::Read | Does::Search));
        let changes = operations(second, programs, writes);
        if !reads.iter().any(|(_, read)| changes.iter().any(|(_, write)| read.table == write.table)) {
            return;
        }
        let seen = runs(&self.recorded.transactions[earlier]);
        for (own, write) in &changes {
            for (step, read) in reads.iter().filter(|(_, read)| read.table == write.table) {
                let key = (first, second, write.table.clone());
                let Some((kind, columns)) = self.carries(
                    [first, second],
                    programs,
                    (*step, *read, &seen[..]),
                    (*own, *write, written),
                ) else {
                    continue;
                };
                let transaction = &self.recorded.transactions[later];
                let entry = found.entry(key).or_insert_with(|| Carried {
                    kind,
                    templates: [first, second],
                    steps: [*step, *own],
                    table: write.table.clone(),
                    columns: BTreeSet::new(),
                    count: 0,
                    route: transaction.route.clone(),
                    traced: transaction.request.is_some(),
                });
                entry.columns.extend(columns);
                entry.count += 1;
                return;
            }
        }
    }

    /// What a write depends on that a read of an earlier transaction saw, if it is of the same row.
    fn carries(
        &self,
        templates: [usize; 2],
        programs: &Programs,
        (step, read, seen): (usize, &Operation, &[Run]),
        (own, write, written): (usize, &Operation, &[Run]),
    ) -> Option<(Kind, BTreeSet<String>)> {
        let verb = |template: usize, step: usize| self.templates[template].statements[step].normal.verb();
        if is_write(&verb(templates[0], step)) {
            return None;
        }
        // Its own transaction reads the table again: then that read decides.
        let reads_again = operations(templates[1], programs, |one| {
            one.table == read.table && meet(&one.reads, &read.reads) && !writes(one)
        });
        let again =
            reads_again.iter().any(|(other, _)| *other < own && !is_write(&verb(templates[1], *other)));
        if again {
            return None;
        }
        let of_read = || seen.iter().filter(|run| run.step == step);
        let of_write = || written.iter().filter(|run| run.step == own);
        match write.kind {
            Does::Insert => {
                let none = of_read().any(|run| run.rows == Some(0) || counted_none(run));
                let same = |run: &Run| -> BTreeSet<String> {
                    let again = |pair: &&(String, String)| of_write().any(|own| own.assigned.contains(pair));
                    run.compared.iter().filter(again).map(|(column, _)| column.clone()).collect()
                };
                let same: BTreeSet<String> = of_read().flat_map(same).collect();
                // The unique key that is looked for keeps a second row out.
                let guarded = programs.are_unique(&write.table, &same);
                (!guarded && none && !same.is_empty()).then(|| (Kind::Duplicate, BTreeSet::new()))
            }
            Does::Update => {
                let (seen, written): (Vec<&Run>, Vec<&Run>) = (of_read().collect(), of_write().collect());
                let lost = lost_by(programs, (read, &seen), (write, &written))?;
                Some((Kind::LostUpdate, lost))
            }
            _ => None,
        }
    }
}

/// The columns of a change that overwrite what a read of an earlier transaction saw of the same row.
fn lost_by(
    programs: &Programs,
    (read, seen): (&Operation, &[&Run]),
    (write, written): (&Operation, &[&Run]),
) -> Option<BTreeSet<String>> {
    if !meet(&read.reads, &write.writes) {
        return None;
    }
    let columns = match (&read.reads, &write.writes) {
        (Columns::These(reads), Columns::These(writes)) => reads.intersection(writes).cloned().collect(),
        _ => BTreeSet::new(),
    };
    // `SET n = n + 1` reads what it changes.
    let atomic = |column: &String| match &write.reads {
        Columns::These(these) => these.contains(column),
        Columns::All => false,
    };
    let lost: BTreeSet<String> = columns.iter().filter(|column| !atomic(column)).cloned().collect();
    if lost.is_empty() && !columns.is_empty() {
        return None;
    }
    // The same row: the columns of a key are compared with what the read knew of them.
    let same = written.iter().any(|own| {
        let known = |pair: &&(String, String)| {
            seen.iter().any(|run| run.compared.contains(pair) || returned(run, pair))
        };
        let columns = own.compared.iter().filter(known).map(|(column, _)| column.clone());
        programs.are_unique(&write.table, &columns.collect())
    });
    // A version that was read, and that every change raises.
    let guarded = written.iter().all(|own| {
        own.compared
            .iter()
            .any(|pair| columns.contains(&pair.0) && seen.iter().any(|run| returned(run, pair)))
    });
    (same && !guarded).then_some(lost)
}

/// The operations of a template, with their statements.
pub(crate) fn operations(
    template: usize,
    programs: &Programs,
    wanted: impl Fn(&Operation) -> bool,
) -> Vec<(usize, &Operation)> {
    let branches = programs.program(template).into_iter().flat_map(|program| &program.branches);
    let all = branches.flat_map(|branch| &branch.operations).filter(|one| wanted(one));
    let mut found: Vec<(usize, &Operation)> = Vec::new();
    for one in all {
        if let Some(step) = programs.step(&one.at)
            && !found.iter().any(|(_, known)| *known == one)
        {
            found.push((step, one));
        }
    }
    found
}

/// True if a result has this value in its column of this name.
fn returned(run: &Run, (column, value): &(String, String)) -> bool {
    run.results.iter().any(|row| row.get(column) == Some(value))
}

/// True if the only value of a result is zero or false.
pub(crate) fn counted_none(run: &Run) -> bool {
    let [row] = run.results.as_slice() else { return false };
    row.len() == 1 && row.values().all(|value| value == "0" || value == "f")
}

/// When the last statement of a transaction was sent.
fn end(transaction: &Transaction) -> u64 {
    let answered = transaction.statements.last().map_or(0, |last| last.at + last.took);
    answered.max(transaction.until)
}
