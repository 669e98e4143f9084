//! The account of every cell: attempts, transactions and time in their buckets, adding up visibly;
//! and every round.
//!
//! Not here: what the buckets mean in the runner, and the check of the identities after every run.

use isobench_result::document::{Cell, Document, Round, ScriptRound};
use isobench_result::numbers::{count, percent, short};
use isobench_result::rounds::{counted_ledger, counted_rounds};
use isobench_result::view::{Entry, Heading, Table};
use isobench_stats::{TimeLedger, seconds};
use maud::{Markup, html};

use super::part::{cell_name, measured, table};
use super::room;
use crate::text::sentences::per_minute;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let cells: Vec<&Cell> = measured(document).collect();
    (!cells.is_empty()).then(|| {
        html! {
            p {
                "Every attempt lies in exactly one bucket, and so does every transaction. Throughput counts committed \
                 transactions only."
                @if cells.iter().any(|cell| cell.swallowed() > 0) {
                    " Swallowed are those that the server acknowledged, and whose work was lost in \
                     an error that their own SQL caught."
                }
                @if cells.iter().any(|cell| cell.rolled_back() > 0) {
                    " Rolled back are those that their own script ended with ROLLBACK."
                }
            }
            (attempts(document, &cells))
            (transactions(document, &cells))
            (scripts(document, &cells))
            (time(document, &cells))
            (client(document, &cells))
            (rounds(document, &cells))
        }
    })
}

/// A table of buckets, with their sum beside the number started.
fn buckets(
    caption: &str,
    document: &Document,
    cells: &[&Cell],
    names: &[(&str, bool)],
    values: impl Fn(&Cell) -> (u64, Vec<u64>),
) -> Markup {
    let rows = cells.iter().map(|cell| {
        let (all, parts) = values(cell);
        let sum = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
        let sum = if sum == all {
            format!("= {}", count(sum)).into()
        } else {
            Entry::grave(format!("DIFFERS: {}", count(sum)))
        };
        let counts = std::iter::once(all).chain(parts).map(Entry::from);
        std::iter::once(cell_name(document, cell).into()).chain(counts).chain([sum]).collect()
    });
    table(caption, &Table::new(Heading::all(names), rows))
}

fn attempts(document: &Document, cells: &[&Cell]) -> Markup {
    let names = [
        ("level", false),
        ("started", true),
        ("committed", true),
        ("retried", true),
        ("given up", true),
        ("swallowed", true),
        ("rolled back", true),
        ("ambiguous", true),
        ("cut off", true),
        ("errored", true),
        ("sum", true),
    ];
    buckets("Attempts, by how they ended", document, cells, &names, |cell| {
        let all = counted_ledger(cell).attempts;
        let parts = [
            all.committed,
            all.retried,
            all.given_up,
            all.swallowed,
            all.rolled_back,
            all.ambiguous,
            all.cut_off,
            all.errored,
        ];
        (all.started, parts.to_vec())
    })
}

fn transactions(document: &Document, cells: &[&Cell]) -> Markup {
    let names = [
        ("level", false),
        ("in all", true),
        ("committed", true),
        ("given up", true),
        ("swallowed", true),
        ("rolled back", true),
        ("ambiguous", true),
        ("cut off", true),
        ("errored", true),
        ("skipped", true),
        ("sum", true),
    ];
    buckets("Transactions, by how they ended", document, cells, &names, |cell| {
        let all = counted_ledger(cell).transactions;
        let parts = [
            all.committed,
            all.given_up,
            all.swallowed,
            all.rolled_back,
            all.ambiguous,
            all.cut_off,
            all.errored,
            all.skipped,
        ];
        (all.total, parts.to_vec())
    })
}

/// The scripts of cells that have several, over all counted rounds.
fn scripts(document: &Document, cells: &[&Cell]) -> Markup {
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for cell in cells {
        let counted = counted_rounds(cell);
        let scripts = counted.first().map_or(&[][..], |round| &round.scripts);
        for (place, script) in scripts.iter().enumerate() {
            let of_rounds = || counted.iter().filter_map(|round| round.scripts.get(place));
            let sum = |get: fn(&ScriptRound) -> u64| {
                Entry::from(of_rounds().fold(0_u64, |sum, one| sum.saturating_add(get(one))))
            };
            let latencies: Vec<f64> = of_rounds().filter_map(|one| one.latency_ms.p95).collect();
            let p95 = (!latencies.is_empty()).then(|| latencies.iter().sum::<f64>() / latencies.len() as f64);
            rows.push(vec![
                cell_name(document, cell).into(),
                script.name.clone().into(),
                sum(|one| one.transactions.committed),
                sum(|one| one.transactions.rolled_back),
                sum(|one| one.transactions.given_up),
                sum(|one| one.transactions.errored),
                sum(|one| one.conflicts),
                Entry::Number(p95),
            ]);
        }
    }
    if rows.is_empty() {
        return Markup::default();
    }
    let columns = Heading::all(&[
        ("level", false),
        ("script", false),
        ("committed", true),
        ("rolled back", true),
        ("given up", true),
        ("errored", true),
        ("conflicts", true),
        ("p95 ms, mean of the rounds", true),
    ]);
    html! {
        (table("Transactions by script", &Table::new(columns, rows)))
        @for sentence in per_minute(document) { p { (sentence) } }
    }
}

