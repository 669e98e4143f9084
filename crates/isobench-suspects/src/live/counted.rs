//! Rows that two requests counted, and of which each then wrote one as if the other one hadn't: one redemption more
//! than a voucher allows, one doctor fewer than a shift needs.
//!
//! The recording shows no limit, but it shows what the code does at it. The same code has counted what the second
//! request would have counted after the first one, of several other rows, and has then never written. So often that
//! isn't an accident.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_robustness::Columns;

use super::traffic::{FARTHEST, Ran, RowName, Traffic};
use super::{Live, Side};
use crate::suspect::Kind;

/// Of how many other rows the code has to have counted as much as the second request would have.
const LEAST: usize = 3;

/// How likely it may be, at most, that it wrote nothing at that count by accident.
const ACCIDENT: f64 = 0.001;

/// The columns that a query compares, with their values.
type Values = Vec<(String, String)>;

/// What a write does to a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// It is one more.
    More,
    /// It is one less.
    Fewer,
}

/// A count, and what its request then wrote, if it wrote anything that changes the count.
struct Counted<'a> {
    request: usize,
    query: (usize, &'a Ran),
    table: &'a str,
    values: Values,
    count: u64,
    write: Option<((usize, &'a Ran), Effect)>,
}

/// The route of a request, and the statements of its transaction up to a query.
type Code<'a> = (Option<&'a str>, Vec<&'a str>);

/// The limits that were probably exceeded.
pub(super) fn counted(traffic: &Traffic<'_>, stopped: &dyn Fn() -> bool) -> Vec<Live> {
    let mut found = Vec::new();
    for all in counts(traffic).into_values() {
        for effect in [Effect::More, Effect::Fewer] {
            let wrote: Vec<&Counted<'_>> =
                all.iter().filter(|one| one.write.is_some_and(|(_, own)| own == effect)).collect();
            // Code that does both has no limit of one kind.
            if wrote.len() < all.iter().filter(|one| one.write.is_some()).count() {
                continue;
            }
            for (at, one) in wrote.iter().enumerate() {
                if stopped() {
                    return found;
                }
                let alike = |other: &&&Counted<'_>| {
                    (other.table, &other.values, other.count) == (one.table, &one.values, one.count)
                };
                let blind = wrote[at + 1..].iter().filter(alike).find(|other| is_blind(traffic, one, other));
                let Some(other) = blind else { continue };
                if let Some(after) = limit(&all, one.count, effect) {
                    found.extend(live(traffic, one, other, after));
                }
            }
        }
    }
    found
}

/// All counts of recorded requests, by their code.
fn counts<'t>(traffic: &'t Traffic<'_>) -> BTreeMap<Code<'t>, Vec<Counted<'t>>> {
    let mut found: BTreeMap<Code<'t>, Vec<Counted<'t>>> = BTreeMap::new();
    for (request, own) in traffic.requests.iter().enumerate() {
        let of = |transaction: &usize| {
            let transaction = *transaction;
            traffic.runs[transaction].iter().map(move |ran| (transaction, ran))
        };
        let ran: Vec<(usize, &Ran)> = own.iter().flat_map(of).collect();
        for (at, query) in ran.iter().enumerate() {
            let Some((table, values, count)) = counts_rows(query.1) else { continue };
            let same = |(transaction, _): &&(usize, &Ran)| *transaction == query.0;
            let before = ran[..=at].iter().rev().take_while(same).map(|(_, ran)| ran.run.key.as_str());
            let code: Code<'_> = (traffic.transaction(query.0).route.as_deref(), before.collect());
            // The next count of these rows is for another decision.
            let again = |(_, ran): &&(usize, &Ran)| {
                ran.run.key != query.1.run.key || ran.run.compared != query.1.run.compared
            };
            let later = ran[at + 1..].iter().take(FARTHEST).take_while(again);
            let mut writes = later.filter_map(|one| Some((*one, effect(query.1, table, &values, one.1)?)));
            let write = writes.next();
            // The count may have allowed any of several writes. A later transaction on a pool's connection may be
            // another request's.
            let traced = traffic.transaction(query.0).request.is_some();
            let is_own = write.is_none_or(|((transaction, _), _)| traced || transaction == query.0);
            if is_own && writes.next().is_none() {
                let counted = Counted { request, query: *query, table, values, count, write };
                found.entry(code).or_default().push(counted);
            }
        }
    }
    found
}

