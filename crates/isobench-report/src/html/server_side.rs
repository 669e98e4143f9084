//! The server's own statistics: counters, lock waits, its counts beside ours, its processes.
//!
//! Not here: wait events, which are a picture.

use std::collections::{BTreeMap, BTreeSet};

use isobench_result::document::{
    Cell, CountComparison, Counter, Document, LockWait, PredicateLocks, ServerSide,
};
use isobench_result::numbers::{counted, short};
use isobench_result::rounds::counted_rounds;
use isobench_result::view::{Entry, Heading, Table};
use isobench_result::words::distinct;
use maud::{Markup, html};

use super::part::{cell_name, measured, table};

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let cells: Vec<&Cell> = measured(document).filter(|cell| sides(cell).next().is_some()).collect();
    if cells.is_empty() {
        return None;
    }
    Some(html! {
        (counters(document, &cells))
        (processes(document, &cells))
        (lock_waits(document, &cells))
        (predicate_locks(document, &cells))
        (comparison(document, &cells))
        (notes(&cells))
    })
}

/// The server's side of the rounds that count.
fn sides(cell: &Cell) -> impl Iterator<Item = &ServerSide> {
    counted_rounds(cell).into_iter().filter_map(|round| round.server.as_ref())
}

fn committed(cell: &Cell) -> u64 {
    let rounds = counted_rounds(cell).into_iter().filter(|round| round.server.is_some());
    rounds.fold(0, |sum, round| sum.saturating_add(round.transactions.committed))
}

/// Headings of counters: what they count, and the cells.
fn headings(names: Vec<String>) -> Vec<Heading> {
    let cells = names.into_iter().map(|name| Heading::new(name, "", true));
    std::iter::once(Heading::new("counter", "", false)).chain(cells).collect()
}

fn counters(document: &Document, cells: &[&Cell]) -> Markup {
    let mut names = BTreeSet::new();
    let all = cells.iter().flat_map(|cell| sides(cell)).flat_map(|side| &side.counters);
    let known: Vec<&Counter> = all.filter(|counter| names.insert(counter.name.as_str())).collect();
    if known.is_empty() {
        return Markup::default();
    }
    let names: Vec<String> = cells.iter().map(|cell| cell_name(document, cell)).collect();
    let cells: Vec<(u64, BTreeMap<&str, f64>)> =
        cells.iter().map(|cell| (committed(cell), rises(cell))).collect();
    let rise = |rises: &BTreeMap<&str, f64>, counter: &Counter| {
        rises.get(counter.name.as_str()).copied().filter(|sum| sum.is_finite())
    };
    let (rose, stood): (Vec<&Counter>, Vec<&Counter>) = known
        .into_iter()
        .partition(|counter| cells.iter().any(|(_, rises)| rise(rises, counter) != Some(0.0)));
    let row = |counter: &&Counter| {
        let name = Entry::Stack(vec![counter.meaning.as_str().into(), counter.name.as_str().into()]);
        let of_cells = cells.iter().map(|(committed, rises)| shown(*committed, rise(rises, counter)));
        std::iter::once(name).chain(of_cells).collect::<Vec<_>>()
    };
    let risen = Table::new(headings(names), rose.iter().map(row));
    let stood: Vec<&str> = stood.iter().map(|counter| counter.name.as_str()).collect();
    let caption = "Rise of the server's counters in the measured time, per committed transaction and in all";
    html! {
        h3 { "Counters" }
        @if !rose.is_empty() { (table(caption, &risen)) }
        @if !stood.is_empty() { p class="muted" { "Counters that didn't move: " (stood.join(", ")) "." } }
    }
}

/// By how much each counter that was read rose in all rounds of a cell.
fn rises(cell: &Cell) -> BTreeMap<&str, f64> {
    let mut rises = BTreeMap::new();
    for counter in sides(cell).flat_map(|side| &side.counters) {
        *rises.entry(counter.name.as_str()).or_insert(0.0) += counter.change;
    }
    rises
}

fn shown(committed: u64, rise: Option<f64>) -> Entry {
    let Some(sum) = rise else { return Entry::Number(None) };
    let each = (committed > 0).then(|| sum / committed as f64);
    Entry::Stack(vec![Entry::Number(each), format!("{} in all", whole(sum)).into()])
}

/// A sum of counts has no decimals, however small; one of milliseconds has.
fn whole(sum: f64) -> String {
    if sum.fract() == 0.0 && sum.abs() < 100.0 { format!("{sum:.0}") } else { short(sum) }
}

fn processes(document: &Document, cells: &[&Cell]) -> Markup {
    if !cells.iter().flat_map(|cell| sides(cell)).any(|side| side.processes.is_some()) {
        return Markup::default();
    }
    let rows: Vec<Vec<Entry>> = cells
        .iter()
        .map(|cell| {
            let memory = sides(cell).filter_map(|side| side.processes?.memory_bytes).max();
            let sampling: f64 = sides(cell).map(|side| side.sampling_s).sum();
            let measured = counted_rounds(cell).into_iter().filter(|round| round.server.is_some());
            let seconds: f64 = measured.map(|round| round.seconds).sum();
            vec![
                cell_name(document, cell).into(),
                Entry::Number(cell.summary.server_cpu_us),
                Entry::Number(cell.summary.client_cpu_us),
                memory.map_or(Entry::Number(None), |memory| super::environment::bytes(memory).into()),
                Entry::Share(Some(sampling / seconds)),
            ]
        })
        .collect();
    let columns = Heading::all(&[
        ("level", false),
        ("server CPU, µs per committed", true),
        ("client CPU, µs per committed", true),
        ("server memory, most", true),
        ("sampled, share of the time", true),
    ]);
    let caption =
        "Processor time and memory, and the part of the time in which the server answered the sampler";
    html! {
        h3 { "Processes" }
        (table(caption, &Table::new(columns, rows)))
    }
}

