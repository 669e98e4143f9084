//! Histories for property tests: realistic ones, and improbable ones.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Draft, History, Initial, Key, Mode, Operation, Transaction, TransactionOutcome, Version};

/// An operation that owns its lists.
#[derive(Debug, Clone)]
pub enum Owned {
    One(Operation<'static>),
    List(Key, Vec<i64>),
    Group(u16, i64, Vec<i64>),
}

impl Owned {
    pub fn push(&self, draft: &mut Draft) {
        draft.push(match self {
            Owned::One(operation) => *operation,
            Owned::List(key, elements) => Operation::ReadList { key: *key, elements },
            Owned::Group(table, group, rows) => Operation::ReadGroup { table: *table, group: *group, rows },
        });
    }
}

/// The tables of all histories.
pub const TABLES: [&str; 3] = ["registers", "", "ä list"];

/// Numbers, preferably realistic ones.
fn numbers() -> impl Strategy<Value = i64> {
    prop_oneof![0..1000_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)]
}

fn keys() -> impl Strategy<Value = Key> {
    (0..3_u16, numbers()).prop_map(|(table, id)| Key { table, id })
}

fn versions() -> impl Strategy<Value = Version> {
    let counter = proptest::option::of(prop_oneof![0..100_u64, any::<u64>()]);
    (counter, proptest::option::of(numbers())).prop_map(|(counter, value)| Version { counter, value })
}

fn initial() -> impl Strategy<Value = (Key, Initial)> {
    let initial =
        prop_oneof![versions().prop_map(Initial::Version), vec(numbers(), 0..5).prop_map(Initial::List),];
    (keys(), initial)
}

fn operations() -> impl Strategy<Value = Owned> {
    let (key, version) = (keys, versions);
    prop_oneof![
        (key(), version()).prop_map(|(key, version)| Owned::One(Operation::Read { key, version })),
        (key(), version()).prop_map(|(key, version)| Owned::One(Operation::Write { key, version })),
        (key(), numbers()).prop_map(|(key, group)| Owned::One(Operation::Insert { key, group })),
        (key(), proptest::option::of(0..100_u64), proptest::option::of(any::<u64>()))
            .prop_map(|(key, after, before)| Owned::One(Operation::Missed { key, after, before })),
        (key(), numbers()).prop_map(|(key, element)| Owned::One(Operation::Append { key, element })),
        (key(), vec(numbers(), 0..5)).prop_map(|(key, list)| Owned::List(key, list)),
        (0..3_u16, numbers(), vec(numbers(), 0..5))
            .prop_map(|(table, group, rows)| Owned::Group(table, group, rows)),
    ]
}

/// A transaction and its operations.
pub fn transactions() -> impl Strategy<Value = (Transaction, Vec<Owned>)> {
    let instants = prop_oneof![
        (0..1_000_000_u64, 0..100_000_u64).prop_map(|(begin, long)| (begin, begin + long)),
        any::<u64>().prop_map(|begin| (begin, u64::MAX)),
        any::<(u64, u64)>().prop_map(|(one, other)| (one.min(other), one.max(other))),
        Just((0, 0)),
    ];
    let id = prop_oneof![0..1000_u64, any::<u64>()];
    let outcome = proptest::sample::select(TransactionOutcome::ALL.to_vec());
    let mode = proptest::option::of((0..16_u64).prop_map(|code| Mode::of_code(code).expect("a mode")));
    (id, any::<u32>(), instants, outcome, mode, vec(operations(), 0..6)).prop_map(
        |(id, client, (begin, end), outcome, mode, operations)| {
            (Transaction { id, client, begin, end, outcome, mode }, operations)
        },
    )
}

/// A whole history.
pub fn histories() -> impl Strategy<Value = History> {
    (vec(transactions(), 0..12), vec(initial(), 0..3), 0..3_u64).prop_map(|(list, initial, dropped)| {
        let mut history = History::new(TABLES.map(str::to_owned).to_vec());
        for (key, initial) in initial {
            history.set_initial(key, initial);
        }
        let (mut draft, mut numbers) = (Draft::new(), std::collections::HashSet::new());
        for (transaction, operations) in list {
            if !numbers.insert(transaction.id) {
                continue;
            }
            draft.clear();
            for operation in operations {
                operation.push(&mut draft);
            }
            history.push(transaction, &draft);
        }
        history.set_dropped(dropped);
        history
    })
}
