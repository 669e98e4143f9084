//! The evidence of the recorded histories, level by level: the promise, the anomalies with a
//! witness, the invariants.
//!
//! Not here: how histories are checked (`isobench_isolation`).

use isobench_isolation::{Anomaly, Order};
use maud::{Markup, PreEscaped, html};

use super::part::{cell_name, folded, measured, scrolling, table};
use super::scripts::touching;
use super::seen;
use isobench_result::document::{AnomalyFound, Cell, Document, Invariant, Verdict, VerdictSummary};
use isobench_result::numbers::{count, counted, of_unit, optional};
use isobench_result::seen::blind;
use isobench_result::view::tried::{self, notes, witnesses};
use isobench_result::view::{Entry, Heading, Table};
use isobench_result::words::{capital, distinct};

/// In a comparison of more cells than this their verdicts are folded.
const MANY_CELLS: usize = 6;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let cells: Vec<&Cell> = measured(document).collect();
    if cells.is_empty() {
        return None;
    }
    let unproved: Vec<String> = cells
        .iter()
        .filter(|cell| cell.summary.verdict.is_none())
        .map(|cell| cell_name(document, cell))
        .collect();
    Some(html! {
        @for cell in &cells {
            @if let Some(summary) = cell.summary.verdict.as_ref().filter(|summary| has_paragraph(cell, summary)) {
                (level(document, cell, summary, cells.len() > MANY_CELLS))
            }
        }
        (interleavings(document))
        (seen::body(document))
        @let blind = blind(cells.iter().copied());
        @if !blind.is_empty() {
            div class="level" {
                h3 { "What the check can't see here" }
                ul { @for sentence in &blind { li { (capital(sentence)) "." } } }
            }
        }
        @if !unproved.is_empty() {
            div class="level" {
                h3 { "Unproved" }
                @let why = isobench_result::seen::unproved(document).unwrap_or_default();
                p { (capital(&why)) }
                @if unproved.len() < cells.len() { p { "This concerns " (unproved.join("; ")) "." } }
            }
        }
        (invariants(document, &cells))
    })
}

/// What trying the scripts against each other showed, step by step, and what wasn't tried.
fn interleavings(document: &Document) -> Markup {
    let (witnesses, notes) = (witnesses(&tried::tried(document)), notes(&tried::tried(document)));
    html! {
        @if !witnesses.is_empty() || !notes.is_empty() {
            div class="level" {
                h3 { "Interleavings that were tried" }
                @for witness in &witnesses {
                    details class="folded" {
                        summary { (capital(&witness.heading)) }
                        pre tabindex="0" aria-label="The steps, and what each order ends with" {
                            (witness.lines.join("\n"))
                        }
                    }
                }
                @for note in &notes { p { (note) } }
            }
        }
    }
}

/// The A/A cell's verdict is worth a paragraph only if it is broken; its numbers are in the table
/// of results.
fn has_paragraph(cell: &Cell, summary: &VerdictSummary) -> bool {
    !cell.calibration || summary.kept == Some(false)
}

/// A cell's part: folded where there are many, unless it is bad.
fn level(document: &Document, cell: &Cell, summary: &VerdictSummary, many: bool) -> Markup {
    let broken = summary.kept == Some(false);
    let name = capital(&cell_name(document, cell));
    let badge = html! {
        span class={ "badge " (if broken { "bad" } else { "plain" }) } { (promise_word(summary)) }
    };
    html! {
        div class="level" {
            @if many && !broken {
                details class="folded" {
                    summary { (name) " " (badge) }
                    (judged(document, cell, summary))
                }
            } @else {
                h3 { (name) " " (badge) }
                (judged(document, cell, summary))
            }
        }
    }
}

fn judged(document: &Document, cell: &Cell, summary: &VerdictSummary) -> Markup {
    let verdicts: Vec<&Verdict> = cell.rounds.iter().filter_map(|round| round.verdict.as_ref()).collect();
    let kinds = kinds(&verdicts);
    let withheld = summary.kept.is_none() && !summary.withheld.is_empty();
    html! {
        p { (sentence(summary)) }
        (looked_at(&verdicts))
        @if kinds.is_empty() {
            p { "No anomaly was found." }
        } @else {
            (anomalies(&kinds, withheld))
            @for (_, example) in &kinds { (witness(document, cell, example)) }
        }
    }
}

fn promise_word(summary: &VerdictSummary) -> &'static str {
    match summary.kept {
        Some(true) => "no forbidden anomaly",
        Some(false) => "FORBIDDEN ANOMALY",
        None if !summary.withheld.is_empty() => "verdict withheld",
        None => "no promise known",
    }
}

