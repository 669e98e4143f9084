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
        let from = all.partition_point(|write| traffic.visible(write.at.transaction) <= change.read.time[1]);
        for write in &all[from..] {
            // Had it come first, the change would have waited for its end.
            if traffic.visible(write.at.transaction) > change.write.time[1] {
                break;
            }
            let own = known.get(&(write.at.transaction, write.at.line, change.column.as_str())).copied();
            if is_lost(traffic, change, write, own) {
                let entry = found
                    .entry((write.at.line, change.write.line))
                    .or_insert_with(|| live(traffic, change, write, own.map(|(own, _)| own)));
                entry.add(change, made, write, own);
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

/// True if a write was certainly overwritten by a change that can't have seen it, and what is there now is what no
/// order of both leaves.
fn is_lost(
    traffic: &Traffic<'_>,
    change: &Change,
    write: &Write,
    own: Option<(&Change, Option<Made>)>,
) -> bool {
    let (lost, by) = (write.at.transaction, change.write.transaction);
    let session = |number: usize| traffic.transaction(number).session;
    if write.request == change.request || session(lost) == session(by) {
        return false;
    }
    // One snapshot would have refused the second write.
    let strict = traffic.level(by).is_none_or(|level| level > Level::ReadCommitted);
    if strict && change.read.transaction == by {
        return false;
    }
    // The read was over before the other one could be seen.
    let unseen = change.read.time[1] < traffic.visible(lost);
    // Had this write come first, the other one would have waited for its lock.
    let after =
        write.at.time[1] < traffic.visible(by) || traffic.transaction(lost).ended < change.write.time[0];
    if !unseen || !after || is_same(&write.at.value, &change.read.value) {
        return false;
    }
    let differs = match own.and_then(|(_, made)| made) {
        Some(Made::More(_)) => true,
        Some(Made::Same) => false,
        None => !is_same(&write.at.value, &change.write.value),
    };
    let window = [change.read.time[0], change.write.time[1]];
    let column = change.column.as_str();
    let these = Columns::These(BTreeSet::from([column.to_owned()]));
    let apart = [lost, by, change.read.transaction];
    let value = Some((column, change.read.value.as_str()));
    let once = |at: &At| traffic.writes_once(at.transaction, &change.row, column, at.line);
    differs
        && once(&write.at)
        && once(&change.write)
        && traffic.is_quiet(&change.row, &these, value, window, &apart)
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
    fn add(&mut self, change: &Change, made: Made, write: &Write, own: Option<(&Change, Option<Made>)>) {
        let pair = |at: &At| (change.column.clone(), at.value.clone());
        let [first, second] = &mut self.sides;
        first.read.extend(own.map(|(own, _)| pair(&own.read)));
        first.wrote.push(pair(&write.at));
        second.read.push(pair(&change.read));
        second.wrote.push(pair(&change.write));
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