/// The table, the values and the number of rows of a query that counts rows of given values.
fn counts_rows(ran: &Ran) -> Option<(&str, Values, u64)> {
    let query = ran.query.as_ref()?;
    let (columns, flags) = query.tested.as_ref()?;
    let mut values = ran.run.compared.clone();
    values.extend(
        flags.iter().map(|(column, value)| (column.clone(), if *value { "t" } else { "f" }.to_owned())),
    );
    values.sort();
    let named: BTreeSet<&String> = columns.iter().chain(flags.iter().map(|(column, _)| column)).collect();
    let all: BTreeSet<&String> = values.iter().map(|(column, _)| column).collect();
    let once = named.len() == columns.len() + flags.len() && all.len() == values.len() && all == named;
    let count = if query.counts {
        let [row] = ran.run.results.as_slice() else { return None };
        let mut own = row.values();
        own.next().filter(|_| own.next().is_none())?.parse().ok()?
    } else if query.is_whole {
        ran.run.rows?
    } else {
        return None;
    };
    (once && !columns.is_empty()).then(|| Some((ran.table.as_deref()?, values, count)))?
}

/// What a statement does to the rows that a query counted.
fn effect(query: &Ran, table: &str, values: &Values, ran: &Ran) -> Option<Effect> {
    let has = |all: &[(String, String)], pair: &(String, String)| {
        all.iter().any(|own| own.0 == pair.0 && is_alike(&own.1, &pair.1))
    };
    if ran.table.as_deref() != Some(table) {
        return None;
    }
    if let Some(all) = &ran.insert {
        return values.iter().all(|pair| has(all, pair)).then_some(Effect::More);
    }
    let (row, set) = ran.update.as_ref()?;
    let was = query.returned(row).is_some() || values.iter().all(|pair| has(&ran.run.compared, pair));
    let leaves =
        |pair: &(String, String)| set.iter().any(|own| own.0 == pair.0 && !is_alike(&own.1, &pair.1));
    (was && values.iter().any(leaves)).then_some(Effect::Fewer)
}

/// True for values that are equal, or the same truth.
fn is_alike(one: &str, other: &str) -> bool {
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "t" | "true" => Some(true),
        "f" | "false" => Some(false),
        _ => None,
    };
    super::change::is_same(one, other) || truth(one).is_some_and(|of| truth(other) == Some(of))
}

/// The count that the second request would have seen after the first one, if the code never writes then.
fn limit(all: &[Counted<'_>], count: u64, effect: Effect) -> Option<u64> {
    let after = match effect {
        // A request that finds none looks for a row: see `twice`.
        Effect::More => count.checked_add(1).filter(|after| *after > 1)?,
        // Without rows there is nothing to write in any case.
        Effect::Fewer => count.checked_sub(1).filter(|after| *after > 0)?,
    };
    let beyond = |one: &&Counted<'_>| match effect {
        Effect::More => one.count >= after,
        Effect::Fewer => one.count <= after,
    };
    if all.iter().filter(beyond).any(|one| one.write.is_some()) {
        return None;
    }
    // What it does at the end of a recording may be another rule, such as a deadline.
    let last = all.iter().filter(|one| one.write.is_some()).map(|one| one.query.1.run.time[0]).max()?;
    let before = |one: &&Counted<'_>| one.count == after && one.query.1.run.time[0] < last;
    let declined: Vec<&Counted<'_>> = all.iter().filter(before).collect();
    let of: BTreeSet<&Values> = declined.iter().map(|one| &one.values).collect();
    // How often it writes at the count that both saw. A row of fewer is found less often.
    let at = || all.iter().filter(|one| one.count == count);
    let share = at().filter(|one| one.write.is_some()).count() as f64 / at().count() as f64;
    let share = match effect {
        Effect::More => share,
        Effect::Fewer => share * after as f64 / count as f64,
    };
    let accident = (1.0 - share).powi(i32::try_from(declined.len()).ok()?);
    (of.len() >= LEAST && accident < ACCIDENT).then_some(after)
}