fn sentence(summary: &VerdictSummary) -> String {
    let promised = match &summary.promised {
        Some(promised) => format!("Promised is {promised}"),
        None => "What is promised isn't known".to_owned(),
    };
    if !summary.withheld.is_empty() && summary.kept.is_none() {
        return format!(
            "{promised}; whether that was kept isn't known, because {}.",
            summary.withheld.join("; and ")
        );
    }
    let shown = match summary.models.as_slice() {
        [] => "the histories contradict every level, even read uncommitted".to_owned(),
        models => format!("the histories don't contradict {}", models.join(" or ")),
    };
    let kept = match summary.kept {
        _ if summary.nothing_shared => {
            "; but no transaction read or overwrote what another wrote, so no anomaly was possible"
        }
        Some(true) => ", so there was no forbidden anomaly, which doesn't prove that there never is",
        Some(false) => ", which is less than promised: the promise is BROKEN",
        None => "",
    };
    format!(
        "{promised}; {shown}{kept}. Anomalies per million committed attempts: {}{}.",
        if summary.at_least { "at least " } else { "" },
        optional(summary.anomalies_per_million)
    )
}

fn looked_at(verdicts: &[&Verdict]) -> Markup {
    let sum = |get: fn(&Verdict) -> u64| {
        count(verdicts.iter().map(|verdict| get(verdict)).fold(0, u64::saturating_add))
    };
    html! {
        p class="muted" {
            "Looked at, warm-up included: " (sum(|verdict| verdict.examined.committed)) " committed, "
            (sum(|verdict| verdict.examined.aborted)) " failed and "
            (sum(|verdict| verdict.examined.unknown)) " unknown attempts with "
            (sum(|verdict| verdict.examined.operations)) " reads and writes; "
            (sum(|verdict| verdict.examined.write_write)) " write-write, "
            (sum(|verdict| verdict.examined.write_read)) " write-read and "
            (sum(|verdict| verdict.examined.read_write)) " anti-dependencies."
        }
    }
}

/// Every kind of anomaly with its count over the rounds, those that break the promise first, and
/// the example with the shortest witness.
fn kinds<'a>(verdicts: &[&'a Verdict]) -> Vec<(AnomalyFound, &'a AnomalyFound)> {
    let mut kinds: Vec<(AnomalyFound, &AnomalyFound)> = Vec::new();
    for found in verdicts.iter().flat_map(|verdict| &verdict.anomalies) {
        let known = kinds.iter_mut().find(|(kind, _)| kind.name == found.name && kind.order == found.order);
        match known {
            None => kinds.push((AnomalyFound { witness: Vec::new(), ..found.clone() }, found)),
            Some((kind, example)) => {
                kind.count = kind.count.saturating_add(found.count);
                kind.at_least |= found.at_least;
                kind.breaks_promise |= found.breaks_promise;
                let breaks_first = found.breaks_promise && !example.breaks_promise;
                let shorter = found.breaks_promise == example.breaks_promise
                    && (1..example.witness.len()).contains(&found.witness.len());
                if breaks_first || shorter {
                    *example = found;
                }
            }
        }
    }
    kinds.sort_by_key(|(kind, _)| !kind.breaks_promise);
    kinds
}

fn anomalies(kinds: &[(AnomalyFound, &AnomalyFound)], withheld: bool) -> Markup {
    let rows = kinds.iter().map(|(kind, _)| {
        vec![
            kind.known_as.as_str().into(),
            kind.name.as_str().into(),
            format!("{}{}", if kind.at_least { "≥" } else { "" }, count(kind.count)).into(),
            kind.order.as_str().into(),
            match (withheld, kind.breaks_promise) {
                (true, _) => "not accused".into(),
                (false, true) => Entry::grave("BREAKS IT"),
                (false, false) => "permits it".into(),
            },
            meaning(kind).into(),
        ]
    });
    let columns = Heading::all(&[
        ("anomaly", false),
        ("in the literature", false),
        ("count", true),
        ("shown by", false),
        ("the promise", false),
        ("what it is", false),
    ]);
    table("Anomalies found", &Table::new(columns, rows))
}

fn meaning(found: &AnomalyFound) -> String {
    let known = Anomaly::ALL.iter().map(|anomaly| anomaly.facts()).find(|facts| facts.name == found.name);
    let meaning = known.map_or("", |facts| facts.meaning);
    if found.order == Order::Data.name() || found.order.is_empty() {
        capital(meaning)
    } else {
        format!("{}; it needs the order of {}, which no level of SQL promises", capital(meaning), found.order)
    }
}

