//! How a copy of a database that was made after recording is taken back to where recorded transactions
//! found it.
//!
//! A transaction that uses up what it finds (an open basket, an unpaid bill) finds nothing in such a copy.
//! What transactions changed is undone backwards, as far as the record shows what was there before: not
//! all of it, which would take away what others find, but for each group of rows up to another
//! transaction, so that together they are as in the middle of the work. Rows that many instances of a
//! template touch belong to no group, and stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use isobench_capture::{Column, Datum};
use isobench_script::lexer::{Token, words};
use isobench_script::literal;

use crate::inference::Lineage;
use crate::sessions::{End, Executed, Recorded, Transaction};
use crate::statement::{Clause, Place, Role};
use crate::values::same;

/// A row is shared if more than this share of the instances of a template touch it, and more than
/// [`FEW`] of them.
const SHARED: f64 = 0.1;

/// See [`SHARED`].
const FEW: usize = 2;

/// A row: its table and the value of its key.
type Row = (String, String);

/// What is known of a row's columns.
type Image = BTreeMap<String, Option<Datum>>;

/// The recorded transactions, as far as they can be undone.
#[derive(Debug, Default)]
pub struct Past {
    /// For each recorded transaction, its group and SQL that undoes it, the last statement first.
    transactions: Vec<(usize, Vec<String>)>,
}

impl Past {
    /// Finds the groups of rows, and what undoes each transaction. `alike` has, for each transaction, the
    /// number of its template.
    pub fn of(recorded: &Recorded, lineage: &Lineage, alike: &[usize]) -> Past {
        let touched: Vec<BTreeSet<Row>> =
            recorded.transactions.iter().map(|transaction| touched(transaction, lineage)).collect();
        let shared = shared(&touched, alike);
        let groups = groups(&touched, &shared);
        let mut images: HashMap<Row, Image> = HashMap::new();
        let undone = recorded.transactions.iter().map(|transaction| {
            let mut undo: Vec<(Option<Row>, String)> = Vec::new();
            if transaction.end == End::Committed {
                let work = transaction.statements.iter().filter(|executed| executed.role == Role::Work);
                work.for_each(|executed| take(executed, lineage, &mut images, &mut undo));
            }
            let own = |row: &Option<Row>| row.as_ref().is_none_or(|row| !shared.contains(row));
            undo.into_iter().rev().filter(|(row, _)| own(row)).map(|(_, sql)| sql).collect()
        });
        Past { transactions: groups.into_iter().zip(undone).collect() }
    }

    /// SQL that takes the groups back, each up to an instance of one of these scripts in turn, so that about
    /// the same number of instances of each finds its rows, and of none. The scripts are given by the
    /// transactions that their instances begin with, in order.
    pub fn back_to(&self, scripts: &[Vec<usize>]) -> Vec<&str> {
        let mut groups: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (script, instances) in scripts.iter().enumerate() {
            for transaction in instances {
                groups.entry(self.transactions[*transaction].0).or_default().push((*transaction, script));
            }
        }
        let mut chosen = vec![0_usize; scripts.len()];
        let mut left: BTreeMap<BTreeSet<usize>, usize> = BTreeMap::new();
        let mut begins: HashMap<usize, usize> = HashMap::new();
        for (group, instances) in groups {
            // The last one of each script has the least to be undone.
            let fewest = instances.iter().min_by_key(|(at, script)| (chosen[*script], usize::MAX - at));
            let Some((at, script)) = fewest else { continue };
            // Groups that stay as they are take their turns with those of the same scripts.
            let stay = left.entry(instances.iter().map(|(_, script)| *script).collect()).or_default();
            if *stay < chosen[*script] {
                *stay += 1;
            } else {
                chosen[*script] += 1;
                begins.insert(group, *at);
            }
        }
        let all = self.transactions.iter().enumerate().rev();
        let undone = all.filter(|(at, (group, _))| begins.get(group).is_some_and(|first| first <= at));
        undone.flat_map(|(_, (_, undo))| undo).map(String::as_str).collect()
    }
}

/// The rows that many instances of a template touch.
fn shared<'r>(touched: &'r [BTreeSet<Row>], alike: &[usize]) -> BTreeSet<&'r Row> {
    let mut instances: HashMap<usize, usize> = HashMap::new();
    let mut touches: HashMap<(usize, &Row), usize> = HashMap::new();
    for (template, rows) in alike.iter().zip(touched) {
        *instances.entry(*template).or_default() += 1;
        for row in rows {
            *touches.entry((*template, row)).or_default() += 1;
        }
    }
    let many = |template: usize, count: usize| {
        let of = instances.get(&template).copied().unwrap_or_default();
        count > FEW && count as f64 > SHARED * of as f64
    };
    touches
        .into_iter()
        .filter(|((template, _), count)| many(*template, *count))
        .map(|((_, row), _)| row)
        .collect()
}

