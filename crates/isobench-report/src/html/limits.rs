//! The limits that apply to this very document: what its numbers do not say.
//!
//! A table of conditions on the document and sentences. Not here: flags of single cells, which are
//! beside the answer.

use maud::{Markup, html};

use super::part::measured;
use isobench_result::document::{Cell, Document};
use isobench_result::numbers::{counted, short};
use isobench_result::seen::way_out;
use isobench_result::words::capital;

/// A limit: the sentence, if the document has it.
type Limit = fn(&Document) -> Option<String>;

static LIMITS: [Limit; 15] = [
    incomplete,
    unproved,
    nothing_found,
    same_machine,
    durability,
    short_run,
    few_rounds,
    no_calibration,
    many_comparisons,
    contention,
    closed_loop,
    left_out_of_latency,
    sampled,
    windows,
    one_place,
];

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let limits: Vec<String> = LIMITS.iter().filter_map(|limit| limit(document)).collect();
    (!limits.is_empty()).then(|| {
        html! {
            ul class="limits" { @for limit in &limits { li { (limit) } } }
        }
    })
}

fn said(applies: bool, sentence: impl Into<String>) -> Option<String> {
    applies.then(|| sentence.into())
}

fn incomplete(document: &Document) -> Option<String> {
    said(
        !document.complete,
        "Not everything that was planned was measured. Levels with fewer rounds have wider \
         intervals, and ratios rest on the rounds that both levels have.",
    )
}

fn unproved(document: &Document) -> Option<String> {
    let none = measured(document).any(|cell| cell.summary.verdict.is_none());
    said(
        none && measured(document).next().is_some(),
        format!(
            "Nothing is known about anomalies where no history was recorded. A level may be faster there because it \
             lets more through. {}.",
            capital(&way_out(document))
        ),
    )
}

fn nothing_found(document: &Document) -> Option<String> {
    let clean = |cell: &Cell| {
        cell.summary
            .verdict
            .as_ref()
            .is_some_and(|verdict| verdict.kinds.is_empty() && verdict.withheld.is_empty())
    };
    said(
        measured(document).any(clean),
        "A history in which nothing was found proves no level: another workload, more clients or \
         more time may show what this one didn't.",
    )
}

fn same_machine(document: &Document) -> Option<String> {
    let same = document.client.same_machine || document.server.embedded;
    said(
        same && measured(document).next().is_some(),
        format!(
            "Client and server shared one machine{}, so the client took CPU time from the server, and latencies \
             include no network. Ratios between levels suffer less than absolute figures.",
            if document.client.cores > 0 {
                format!(" with {}", counted(document.client.cores.into(), "core"))
            } else {
                String::new()
            }
        ),
    )
}

/// Settings under which an acknowledged commit may be lost.
fn durability(document: &Document) -> Option<String> {
    let started_with = document.plan.server_settings();
    let settings = || document.server.settings.iter().chain(&started_with);
    let off = |(name, value): &(&String, &String)| {
        matches!(name.as_str(), "fsync" | "synchronous_commit" | "full_page_writes")
            && value.as_str() == "off"
    };
    let names: Vec<String> = settings().filter(off).map(|(name, _)| name.clone()).collect();
    said(
        !names.is_empty(),
        format!(
            "With {} off a crash may lose what was committed or damage the tables, and commits \
             cost less than they do where data matters. The share of a commit that a level adds \
             looks larger than there.",
            names.join(" and ")
        ),
    )
}

fn short_run(document: &Document) -> Option<String> {
    const LONG: f64 = 60.0;
    let longest =
        measured(document).flat_map(|cell| &cell.rounds).map(|round| round.seconds).reduce(f64::max)?;
    said(
        longest < LONG,
        format!(
            "No round took longer than {} s, each {} in a warm cache. What bloat, vacuum, \
             checkpoints or a full disk do over hours isn't in these numbers.",
            short(longest),
            document.starting_state().phrase()
        ),
    )
}

fn few_rounds(document: &Document) -> Option<String> {
    let fewest = measured(document).map(|cell| cell.summary.rounds).min()?;
    match fewest {
        0 | 1 => Some(
            "There is no second complete round of every level, so how much rounds differ isn't known, and is in no \
             interval."
                .to_owned(),
        ),
        2..=4 => Some(format!(
            "{} are few: the intervals are wide, and rest on the assumption that rounds scatter normally.",
            capital(&counted(fewest.into(), "round"))
        )),
        _ => None,
    }
}

fn no_calibration(document: &Document) -> Option<String> {
    said(
        document.plan.calibrate != Some(true) && document.cells.len() > 1,
        "How much equal levels differ on this machine wasn't measured (--calibrate). A small \
         difference may come from what the intervals can't see, such as where the memory happens \
         to lie.",
    )
}

fn many_comparisons(document: &Document) -> Option<String> {
    const MANY: usize = 10;
    let compared = |cell: &&Cell| {
        let ratio = cell.summary.ratio.as_ref();
        ratio.is_some_and(|ratio| ratio.low.is_some() && ratio.to != cell.level.name())
    };
    let compared = document.cells.iter().filter(compared).count();
    said(
        compared >= MANY,
        format!("Of {compared} ratios, about one in twenty would exclude 1 by chance alone."),
    )
}

fn contention(document: &Document) -> Option<String> {
    let built_in = ["tpcb-like", "simple-update"];
    let updates = document.workload.scripts.iter().any(|script| built_in.contains(&script.name.as_str()));
    let clients = document.plan.clients().iter().max().copied().unwrap_or(0);
    said(
        measured(document).next().is_some()
            && updates
            && document.plan.scale() > 0
            && clients > document.plan.scale(),
        format!(
            "Up to {} updated {}: this is contention at its most extreme. The ratio between levels \
             that it shows isn't that of an application whose clients seldom meet.",
            counted(clients.into(), "client"),
            counted(document.plan.scale().into(), "branch")
        ),
    )
}

fn closed_loop(document: &Document) -> Option<String> {
    let paced = document.cells.iter().all(|cell| cell.rate.is_some()) || !document.plan.rates().is_empty();
    said(
        !paced && measured(document).next().is_some(),
        "Clients began a transaction when the last one had ended. A stall of the server so delays \
         few transactions, and the percentiles look better than users would find who come when \
         they like (--rate).",
    )
}

fn left_out_of_latency(document: &Document) -> Option<String> {
    let gone = |cell: &Cell| {
        cell.rounds.iter().any(|round| round.transactions.given_up + round.transactions.skipped > 0)
    };
    said(
        measured(document).any(gone),
        "Only committed transactions have a latency. Where some were given up or skipped, the \
         percentiles cover only the others.",
    )
}

fn sampled(document: &Document) -> Option<String> {
    let sampled = |cell: &Cell| cell.rounds.iter().any(|round| round.server.is_some());
    said(
        measured(document).any(sampled),
        "Wait events and locks are samples, some ten a second: shares of time, not counts. What is \
         short and rare may be missing.",
    )
}

fn windows(document: &Document) -> Option<String> {
    let least = document.cells.iter().filter_map(|cell| cell.summary.verdict.as_ref());
    said(
        least.into_iter().any(|verdict| verdict.at_least),
        "Counting anomalies was ended early where there were very many (≥). Whether a level is \
         contradicted doesn't depend on it.",
    )
}

fn one_place(document: &Document) -> Option<String> {
    said(
        measured(document).next().is_some(),
        "The intervals show what the same rounds on the same machine would give again. They don't \
         cover another machine, another version of the server, or another application.",
    )
}