/// The smallest example, step by step and drawn.
fn witness(document: &Document, cell: &Cell, found: &AnomalyFound) -> Markup {
    if found.witness.is_empty() && found.transactions.is_empty() {
        return Markup::default();
    }
    html! {
        details class="witness" open[found.breaks_promise] {
            summary { "An example of " (found.known_as) ", step by step" }
            div class="example" {
                div class="steps" {
                    ol {
                        @for (place, step) in found.witness.iter().enumerate() {
                            li { (capital(step)) "." (seen::of_witness(found, place)) }
                        }
                    }
                    @let observed = !found.statements.is_empty();
                    @let places = if observed { Vec::new() } else { touching(document, cell, &found.witness) };
                    @if !places.is_empty() {
                        p { "The commands that read and write these rows:" }
                        dl class="places" {
                            @for place in &places { dt { (place.name) } dd { code { (place.sql) } } }
                        }
                    }
                }
                @if !found.transactions.is_empty() {
                    (scrolling(&format!("{} drawn", found.known_as), &PreEscaped(found.graph().svg())))
                }
            }
        }
    }
}

/// The invariants of the tables, checked after each round.
fn invariants(document: &Document, cells: &[&Cell]) -> Markup {
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for cell in cells {
        let invariants = cell.rounds.iter().flat_map(|round| &round.invariants);
        let names = distinct(invariants.map(|invariant| invariant.name.as_str()));
        rows.extend(names.into_iter().map(|name| invariant(document, cell, name)));
    }
    if rows.is_empty() {
        return Markup::default();
    }
    let mut all = cells.iter().flat_map(|cell| &cell.rounds).flat_map(|round| &round.invariants);
    let broken = all.any(|invariant| invariant.held != Some(true));
    let columns = Heading::all(&[
        ("level", false),
        ("invariant", false),
        ("held after", false),
        ("violations", true),
        ("promised", false),
        ("found", false),
    ]);
    html! {
        div class="level" {
            h3 { "The tables after each round" }
            @let checked = table("Invariants of the tables, and whether they held", &Table::new(columns, rows));
            (folded(cells.len() > MANY_CELLS && !broken, "They held after each round", &checked))
        }
    }
}

/// A number of violations, with its unit if it is known.
fn violations_shown(violations: Option<u64>, unit: Option<&str>) -> Entry {
    match (violations, unit) {
        (Some(violations), Some(unit)) => of_unit(violations, unit).into(),
        _ => Entry::Count(violations),
    }
}

fn invariant(document: &Document, cell: &Cell, name: &str) -> Vec<Entry> {
    let all: Vec<(u32, &Invariant)> = cell
        .rounds
        .iter()
        .flat_map(|round| round.invariants.iter().map(move |invariant| (round.round, invariant)))
        .filter(|(_, invariant)| invariant.name == name)
        .collect();
    let held = all.iter().filter(|(_, invariant)| invariant.held == Some(true)).count();
    let broken = all.iter().find(|(_, invariant)| invariant.held == Some(false));
    let unchecked = all.iter().find(|(_, invariant)| invariant.held.is_none());
    let checked = all.iter().any(|(_, invariant)| invariant.held.is_some());
    let violations = all.iter().filter_map(|(_, invariant)| invariant.violations).reduce(u64::saturating_add);
    let shown = broken.or(unchecked).or(all.last());
    // The violations are those of all rounds, what was found is one round's.
    let found = shown.map(|(round, invariant)| {
        Entry::Stack(vec![invariant.detail.as_str().into(), format!("after round {round}").into()])
    });
    vec![
        cell_name(document, cell).into(),
        name.into(),
        if checked {
            format!("{held} of {}", counted(all.len() as u64, "round")).into()
        } else {
            "not checked".into()
        },
        violations_shown(violations, shown.and_then(|(_, invariant)| invariant.unit.as_deref())),
        match (broken, shown.is_none_or(|(_, invariant)| invariant.promised)) {
            (Some((_, broken)), true) if broken.own => {
                Entry::grave("if every transaction alone keeps it: VIOLATED")
            }
            (Some(_), true) => Entry::grave("yes: VIOLATED"),
            _ if !checked => "".into(),
            (_, true) => "yes".into(),
            (_, false) => "no".into(),
        },
        found.unwrap_or_else(|| "".into()),
    ]
}
