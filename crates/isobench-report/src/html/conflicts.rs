//! The attempts that ended in a conflict, by reason, command and object.
//!
//! Not here: what the server did meanwhile (`server_side`).

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::part::{cell_name, measured, table};
use crate::diagnosis::diagnoses;
use crate::document::{Cell, Conflict, Document, Round};
use crate::summarise::{counted_ledger, counted_rounds};
use crate::view::{Entry, Heading, Table};

/// More kinds than this of one cell are added up in one row.
const KINDS: usize = 12;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let cells: Vec<&Cell> = measured(document).collect();
    if cells.is_empty() {
        return None;
    }
    let rows: Vec<Vec<Entry>> = cells.iter().flat_map(|cell| rows(document, cell)).collect();
    let without: Vec<String> = cells
        .iter()
        .filter(|cell| counted_ledger(cell).conflicts == 0)
        .map(|cell| cell_name(document, cell))
        .collect();
    // Most servers don't name what it was about.
    let rounds: Vec<&Round> = cells.iter().flat_map(|cell| counted_rounds(cell)).collect();
    let mut conflicts = rounds.iter().flat_map(|round| &round.conflicts);
    let width = if conflicts.any(|conflict| conflict.object.is_some()) { 7 } else { 6 };
    let rows: Vec<Vec<Entry>> = rows.into_iter().map(|row| row.into_iter().take(width).collect()).collect();
    let mut columns = Heading::all(&[
        ("level", false),
        ("attempts", true),
        ("of all", true),
        ("reason", false),
        ("code", false),
        ("command", false),
        ("on", false),
    ]);
    columns.truncate(width);
    let title = if rounds.iter().all(|round| round.further_errors.is_empty()) {
        "Attempts that ended in a conflict, the most frequent kind first"
    } else {
        "Attempts that ended in a conflict, or in an error that is retried as one, the most frequent kind first"
    };
    let some = !rows.is_empty();
    let kinds = Table::new(columns, rows);
    Some(html! {
        @if some {
            (table(title, &kinds))
        }
        @if !without.is_empty() {
            p { "No attempt ended in a conflict at " (without.join("; ")) "." }
        }
        @for diagnosis in diagnoses(document) {
            p { (diagnosis.sentence) }
        }
    })
}

fn rows(document: &Document, cell: &Cell) -> Vec<Vec<Entry>> {
    let mut kinds: BTreeMap<(&str, &str, &str, Option<&str>), u64> = BTreeMap::new();
    for conflict in counted_rounds(cell).into_iter().flat_map(Round::retryable) {
        let Conflict { sqlstate, command, reason, object, count } = conflict;
        let sum = kinds.entry((reason, sqlstate, command, object.as_deref())).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let started = counted_ledger(cell).attempts.started;
    let share = |count: u64| Entry::Share((started > 0).then(|| count as f64 / started as f64));
    let name = cell_name(document, cell);
    let rest = kinds.split_off(kinds.len().min(KINDS));
    let mut rows: Vec<Vec<Entry>> = kinds
        .into_iter()
        .map(|((reason, code, command, object), number)| {
            let numbers = [name.as_str().into(), number.into(), share(number)];
            let object = object.map_or(Entry::Number(None), Entry::from);
            numbers.into_iter().chain([reason.into(), code.into(), command.into(), object]).collect()
        })
        .collect();
    if !rest.is_empty() {
        let number = rest.iter().fold(0, |sum: u64, (_, number)| sum.saturating_add(*number));
        let others = format!("{} other kinds", rest.len());
        let numbers = [name.into(), number.into(), share(number)];
        rows.push(numbers.into_iter().chain([others.into(), "".into(), "".into(), "".into()]).collect());
    }
    rows
}
