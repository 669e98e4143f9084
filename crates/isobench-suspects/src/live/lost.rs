//! Changes that were overwritten by a request that had read the row before, and so didn't see them.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_robustness::Columns;

use super::change::{At, Change, Made, changes, is_same, number, shown};
use super::traffic::{RowName, Traffic};
use super::{Live, Side};
use crate::suspect::Kind;

/// A write of a column of a row.
struct Write {
    request: usize,
    at: At,
}

/// The lost updates, each with the first request that overwrote it.
pub(super) fn lost(traffic: &Traffic<'_>, stopped: &dyn Fn() -> bool) -> Vec<Live> {
    let changes = changes(traffic);
    let writes = all_writes(traffic);
    let known: BTreeMap<(usize, u64, &str), (&Change, Option<Made>)> = changes
        .iter()
        .map(|(change, made)| {
            ((change.write.transaction, change.write.line, change.column.as_str()), (change, *made))
        })
        .collect();
    let mut found: BTreeMap<(u64, u64), Live> = BTreeMap::new();
    for (change, made) in &changes {
        if stopped() {
            break;
        }
        let Some(made) = *made else { continue };
        let Some(all) = writes.get(&(&change.row, change.column.as_str())) else { continue };
        let visible = |write: &Write| traffic.visible(write.at.transaction);
        let ended = |write: &Write| traffic.transaction(write.at.transaction).ended;
        let longest = all.iter().map(|write| ended(write) - visible(write)).max().unwrap_or(0);
        let from = all.partition_point(|write| visible(write) + longest <= change.read.time[0]);
        for write in &all[from..] {
            // Had it come first, the change would have waited for its end.
            if visible(write) > change.write.time[1] {
                break;
            }
            let own = known.get(&(write.at.transaction, write.at.line, change.column.as_str())).copied();
            if let Some(order) = is_lost(traffic, (change, made), write, own) {
                let entry = found
                    .entry((write.at.line, change.write.line))
                    .or_insert_with(|| live(traffic, change, write, own.map(|(own, _)| own)));
                entry.add(change, made, write, own, order);
            }
        }
    }
    let mut once: Vec<Live> = Vec::new();
    for live in found.into_values() {
        if once.last().is_none_or(|last| last.sides[0].write_line != live.sides[0].write_line) {
            once.push(live);
        }
    }
    once
}

/// All writes of each column of each row, in the order in which they could be seen.
fn all_writes<'t>(traffic: &'t Traffic<'_>) -> BTreeMap<(&'t RowName, &'t str), Vec<Write>> {
    let mut found: BTreeMap<(&RowName, &str), Vec<Write>> = BTreeMap::new();
    for (transaction, all) in traffic.runs.iter().enumerate() {
        for ran in all {
            let Some((row, set)) = &ran.update else { continue };
            for (column, value) in set {
                let write =
                    Write { request: traffic.request[transaction], at: At::of(transaction, ran, value) };
                found.entry((row, column)).or_default().push(write);
            }
        }
    }
    for all in found.values_mut() {
        all.sort_by_key(|write| traffic.visible(write.at.transaction));
    }
    found
}

/// What is certain of two writes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The second one overwrote the first one.
    Known,
    /// One of them overwrote the other one, whichever that was.
    Either,
}

