//! Rows that two requests inserted, each after it had looked for such a row and found none.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_replay::End;
use isobench_robustness::Columns;

use super::traffic::{FARTHEST, Ran, Traffic};
use super::{Live, Side};
use crate::between::counted_none;
use crate::suspect::Kind;

/// How many different rows have to be found by transactions that were rolled back, so that the code declines them.
const LEAST: usize = 3;

/// The columns that a search compares, with their values.
type Values = Vec<(String, String)>;

/// A search that found nothing, and the insert that followed.
struct Inserted<'a> {
    request: usize,
    search: (usize, &'a Ran),
    insert: (usize, &'a Ran),
    code: Code<'a>,
}

/// The route of a request, and the statements of its transaction up to a search.
type Code<'a> = (Option<&'a str>, Vec<&'a str>);

/// Searches, by what their requests did then.
#[derive(Default)]
struct Searches<'a> {
    /// They found nothing, and a row was inserted; by table and values.
    absent: BTreeMap<(&'a str, Values), Vec<Inserted<'a>>>,
    /// They found a row, and none was inserted.
    declined: BTreeSet<Code<'a>>,
    /// The same, and they were rolled back, perhaps for another reason; with what they looked for.
    undone: BTreeMap<Code<'a>, BTreeSet<Values>>,
    /// They found a row, and another one was inserted all the same; their texts.
    careless: BTreeSet<&'a str>,
}

/// The rows that were certainly inserted twice for this reason.
pub(super) fn twice(traffic: &Traffic<'_>, stopped: &dyn Fn() -> bool) -> Vec<Live> {
    let searches = searches(traffic);
    // The same code has found such a row, and then inserted none.
    let decides = |one: &Inserted<'_>| {
        let undone = searches.undone.get(&one.code).is_some_and(|values| values.len() >= LEAST);
        (undone || searches.declined.contains(&one.code))
            && !searches.careless.contains(one.search.1.run.key.as_str())
    };
    let mut found = Vec::new();
    for ((table, values), all) in &searches.absent {
        let deciding: Vec<&Inserted<'_>> = all.iter().filter(|one| decides(one)).collect();
        for (at, one) in deciding.iter().enumerate() {
            if stopped() {
                return found;
            }
            let other = deciding[at + 1..].iter().find(|other| is_blind(traffic, table, values, one, other));
            found.extend(other.map(|other| live(traffic, table, values, one, other)));
        }
    }
    found
}

fn searches<'t>(traffic: &'t Traffic<'_>) -> Searches<'t> {
    let mut found = Searches::default();
    for (request, own) in traffic.requests.iter().enumerate() {
        let of = |transaction: &usize| {
            let transaction = *transaction;
            traffic.runs[transaction].iter().map(move |ran| (transaction, ran))
        };
        let ran: Vec<(usize, &Ran)> = own.iter().flat_map(of).collect();
        for (at, search) in ran.iter().enumerate() {
            let Some((table, values)) = looks_for(search.1) else { continue };
            let inserts = |(_, ran): &&(usize, &Ran)| {
                let all = ran.insert.as_ref().filter(|_| ran.table.as_deref() == Some(table));
                all.is_some_and(|all| values.iter().all(|value| all.contains(value)))
            };
            // The next search for the same row is for another decision.
            let again = |(_, ran): &&(usize, &Ran)| {
                ran.run.key != search.1.run.key || ran.run.compared != search.1.run.compared
            };
            let later = ran[at + 1..].iter().take(FARTHEST).take_while(again);
            let insert = later.copied().find(|one| inserts(&one));
            let same = |(transaction, _): &&(usize, &Ran)| *transaction == search.0;
            let before = ran[..=at].iter().rev().take_while(same).map(|(_, ran)| ran.run.key.as_str());
            let code: Code<'_> = (traffic.transaction(search.0).route.as_deref(), before.collect());
            match (finds(search.1), insert) {
                (Some(true), None) if traffic.transaction(search.0).end == End::RolledBack => {
                    found.undone.entry(code).or_default().insert(values);
                }
                (Some(true), None) => drop(found.declined.insert(code)),
                (Some(true), Some(_)) => drop(found.careless.insert(&search.1.run.key)),
                (Some(false), Some(insert)) => {
                    let inserted = Inserted { request, search: *search, insert, code };
                    found.absent.entry((table, values)).or_default().push(inserted);
                }
                _ => {}
            }
        }
    }
    found
}

