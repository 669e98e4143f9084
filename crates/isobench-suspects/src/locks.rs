//! Which advisory locks are the same one, by the recorded values.
//!
//! `pg_advisory_xact_lock(hashtext('cart 7'))` before a cart is looked for keeps two transactions of one cart apart. What
//! is locked follows from the cart's number if equal numbers always came with equal locks, in all transactions that lock
//! by such a statement.

use std::collections::{BTreeMap, BTreeSet};

use crate::template::{Template, Values};

/// How often a lock has to be the same one, so that it always is.
const OFTEN: u64 = 5;

/// How many values have to come twice or more, so that what follows from them is no accident.
const AGAIN: usize = 3;

/// What is known of a value that an advisory lock is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lock {
    /// It is the same in all transactions.
    Same(String),
    /// It follows from another value of the template.
    Follows(usize),
}

/// A value of a lock, and another one of the same transactions.
#[derive(Debug)]
pub(crate) struct Link {
    /// The place of the lock's value.
    place: usize,
    /// The statement that takes the lock, and the number of the value in it.
    code: (String, usize),
    /// The column of the other value, and its place.
    column: String,
    other: usize,
    /// The locks that came with each of its values, and how often.
    seen: BTreeMap<String, (BTreeSet<String>, u64)>,
}

/// The values of a lock in all templates.
#[derive(Default)]
struct All {
    seen: BTreeSet<Option<String>>,
    times: u64,
}

/// True if a statement takes an advisory lock to the end of its transaction.
fn locks(key: &str) -> bool {
    key.to_ascii_lowercase().contains("pg_advisory_xact_lock")
}

/// The places of the values of locks, with their statements.
fn places(template: &Template) -> Vec<(usize, (String, usize))> {
    let own = template.statements.iter().filter(|step| locks(&step.normal.key));
    own.flat_map(|step| (0..step.values).map(|at| (step.first_value + at, (step.normal.key.clone(), at))))
        .collect()
}

/// What came together in the transactions of a template.
pub(crate) fn links(template: &Template, rows: &[Values]) -> Vec<Link> {
    let own = places(template);
    let mut found = Vec::new();
    for (place, code) in &own {
        for (other, known) in template.values.iter().enumerate() {
            let Some(column) = known.column.clone().filter(|_| !known.of_last && !known.null) else {
                continue;
            };
            if own.iter().any(|(own, _)| *own == other) {
                continue;
            }
            let mut seen: BTreeMap<String, (BTreeSet<String>, u64)> = BTreeMap::new();
            let complete = rows.iter().all(|row| match (&row[other], &row[*place]) {
                (Some(Some(value)), Some(Some(lock))) => {
                    let entry = seen.entry(value.clone()).or_default();
                    entry.0.insert(lock.clone());
                    entry.1 += 1;
                    true
                }
                _ => false,
            });
            if complete {
                found.push(Link { place: *place, code: code.clone(), column, other, seen });
            }
        }
    }
    found
}

/// Finds for each value of a lock what is known of it in all templates.
pub(crate) fn join(templates: &mut [Template]) {
    let mut all: BTreeMap<(String, usize), All> = BTreeMap::new();
    for template in templates.iter() {
        for (place, code) in places(template) {
            let known = &template.values[place];
            let entry = all.entry(code).or_default();
            entry.seen.extend(known.seen.iter().cloned());
            entry.times += known.times;
        }
    }
    let follows = follows(templates);
    for template in templates {
        for (place, code) in places(template) {
            let Some(All { seen, times }) = all.get(&code) else { continue };
            let only = seen.first().filter(|_| seen.len() == 1 && *times >= OFTEN).cloned().flatten();
            let columns = follows.get(&code);
            let links = || template.links.iter().filter(|link| link.place == place);
            let link =
                columns.into_iter().flatten().find_map(|column| links().find(|link| link.column == *column));
            template.values[place].lock = match (only, link) {
                (Some(value), _) => Some(Lock::Same(value)),
                (None, link) => link.map(|link| Lock::Follows(link.other)),
            };
        }
    }
}

/// The columns from which each lock follows, those that most templates have first.
fn follows(templates: &[Template]) -> BTreeMap<(String, usize), Vec<String>> {
    type Seen<'a> = (BTreeMap<&'a str, (BTreeSet<&'a str>, u64)>, usize);
    let mut joined: BTreeMap<(&(String, usize), &str), Seen<'_>> = BTreeMap::new();
    for link in templates.iter().flat_map(|template| &template.links) {
        let (seen, count) = joined.entry((&link.code, &link.column)).or_default();
        *count += 1;
        for (value, (locks, times)) in &link.seen {
            let entry = seen.entry(value).or_default();
            entry.0.extend(locks.iter().map(String::as_str));
            entry.1 += times;
        }
    }
    let mut found: BTreeMap<(String, usize), Vec<(usize, String)>> = BTreeMap::new();
    for ((code, column), (seen, count)) in joined {
        let one = seen.values().all(|(locks, _)| locks.len() == 1);
        let again = seen.values().filter(|(_, times)| *times > 1).count();
        if one && again >= AGAIN {
            found.entry(code.clone()).or_default().push((count, column.to_owned()));
        }
    }
    let sorted = |mut all: Vec<(usize, String)>| {
        all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        all.into_iter().map(|(_, column)| column).collect()
    };
    found.into_iter().map(|(code, all)| (code, sorted(all))).collect()
}
