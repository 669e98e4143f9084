//! Random clients of a small database, which may be broken: whether repeated searches have all that they
//! missed or only what doesn't follow from others, each history shows the same phenomena.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::log::{ObservedDraft, ObservedEncoder, Replaced};
use super::super::super::predicate::Comparison;
use super::super::super::resolve::resolve;
use super::super::super::{
    Dependence, Flow, KeyForm, ObservedColumn, ObservedDescription, ObservedTable, StatementUse, ValueForm,
};
use super::*;
use crate::check::{Options, check};
use crate::history::{History, Operation, Transaction, Version, text};
use crate::model::{Guarantee, Model, Order};

const HORIZON: u32 = 100;

/// The number of runs.
const RUNS: u64 = 800;

/// How statements see what others have committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Snapshots {
    OfStatements,
    OfTransactions,
}

/// What is wrong with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// Some snapshots are older than they should be.
    Old,
    /// Some searches leave a row out.
    LeavesOut,
    /// Some searches find a row that is gone.
    FindsGone,
}

/// A version of a row; times are numbers of commits.
#[derive(Debug, Clone)]
struct Stored {
    id: i64,
    class: i64,
    writer: u32,
    born: Option<u64>,
    died: Option<u64>,
    /// The client that is deleting it.
    deleting: Option<usize>,
}

#[derive(Debug, Default)]
struct Client {
    begin: u64,
    snapshot: u64,
    writer: Option<u32>,
    steps: Vec<Step>,
    draft: ObservedDraft,
    /// Positions of the rows that it has inserted, and deleted.
    inserted: Vec<usize>,
    deleted: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Read,
    Delete,
    /// Deletes one row, found by its key.
    DeleteOne,
    Insert,
    Update,
}

/// What each statement's results are used for: reads, in one of three ways, and writes.
fn usage(way: u64) -> Vec<StatementUse> {
    let into = vec![Flow { statement: 2, how: Dependence::Decision }];
    let read = match way {
        0 => return Vec::new(),
        1 => StatementUse { into, ..StatementUse::default() },
        2 => StatementUse { product: true, ..StatementUse::default() },
        _ => StatementUse::default(),
    };
    let write = StatementUse { writes: true, ..StatementUse::default() };
    vec![read, write.clone(), write]
}

struct Database {
    random: fastrand::Rng,
    /// How a search compares the class.
    comparison: Comparison,
    snapshots: Snapshots,
    defect: Option<Defect>,
    rows: Vec<Stored>,
    commits: u64,
    clock: u64,
    next_writer: u32,
    encoder: ObservedEncoder,
    attempts: u64,
}

impl Database {
    fn tick(&mut self) -> u64 {
        self.clock += 1 + self.random.u64(..3);
        self.clock
    }

    fn oddly(&mut self, defect: Defect) -> bool {
        self.defect == Some(defect) && self.random.u64(..12) == 0
    }

    fn writer(&mut self, client: &mut Client) -> u32 {
        *client.writer.get_or_insert_with(|| {
            self.next_writer += 1;
            self.next_writer
        })
    }

    fn fits(&self, row: &Stored, class: i64) -> bool {
        match self.comparison {
            Comparison::Equal => row.class == class,
            _ => row.class >= class,
        }
    }

    /// The rows of a class, or at least of it, that a client finds, by position.
    fn find(&mut self, client: &Client, class: i64, number: usize) -> Vec<usize> {
        let mut at = match self.snapshots {
            Snapshots::OfStatements => self.commits,
            Snapshots::OfTransactions => client.snapshot,
        };
        if self.oddly(Defect::Old) {
            at = at.saturating_sub(self.random.u64(..8));
        }
        let there = |(place, row): &(usize, &Stored)| {
            let own = client.inserted.contains(place);
            let born = own || row.born.is_some_and(|born| born <= at);
            let gone = row.deleting == Some(number) || row.died.is_some_and(|died| died <= at);
            self.fits(row, class) && born && !gone
        };
        let mut found: Vec<usize> = self.rows.iter().enumerate().filter(there).map(|(at, _)| at).collect();
        if !found.is_empty() && self.oddly(Defect::LeavesOut) {
            found.remove(self.random.usize(..found.len()));
        }
        if self.oddly(Defect::FindsGone) {
            let gone = |(_, row): &(usize, &Stored)| self.fits(row, class) && row.died.is_some();
            let gone: Vec<usize> = self.rows.iter().enumerate().filter(gone).map(|(at, _)| at).collect();
            let others: BTreeSet<i64> = found.iter().map(|at| self.rows[*at].id).collect();
            if let Some(one) = self.random.choice(gone).filter(|one| !others.contains(&self.rows[*one].id)) {
                found.push(one);
            }
        }
        found
    }

