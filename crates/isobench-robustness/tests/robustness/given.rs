//! The criterion for given transactions against all their schedules.

use fastrand::Rng;
use isobench_isolation::Level;
use isobench_robustness::concrete::Transactions;
use isobench_robustness::{
    Branch, Columns, Kind, Operation, Program, StatementId, Strength, Struck, Term, allocate, decide,
};

use crate::schedules::{Op, Tx, is_robust};
use crate::{LEVELS, choices, seeds};

/// What random transactions are made of.
#[derive(Debug, Clone, Copy)]
struct Size {
    transactions: usize,
    operations: usize,
    rows: u8,
    columns: u8,
    /// Operations may lock without writing, and the first row may be a group.
    locks: bool,
    groups: bool,
    /// The server may check the newest data.
    checks: bool,
}

const STRENGTHS: [Strength; 4] =
    [Strength::KeyShare, Strength::Share, Strength::NoKeyUpdate, Strength::Update];

fn transaction(random: &mut Rng, size: Size) -> Tx {
    let mut tx: Tx = Vec::new();
    for _ in 0..random.usize(1..=size.operations) {
        let (row, mut some) = (random.u8(0..size.rows), || random.u8(1..1 << size.columns));
        let (reads, writes) = (some(), some());
        let group = size.groups && row == 0;
        let plain = Op { row, group, reads, writes: 0, lock: None, joined: false, newest: false };
        let write = if group { None } else { Some(Strength::NoKeyUpdate) };
        let op = match if size.checks && random.u8(0..3) == 0 {
            9
        } else {
            random.u8(0..if size.locks && !group { 8 } else { 6 })
        } {
            9 => {
                let lock = (!group && random.bool()).then_some(Strength::KeyShare);
                Op { lock, newest: true, ..plain }
            }
            0..=2 => plain,
            3 | 4 => Op { reads: 0, writes, lock: write, ..plain },
            // A group isn't changed and read at once.
            5 if group => plain,
            6 => Op { lock: Some(STRENGTHS[random.usize(0..4)]), ..plain },
            _ => Op { writes, lock: write, ..plain },
        };
        let before = |other: &&Op| other.row == row;
        let again = tx.iter().filter(before).any(|other| {
            other.writes != 0 && (op.writes != 0 || op.reads != 0) || other.reads != 0 && op.reads != 0
        });
        if again {
            continue;
        }
        let joined = tx.last().is_some_and(|last| last.lock.is_none() && last.writes == 0 && !last.newest)
            && !op.newest
            && !(op.group && op.writes != 0)
            && random.u8(0..3) == 0;
        tx.push(Op { joined, ..op });
    }
    tx
}

fn columns(bits: u8) -> Columns {
    let names: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, name)| name)
        .collect();
    Columns::from(names.as_slice())
}

fn program(number: usize, tx: &Tx) -> Program {
    let mut operations = Vec::new();
    let mut statement = 0;
    for op in tx {
        statement += usize::from(!op.joined);
        let kind = match (op.group, op.lock) {
            (true, _) if op.writes != 0 => Kind::Insert,
            (true, _) => Kind::Search,
            (false, None) => Kind::Read,
            (false, Some(_)) if op.writes != 0 => Kind::Update,
            (false, Some(strength)) => Kind::Lock(strength),
        };
        let place = vec![("k".to_owned(), Term::Constant(op.row.to_string()))];
        operations.push(Operation {
            kind,
            table: if op.group { "groups" } else { "rows" }.to_owned(),
            key: if op.group { Vec::new() } else { place.clone() },
            known: if op.group { place } else { Vec::new() },
            reads: columns(op.reads),
            writes: columns(op.writes),
            // Whether a key gets another value isn't certain, so that it must not matter.
            changes_key: op.writes & 2 != 0,
            statement,
            at: StatementId::default(),
            newest: op.newest,
            certain: true,
            found: true,
            held: None,
            waits: true,
        });
    }
    let branch = Branch { operations, ..Branch::default() };
    Program::new(&number.to_string(), vec![branch])
}

fn programs(txs: &[Tx]) -> Vec<Program> {
    // Inserts change all columns.
    txs.iter().enumerate().map(|(number, tx)| program(number, tx)).collect()
}

/// What was found of random sets.
#[derive(Debug, Default)]
struct Found {
    cases: u64,
    unsafe_ones: u64,
    not_upward: u64,
    /// Sets that are safe at no levels.
    unprotected: u64,
}

