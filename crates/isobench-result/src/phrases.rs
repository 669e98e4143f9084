//! What several renderings say of a result in the same words.

use crate::document::{Document, RatioToFirst};
use crate::numbers::{counted, given, short};

/// The interval of a ratio, and whether there is a measurable difference: "0.40 to 0.60", "0.90 to
/// 1.10: no measurable difference".
pub fn certainty(ratio: &RatioToFirst) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            let alike = if ratio.significant { "" } else { ": no measurable difference" };
            format!("{} to {}{alike}", short(low), short(high))
        }
        _ => "too few rounds for an interval".to_owned(),
    }
}

/// How warnings begin that say how the cells of a comparison took turns. They concern the method, and
/// nobody has to act on them.
const ABOUT_TURNS: [&str; 2] =
    ["cells that could take turns are measured one after the other", "cells were measured in one piece each"];

/// True if a warning says how cells took turns.
pub fn is_about_turns(warning: &str) -> bool {
    ABOUT_TURNS.iter().any(|start| warning.starts_with(start))
}

/// "3 rounds of 5 s", "8 rounds of 1.5 s in turns of 0.25 s"; `None` if the plan limits neither time
/// nor transactions.
pub fn length(document: &Document) -> Option<String> {
    let plan = &document.plan;
    let measured = document.cells.iter().map(|cell| cell.rounds.len()).max().unwrap_or_default() as u64;
    let more = measured.saturating_sub(plan.rounds().into());
    // With a resolution there are as many as it takes.
    let rounds = if more > 0 && plan.resolve.is_none() {
        format!("{} and {more} more", counted(plan.rounds().into(), "round"))
    } else {
        counted(plan.rounds().into(), "round")
    };
    match (plan.seconds(), plan.transactions) {
        (Some(seconds), _) => Some(format!("{rounds} of {} s{}", given(seconds), turns(document))),
        (None, Some(transactions)) => {
            Some(format!("{rounds} of {} per client", counted(transactions, "transaction")))
        }
        (None, None) => None,
    }
}

/// " in turns of 0.25 s", " in turns of 0.25 to 0.75 s"; empty if no cell took turns.
fn turns(document: &Document) -> String {
    let rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
    let lengths = rounds.filter_map(|round| round.turns).filter(|turns| turns.count > 1);
    let ends = lengths.map(|turns| (turns.length_s, turns.length_s));
    match ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))) {
        None => String::new(),
        Some((least, most)) if milliseconds(least) == milliseconds(most) => {
            format!(" in turns of {} s", milliseconds(least))
        }
        Some((least, most)) => format!(" in turns of {} to {} s", milliseconds(least), milliseconds(most)),
    }
}

/// Seconds, to the millisecond.
fn milliseconds(seconds: f64) -> String {
    given((seconds * 1e3).round() / 1e3)
}
