//! What faults cost, and what became of the commits that clients were told of.
//!
//! Not here: how it is counted (`isobench_result::durability`).

use maud::{Markup, html};

use super::part::table;
use super::pictures::picture;
use super::{Contents, chart};
use isobench_result::document::{Document, FaultEvent};
use isobench_result::durability::{self, LEGEND};
use isobench_result::numbers::short;

/// The section's body.
pub fn body(document: &Document) -> Option<(Markup, Contents)> {
    let faults = durability::table(document)?;
    let figure = chart::silence(document);
    let body = html! {
        (table("Faults, and acknowledged commits", &faults))
        @for line in durability::sentences(document) { p { (line.text) } }
        @if let Some(figure) = &figure { (picture(figure, false)) }
        @for sentence in LEGEND { p { (sentence) } }
        details {
            summary { "Every fault" }
            ul { @for line in events(document) { li { (line) } } }
        }
    };
    Some((body, figure.into_iter().map(|figure| (figure.id, figure.title)).collect()))
}

/// What happened in each round.
fn events(document: &Document) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &document.cells {
        for round in &cell.rounds {
            let Some(faults) = &round.faults else { continue };
            let events = faults.faults.iter().map(event).collect::<Vec<_>>().join("; ");
            lines.push(format!(
                "{}, round {}: {events}; {} sessions were lost",
                durability::name(document, cell),
                round.round,
                faults.lost_sessions
            ));
        }
    }
    lines
}

fn event(event: &FaultEvent) -> String {
    let Some(at) = event.at_s else { return format!("{} didn't happen", event.fault) };
    let back = match (event.back_s, &event.problem) {
        (Some(back), _) => format!("the server was back after {} s", short(back)),
        (None, Some(problem)) => format!("the server didn't come back: {problem}"),
        (None, None) => "the server didn't come back".to_owned(),
    };
    format!("{} happened at {} s, {back}", event.fault, short(at))
}