fn compare(size: Size, count: u64) -> Found {
    let mut found = Found::default();
    let allocations = choices(&LEVELS, size.transactions);
    for seed in seeds(count) {
        let mut random = Rng::with_seed(seed);
        let txs: Vec<Tx> = (0..size.transactions)
            .map(|_| {
                let mut tx = transaction(&mut random, size);
                // Inserts and searches of a group concern all its columns.
                for op in tx.iter_mut().filter(|op| op.group) {
                    let all = (1 << size.columns) - 1;
                    (op.reads, op.writes) = if op.writes == 0 { (all, 0) } else { (0, all) };
                }
                tx
            })
            .collect();
        let programs = programs(&txs);
        let transactions = Transactions::of(&programs, 1, 1);
        let mut robust: Vec<&Vec<Level>> = Vec::new();
        let sampled = if size.transactions > 3 { 8 } else { allocations.len() };
        let mut allocations = allocations.clone();
        random.shuffle(&mut allocations);
        for levels in &allocations[..sampled] {
            let expected = is_robust(&txs, levels);
            let all: Vec<Option<Level>> = levels.iter().copied().map(Some).collect();
            let split = transactions.split(&all);
            assert_eq!(split.is_none(), expected, "seed {seed} {size:?} {levels:?}: {split:?}\n{txs:#?}");
            if expected {
                robust.push(levels);
            } else {
                assert_ne!(
                    decide(&programs, levels, &Struck::new()),
                    None,
                    "seed {seed} {size:?} {levels:?}\n{txs:#?}"
                );
            }
            found.cases += 1;
            found.unsafe_ones += u64::from(!expected);
        }
        if sampled < allocations.len() {
            continue;
        }
        if size.checks {
            let allocated = allocate(&programs, &Struck::new());
            let none = robust.is_empty();
            assert!(!none || !allocated.unprotected.is_empty(), "seed {seed} {size:?}\n{txs:#?}");
            let safe = allocated.unprotected.is_empty();
            assert!(!safe || robust.contains(&&allocated.levels), "seed {seed} {size:?}\n{txs:#?}");
            found.unprotected += u64::from(none);
            continue;
        }
        // The lowest levels of all that are safe are safe.
        let lowest = (0..txs.len()).map(|tx| robust.iter().map(|levels| levels[tx]).min().unwrap());
        let lowest: Vec<Level> = lowest.collect();
        assert!(robust.contains(&&lowest), "seed {seed} {size:?}: {lowest:?}\n{txs:#?}");
        let above = |levels: &Vec<Level>| levels.iter().zip(&lowest).all(|(level, lowest)| level >= lowest);
        found.not_upward +=
            u64::from(allocations.iter().any(|levels| above(levels) && !robust.contains(&levels)));
        assert!(allocate(&programs, &Struck::new()).lowest, "seed {seed} {size:?}\n{txs:#?}");
    }
    println!("{size:?}: {found:?}");
    found
}

const PLAIN: Size =
    Size { transactions: 2, operations: 4, rows: 2, columns: 2, locks: false, groups: false, checks: false };

#[test]
fn two_transactions() {
    let mut not_upward = 0;
    for (locks, groups) in [(false, false), (true, false), (false, true), (true, true)] {
        let found = compare(Size { locks, groups, ..PLAIN }, 200);
        assert!(found.unsafe_ones > 50 && found.cases > 2 * found.unsafe_ones, "{found:?}");
        assert!(locks || found.not_upward == 0, "only locks make higher levels worse: {found:?}");
        not_upward += found.not_upward;
    }
    assert!(not_upward > 0);
}

#[test]
fn three_transactions() {
    for (locks, groups) in [(false, false), (true, true)] {
        let size = Size { transactions: 3, operations: 3, columns: 1, locks, groups, ..PLAIN };
        let found = compare(size, 10);
        assert!(found.unsafe_ones > 20, "{found:?}");
    }
}

/// What foreign keys see is newer than the snapshot of their transaction, and nobody watches it.
#[test]
fn transactions_with_checks_of_the_newest_data() {
    let size = Size { checks: true, locks: true, groups: true, ..PLAIN };
    let found = compare(size, 400);
    assert!(found.unsafe_ones > 200 && found.unprotected > 10, "{found:?}");
    let found = compare(Size { transactions: 3, operations: 3, columns: 1, ..size }, 10);
    assert!(found.unsafe_ones > 20, "{found:?}");
}

