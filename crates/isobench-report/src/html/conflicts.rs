//! Which attempts ended in a conflict: for which reason, at which command, on what.
//!
//! Not here: what the server did meanwhile (`server_side`).

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::part::{cell_name, measured, table};
use crate::document::{Cell, Conflict, Document};
use crate::numbers::{MISSING, count, percent};
use crate::summarise::{counted_ledger, counted_rounds};

/// More kinds than this of one cell are added up in one row.
const KINDS: usize = 12;

/// The section's body.
pub fn body(document: &Document) -> Option<Markup> {
    let cells: Vec<&Cell> = measured(document).collect();
    if cells.is_empty() {
        return None;
    }
    let rows: Vec<Vec<String>> = cells.iter().flat_map(|cell| rows(document, cell)).collect();
    let without: Vec<String> = cells
        .iter()
        .filter(|cell| counted_ledger(cell).conflicts == 0)
        .map(|cell| cell_name(document, cell))
        .collect();
    // Most servers don't name what it was about.
    let mut conflicts = cells.iter().flat_map(|cell| counted_rounds(cell)).flat_map(|round| &round.conflicts);
    let width = if conflicts.any(|conflict| conflict.object.is_some()) { 7 } else { 6 };
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.into_iter().take(width).collect()).collect();
    let titles = [
        ("level", false),
        ("attempts", true),
        ("of all", true),
        ("reason", false),
        ("code", false),
        ("command", false),
        ("on", false),
    ];
    let titles = &titles[..width];
    Some(html! {
        @if !rows.is_empty() {
            (table("Attempts that ended in a conflict, the most frequent kind first", titles, &rows))
        }
        @if !without.is_empty() {
            p { "No attempt ended in a conflict at " (without.join("; ")) "." }
        }
    })
}

fn rows(document: &Document, cell: &Cell) -> Vec<Vec<String>> {
    let mut kinds: BTreeMap<(&str, &str, &str, Option<&str>), u64> = BTreeMap::new();
    for conflict in counted_rounds(cell).into_iter().flat_map(|round| &round.conflicts) {
        let Conflict { sqlstate, command, reason, object, count } = conflict;
        let sum = kinds.entry((reason, sqlstate, command, object.as_deref())).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let started = counted_ledger(cell).attempts.started;
    let share = |count: u64| {
        if started == 0 { MISSING.to_owned() } else { percent(count as f64 / started as f64) }
    };
    let name = cell_name(document, cell);
    let rest = kinds.split_off(kinds.len().min(KINDS));
    let mut rows: Vec<Vec<String>> = kinds
        .into_iter()
        .map(|((reason, code, command, object), number)| {
            let texts = [reason, code, command, object.unwrap_or(MISSING)].map(str::to_owned);
            [name.clone(), count(number), share(number)].into_iter().chain(texts).collect()
        })
        .collect();
    if !rest.is_empty() {
        let number = rest.iter().fold(0, |sum: u64, (_, number)| sum.saturating_add(*number));
        let others = format!("{} other kinds", rest.len());
        rows.push(vec![
            name,
            count(number),
            share(number),
            others,
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    rows
}