    fn search(&self, client: &mut Client, class: i64, found: &[usize], statement: u16) {
        let ids: Vec<i64> = found.iter().map(|place| self.rows[*place].id).collect();
        let operands = [class];
        client.draft.push(
            ObservedOperation::Search { table: 0, predicate: 0, key: None, operands: &operands, found: &ids },
            statement,
        );
    }

    /// Executes a step. False if the transaction has to be rolled back.
    fn step(&mut self, client: &mut Client, number: usize, step: Step) -> bool {
        let class = self.random.i64(1..=2);
        let found = self.find(client, class, number);
        let key = |row: &Stored| Key { table: 0, id: row.id };
        match step {
            Step::Read => {
                for place in &found {
                    let row = &self.rows[*place];
                    let columns = [row.class];
                    let read =
                        ObservedOperation::Read { key: key(row), writer: row.writer, columns: &columns };
                    client.draft.push(read, 0);
                }
                self.search(client, class, &found, 0);
            }
            Step::Delete | Step::DeleteOne | Step::Update => {
                let all = matches!(step, Step::Delete);
                let mut hit = Vec::new();
                for place in found.iter().take(if all { usize::MAX } else { 1 }) {
                    if self.rows[*place].deleting.is_some_and(|other| other != number) {
                        return false;
                    }
                    if self.rows[*place].died.is_some() {
                        match self.snapshots {
                            // The row is gone by now.
                            Snapshots::OfStatements => continue,
                            Snapshots::OfTransactions => return false,
                        }
                    }
                    hit.push(*place);
                }
                for place in &hit {
                    let row = self.rows[*place].clone();
                    self.rows[*place].deleting = Some(number);
                    client.deleted.push(*place);
                    if matches!(step, Step::Update) {
                        let writer = self.writer(client);
                        let class = self.random.i64(1..=2);
                        let (replaced, columns) = (Replaced::By(row.writer), [class]);
                        let write =
                            ObservedOperation::Write { key: key(&row), writer, replaced, columns: &columns };
                        client.draft.push(write, 1);
                        client.inserted.push(self.rows.len());
                        self.rows.push(Stored {
                            class,
                            writer,
                            born: None,
                            died: None,
                            deleting: None,
                            ..row
                        });
                    } else {
                        self.writer(client);
                        let delete = ObservedOperation::Delete { key: key(&row), deleted: row.writer };
                        client.draft.push(delete, 1);
                    }
                }
                if all {
                    self.search(client, class, &hit, 1);
                }
            }
            Step::Insert => {
                let writer = self.writer(client);
                let id = i64::try_from(self.rows.len()).expect("few rows") + 1000;
                let columns = [class];
                let key = Key { table: 0, id };
                let write =
                    ObservedOperation::Write { key, writer, replaced: Replaced::Nothing, columns: &columns };
                client.draft.push(write, 2);
                client.inserted.push(self.rows.len());
                self.rows.push(Stored { id, class, writer, born: None, died: None, deleting: None });
            }
        }
        true
    }

    fn end(&mut self, client: &mut Client, number: usize, committed: bool) {
        if committed {
            self.commits += 1;
        }
        for place in std::mem::take(&mut client.deleted) {
            self.rows[place].deleting = None;
            if committed {
                self.rows[place].died = Some(self.commits);
            }
        }
        for place in std::mem::take(&mut client.inserted) {
            let row = &mut self.rows[place];
            row.born = committed.then_some(self.commits);
        }
        let sent = self.tick();
        client.draft.push(ObservedOperation::Answered { at: sent, unsent: sent }, 0);
        let (begin, end) = (client.begin, self.tick());
        self.attempts += 1;
        let outcome = if committed { TransactionOutcome::Committed } else { TransactionOutcome::Aborted };
        let transaction = Transaction {
            id: self.attempts,
            client: u32::try_from(number).expect("few clients"),
            begin,
            end,
            outcome,
            mode: None,
        };
        self.encoder.push(&transaction, &client.draft);
    }