/// Of all that run within a transaction only the first and the last one depend on it.
#[test]
fn four_transactions() {
    let size = Size { transactions: 4, operations: 2, columns: 1, ..PLAIN };
    let found = compare(size, 4);
    assert!(found.unsafe_ones > 0, "{found:?}");
}

/// A step of a transaction on all rows of a table, to which none come, or on one of them.
#[derive(Debug, Clone, Copy)]
enum Step {
    One(Op),
    LockAll(Strength, u8),
    /// After all were locked.
    ReadAll(Strength, u8),
}

const ROWS: u8 = 2;

fn steps(random: &mut Rng) -> Vec<Step> {
    let (mut steps, mut locked) = (Vec::new(), None);
    for _ in 0..random.usize(1..=3) {
        let columns = random.u8(1..4);
        match (random.u8(0..6), locked) {
            (0, None) => {
                let strength = STRENGTHS[random.usize(1..4)];
                locked = Some(strength);
                steps.push(Step::LockAll(strength, columns));
            }
            (0..=2, Some(strength)) => steps.push(Step::ReadAll(strength, columns)),
            (kind, _) => {
                let row = random.u8(0..ROWS);
                let plain = Op {
                    row,
                    group: false,
                    reads: columns,
                    writes: 0,
                    lock: None,
                    joined: false,
                    newest: false,
                };
                let write = Op { reads: 0, writes: columns, lock: Some(Strength::NoKeyUpdate), ..plain };
                steps.push(Step::One(if kind < 4 { write } else { plain }));
            }
        }
    }
    steps
}

/// Each row is locked by itself, and all are read at one instant.
fn expanded(steps: &[Step]) -> Tx {
    let of = |step: &Step| -> Vec<Op> {
        let all = |reads, lock: Option<Strength>| {
            let one = |row| Op {
                row,
                group: false,
                reads,
                writes: 0,
                lock,
                joined: lock.is_none() && row > 0,
                newest: false,
            };
            (0..ROWS).map(one).collect()
        };
        match *step {
            Step::One(op) => vec![op],
            Step::LockAll(strength, reads) => all(reads, Some(strength)),
            Step::ReadAll(_, reads) => all(reads, None),
        }
    };
    steps.iter().flat_map(of).collect()
}

fn with_sets(number: usize, steps: &[Step]) -> Program {
    let mut operations = Vec::new();
    for (statement, step) in steps.iter().enumerate() {
        let all = match *step {
            Step::One(op) => program(number, &vec![op]).branches.remove(0).operations,
            Step::LockAll(strength, reads) => {
                let search = Operation::search("rows", [], Columns::NONE).under(strength);
                vec![search, Operation::lock(strength, "rows", [], columns(reads))]
            }
            Step::ReadAll(strength, reads) => {
                vec![Operation::search("rows", [], columns(reads)).under(strength)]
            }
        };
        operations.extend(all.into_iter().map(|one| Operation { statement, changes_key: false, ..one }));
    }
    Program::new(&number.to_string(), vec![Branch { operations, ..Branch::default() }])
}

/// What is read of rows that are all locked stays as it is.
#[test]
fn sets_of_rows_that_are_locked() {
    let (mut safe, mut gained) = (0, 0);
    for seed in seeds(400) {
        let mut random = Rng::with_seed(seed);
        let all: Vec<Vec<Step>> = (0..2).map(|_| steps(&mut random)).collect();
        let txs: Vec<Tx> = all.iter().map(|steps| expanded(steps)).collect();
        let programs: Vec<Program> =
            all.iter().enumerate().map(|(number, steps)| with_sets(number, steps)).collect();
        let mut without = programs.clone();
        for operation in without.iter_mut().flat_map(|one| &mut one.branches[0].operations) {
            operation.held = None;
        }
        for levels in choices(&LEVELS, 2) {
            let decided = decide(&programs, &levels, &Struck::new()).is_none();
            let robust = is_robust(&txs, &levels);
            assert!(robust || !decided, "seed {seed} {levels:?}\n{all:#?}");
            safe += u64::from(decided);
            gained += u64::from(decided && decide(&without, &levels, &Struck::new()).is_some());
        }
    }
    println!("{safe} safe, {gained} of them because of the locks");
    assert!(safe > 100 && gained > 20, "{safe} {gained}");
}
