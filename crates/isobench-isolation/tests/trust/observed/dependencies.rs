//! The true dependencies of the simulated database's committed transactions, made from what it
//! stored, read and searched, not from a log.
//!
//! A row that is inserted again is another object (Adya 1999, §4.1.2), and for an object a search
//! follows the last change of the match that it saw, and precedes the first one that it didn't see.

use std::collections::BTreeMap;

use super::condition::Columns;
use super::database::{Database, Searched, State};

/// The committed versions of an incarnation of a row: the place of the commit, the transaction, and
/// the columns, `None` after its deletion.
#[derive(Debug, Clone, Default)]
struct Object {
    table: u16,
    initial: Option<Columns>,
    versions: Vec<(u64, usize, Option<Columns>)>,
}

impl Object {
    /// The number of versions that one sees who sees this many commits.
    fn seen(&self, commits: u64) -> usize {
        self.versions.iter().take_while(|(at, ..)| *at <= commits).count()
    }

    /// The columns of the version at a place; place 0 is before the first one.
    fn columns(&self, place: usize) -> Option<Columns> {
        place.checked_sub(1).map_or(self.initial, |index| self.versions[index].2)
    }
}

fn objects(database: &Database) -> BTreeMap<usize, Object> {
    let committed = |sub: Option<usize>| {
        let sub = database.subs[sub?];
        match database.txs[sub.tx].state {
            State::Committed(at) if !sub.rolled_back => Some((at, sub.tx)),
            _ => None,
        }
    };
    let mut objects: BTreeMap<usize, Object> = BTreeMap::new();
    for tuple in &database.tuples {
        let object = objects.entry(tuple.incarnation).or_default();
        object.table = tuple.key.table;
        if tuple.writer.is_none() {
            object.initial = Some(tuple.columns);
        } else if let Some((at, tx)) = committed(tuple.writer) {
            object.versions.retain(|version| version.1 != tx);
            object.versions.push((at, tx, Some(tuple.columns)));
        }
    }
    for tuple in database.tuples.iter().filter(|tuple| tuple.next.is_none()) {
        if let (Some((at, tx)), Some(object)) =
            (committed(tuple.ended_by), objects.get_mut(&tuple.incarnation))
        {
            object.versions.retain(|version| version.1 != tx);
            object.versions.push((at, tx, None));
        }
    }
    for object in objects.values_mut() {
        object.versions.sort_by_key(|(at, ..)| *at);
    }
    objects
}

/// For each transaction, the set of those that directly depend on it.
fn graph(database: &Database) -> Vec<u64> {
    let objects = objects(database);
    let mut after = vec![0_u64; database.txs.len()];
    let mut edge = |from: usize, to: usize| {
        if from != to {
            after[from] |= 1 << to;
        }
    };
    for object in objects.values() {
        for pair in object.versions.windows(2) {
            edge(pair[0].1, pair[1].1);
        }
    }
    for (reader, tx) in database.txs.iter().enumerate() {
        if !matches!(tx.state, State::Committed(_)) {
            continue;
        }
        for &read in &tx.reads {
            let tuple = &database.tuples[read];
            let versions = &objects[&tuple.incarnation].versions;
            let writer = tuple.writer.map(|sub| database.subs[sub].tx);
            let place = versions.iter().position(|version| Some(version.1) == writer);
            if let Some(writer) = writer.filter(|_| place.is_some()) {
                edge(writer, reader);
            }
            if let Some(next) = versions.get(place.map_or(0, |place| place + 1)) {
                edge(reader, next.1);
            }
        }
        for searched in &tx.searches {
            for (number, object) in objects.iter().filter(|(_, object)| object.table == searched.table) {
                if !searched.own.contains(number) {
                    let commits = searched.later.get(number).copied().unwrap_or(searched.snapshot);
                    changes(object, searched, commits, reader, &mut edge);
                }
            }
        }
    }
    after
}

/// The dependencies of a search on the transactions that changed whether an object matches.
fn changes(
    object: &Object,
    searched: &Searched,
    commits: u64,
    reader: usize,
    edge: &mut impl FnMut(usize, usize),
) {
    let seen = object.seen(commits);
    let matches =
        |place: usize| object.columns(place).is_some_and(|columns| searched.condition.matches(columns));
    let changed = |place: &usize| matches(*place) != matches(place - 1);
    if let Some(place) = (1..=seen).rev().find(changed) {
        edge(object.versions[place - 1].1, reader);
    }
    if let Some(place) = (seen + 1..=object.versions.len()).find(changed) {
        edge(reader, object.versions[place - 1].1);
    }
}

/// True if the committed transactions depend on each other in a circle.
pub fn cyclic(database: &Database) -> bool {
    let after = graph(database);
    let mut reached = after.clone();
    // Each round doubles the length of the paths.
    loop {
        let mut grown = false;
        for from in 0..reached.len() {
            let mut all = reached[from];
            for (to, beyond) in reached.iter().enumerate() {
                if reached[from] & 1 << to != 0 {
                    all |= beyond;
                }
            }
            grown |= all != reached[from];
            reached[from] = all;
        }
        if !grown {
            return reached.iter().enumerate().any(|(tx, reached)| reached & 1 << tx != 0);
        }
    }
}
