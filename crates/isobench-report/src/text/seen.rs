//! What the verdict is based on, below the table: how many statements got columns that show their
//! rows, and what couldn't be tracked.
//!
//! Not here: the statements one by one (`html/seen`).

use isobench_result::document::{Document, Observation};
use isobench_result::numbers::{count, counted};
use isobench_result::seen::{Dark, blind, cut, dark, name, prevented, proved};
use isobench_result::words::capital;

/// The most kinds of dark spots in a terminal, and the most letters of each.
const FEW: (usize, usize) = (2, 120);

/// The most kinds of dark spots in the full text.
const MANY: usize = 20;

/// The most places of a dark spot.
const PLACES: usize = 3;

/// What was seen, in a paragraph or two for all workloads, not wrapped.
pub fn briefly(document: &Document) -> Vec<String> {
    let all: Vec<&Observation> = document.observations.iter().collect();
    let mut paragraphs: Vec<String> = seen(document, &all, "", FEW).into_iter().collect();
    paragraphs.extend(all.iter().filter_map(|observation| unseen(document, observation)));
    paragraphs.extend(cleared(document));
    paragraphs.extend(proved(document).map(|sentence| capital(&sentence) + "."));
    paragraphs
}

/// What was seen, in a paragraph for each workload, and what the checks couldn't see, not wrapped.
pub fn fully(document: &Document) -> Vec<String> {
    let mut paragraphs = Vec::new();
    for observation in &document.observations {
        let of = name(document, observation).map_or_else(String::new, |name| format!("{name}: "));
        paragraphs.extend(seen(document, &[observation], &of, (MANY, usize::MAX)));
        paragraphs.extend(unseen(document, observation));
    }
    paragraphs.extend(cleared(document));
    paragraphs.extend(proved(document).map(|sentence| capital(&sentence) + "."));
    let blind: Vec<String> = blind(&document.cells).iter().map(|sentence| capital(sentence) + ".").collect();
    if !blind.is_empty() {
        paragraphs.push(format!("What the check couldn't see: {}", blind.join(" ")));
    }
    paragraphs
}

/// What snapshots say of transactions whose statements aren't covered; `None` if they weren't asked
/// for, or say nothing.
fn cleared(document: &Document) -> Option<String> {
    let cleared = isobench_result::seen::cleared(document);
    let cleared: Vec<String> = cleared.iter().map(|sentence| capital(sentence) + ".").collect();
    (!cleared.is_empty()).then(|| format!("Snapshots: {}", cleared.join(" ")))
}

/// Why rows weren't observed, a sentence for each workload.
pub fn prevented_ones(document: &Document) -> Vec<String> {
    document.observations.iter().filter_map(|observation| unseen(document, observation)).collect()
}

/// The share of the statements that got further columns, and what couldn't be tracked; `None` if no
/// statement was observed.
fn seen(
    document: &Document,
    of: &[&Observation],
    name: &str,
    (most, longest): (usize, usize),
) -> Option<String> {
    let statements: usize = of.iter().map(|observation| observation.statements.len()).sum();
    let differently: usize = of.iter().map(|observation| observation.sent_differently()).sum();
    if statements == 0 {
        return None;
    }
    let dark = dark(of.iter().copied());
    let mut listed: Vec<String> = dark.iter().take(most).map(|dark| said(dark, longest)).collect();
    if dark.len() > most {
        listed.push(format!("{} more in the report", count((dark.len() - most) as u64)));
    }
    let blind = blind(&document.cells);
    let covered = match (listed.is_empty(), blind.first()) {
        (true, None) => "The verdict covers all statements".to_owned(),
        (true, Some(first)) => format!("The verdict covers all statements. {}", capital(first)),
        (false, _) => format!("Not covered by the verdict: {}", listed.join("; ")),
    };
    let added = if name.is_empty() { "Added" } else { "added" };
    Some(format!(
        "{name}{added} columns to {} of {} to see which rows they touch (off: --no-verdict). {covered}.",
        count(differently as u64),
        counted(statements as u64, "statement")
    ))
}

/// A dark spot with the statements that it is in.
fn said(dark: &Dark, longest: usize) -> String {
    let more = dark.places.len().saturating_sub(PLACES);
    let mut places: Vec<String> = dark.places.iter().take(PLACES).cloned().collect();
    if more > 0 {
        places.push(format!("{} more", count(more as u64)));
    }
    format!("{} ({})", cut(&dark.what, longest), places.join(", "))
}

/// Why the rows of a workload weren't observed; `None` if they were.
fn unseen(document: &Document, observation: &Observation) -> Option<String> {
    let why = prevented(observation)?;
    let of = name(document, observation).map_or_else(String::new, |name| format!(" of {name}"));
    Some(format!(
        "Not tracked: the statements{of} were sent as written, because they failed with the added columns: {why}."
    ))
}
