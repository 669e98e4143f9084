//! The answer in words and one table, with everything that brands it.
//!
//! Not here: how the answer is found (`isobench_result::answer`), the table (`table`).

use maud::{Markup, html};

use super::chart::safety;
use super::part::cell_name;
use super::{pictures, table};
use crate::text::{precision, witness};
use isobench_result::answer::{OWN_CONDITION, answer, brief};
use isobench_result::document::{Document, Round};
use isobench_result::view::Line;
use isobench_result::view::tried::{masked, tried, wrong_outcomes};

/// The section's body.
#[expect(clippy::unnecessary_wraps, reason = "sections stand in one table, and others may be left out")]
pub fn body(document: &Document) -> Option<Markup> {
    let (answer, said) = (answer(document), brief(document));
    Some(html! {
        (brands(document))
        div class="lead" {
            div {
                @let (first, rest) = said.answer.split_at(said.answer.len().min(1));
                p class="headline" { (first.concat()) }
                @if !rest.is_empty() { p class="headline more" { (rest.join(" ")) } }
                @if !said.grounds.is_empty() {
                    p class="basis" {
                        (said.grounds.join(" "))
                        @if document.cells.iter().any(|cell| cell.summary.verdict.is_some()) {
                            " " a href="#verdict" { "The proofs" } "."
                        }
                    }
                }
                @for doubt in &said.doubts { p class="basis" { (doubt) } }
            }
            @if let Some(figure) = &safety(document) { (pictures::picture(figure, false)) }
        }
        @if !document.cells.is_empty() { (table::results(document)) }
        (first_witness(document))
        @if !answer.reasons.is_empty() {
            ul class="reasons" {
                @for reason in &answer.reasons {
                    li class=[reason.is_grave().then_some("brand")] { (reason.text) }
                }
            }
        }
        @if !document.cells.is_empty() {
            (flags(document))
            @let precision = precision(document);
            @if !precision.is_empty() {
                ul class="reasons" { @for sentence in &precision { li { (sentence) } } }
            }
            (table::legend(document))
        }
    })
}

/// The first wrong outcome, a column for each transaction; on a narrow screen a line for each step.
fn first_witness(document: &Document) -> Markup {
    const WIDE: usize = 100;
    const NARROW: usize = 42;
    const NAME: &str = "What goes wrong";
    let tried = tried(document);
    let found = wrong_outcomes(&tried);
    let masked = masked(&tried);
    html! {
        @if let Some((wrong, levels)) = found.first() {
            figure class="outcome" aria-label=(NAME) {
                @for (class, width) in [("wide", WIDE), ("narrow", NARROW)] {
                    pre class=(class) aria-label=(NAME) { (witness(wrong, levels, &masked, width).join("\n")) }
                }
            }
        }
    }
}

/// The warnings that concern the whole result, above everything else.
fn brands(document: &Document) -> Markup {
    let mut brands: Vec<(Line, String)> = Vec::new();
    if !document.complete {
        let why = document.incomplete_reason.as_deref().unwrap_or("it ended before everything was measured");
        brands.push((Line::grave("INCOMPLETE"), why.to_owned()));
    }
    if document.has_broken_promise() {
        let why = "a recorded history contradicts what its level promises";
        brands.push((Line::grave("PROMISE BROKEN"), why.to_owned()));
    }
    if let Some(reason) = document.withheld() {
        brands.push((Line::plain("VERDICT WITHHELD"), reason.to_owned()));
    }
    if document.has_violations() {
        let mut rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
        let wrong = rounds.any(Round::is_wrong);
        let own = format!(
            "a condition of yours (--invariant) didn't hold after a round at serializable: {OWN_CONDITION}"
        );
        let (brand, why) =
            if wrong || document.sweeps.iter().flat_map(|sweep| &sweep.tried).any(|step| step.broken) {
                ("WRONG DATA", "what the level promises about the tables didn't hold after a round")
            } else {
                ("VIOLATED", own.as_str())
            };
        brands.push((Line::grave(brand), why.to_owned()));
    }
    if document.has_level_mismatch() {
        let why = "the server says it runs another level than the one asked for";
        brands.push((Line::plain("OTHER LEVEL"), why.to_owned()));
    }
    brands.extend(document.warnings.iter().map(|warning| (Line::plain("Warning"), warning.clone())));
    html! {
        @if !brands.is_empty() {
            ul class="banners" role="list" aria-label="Before you read on" {
                @for (name, text) in &brands {
                    li class=[name.is_grave().then_some("grave")] { strong { (name.text) } ": " (text.trim_end_matches('.')) "." }
                }
            }
        }
    }
}

/// The sentences of the rows' flags.
fn flags(document: &Document) -> Markup {
    let flagged: Vec<_> = document.cells.iter().filter(|cell| !cell.summary.flags.is_empty()).collect();
    html! {
        @if !flagged.is_empty() {
            div id="flags" class="flags" {
                h3 { "Flags" }
                dl {
                    @for cell in flagged {
                        dt { (cell_name(document, cell)) }
                        @for flag in &cell.summary.flags {
                            dd { strong { (flag.kind.name()) } ": " (flag.text) }
                        }
                    }
                }
            }
        }
    }
}