/// The group of each transaction: those that touch the same row, unless it is shared, are one.
fn groups(touched: &[BTreeSet<Row>], shared: &BTreeSet<&Row>) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..touched.len()).collect();
    let mut first: HashMap<&Row, usize> = HashMap::new();
    for (number, rows) in touched.iter().enumerate() {
        for row in rows.iter().filter(|row| !shared.contains(row)) {
            let before = *first.entry(row).or_insert(number);
            let (one, other) = (root(&mut parents, before), root(&mut parents, number));
            parents[one.max(other)] = one.min(other);
        }
    }
    (0..touched.len()).map(|number| root(&mut parents, number)).collect()
}

/// The first transaction of a group.
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

fn plain(value: Option<&Datum>) -> Option<&str> {
    match value {
        Some(Datum::Text(text)) => Some(text),
        _ => None,
    }
}

/// The rows that a transaction read, wrote, or referred to.
fn touched(transaction: &Transaction, lineage: &Lineage) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    for executed in &transaction.statements {
        for image in images_of(executed, lineage) {
            rows.insert(image.0);
        }
        for place in &executed.normal.places {
            let (Some((Some(table), column)), Some(value)) = (&place.column, plain(place.value.as_ref()))
            else {
                continue;
            };
            let key = key(lineage, table);
            if let Some((table, _)) = lineage.constraints().refers(table, column) {
                rows.insert((table.clone(), value.to_owned()));
            } else if key == Some(column) && place.clause != Clause::Set {
                rows.insert((table.clone(), value.to_owned()));
            }
        }
    }
    rows
}

/// The only column of a table's primary key.
fn key<'a>(lineage: &'a Lineage, table: &str) -> Option<&'a String> {
    match lineage.constraints().primary(table) {
        Some([key]) => Some(key),
        _ => None,
    }
}

/// The rows of a result, by table, with what is known of them.
fn images_of(executed: &Executed, lineage: &Lineage) -> Vec<(Row, Image)> {
    let mut tables: BTreeMap<&str, Vec<(usize, &Column)>> = BTreeMap::new();
    for (number, column) in executed.columns.iter().enumerate() {
        if let Some(table) = lineage.table(column) {
            tables.entry(table).or_default().push((number, column));
        }
    }
    let mut found = Vec::new();
    for (table, columns) in tables {
        let Some(key) = key(lineage, table) else { continue };
        let Some((place, _)) = columns.iter().find(|(_, column)| column.name == *key) else { continue };
        for row in &executed.answer.values {
            let Some(value) = row.get(*place).and_then(|value| plain(value.as_ref())) else { continue };
            let values = columns
                .iter()
                .filter_map(|(number, column)| Some((column.name.clone(), row.get(*number)?.clone())));
            found.push(((table.to_owned(), value.to_owned()), values.collect()));
        }
    }
    found
}

/// Takes what a statement read and wrote, and adds what undoes it.
fn take(
    executed: &Executed,
    lineage: &Lineage,
    images: &mut HashMap<Row, Image>,
    undo: &mut Vec<(Option<Row>, String)>,
) {
    let seen = images_of(executed, lineage);
    let normal = &executed.normal;
    let Some(table) = &normal.table else { return };
    let changed = executed.answer.tag.as_deref().is_none_or(|tag| !tag.ends_with(" 0"));
    let key = key(lineage, table);
    match normal.verb.as_str() {
        // Whether ON CONFLICT DO UPDATE inserted or updated isn't known.
        "insert"
            if changed
                && !words(&normal.key).windows(2).any(|two| two[0].is("DO") && two[1].is("UPDATE")) =>
        {
            insert(executed, table, key, &seen, images, undo);
        }
        "update" if changed => {
            if let Some(key) = key {
                update(executed, table, key, images, undo);
            }
        }
        "delete" if changed => {
            for value in key.map_or(Vec::new(), |key| keys(&normal.places, table, key)) {
                let row = (table.clone(), value.to_owned());
                let Some(image) = images.remove(&row) else { continue };
                let columns: Vec<String> = image.keys().map(|column| quoted(column)).collect();
                let values: Option<Vec<String>> = image.values().map(sql).collect();
                undo.extend(values.map(|values| {
                    let sql = format!(
                        "INSERT INTO {} ({}) VALUES ({})",
                        quoted(table),
                        columns.join(", "),
                        values.join(", ")
                    );
                    (Some(row), sql)
                }));
            }
        }
        _ => {}
    }
    for (row, image) in seen {
        images.entry(row).or_default().extend(image);
    }
}

