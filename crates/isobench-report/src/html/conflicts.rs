//! The attempts that ended in a conflict, by reason, command and object: how many, where in the
//! script, and its SQL.
//!
//! Not here: what the server did meanwhile (`server_side`).

use isobench_result::diagnosis::diagnoses;
use isobench_result::document::{Cell, Conflict, Document, Round};
use isobench_result::numbers::{count, counted};
use isobench_result::rounds::{counted_ledger, counted_rounds};
use isobench_result::view::{Entry, Heading, Line, Table};
use maud::{Markup, html};

use super::part::{cell_name, code, folded, measured, table};
use super::scripts::{Place, one_line, place_of};
use crate::csv::line;

/// More kinds than this of one cell are added up in one row; fewer where there are many cells.
const KINDS: usize = 8;
const FEW: usize = 2;
const MANY_CELLS: usize = 8;

/// The caption of the table: what its rows are.
fn caption(rounds: &[&Round]) -> &'static str {
    if rounds.iter().all(|round| round.further_errors.is_empty()) {
        "Attempts that ended in a conflict, the most frequent kind first"
    } else {
        "Attempts that ended in a conflict, or in an error that is retried as one, the most frequent kind first"
    }
}

/// True if any attempt of a cell ended in a conflict, or in an error that is retried as one.
fn has_kinds(cell: &Cell) -> bool {
    let rounds = counted_rounds(cell);
    counted_ledger(cell).conflicts > 0 || rounds.iter().any(|round| !round.further_errors.is_empty())
}

/// Conflicts of one kind.
struct Kind {
    conflict: Conflict,
    place: Place,
}

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let cells: Vec<&Cell> = measured(document).collect();
    if cells.is_empty() {
        return None;
    }
    let with: Vec<&Cell> = cells.iter().copied().filter(|cell| has_kinds(cell)).collect();
    let most = if with.len() > MANY_CELLS { FEW } else { KINDS };
    let rows: Vec<Vec<Entry>> = with.iter().flat_map(|cell| rows(document, cell, most)).collect();
    // Most servers don't name what it was about.
    let rounds: Vec<&Round> = with.iter().flat_map(|cell| counted_rounds(cell)).collect();
    let mut conflicts = rounds.iter().flat_map(|round| &round.conflicts);
    let width = if conflicts.any(|conflict| conflict.object.is_some()) { 6 } else { 5 };
    let rows: Vec<Vec<Entry>> = rows.into_iter().map(|row| row.into_iter().take(width).collect()).collect();
    let mut columns = Heading::all(&[
        ("level", false),
        ("attempts", true),
        ("of all", true),
        ("reason", false),
        ("where", false),
        ("on", false),
    ]);
    columns.truncate(width);
    let without: Vec<String> =
        cells.iter().filter(|cell| !has_kinds(cell)).map(|cell| cell_name(document, cell)).collect();
    Some(html! {
        @if !rows.is_empty() {
            @let summary = format!("The conflicts of {}", counted(with.len() as u64, "row"));
            @let kinds = table(caption(&rounds), &Table::new(columns, rows));
            (folded(with.len() > MANY_CELLS, &summary, &kinds))
        }
        @if !without.is_empty() {
            p { "No attempt ended in a conflict at " (without.join("; ")) "." }
        }
        @for diagnosis in diagnoses(document) { p { (diagnosis.sentence) } }
        @if !with.is_empty() {
            div class="extras" {
                details class="data" {
                    summary { "Data as CSV" }
                    (code("conflicts-data", "Comma-separated values", "conflicts.csv", &data(document, &with)))
                }
            }
        }
    })
}

/// The kinds of a cell, the most frequent first.
fn kinds(document: &Document, cell: &Cell) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for conflict in counted_rounds(cell).into_iter().flat_map(Round::retryable) {
        let alike =
            |known: &&mut Kind| Conflict { count: conflict.count, ..known.conflict.clone() } == *conflict;
        match kinds.iter_mut().find(alike) {
            Some(known) => known.conflict.count = known.conflict.count.saturating_add(conflict.count),
            None => {
                kinds.push(Kind { conflict: conflict.clone(), place: place_of(document, cell, conflict) });
            }
        }
    }
    kinds.retain(|kind| kind.conflict.count > 0);
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.conflict.count));
    kinds
}

fn rows(document: &Document, cell: &Cell, most: usize) -> Vec<Vec<Entry>> {
    let mut kinds = kinds(document, cell);
    let started = counted_ledger(cell).attempts.started;
    let share = |count: u64| Entry::Share((started > 0).then(|| count as f64 / started as f64));
    let name = cell_name(document, cell);
    let rest = kinds.split_off(kinds.len().min(most));
    let mut rows: Vec<Vec<Entry>> = kinds
        .into_iter()
        .map(|Kind { conflict, place }| {
            let numbers = [name.as_str().into(), conflict.count.into(), share(conflict.count)];
            let reason =
                Entry::Stack(vec![one_line(&conflict.reason).into(), one_line(&conflict.sqlstate).into()]);
            let object = conflict.object.map_or(Entry::Number(None), |object| one_line(&object).into());
            numbers.into_iter().chain([reason, shown(&place), object]).collect()
        })
        .collect();
    if !rest.is_empty() {
        let number = rest.iter().fold(0, |sum: u64, kind| sum.saturating_add(kind.conflict.count));
        let others = format!("{} other kinds", count(rest.len() as u64));
        let numbers = [name.into(), number.into(), share(number)];
        rows.push(
            numbers.into_iter().chain([others.into(), "listed in the data".into(), "".into()]).collect(),
        );
    }
    rows
}

/// The place, and below it the SQL.
fn shown(place: &Place) -> Entry {
    let sql = Entry::Text(Line::plain(&place.sql));
    if place.name.is_empty() { sql } else { Entry::Stack(vec![place.name.as_str().into(), sql]) }
}

fn data(document: &Document, cells: &[&Cell]) -> String {
    let titles = ["level", "sqlstate", "script_line", "command", "reason", "object", "count", "attempts"];
    let mut text = line(titles.iter().map(|title| (*title).to_owned()));
    for cell in cells {
        let attempts = counted_ledger(cell).attempts.started;
        for Kind { conflict, place } in kinds(document, cell) {
            let values = [
                cell_name(document, cell),
                conflict.sqlstate,
                place.name,
                conflict.command,
                conflict.reason,
                conflict.object.unwrap_or_default(),
                conflict.count.to_string(),
                attempts.to_string(),
            ];
            text += &line(values.into_iter());
        }
    }
    text
}
