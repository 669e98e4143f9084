//! What trying scripts against each other showed, as lines to be laid out.

use crate::document::{Cell, Document, OrderOutcome, Tried, WrongOutcome};
use crate::numbers::counted;
use crate::words::{distinct, enumerated};

/// A wrong outcome step by step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// What it shows, in a sentence.
    pub heading: String,
    /// The steps, the outcome, and what serial orders give; indented.
    pub lines: Vec<String>,
}

/// The most lines of an outcome that are shown.
const MOST: usize = 8;

/// The wrong outcomes of a document, each once, the shortest first.
pub fn witnesses(document: &Document) -> Vec<Witness> {
    let mut found: Vec<(&WrongOutcome, Vec<String>)> = Vec::new();
    for cell in &document.cells {
        for wrong in cell.wrong_outcomes() {
            let level = cell.level.name();
            match found.iter_mut().find(|(other, _)| same_steps(other, wrong)) {
                Some((_, levels)) if !levels.contains(&level) => levels.push(level),
                Some(_) => {}
                None => found.push((wrong, vec![level])),
            }
        }
    }
    found.sort_by_key(|(wrong, _)| wrong.steps.len());
    found.iter().map(|(wrong, levels)| witness(wrong, levels)).collect()
}

fn same_steps(one: &WrongOutcome, other: &WrongOutcome) -> bool {
    let sent = |wrong: &WrongOutcome| {
        wrong.steps.iter().map(|step| (step.transaction, step.sql.clone())).collect::<Vec<_>>()
    };
    one.damage == other.damage && sent(one) == sent(other)
}

fn witness(wrong: &WrongOutcome, levels: &[String]) -> Witness {
    let what = if wrong.damage {
        "the data end as no serial order leaves them"
    } else {
        "a transaction is told what no serial order tells it"
    };
    let before = if wrong.before.is_empty() { String::new() } else { format!(", {}", wrong.before) };
    let heading = format!("{}{before}, at {}: {what}.", wrong.scripts(), enumerated(levels));
    let mut lines = Vec::new();
    for step in &wrong.steps {
        lines.push(format!("T{}: {}", step.transaction, step.sql));
        lines.extend(step.answer.iter().map(|line| format!("      {line}")));
    }
    lines.push("It ends with:".to_owned());
    lines.extend(of_order(&wrong.outcome, wrong.damage));
    for order in &wrong.serial_orders {
        let names: Vec<String> = order.order.iter().map(|number| format!("T{number}")).collect();
        lines.push(format!("{} ends with:", names.join(", then ")));
        lines.extend(of_order(order, wrong.damage));
    }
    Witness { heading, lines }
}

fn of_order(order: &OrderOutcome, damage: bool) -> Vec<String> {
    let told = if damage { &order.changes } else { &order.told };
    let mut lines: Vec<String> = told.iter().take(MOST).map(|line| format!("  {line}")).collect();
    if told.len() > MOST {
        lines.push(format!("  … and {}", counted((told.len() - MOST) as u64, "more row")));
    }
    if told.is_empty() {
        lines.push("  nothing".to_owned());
    }
    lines
}

/// What wasn't tried, and what wasn't judged, a sentence each.
pub fn notes(document: &Document) -> Vec<String> {
    let tried = || document.cells.iter().filter_map(|cell: &Cell| cell.tried.as_ref());
    let mut notes = Vec::new();
    let refused = tried().flat_map(|tried: &Tried| &tried.not_tried);
    notes.extend(distinct(refused.map(|refused| match refused.script.as_str() {
        "" => format!("Interleavings were not tried: {}.", refused.reason),
        script => format!("Interleavings of {script} were not tried: {}.", refused.reason),
    })));
    let by_design = distinct(tried().flat_map(|tried| tried.by_design.iter().map(String::as_str)));
    if !by_design.is_empty() {
        notes.push(format!(
            "No serial order gives what {} leads to; that is asked for, and isn't held against a level.",
            enumerated(&by_design.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        ));
    }
    if tried().any(|tried| !tried.all_combinations && tried.found.is_empty() && tried.interleavings > 0) {
        notes.push(
            "Not all combinations of scripts were tried in the time for it; --try 30s takes more.".to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Level};

    use super::*;
    use crate::document::{CellLevel, Client, NotTried, Plan, Server, TriedStep};

    fn cell(level: Level, tried: Tried) -> Cell {
        let mut cell = Cell::new("w", CellLevel::new(Some(level), EffectiveLevel::Standard(level)));
        cell.tried = Some(tried);
        cell
    }

    #[test]
    fn the_same_steps_at_several_levels_are_shown_once() {
        let wrong = WrongOutcome {
            damage: true,
            scripts: vec!["a.sql".to_owned(), "b.sql".to_owned()],
            steps: vec![TriedStep {
                transaction: 1,
                sql: "COMMIT".to_owned(),
                answer: vec!["COMMIT".to_owned()],
            }],
            outcome: OrderOutcome {
                order: vec![1, 2],
                changes: vec!["+ t (1)".to_owned()],
                told: Vec::new(),
            },
            serial_orders: vec![OrderOutcome { order: vec![2, 1], ..OrderOutcome::default() }],
            ..WrongOutcome::default()
        };
        let tried = Tried { found: vec![wrong], ..Tried::default() };
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.cells = vec![cell(Level::ReadCommitted, tried.clone()), cell(Level::RepeatableRead, tried)];
        let shown = witnesses(&document);
        assert_eq!(shown.len(), 1);
        assert_eq!(
            shown[0].heading,
            "b.sql within a.sql, at read committed and repeatable read: the data end as no serial order leaves them."
        );
        let told = [
            "T1: COMMIT",
            "      COMMIT",
            "It ends with:",
            "  + t (1)",
            "T2, then T1 ends with:",
            "  nothing",
        ];
        assert_eq!(shown[0].lines, told);
    }

    #[test]
    fn what_was_not_tried_is_said_once() {
        let refused = NotTried { script: "a.sql".to_owned(), reason: "line 2: COPY".to_owned() };
        let tried = Tried { not_tried: vec![refused], ..Tried::default() };
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.cells = vec![cell(Level::ReadCommitted, tried.clone()), cell(Level::Serializable, tried)];
        assert_eq!(notes(&document), ["Interleavings of a.sql were not tried: line 2: COPY."]);
    }
}
