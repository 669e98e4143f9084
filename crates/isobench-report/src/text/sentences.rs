//! The meaning of the rows: one plain sentence per level, and what must be known before believing
//! it.
//!
//! Not here: the table.

use std::collections::BTreeMap;

use isobench_isolation::EffectiveLevel;
use isobench_result::answer::times;
use isobench_result::branches;
use isobench_result::document::{
    Cell, CellLevel, Document, PlannedScript, PlannedStrategy, RatioToFirst, Round,
};
use isobench_result::factor::{strategies_vary, varying};
use isobench_result::numbers::{count, counted, of_unit, percent, short};
use isobench_result::phrases::certainty;
use isobench_result::rounds::{counted_ledger, counted_rounds, grouped, reported_script};
use isobench_result::view::{errored, is_incomplete};
use isobench_result::words::{capital, enumerated};

use super::layout::wrap;
use super::{judgement, precision, seen};

/// Everything about each level in words, and what must be known of the comparison, wrapped.
pub fn lines(document: &Document, width: usize) -> Vec<String> {
    let levels = levels(document);
    let about = levels.iter().map(|cells| {
        std::iter::once(figures(document, cells))
            .chain(unusual(document, cells))
            .collect::<Vec<_>>()
            .join(" ")
    });
    wrapped(about.chain(of_all(document, seen::fully(document))), width)
}

/// What the table doesn't show: what is unusual of a level, and what must be known of the
/// comparison, wrapped.
pub fn remarks(document: &Document, width: usize) -> Vec<String> {
    let levels = levels(document);
    let about = levels.iter().filter_map(|cells| {
        let unusual = unusual(document, cells);
        (!unusual.is_empty()).then(|| format!("{}: {}", name(document, cells), unusual.join(" ")))
    });
    wrapped(about.chain(of_all(document, seen::briefly(document))), width)
}

fn wrapped(paragraphs: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    paragraphs.flat_map(|paragraph| wrap(&paragraph, width, 2)).collect()
}

/// What must be known of the comparison; with what was seen of its transactions.
fn of_all(document: &Document, seen: Vec<String>) -> Vec<String> {
    let mut paragraphs = Vec::new();
    if document.cells.iter().all(|cell| cell.summary.tps.low.is_none()) {
        let mut paragraph =
            "No intervals: they need three complete rounds or more, or a long one with a series.".to_owned();
        if levels(document).len() > 1 {
            paragraph.push_str(" Whether a difference is measurable is unknown.");
        }
        paragraphs.push(paragraph);
    }
    paragraphs.extend(per_minute(document));
    paragraphs.extend(round_trips(document));
    paragraphs.extend(branches::sentence(document));
    paragraphs.extend(precision::paragraphs(document));
    paragraphs.extend(seen);
    paragraphs
}

/// The committed transactions per minute of the script that a workload names, at each level, and what
/// that number isn't; a sentence for each workload.
pub fn per_minute(document: &Document) -> Vec<String> {
    let mut sentences: Vec<(&PlannedScript, Vec<String>)> = Vec::new();
    for cell in document.cells.iter().filter(|cell| !cell.calibration) {
        let Some(script) = reported_script(document, cell) else { continue };
        let Some(rate) = cell.summary.per_minute.as_ref() else { continue };
        let Some(mean) = rate.mean else { continue };
        let interval = rate.low.zip(rate.high);
        let interval =
            interval.map(|(low, high)| format!(" ({} to {})", short(low), short(high))).unwrap_or_default();
        let said = format!("{} {}{interval}", cell_place(document, cell), short(mean));
        match sentences.iter_mut().find(|(known, _)| known.name == script.name) {
            Some((_, rates)) => rates.push(said),
            None => sentences.push((script, vec![said])),
        }
    }
    let sentence = |(script, rates): (&PlannedScript, Vec<String>)| {
        let note = script.per_minute.as_deref().unwrap_or_default();
        format!("Committed transactions of {} per minute ({note}): {}.", script.name, rates.join(", "))
    };
    sentences.into_iter().map(sentence).collect()
}

/// The level of a cell with the values of the other factors.
fn cell_place(document: &Document, cell: &Cell) -> String {
    let factors: Vec<String> = varying(document).iter().map(|factor| factor.said(cell)).collect();
    let with = if factors.is_empty() { String::new() } else { format!(" with {}", factors.join(", ")) };
    format!("{}{with}", cell.level.name())
}

