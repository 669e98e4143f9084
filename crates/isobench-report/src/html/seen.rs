//! What was tracked of each statement, and what wasn't; the SQL of a witness's step.
//!
//! Not here: the verdicts that rest on it (`verdict`).

use maud::{Markup, html};

use super::part::{fit, scrolling};
use super::scripts::one_line;
use isobench_result::document::{AnomalyFound, Document, Observation, ObservedRows, ObservedStatement};
use isobench_result::numbers::{count, counted};
use isobench_result::seen::{cleared, cut, name, of_step, place, plain, prevented, proved};
use isobench_result::words::capital;

/// The most letters of a statement that are shown before it is opened.
const LONGEST: usize = 240;

/// What stands in place of nothing.
const NOTHING: &str = "–";

/// The columns of the statements' table.
const COLUMNS: [&str; 6] =
    ["statement", "sent", "rows seen", "order of versions", "rows not found", "untracked"];

/// A part of the section on verdicts: a table for each workload; nothing if rows weren't to be
/// observed.
pub fn body(document: &Document) -> Markup {
    html! {
        @if !document.observations.is_empty() {
            div class="level" {
                h3 { "What was seen of the statements" }
                @for observation in &document.observations { (observed(document, observation)) }
                @for sentence in cleared(document).into_iter().chain(proved(document)) {
                    p { (capital(&sentence)) "." }
                }
            }
        }
    }
}

fn observed(document: &Document, observation: &Observation) -> Markup {
    let name = name(document, observation);
    let of = name.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
    let dark = observation.statements.iter().filter(|statement| !statement.dark.is_empty()).count();
    html! {
        @if let Some(why) = prevented(observation) {
            p {
                "The statements" (of) " were sent as written, because they failed with the added columns: " (why) "."
            }
        }
        @if !observation.statements.is_empty() {
            p {
                "Added columns to " (count(observation.sent_differently() as u64)) " of "
                (counted(observation.statements.len() as u64, "statement")) (of)
                " to see which rows they touch (off: --no-verdict). "
                @if dark == 0 { "The verdict covers all statements." }
                @else { "The verdict doesn't cover " (counted(dark as u64, "statement")) ", or only in part." }
            }
            details class="folded" {
                summary { "Each statement" (of) ": what was tracked of it, and what wasn't" }
                (table(&format!("What was tracked of the statements{of}"), &observation.statements))
            }
        }
    }
}

fn table(caption: &str, statements: &[ObservedStatement]) -> Markup {
    let markup = html! {
        table class=(fit(COLUMNS.len())) {
            caption { (caption) }
            thead { tr { @for column in COLUMNS { th scope="col" { (column) } } } }
            @for statement in statements {
                tbody {
                    (row(statement, statement.tables.first(), true))
                    @for rows in statement.tables.iter().skip(1) { (row(statement, Some(rows), false)) }
                }
            }
        }
    };
    scrolling(caption, &markup)
}

/// A row of the table: a statement with one of its tables.
fn row(statement: &ObservedStatement, rows: Option<&ObservedRows>, first: bool) -> Markup {
    let [_, sent, seen, order, missed, dark] = COLUMNS;
    let differently = if statement.sent_differently { "with more columns" } else { "as written" };
    html! {
        tr {
            th scope="row" class=[(!first).then_some("repeated")] {
                (place(statement))
                @if first { div class="below sql" { (shortened(&statement.text)) } }
            }
            td data-label=(sent) { (if first { differently } else { NOTHING }) }
            td data-label=(seen) {
                @match rows {
                    Some(rows) => { (rows.access) " " (rows.table) " " span class="below" { "key " (rows.key) } }
                    None => { (NOTHING) }
                }
            }
            td data-label=(order) {
                @match rows.map(|rows| rows.order.as_str()) {
                    Some("row lock") => "by the row lock",
                    Some(order) if !order.is_empty() && order != "-" => { "by " (order) }
                    _ => { (NOTHING) }
                }
            }
            td data-label=(missed) { (if rows.is_some_and(|rows| rows.searched) { "known" } else { NOTHING }) }
            td data-label=(dark) {
                @if first && !statement.dark.is_empty() {
                    @for sentence in &statement.dark { div { (capital(plain(sentence))) "." } }
                } @else {
                    (NOTHING)
                }
            }
        }
    }
}

/// The SQL of a step of a witness, each side with its transaction if both are known.
pub fn of_witness(found: &AnomalyFound, step: usize) -> Markup {
    let statements = found.statements.get(step).map(Vec::as_slice).unwrap_or_default();
    let arrow = found.arrows.get(step);
    let name = |transaction: usize| found.transactions.get(transaction).map(|it| it.name.as_str());
    let sides = arrow.and_then(|arrow| Some([name(arrow.from)?, name(arrow.to)?]));
    html! {
        @match (statements, sides) {
            ([one, other], Some([from, to])) if one != other => {
                (sql(Some(from), one))
                (sql(Some(to), other))
            }
            _ => @for statement in of_step(statements) { (sql(None, statement)) }
        }
    }
}

fn sql(ran: Option<&str>, statement: &str) -> Markup {
    html! {
        div class="sql" {
            @if let Some(name) = ran { (name) ": " }
            (shortened(statement))
        }
    }
}

/// A statement in a line, or folded if it is long.
fn shortened(statement: &str) -> Markup {
    let line = one_line(statement.trim_end_matches(';'));
    let beginning = cut(&line, LONGEST);
    html! {
        @if beginning == line {
            code { (line) }
        } @else {
            code { (beginning) }
            details { summary { "The whole statement" } code { (line) } }
        }
    }
}