/// What is certain of a write and a change, if one was overwritten by the other, which can't have seen it, and if what
/// is there now is what no order of both leaves.
fn is_lost(
    traffic: &Traffic<'_>,
    (change, made): (&Change, Made),
    write: &Write,
    own: Option<(&Change, Option<Made>)>,
) -> Option<Order> {
    let (lost, by) = (write.at.transaction, change.write.transaction);
    let session = |number: usize| traffic.transaction(number).session;
    if write.request == change.request || session(lost) == session(by) {
        return None;
    }
    let of_own = own.and_then(|(_, made)| made);
    let differs = match of_own {
        Some(Made::More(_)) => true,
        Some(Made::Same) => false,
        None => !is_same(&write.at.value, &change.write.value),
    };
    // Had this write come first, the other one would have waited for its lock.
    let after =
        write.at.time[1] < traffic.visible(by) || traffic.transaction(lost).ended < change.write.time[0];
    let once = |at: &At| traffic.writes_once(at.transaction, &change.row, &change.column, at.line);
    let reader = own.map(|(own, _)| own);
    if !differs || !is_blind(traffic, change, &write.at, reader) || !once(&write.at) || !once(&change.write) {
        return None;
    }
    if after {
        return Some(Order::Known);
    }
    // Each was blind to the other one, and each pair once.
    let (other, _) = own.filter(|_| matches!((made, of_own), (Made::More(_), Some(Made::More(_)))))?;
    let first = (write.at.time[1], write.at.line) < (change.write.time[1], change.write.line);
    (first && is_blind(traffic, other, &change.write, Some(change))).then_some(Order::Either)
}

/// True if a change can't have seen a write of another value, and nothing else wrote the value again that it had read.
/// `own` is what the write was made of.
fn is_blind(traffic: &Traffic<'_>, change: &Change, write: &At, own: Option<&Change>) -> bool {
    let by = change.write.transaction;
    // One snapshot would have refused the second write.
    let strict = traffic.level(by).is_none_or(|level| level > Level::ReadCommitted);
    if strict && change.read.transaction == by {
        return false;
    }
    // The read was over before the other one could be seen; or it began before the other one's end was known, and
    // returned what that one had read, too.
    let before = change.read.time[1] < traffic.visible(write.transaction);
    let same = own.is_some_and(|own| is_same(&own.read.value, &change.read.value));
    let at_once = same && change.read.time[0] < traffic.transaction(write.transaction).ended;
    if !before && !at_once || is_same(&write.value, &change.read.value) {
        return false;
    }
    let window = [change.read.time[0].min(write.time[0]), change.write.time[1]];
    let column = change.column.as_str();
    let these = Columns::These(BTreeSet::from([column.to_owned()]));
    let apart = [write.transaction, by, change.read.transaction];
    traffic.is_quiet(&change.row, &these, Some((column, &change.read.value)), window, &apart)
}

fn live(traffic: &Traffic<'_>, change: &Change, write: &Write, own: Option<&Change>) -> Live {
    let side = |at: &At, read: Option<&At>| Side {
        session: traffic.transaction(at.transaction).session,
        read_line: read.map(|read| read.line),
        write_line: at.line,
        read: Vec::new(),
        wrote: Vec::new(),
        route: traffic.transaction(at.transaction).route.clone(),
        template: traffic.history.numbers[at.transaction].unwrap_or_default(),
    };
    let (table, row) = change.row.clone();
    let sides = [side(&write.at, own.map(|own| &own.read)), side(&change.write, Some(&change.read))];
    Live { kind: Kind::LostUpdate, table, row, sides, otherwise: Vec::new() }
}

impl Live {
    /// Adds a column.
    fn add(
        &mut self,
        change: &Change,
        made: Made,
        write: &Write,
        own: Option<(&Change, Option<Made>)>,
        order: Order,
    ) {
        let pair = |at: &At| (change.column.clone(), at.value.clone());
        let [first, second] = &mut self.sides;
        first.read.extend(own.map(|(own, _)| pair(&own.read)));
        first.wrote.push(pair(&write.at));
        second.read.push(pair(&change.read));
        second.wrote.push(pair(&change.write));
        if order == Order::Either && !is_same(&write.at.value, &change.write.value) {
            return;
        }
        // After the first one, and after the second one.
        let more = |value: &str, made: Made| match made {
            Made::Same => Some(value.to_owned()),
            Made::More(more) => Some(shown(number(value)?.checked_add(more)?)),
        };
        let one = more(&write.at.value, made);
        let other = match own.and_then(|(_, made)| made) {
            Some(made) => more(&change.write.value, made),
            None => Some(write.at.value.clone()),
        };
        if let (Some(one), Some(other)) = (one, other)
            && is_same(&one, &other)
        {
            self.otherwise.push((change.column.clone(), one));
        }
    }
}