    fn begin(&mut self) -> Client {
        let steps = match self.random.u64(..8) {
            0..3 => vec![Step::Insert, Step::Insert, Step::Delete],
            3 => vec![Step::Insert, Step::Read],
            4 => vec![Step::DeleteOne],
            _ => {
                let all = [Step::Read, Step::Delete, Step::DeleteOne, Step::Insert, Step::Update];
                let count = 1 + self.random.usize(..6);
                (0..count).filter_map(|_| self.random.choice(all)).collect()
            }
        };
        let begin = self.tick();
        Client { begin, snapshot: self.commits, steps, ..Client::default() }
    }
}

/// The log of a run, and its description.
fn run(seed: u64) -> (ObservedDescription, Vec<u8>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let defects = [None, None, Some(Defect::Old), Some(Defect::LeavesOut), Some(Defect::FindsGone)];
    let mut database = Database {
        snapshots: random.choice([Snapshots::OfStatements, Snapshots::OfTransactions]).expect("two"),
        defect: random.choice(defects).expect("some"),
        comparison: random.choice([Comparison::Equal, Comparison::GreaterOrEqual]).expect("two"),
        rows: Vec::new(),
        commits: 0,
        clock: 10,
        next_writer: HORIZON,
        encoder: ObservedEncoder::default(),
        attempts: 0,
        random,
    };
    for id in 1..4 {
        let class = 1 + id % 2;
        database.rows.push(Stored { id, class, writer: 7, born: Some(0), died: None, deleting: None });
    }
    let clients = 1 + database.random.usize(..4);
    let mut all: Vec<Option<Client>> = (0..clients).map(|_| None).collect();
    let steps = if seed.is_multiple_of(4) { 100..300 } else { 40..100 };
    for _ in 0..database.random.usize(steps) {
        let number = database.random.usize(..clients);
        database.tick();
        let mut client = all[number].take().unwrap_or_else(|| database.begin());
        let Some(step) = client.steps.pop() else {
            database.end(&mut client, number, true);
            continue;
        };
        if database.step(&mut client, number, step) {
            all[number] = Some(client);
        } else {
            database.end(&mut client, number, false);
        }
    }
    let column = ObservedColumn { name: "class".to_owned(), form: ValueForm::Integer };
    let table =
        ObservedTable { name: "t".to_owned(), key: KeyForm::Integer, columns: vec![column], closed: true };
    let comparison = database.comparison;
    let condition = Predicate::Compare { column: 0, comparison, operand: 0 };
    let description = ObservedDescription {
        tables: vec![table],
        predicates: vec![condition],
        statements: ["read", "delete", "insert"].map(str::to_owned).to_vec(),
        horizon: HORIZON,
        fresh: true,
        usage: usage(seed % 4),
        ..ObservedDescription::default()
    };
    (description, database.encoder.take())
}

fn history(seed: u64, worth: u64) -> History {
    let (description, chunk) = run(seed);
    resolve(description, worth, || Ok([Ok(&chunk)].into_iter())).expect("a log")
}

/// The guarantees that a history contradicts, and the transactions that have an anomaly.
fn contradicted(history: &History) -> BTreeSet<String> {
    let report = check(history, &Options { vouched: false, ..Options::default() });
    let guarantees =
        Model::ALL.into_iter().flat_map(|model| Order::ALL.map(|order| Guarantee { model, order }));
    let broken =
        |guarantee: &Guarantee| report.findings.iter().any(|finding| finding.contradicts(*guarantee));
    let anomalous = format!("{:?}", report.anomalous);
    guarantees.filter(broken).map(|guarantee| guarantee.to_string()).chain([anomalous]).collect()
}

/// What the searches of a history missed: the transaction, the row, and what follows.
fn missed(history: &History) -> BTreeSet<(usize, Key, Option<u64>, Option<u64>)> {
    let mut missed = BTreeSet::new();
    for index in 0..history.transactions().len() {
        for at in history.range(index) {
            if let Operation::Missed { key, after, before } = history.operation(at) {
                missed.insert((index, key, after, before));
            }
        }
    }
    missed
}