/// The round trips of each strategy, without which the strategies' latencies can't be compared.
pub fn round_trips(document: &Document) -> Option<String> {
    let of = |strategy: &PlannedStrategy| {
        let (least, most) = (strategy.round_trips_least, strategy.round_trips_most);
        let range = if least == most {
            count(most.into())
        } else {
            format!("{} to {}", count(least.into()), count(most.into()))
        };
        (most > 0).then(|| format!("{} {range}", strategy.name))
    };
    let known: Vec<String> = document.workload.strategies.iter().filter_map(of).collect();
    (!known.is_empty())
        .then(|| format!("Round trips to the server per attempt without a conflict: {}.", known.join(", ")))
}

/// The cells of each workload, level and strategy, in the document's order.
fn levels(document: &Document) -> Vec<Vec<&Cell>> {
    let cells = document.cells.iter().filter(|cell| !cell.calibration);
    grouped(cells, |one, other| {
        one.workload == other.workload && one.level == other.level && one.strategy() == other.strategy()
    })
}

/// The level, with workload and strategy where the document has several.
fn name(document: &Document, cells: &[&Cell]) -> String {
    let several = document.cells.iter().any(|cell| cell.workload != cells[0].workload);
    let workload = if several { format!("{}, ", cells[0].workload) } else { String::new() };
    let level = format!("{workload}{}", cells[0].level.name());
    if strategies_vary(document) { format!("{level} with {}", cells[0].strategy()) } else { level }
}

/// The figures of a level in words.
fn figures(document: &Document, cells: &[&Cell]) -> String {
    let mut parts = vec![throughput(document, cells)];
    parts.extend(wasted(cells));
    parts.extend(judgement::verdict(cells));
    parts.push(invariants(cells));
    format!("{}: {}.", name(document, cells), parts.join("; "))
}

/// What is unusual of a level, a sentence each.
fn unusual(document: &Document, cells: &[&Cell]) -> Vec<String> {
    let mut sentences: Vec<String> = mislabelled(&cells[0].level).into_iter().collect();
    sentences.extend(wrong_data(cells));
    sentences.extend(judgement::broken(cells));
    sentences.extend(incomplete(document, cells));
    sentences.extend(retried_errors(cells));
    sentences.extend(not_retried(document, cells));
    sentences.extend(left_over(cells));
    sentences.extend(flagged(cells));
    sentences
}

/// The proof of each broken promise.
pub fn broken(document: &Document) -> Vec<String> {
    levels(document).iter().filter_map(|cells| judgement::broken(cells)).collect()
}

/// Transactions that failed, or that weren't counted, by level: what a reader has to act on.
pub fn faults(document: &Document) -> Vec<String> {
    let of = |cells: &Vec<&Cell>| {
        let sentences: Vec<String> = wrong_data(cells)
            .into_iter()
            .chain(not_retried(document, cells))
            .chain(left_over(cells))
            .collect();
        (!sentences.is_empty())
            .then(|| format!("{}: {}", capital(&name(document, cells)), sentences.join(" ")))
    };
    levels(document).iter().filter_map(of).collect()
}

/// What the server runs in place of a level.
fn mislabelled(level: &CellLevel) -> Option<String> {
    match &level.effective {
        _ if !level.differs() => None,
        EffectiveLevel::Unknown => Some("ASKED FOR; the server doesn't say what it runs.".to_owned()),
        effective => Some(format!("ASKED FOR; the server says it runs {effective}.")),
    }
}

/// The tables weren't what the level promises.
fn wrong_data(cells: &[&Cell]) -> Option<String> {
    let wrong = cells.iter().flat_map(|cell| &cell.rounds).any(Round::is_violated);
    wrong.then(|| capital(&invariants(cells)) + ".")
}

fn throughput(document: &Document, cells: &[&Cell]) -> String {
    let tps: Vec<f64> = cells.iter().filter_map(|cell| cell.summary.tps.mean).collect();
    let Some(range) = range(&tps, short) else {
        return "nothing was measured".to_owned();
    };
    if tps.iter().all(|tps| *tps == 0.0) {
        return "no transaction committed".to_owned();
    }
    let mut text = format!("{range} committed transactions per second");
    if let [cell] = cells
        && let (Some(low), Some(high)) = (cell.summary.tps.low, cell.summary.tps.high)
    {
        text = format!("{text} ({} to {})", short(low), short(high));
    }
    match compared(document, cells) {
        Some(compared) => format!("{text}, {compared}"),
        None => text,
    }
}