fn insert(
    executed: &Executed,
    table: &str,
    key: Option<&String>,
    seen: &[(Row, Image)],
    images: &mut HashMap<Row, Image>,
    undo: &mut Vec<(Option<Row>, String)>,
) {
    let places = &executed.normal.places;
    let inserted = places.iter().filter(|place| place.clause == Clause::Insert);
    let values: Vec<(&String, &Option<Datum>)> =
        inserted.filter_map(|place| Some((&place.column.as_ref()?.1, &place.value))).collect();
    let names: BTreeSet<&String> = values.iter().map(|(column, _)| *column).collect();
    let one_row = names.len() == values.len();
    let mut rows: Vec<&str> =
        seen.iter().filter(|((of, _), _)| of == table).map(|((_, value), _)| value.as_str()).collect();
    if rows.is_empty() {
        let own = values.iter().filter(|(column, _)| Some(*column) == key);
        rows = own.filter_map(|(_, value)| plain(value.as_ref())).collect();
    }
    if let (Some(key), false) = (key, rows.is_empty()) {
        for value in rows {
            let row = (table.to_owned(), value.to_owned());
            let sql = format!("DELETE FROM {} WHERE {} = {}", quoted(table), quoted(key), literal(value));
            undo.push((Some(row.clone()), sql));
            if one_row {
                let image = values.iter().map(|(column, value)| ((*column).clone(), (*value).clone()));
                images.entry(row).or_default().extend(image);
            }
        }
    } else if one_row && !values.is_empty() {
        let equal = values
            .iter()
            .map(|(column, value)| Some(format!("{} IS NOT DISTINCT FROM {}", quoted(column), sql(value)?)));
        let equal: Option<Vec<String>> = equal.collect();
        undo.extend(
            equal.map(|equal| (None, format!("DELETE FROM {} WHERE {}", quoted(table), equal.join(" AND ")))),
        );
    }
}

fn update(
    executed: &Executed,
    table: &str,
    key: &str,
    images: &mut HashMap<Row, Image>,
    undo: &mut Vec<(Option<Row>, String)>,
) {
    let places = &executed.normal.places;
    let mentioned: BTreeSet<String> = words(&executed.normal.key).iter().filter_map(Token::name).collect();
    for value in keys(places, table, key) {
        let row = (table.to_owned(), value.to_owned());
        let image = images.entry(row.clone()).or_default();
        let mut before = String::new();
        let mut set: BTreeSet<&str> = BTreeSet::new();
        for place in places.iter().filter(|place| place.clause == Clause::Set) {
            let Some((_, column)) = &place.column else { continue };
            set.insert(column);
            let old = image.insert(column.clone(), place.value.clone());
            if let Some(old) = old.filter(|old| !same(old, &place.value)).as_ref().and_then(sql) {
                let comma = if before.is_empty() { "" } else { ", " };
                let _ = write!(before, "{comma}{} = {old}", quoted(column));
            }
        }
        // What an expression gave isn't known.
        image.retain(|column, _| {
            column == key || set.contains(column.as_str()) || !mentioned.contains(column)
        });
        if !before.is_empty() {
            let sql =
                format!("UPDATE {} SET {before} WHERE {} = {}", quoted(table), quoted(key), literal(value));
            undo.push((Some(row), sql));
        }
    }
}

/// The keys of the rows that a statement asks for.
fn keys<'a>(places: &'a [Place], table: &str, key: &str) -> Vec<&'a str> {
    let is_key = |place: &&Place| {
        let column = place.column.as_ref();
        place.clause == Clause::Other
            && column.is_some_and(|(of, name)| name == key && of.as_deref().is_none_or(|of| of == table))
    };
    places.iter().filter(is_key).filter_map(|place| plain(place.value.as_ref())).collect()
}

/// SQL for a value, unless only its hash is known.
#[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
fn sql(value: &Option<Datum>) -> Option<String> {
    match value {
        None => Some("NULL".to_owned()),
        Some(Datum::Text(text)) => Some(literal(text)),
        Some(Datum::Hex { hex }) => Some(literal(&format!("\\x{hex}"))),
        Some(Datum::Hash { .. }) => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
