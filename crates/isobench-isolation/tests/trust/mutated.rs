//! Incomplete or wrong histories, as written by a script with a wrong line `--@`, don't accuse the
//! database.

use isobench_isolation::check::{Options, check};
use isobench_isolation::history::{Draft, Key, Operation, TransactionOutcome, Version};
use isobench_isolation::{Guarantee, History, Model};

use crate::naive::Case;
use crate::naive::judge::guarantees;
use crate::random::{self, Kind};
use crate::{seeds, shrink};

/// The history with each operation replaced by the result of `change`, or left out.
fn changed(
    history: &History,
    mut change: impl FnMut(usize, usize, Operation<'_>) -> Option<Version>,
    mut keep: impl FnMut(usize, usize) -> bool,
) -> History {
    let mut other = History::new(history.tables().to_vec());
    for (index, transaction) in history.transactions().iter().enumerate() {
        let mut draft = Draft::new();
        for (place, operation) in history.operations(index).enumerate() {
            if !keep(index, place) {
                continue;
            }
            draft.push(match (operation, change(index, place, operation)) {
                (Operation::Read { key, .. }, Some(version)) => Operation::Read { key, version },
                (Operation::Write { key, .. }, Some(version)) => Operation::Write { key, version },
                (operation, _) => operation,
            });
        }
        other.push(*transaction, &draft);
    }
    other
}

/// The positions of all writes.
fn writes(history: &History) -> Vec<(usize, usize)> {
    let transactions = 0..history.transactions().len();
    let all = transactions.flat_map(|index| history.operations(index).enumerate().map(move |it| (index, it)));
    let writes = all.filter(|(_, (_, operation))| {
        matches!(operation, Operation::Write { .. } | Operation::Append { .. } | Operation::Insert { .. })
    });
    writes.map(|(index, (place, _))| (index, place)).collect()
}

/// A line `--@ write` is missing.
fn forgotten(history: &History, write: (usize, usize)) -> Option<History> {
    let aborted = history.transactions()[write.0].outcome == TransactionOutcome::Aborted;
    (!aborted).then(|| changed(history, |_, _, _| None, |index, place| (index, place) != write))
}

/// A statement doesn't increment the counter, so that all later versions of the row have one less.
fn not_raised(history: &History, (index, place): (usize, usize)) -> Option<History> {
    let committed = history.transactions()[index].outcome == TransactionOutcome::Committed;
    let operation = history.operations(index).nth(place)?;
    let Operation::Write { key: row, version: Version { counter: Some(from), .. } } = operation else {
        return None;
    };
    let lower = |key: Key, version: Version| {
        let counter = version.counter.filter(|counter| key == row && *counter >= from)?;
        Some(Version { counter: counter.checked_sub(1), ..version })
    };
    let change = |_: usize, _: usize, operation: Operation<'_>| match operation {
        Operation::Read { key, version } | Operation::Write { key, version } => lower(key, version),
        _ => None,
    };
    committed.then(|| changed(history, change, |_, _| true))
}

/// Two statements write the same value. (A value can be written again after a rollback.)
fn same_value(history: &History, write: (usize, usize)) -> Option<History> {
    let aborted = |index: usize| history.transactions()[index].outcome == TransactionOutcome::Aborted;
    let other = writes(history).into_iter().find(|other| other.0 != write.0 && !aborted(other.0))?;
    if aborted(write.0) {
        return None;
    }
    let value = |(index, place): (usize, usize)| match history.operations(index).nth(place) {
        Some(Operation::Write { key, version }) => Some((key, version)),
        _ => None,
    };
    let ((row, version), (other_row, _)) = (value(other)?, value(write)?);
    let change = |index: usize, place: usize, operation: Operation<'_>| match operation {
        Operation::Write { version: own, .. } if (index, place) == write => {
            Some(Version { value: version.value, ..own })
        }
        _ => None,
    };
    (row == other_row && version.value.is_some()).then(|| changed(history, change, |_, _| true))
}

/// The initial version has a value that isn't stated.
fn unstated(history: &History, (index, place): (usize, usize)) -> Option<History> {
    let Operation::Write { key: row, .. } = history.operations(index).nth(place)? else { return None };
    let change = |_: usize, _: usize, operation: Operation<'_>| match operation {
        Operation::Read { key, version } if key == row && version == Version::INITIAL => {
            Some(Version::valued(1_000))
        }
        _ => None,
    };
    Some(changed(history, change, |_, _| true))
}

type Mutation = fn(&History, (usize, usize)) -> Option<History>;

const MUTATIONS: [(&str, Mutation); 4] = [
    ("a forgotten write", forgotten),
    ("a counter that isn't raised", not_raised),
    ("a value written twice", same_value),
    ("an initial value that isn't stated", unstated),
];

/// True if a history that isn't vouched for accuses the database.
fn accuses(history: &History, promised: Guarantee) -> bool {
    let options = Options { promised: Some(promised), vouched: false, ..Options::default() };
    check(history, &options).verdict.kept == Some(false)
}

/// The accusation that the unmodified history permits, if there is one.
fn wrongly(history: &History, mutation: Mutation) -> Option<String> {
    let judgement = Case::new(history).judge();
    let allowed = || {
        let clear = |it: &Guarantee| !(judgement.open_at_pl1 && it.model == Model::ReadUncommitted);
        guarantees().filter(clear).filter(|it| judgement.allowed.contains(it))
    };
    writes(history).into_iter().find_map(|write| {
        let mutated = mutation(history, write)?;
        let accused = allowed().find(|guarantee| accuses(&mutated, *guarantee))?;
        let shown = isobench_isolation::history::text::print(&mutated);
        Some(format!("{accused} is accused by\n{shown}"))
    })
}

#[test]
fn what_the_history_says_wrongly_accuses_nobody() {
    for (name, mutation) in MUTATIONS {
        for kind in Kind::ALL {
            for seed in seeds(120) {
                let history = random::history(kind, seed);
                let failure = |history: &History| wrongly(history, mutation);
                assert!(
                    failure(&history).is_none(),
                    "{name}, {kind:?}, seed {seed}: {}",
                    shrink::report(&history, &failure)
                );
            }
        }
    }
}

/// A history that isn't vouched for shows no other anomalies than one that is, and still most of
/// them.
#[test]
fn true_accusations_are_left() {
    let promised = Guarantee::of(Model::Serializable);
    let (mut vouched, mut left) = (0, 0);
    for kind in Kind::ALL {
        for seed in seeds(120) {
            let history = random::history(kind, seed);
            let options = Options { promised: Some(promised), ..Options::default() };
            let broken = check(&history, &options).verdict.kept == Some(false);
            let still = accuses(&history, promised);
            assert!(broken || !still, "{kind:?}, seed {seed}");
            vouched += u32::from(broken);
            left += u32::from(still);
        }
    }
    println!("{left} of {vouched}");
    assert!(left * 3 > vouched, "{left} of {vouched}");
}