fn lock_waits(document: &Document, cells: &[&Cell]) -> Markup {
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for cell in cells {
        let mut sums: Vec<LockWait> = Vec::new();
        for wait in sides(cell).flat_map(|side| &side.lock_waits).filter(|wait| wait.seen > 0) {
            let same = |other: &&mut LockWait| {
                (&other.locktype, &other.mode, &other.table) == (&wait.locktype, &wait.mode, &wait.table)
            };
            match sums.iter_mut().find(same) {
                Some(sum) => sum.seen = sum.seen.saturating_add(wait.seen),
                None => sums.push(wait.clone()),
            }
        }
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.seen));
        rows.extend(sums.into_iter().map(|sum| {
            let table = sum.table.map_or(Entry::Number(None), Entry::from);
            vec![
                cell_name(document, cell).into(),
                sum.locktype.into(),
                sum.mode.into(),
                table,
                sum.seen.into(),
            ]
        }));
    }
    if rows.is_empty() {
        return Markup::default();
    }
    let columns = Heading::all(&[
        ("level", false),
        ("lock on", false),
        ("mode", false),
        ("table", false),
        ("sessions seen waiting", true),
    ]);
    html! {
        h3 { "Locks waited for" }
        (table("Sessions that waited for a lock, added up over the samples", &Table::new(columns, rows)))
    }
}

/// The most locks of each granularity that a sample found, of the cells that held any.
fn predicate_locks(document: &Document, cells: &[&Cell]) -> Markup {
    let most = |cell: &Cell| {
        PredicateLocks::GRANULARITIES.map(|(_, counts)| {
            let locks = sides(cell).filter_map(|side| side.predicate_locks.as_ref());
            locks.flat_map(|locks| counts(locks).iter().copied()).max().unwrap_or(0)
        })
    };
    let held = cells.iter().map(|cell| (*cell, most(cell))).filter(|(_, most)| *most != [0; 3]);
    let rows: Vec<Vec<Entry>> = held
        .map(|(cell, most)| {
            std::iter::once(cell_name(document, cell).into()).chain(most.map(Entry::from)).collect()
        })
        .collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let columns = Heading::all(&[("level", false), ("tuple", true), ("page", true), ("relation", true)]);
    html! {
        h3 { "Predicate locks" }
        (table("The most predicate locks (SIReadLock) in any sample, by what they cover", &Table::new(columns, rows)))
    }
}

fn comparison(document: &Document, cells: &[&Cell]) -> Markup {
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for cell in cells {
        let whats = distinct(sides(cell).flat_map(|side| &side.comparison).map(|one| one.what.as_str()));
        rows.extend(whats.into_iter().map(|what| compared(document, cell, what)));
    }
    if rows.is_empty() {
        return Markup::default();
    }
    let columns = Heading::all(&[
        ("level", false),
        ("counted", false),
        ("by isobench", true),
        ("by the server", true),
        ("agree", false),
        ("why they may differ", false),
    ]);
    let caption = "What both counted, from before the clients connected until after they left";
    html! {
        h3 { "The server's counts and ours" }
        (table(caption, &Table::new(columns, rows)))
    }
}

fn compared(document: &Document, cell: &Cell, what: &str) -> Vec<Entry> {
    let all: Vec<&CountComparison> =
        sides(cell).flat_map(|side| &side.comparison).filter(|one| one.what == what).collect();
    let sum =
        |get: fn(&CountComparison) -> u64| all.iter().map(|one| get(one)).fold(0, u64::saturating_add).into();
    let agree = all.iter().filter(|one| one.agrees).count();
    let rounds = counted(all.len() as u64, "round");
    let agree = if agree == all.len() {
        format!("in {rounds}").into()
    } else {
        Entry::grave(format!("DIFFER in {} of {rounds}", all.len() - agree))
    };
    let disagreeing = all.iter().filter(|one| !one.agrees).chain(all.iter().filter(|one| one.agrees));
    let why = disagreeing.map(|one| one.explanation.clone()).find(|why| !why.is_empty());
    vec![
        cell_name(document, cell).into(),
        what.into(),
        sum(|one| one.ours),
        sum(|one| one.servers),
        agree,
        why.unwrap_or_default().into(),
    ]
}

fn notes(cells: &[&Cell]) -> Markup {
    let notes = distinct(cells.iter().flat_map(|cell| sides(cell)).flat_map(|side| &side.notes));
    html! {
        @if !notes.is_empty() {
            h3 { "What couldn't be read" }
            ul { @for note in notes { li { (note) } } }
        }
    }
}
