//! Transactions that belong together: a later one uses a key of a row that an earlier one inserted, as a
//! customer's order does with the customer's basket.
//!
//! Not here: what becomes of them (`template`).

use std::collections::HashMap;

use isobench_capture::Datum;

use crate::inference::Lineage;
use crate::sessions::Transaction;
use crate::statement::Clause;
use crate::values::is_distinctive;

/// A key that more transactions than this use isn't that of one undertaking: a product, say, that was
/// inserted while recording.
const MOST_USERS: usize = 100;

/// A column by the names of its table and itself, with a value.
type Key<'a> = (&'a str, &'a str, &'a Datum);

/// For each transaction the first one of those to which it belongs, by their places in the list.
pub fn chains(transactions: &[Transaction], lineage: &Lineage) -> Vec<usize> {
    let mut inserted: HashMap<Key<'_>, usize> = HashMap::new();
    // Of each key, the transactions that use it later.
    let mut users: HashMap<Key<'_>, Vec<usize>> = HashMap::new();
    for (number, transaction) in transactions.iter().enumerate() {
        for executed in &transaction.statements {
            for place in &executed.normal.places {
                let (Some((Some(table), column)), Some(value)) = (&place.column, &place.value) else {
                    continue;
                };
                let known = lineage
                    .keys_of(table, column)
                    .map(|(table, column)| (table, column, value))
                    .find(|key| inserted.get(key).is_some_and(|by| *by != number));
                if let Some(key) = known {
                    users.entry(key).or_default().push(number);
                } else if place.clause == Clause::Insert && is_distinctive(&place.value) {
                    inserted.entry((table, column, value)).or_insert(number);
                }
            }
            if executed.normal.verb != "insert" {
                continue;
            }
            for row in &executed.answer.values {
                for (column, value) in executed.columns.iter().zip(row) {
                    if let (Some(table), Some(value)) = (lineage.table(column), value) {
                        inserted.entry((table, &column.name, value)).or_insert(number);
                    }
                }
            }
        }
    }
    let mut first: Vec<usize> = (0..transactions.len()).collect();
    for (key, users) in &users {
        let Some(by) = inserted.get(key).filter(|_| users.len() <= MOST_USERS) else { continue };
        for user in users {
            let (one, other) = (root(&mut first, *by), root(&mut first, *user));
            first[one.max(other)] = one.min(other);
        }
    }
    (0..transactions.len()).map(|number| root(&mut first, number)).collect()
}

/// The first transaction of those with which one belongs together.
fn root(first: &mut [usize], mut number: usize) -> usize {
    while first[number] != number {
        first[number] = first[first[number]];
        number = first[number];
    }
    number
}