/// The dependencies of a history, as far as they matter here.
struct Dependencies {
    /// The committed writers of versions, by row and counter.
    writers: BTreeMap<(Key, u64), Vec<usize>>,
    /// True if a path of write-write and write-read dependencies leads from one to the other.
    paths: Vec<Vec<bool>>,
    /// The searches, and the writers that they precede.
    precede: BTreeSet<(usize, usize)>,
}

impl Dependencies {
    fn of(history: &History) -> Dependencies {
        let count = history.transactions().len();
        let committed =
            |index: &usize| history.transactions()[*index].outcome == TransactionOutcome::Committed;
        let mut writers: BTreeMap<(Key, u64), Vec<usize>> = BTreeMap::new();
        for index in (0..count).filter(committed) {
            for at in history.range(index) {
                if let Operation::Write { key, version: Version { counter: Some(counter), .. } } =
                    history.operation(at)
                {
                    writers.entry((key, counter)).or_default().push(index);
                }
            }
        }
        let mut paths = vec![vec![false; count]; count];
        let mut precede = BTreeSet::new();
        let of = |key: Key, counter: Option<u64>| {
            let found = counter.and_then(|counter| writers.get(&(key, counter)));
            found.map_or(&[][..], Vec::as_slice)
        };
        for index in (0..count).filter(committed) {
            for at in history.range(index) {
                let (key, before) = match history.operation(at) {
                    Operation::Read { key, version } => (key, version.counter),
                    Operation::Write { key, version } => {
                        (key, version.counter.and_then(|counter| counter.checked_sub(1)))
                    }
                    Operation::Missed { key, after, before } => {
                        precede.extend(of(key, before).iter().map(|writer| (index, *writer)));
                        (key, after)
                    }
                    _ => continue,
                };
                for writer in of(key, before) {
                    paths[*writer][index] = true;
                }
            }
        }
        for middle in 0..count {
            let onwards = paths[middle].clone();
            for from in paths.iter_mut().filter(|from| from[middle]) {
                from.iter_mut().zip(&onwards).for_each(|(to, onward)| *to |= onward);
            }
        }
        Dependencies { writers, paths, precede }
    }

    /// True if it follows from these dependencies what a search missed.
    fn imply(&self, (search, key, after, before): (usize, Key, Option<u64>, Option<u64>)) -> bool {
        let of = |counter: Option<u64>| {
            let found = counter.and_then(|counter| self.writers.get(&(key, counter)));
            found.into_iter().flatten().copied()
        };
        let from_there = |writer: usize| {
            let mut from = self.precede.range((search, 0)..=(search, usize::MAX)).map(|(_, first)| *first);
            from.any(|first| first == writer || self.paths[first][writer])
        };
        of(after).all(|writer| self.paths[writer][search]) && of(before).all(from_there)
    }
}

/// Asserts that all that searches of one history missed follows from another one. Returns how much
/// that has less, and how much there was.
fn assert_implied(all: &History, few: &History, seed: u64) -> (usize, usize) {
    let (missed_all, missed_few) = (missed(all), missed(few));
    assert!(missed_few.is_subset(&missed_all), "seed {seed}");
    let dependencies = Dependencies::of(few);
    for missed in missed_all.difference(&missed_few) {
        assert!(dependencies.imply(*missed), "seed {seed}: {missed:?} of\n{}", text::print(few));
    }
    (missed_all.len() - missed_few.len(), missed_all.len())
}

#[test]
fn what_follows_from_other_searches_changes_nothing() {
    let (mut left_out, mut total, mut wrong) = (0, 0, 0);
    let seeds = 0..RUNS;
    for seed in seeds.clone() {
        let (all, few) = (history(seed, u64::MAX), history(seed, 0));
        let (less, of) = assert_implied(&all, &few, seed);
        if let (Some(all), Some(few)) = (all.used(), few.used()) {
            assert_implied(&all, &few, seed);
        }
        (left_out, total) = (left_out + less, total + of);
        if seed.is_multiple_of(8) {
            let found = contradicted(&all);
            assert_eq!(contradicted(&few), found, "seed {seed}");
            wrong += 8 * usize::from(found.len() > 1);
        }
    }
    println!("{left_out} of {total} missed rows left out; {wrong} of {seeds:?} contradict something");
    assert!(left_out * 8 > total, "{left_out} of {total}");
    assert!(wrong > 0);
}