/// The level's ratio to the first one, unless it is the first one.
fn compared(document: &Document, cells: &[&Cell]) -> Option<String> {
    let ratios: Vec<&RatioToFirst> = cells.iter().filter_map(|cell| cell.summary.ratio.as_ref()).collect();
    let first = ratios.first()?;
    if first.to == cells[0].level.name() {
        return None;
    }
    let means: Vec<f64> = ratios.iter().map(|ratio| ratio.mean).collect();
    let misnamed = document.cells.iter().any(|cell| cell.level.name() == first.to && cell.level.differs());
    let asked = if misnamed { "what was asked for as " } else { "" };
    if let [ratio] = ratios.as_slice() {
        let times = times(ratio.mean);
        return Some(format!("{times} {asked}{} ({})", first.to, certainty(ratio)));
    }
    let times = format!("{} × {asked}{}", range(&means, short)?, first.to);
    let significant = ratios.iter().filter(|ratio| ratio.significant).count();
    Some(format!("{times} (a measurable difference in {significant} of {} rows)", ratios.len()))
}

fn wasted(cells: &[&Cell]) -> Option<String> {
    let ran: Vec<&&Cell> = cells.iter().filter(|cell| counted_ledger(cell).attempts.started > 0).collect();
    let conflicts: Vec<f64> = ran.iter().map(|cell| cell.summary.conflict_ratio).collect();
    let wasted: Vec<f64> = ran.iter().map(|cell| cell.summary.wasted_share).collect();
    let some = |shares: &[f64]| shares.iter().any(|share| *share > 0.0);
    let conflicts = if some(&conflicts) {
        format!("{} of attempts ended in a conflict", range(&conflicts, percent)?)
    } else {
        range(&conflicts, percent).map(|_| "no attempt ended in a conflict".to_owned())?
    };
    let wasted = if some(&wasted) { range(&wasted, percent)? } else { "none".to_owned() };
    Some(format!("{conflicts} and {wasted} of the clients' busy time was wasted"))
}

fn invariants(cells: &[&Cell]) -> String {
    let violated = |round: &&Round| round.is_violated();
    let rounds = || cells.iter().flat_map(|cell| &cell.rounds);
    if let Some(round) = rounds().find(violated) {
        let broken =
            round.invariants.iter().find(|invariant| invariant.held == Some(false) && invariant.promised);
        let example = broken.map_or_else(String::new, |broken| match broken.detail.as_str() {
            "" => format!(" ({})", broken.name),
            detail => format!(" ({}: {detail})", broken.name),
        });
        let (wrong, all) = (rounds().filter(violated).count(), rounds().count());
        let after = format!("after {wrong} of {}{example}", counted(all as u64, "round"));
        return if rounds().all(|round| !round.is_wrong()) {
            format!(
                "a condition of yours was VIOLATED {after}: a transaction breaks it by itself, or the level isn't \
                 what it is called"
            )
        } else {
            format!("the database was WRONG {after}")
        };
    }
    if let Some(found) = violations(cells) {
        let broken = rounds().find_map(Round::violated);
        let example =
            broken.map_or_else(String::new, |broken| format!(" ({}: {})", broken.name, broken.detail));
        return format!("{found}{example}");
    }
    if rounds().next().is_none() {
        return "no invariant was checked".to_owned();
    }
    if rounds().all(|round| round.invariants.is_empty()) {
        "the workload has no invariants to check".to_owned()
    } else if cells.iter().all(|cell| cell.summary.invariants_held == Some(true)) {
        "every invariant held".to_owned()
    } else {
        "not every invariant could be checked".to_owned()
    }
}

