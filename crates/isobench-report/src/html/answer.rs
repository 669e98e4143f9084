//! The answer in words and one table, with everything that brands it.
//!
//! Not here: how the answer is found (`isobench_result::answer`), the table (`table`).

use maud::{Markup, html};

use super::part::cell_name;
use super::table;
use crate::text::precision;
use isobench_result::answer::{OWN_CONDITION, answer};
use isobench_result::document::{Document, Round};
use isobench_result::view::Line;

/// The section's body.
#[expect(clippy::unnecessary_wraps, reason = "sections stand in one table, and others may be left out")]
pub fn body(document: &Document) -> Option<Markup> {
    let answer = answer(document);
    Some(html! {
        (brands(document))
        @let (first, rest) = answer.headline.split_at(answer.headline.len().min(1));
        p class="headline" { (first.concat()) }
        @if !rest.is_empty() { p class="headline more" { (rest.join(" ")) } }
        @if let Some(basis) = &answer.basis {
            p class="basis" {
                (basis)
                @if document.cells.iter().any(|cell| cell.summary.verdict.is_some()) {
                    " " a href="#verdict" { "The proofs" } "."
                }
            }
        }
        @if !document.cells.is_empty() { (table::results(document)) }
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