fn time(document: &Document, cells: &[&Cell]) -> Markup {
    let rows: Vec<Vec<Entry>> = cells
        .iter()
        .map(|cell| {
            let TimeLedger { useful, wasted, backoff, waiting } = cell.summary.time_s;
            let [useful, wasted, backoff, waiting] = [useful, wasted, backoff, waiting].map(seconds);
            let measured: f64 = counted_rounds(cell).iter().map(|round| round.seconds).sum();
            let all = measured * f64::from(cell.clients);
            let other = (all - useful - wasted - backoff - waiting).max(0.0);
            let part = |part: f64| {
                if all > 0.0 { format!("{} ({})", short(part), percent(part / all)) } else { short(part) }
                    .into()
            };
            vec![
                cell_name(document, cell).into(),
                Entry::Number(Some(all)),
                part(useful),
                part(wasted),
                part(backoff),
                part(waiting),
                part(other),
            ]
        })
        .collect();
    let columns = Heading::all(&[
        ("level", false),
        ("in all", true),
        ("useful", true),
        ("wasted", true),
        ("backoff", true),
        ("waiting", true),
        ("other", true),
    ]);
    table(
        "Time of the clients in seconds: clients × measured time, by what they did; other: of no \
         attempt, such as starting and finishing",
        &Table::new(columns, rows),
    )
}

/// The load of the measuring program itself.
fn client(document: &Document, cells: &[&Cell]) -> Markup {
    let rows: Vec<Vec<Entry>> = cells
        .iter()
        .filter_map(|cell| {
            let loads: Vec<_> = cell.rounds.iter().filter_map(|round| round.client).collect();
            let most = |get: fn(&isobench_result::document::ClientLoad) -> Option<f64>| {
                loads.iter().filter_map(get).reduce(f64::max)
            };
            (!loads.is_empty()).then(|| {
                vec![
                    cell_name(document, cell).into(),
                    Entry::Share(most(|load| Some(load.busiest))),
                    Entry::Share(most(|load| Some(load.share_of_cores))),
                    Entry::Number(most(|load| load.lag_mean_ms)),
                    Entry::Number(most(|load| load.lag_p99_ms)),
                    Entry::Number(most(|load| load.lag_max_ms)),
                ]
            })
        })
        .collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let columns = Heading::all(&[
        ("level", false),
        ("busiest worker", true),
        ("share of the cores", true),
        ("lag, mean ms", true),
        ("lag, p99 ms", true),
        ("lag, longest ms", true),
    ]);
    table("The measuring program itself, in the round in which each was highest", &Table::new(columns, rows))
}

fn rounds(document: &Document, cells: &[&Cell]) -> Markup {
    let row = |cell: &Cell, round: &Round| -> Vec<Entry> {
        vec![
            cell_name(document, cell).into(),
            u64::from(round.round).into(),
            Entry::Count(round.order.map(u64::from)),
            if round.complete { "yes".into() } else { Entry::grave("INCOMPLETE") },
            Entry::Number(round.warmup.map(|warmup| warmup.seconds)),
            Entry::Number(Some(round.seconds)),
            Entry::Number(round.tps),
            round.attempts.started.into(),
            round.transactions.committed.into(),
            round.ledger().conflicts.into(),
            Entry::Number(round.latency_ms.mean),
            Entry::Number(round.latency_ms.p99),
            round.errors.join("; ").into(),
        ]
    };
    if room::has_many_rounds(document) {
        return html! { p { (room::instead_of_rounds(document)) } };
    }
    let rows = cells.iter().flat_map(|cell| cell.rounds.iter().map(|round| row(cell, round)));
    let columns = Heading::all(&[
        ("level", false),
        ("round", true),
        ("place in it", true),
        ("complete", false),
        ("warm-up s", true),
        ("seconds", true),
        ("committed per s", true),
        ("attempts", true),
        ("committed", true),
        ("conflicts", true),
        ("mean ms", true),
        ("p99 ms", true),
        ("errors", false),
    ]);
    html! {
        details {
            summary { "Every round" }
            (table("Every round of every level", &Table::new(columns, rows)))
        }
    }
}