/// The violations of all cells of what the level doesn't promise, those of each unit by themselves.
fn violations(cells: &[&Cell]) -> Option<String> {
    let mut sums: Vec<(Option<&str>, u64)> = Vec::new();
    for summary in cells.iter().map(|cell| &cell.summary).filter(|summary| summary.violations > 0) {
        let unit = summary.violations_unit.as_deref();
        match sums.iter_mut().find(|sum| sum.0 == unit) {
            Some(sum) => sum.1 = sum.1.saturating_add(summary.violations),
            None => sums.push((unit, summary.violations)),
        }
    }
    if let [(None, sum)] = sums.as_slice() {
        return Some(format!("{}, which the level permits", counted(*sum, "violation")));
    }
    let said = |(unit, sum): &(Option<&str>, u64)| of_unit(*sum, unit.unwrap_or("cases"));
    let said: Vec<String> = sums.iter().map(said).collect();
    (!said.is_empty()).then(|| format!("invariants violated, which the level permits: {}", enumerated(&said)))
}

fn incomplete(document: &Document, cells: &[&Cell]) -> Option<String> {
    let lacking: Vec<&&Cell> = cells.iter().filter(|cell| is_incomplete(document, cell)).collect();
    if lacking.is_empty() {
        return None;
    }
    let rounds: u64 = cells.iter().map(|cell| u64::from(cell.summary.rounds)).sum();
    let planned = u64::from(document.plan.rounds()) * cells.len() as u64;
    let mut text = format!("INCOMPLETE: {rounds} of {} measured to the end", counted(planned, "round"));
    if lacking.iter().any(|cell| cell.summary.rounds == 0 && !cell.rounds.is_empty()) {
        text.push_str("; where there is none, the numbers come from the interrupted round");
    }
    Some(text + ".")
}

/// The attempts that ended with an error that the plan names to be retried.
fn retried_errors(cells: &[&Cell]) -> Option<String> {
    let mut codes: BTreeMap<&str, u64> = BTreeMap::new();
    let rounds = cells.iter().flat_map(|cell| counted_rounds(cell));
    for error in rounds.flat_map(|round| &round.further_errors) {
        let sum = codes.entry(&error.sqlstate).or_default();
        *sum = sum.saturating_add(error.count);
    }
    let listed: Vec<String> =
        codes.iter().map(|(code, number)| format!("{} in {code}", count(*number))).collect();
    (!listed.is_empty()).then(|| {
        format!(
            "Other retried errors (--retry-sqlstate): {}; wasted time and retries include them, conflicts don't.",
            listed.join(", ")
        )
    })
}

fn not_retried(document: &Document, cells: &[&Cell]) -> Option<String> {
    let errored = cells.iter().fold(0, |sum: u64, cell| sum.saturating_add(errored(cell)));
    let mut errors = cells.iter().flat_map(|cell| &cell.rounds).flat_map(|round| &round.errors);
    let first = errors.next().map(|error| error.trim().trim_end_matches('.'));
    match (errored, first) {
        (0, None) => None,
        (0, Some(first)) => Some(format!("An error occurred: {first}.")),
        (_, first) => {
            let example = first.map_or_else(String::new, |first| format!(" (the first: {first})"));
            let after = if document.plan.continues() {
                "; the clients continued with the next one"
            } else {
                ", so the row may have had fewer clients than it says"
            };
            let errored = counted(errored, "transaction");
            Some(format!("ERRORED: {errored} ended with an error that isn't retried{example}{after}."))
        }
    }
}

/// The transactions that neither committed nor are mentioned elsewhere.
fn left_over(cells: &[&Cell]) -> Option<String> {
    let sum = |get: fn(&Round) -> u64| {
        cells.iter().flat_map(|cell| &cell.rounds).fold(0_u64, |sum, round| sum.saturating_add(get(round)))
    };
    let parts: Vec<String> = [
        (sum(|round| round.transactions.given_up), "given up after the last attempt allowed"),
        (sum(|round| round.transactions.ambiguous), "of unknown outcome"),
        (sum(|round| round.transactions.skipped), "skipped because they were late already"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", counted(number, "transaction")))
    .collect();
    (!parts.is_empty()).then(|| format!("Not counted as throughput: {}.", parts.join(", ")))
}

/// The flags of cells.
fn flagged(cells: &[&Cell]) -> Option<String> {
    let texts: Vec<&str> =
        cells.iter().flat_map(|cell| &cell.summary.flags).map(|flag| flag.text.as_str()).collect();
    (!texts.is_empty()).then(|| format!("{}.", capital(&texts.join("; "))))
}

/// "12", or "12 to 34"; `None` of nothing.
fn range(values: &[f64], show: fn(f64) -> String) -> Option<String> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let (low, high) = (show(low), show(high));
    Some(if low == high { low } else { format!("{low} to {high}") })
}