/// True if neither count can have seen what the other one's request wrote, and nothing else changed the count back.
fn is_blind(traffic: &Traffic<'_>, one: &Counted<'_>, other: &Counted<'_>) -> bool {
    let (Some((first, _)), Some((second, _))) = (one.write, other.write) else { return false };
    let session = |write: (usize, &Ran)| traffic.transaction(write.0).session;
    let unseen = |own: &Counted<'_>, by: (usize, &Ran)| own.query.1.run.time[1] < traffic.visible(by.0);
    let strict = |own: &Counted<'_>, write: (usize, &Ran)| {
        own.query.0 == write.0 && traffic.level(write.0).is_none_or(|level| level == Level::Serializable)
    };
    let row_of = |write: (usize, &Ran)| write.1.update.as_ref().map(|(row, _)| row.clone());
    if one.request == other.request
        || session(first) == session(second)
        || strict(one, first) && strict(other, second)
        || row_of(first).is_some() && row_of(first) == row_of(second)
        || !unseen(one, second)
        || !unseen(other, first)
    {
        return false;
    }
    let columns = Columns::These(one.values.iter().map(|(column, _)| column.clone()).collect());
    let row: RowName = (one.table.to_owned(), one.values.clone());
    let from = one.query.1.run.time[0].min(other.query.1.run.time[0]);
    let to = first.1.run.time[1].max(second.1.run.time[1]);
    let own = [(one, first), (other, second)];
    // Neither request takes its write back, or writes these rows in another way.
    let only = own.iter().all(|(counted, write)| {
        let all = &traffic.requests[counted.request];
        let after = all.iter().filter(|number| **number >= counted.query.0);
        let mut others = after.filter(|number| **number != write.0);
        let alone =
            write.1.update.is_none() || traffic.writes_rows_once(write.0, &row, &columns, write.1.run.line);
        let removes = write.1.update.is_none() && traffic.may_remove(write.0, &row, &columns);
        alone
            && !removes
            && others
                .all(|number| is_far(traffic, *number, to) || !traffic.may_remove(*number, &row, &columns))
    });
    let apart = [one.query.0, first.0, other.query.0, second.0];
    only && traffic.is_quiet(&row, &columns, None, [from, to], &apart)
}

/// How long after a write it may be taken back, in microseconds.
const TAKEN_BACK: u64 = 1_000_000;

/// True if a transaction began long after a time.
fn is_far(traffic: &Traffic<'_>, number: usize, time: u64) -> bool {
    traffic.transaction(number).at > time + TAKEN_BACK
}

fn live(traffic: &Traffic<'_>, one: &Counted<'_>, other: &Counted<'_>, after: u64) -> Option<Live> {
    let side = |counted: &Counted<'_>| {
        let ((transaction, ran), _) = counted.write?;
        let wrote = ran.update.as_ref().map_or_else(Vec::new, |(row, set)| {
            let of = |pair: &&(String, String)| counted.values.iter().any(|(column, _)| *column == pair.0);
            row.1.iter().chain(set.iter().filter(of)).cloned().collect()
        });
        Some(Side {
            session: traffic.transaction(transaction).session,
            read_line: Some(counted.query.1.run.line),
            write_line: ran.run.line,
            read: vec![("rows".to_owned(), counted.count.to_string())],
            wrote,
            route: traffic.transaction(transaction).route.clone(),
            template: traffic.history.numbers[transaction].unwrap_or_default(),
        })
    };
    let mut sides = [side(one)?, side(other)?];
    sides.sort_by_key(|side| side.write_line);
    Some(Live {
        kind: Kind::WriteSkew,
        table: one.table.to_owned(),
        row: one.values.clone(),
        sides,
        otherwise: vec![("rows".to_owned(), after.to_string())],
    })
}