/// The table and the values that a query looks for by equality alone.
fn looks_for(ran: &Ran) -> Option<(&str, Values)> {
    let columns = ran.query.as_ref()?.equal.as_ref().filter(|columns| !columns.is_empty())?;
    let named: BTreeSet<&String> = columns.iter().collect();
    let mut values = ran.run.compared.clone();
    values.sort();
    let all: BTreeSet<&String> = values.iter().map(|(column, _)| column).collect();
    let once = named.len() == columns.len() && all.len() == values.len();
    (once && all == named).then(|| Some((ran.table.as_deref()?, values))).flatten()
}

/// True if a query found a row, false if it found none; `None` if its answer doesn't say it.
fn finds(ran: &Ran) -> Option<bool> {
    let counts = ran.run.key.get(..13).is_some_and(|start| start.eq_ignore_ascii_case("SELECT count("));
    match ran.run.rows? {
        1 if counts => Some(!counted_none(&ran.run)),
        rows => Some(rows > 0),
    }
}

/// True if neither search can have seen what the other one's request inserted, and nothing removed it.
fn is_blind(
    traffic: &Traffic<'_>,
    table: &str,
    values: &Values,
    one: &Inserted<'_>,
    other: &Inserted<'_>,
) -> bool {
    let session = |inserted: &Inserted<'_>| traffic.transaction(inserted.insert.0).session;
    // It was sent before the end of the other one was known, and found none.
    let unseen = |search: &Inserted<'_>, by: &Inserted<'_>| {
        search.search.1.run.time[0] < traffic.transaction(by.insert.0).ended
    };
    let strict = |inserted: &Inserted<'_>| {
        inserted.search.0 == inserted.insert.0
            && traffic.level(inserted.insert.0).is_none_or(|level| level == Level::Serializable)
    };
    if one.request == other.request || session(one) == session(other) || strict(one) && strict(other) {
        return false;
    }
    let columns = Columns::These(values.iter().map(|(column, _)| column.clone()).collect());
    let from = one.search.1.run.time[0].min(other.search.1.run.time[0]);
    let to = one.insert.1.run.time[1].max(other.insert.1.run.time[1]);
    let apart = [one.search.0, one.insert.0, other.search.0, other.insert.0];
    let row = (table.to_owned(), values.clone());
    unseen(one, other)
        && unseen(other, one)
        && apart.iter().all(|number| !traffic.may_remove(*number, &row, &columns))
        && traffic.is_quiet(&row, &columns, None, [from, to], &apart)
}

fn live(
    traffic: &Traffic<'_>,
    table: &str,
    values: &Values,
    one: &Inserted<'_>,
    other: &Inserted<'_>,
) -> Live {
    let side = |inserted: &Inserted<'_>| Side {
        session: traffic.transaction(inserted.insert.0).session,
        read_line: Some(inserted.search.1.run.line),
        write_line: inserted.insert.1.run.line,
        read: Vec::new(),
        wrote: values.clone(),
        route: traffic.transaction(inserted.insert.0).route.clone(),
        template: traffic.history.numbers[inserted.insert.0].unwrap_or_default(),
    };
    let mut sides = [side(one), side(other)];
    sides.sort_by_key(|side| side.write_line);
    Live { kind: Kind::Duplicate, table: table.to_owned(), row: values.clone(), sides, otherwise: Vec::new() }
}
