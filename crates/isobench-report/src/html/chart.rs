//! The pictures of the report, drawn as SVG: one function for each, in a table.
//!
//! Colours are classes only (`chart/chart.css`, which expects `color-scheme` to say which theme is
//! shown), so that themes and print decide; markers, dashes, hatchings and direct labels show the
//! same without colour. Whatever a document holds, a figure has no number that isn't finite, and
//! nothing panics. Not here: the page around the figures, and anything that is computed: figures
//! show what the summaries and rounds hold.
//!
//! | file | concept |
//! |---|---|
//! | `subject` | what a cell is called and how it is drawn, the same in every figure |
//! | `scale` | from values to places, and round ticks |
//! | `frame` | the picture, its plots, grids and labels |
//! | `rows` | a list of horizontal bars, each below its label |
//! | `marks` | markers, lines, boxes, and what a pointer shows at them |
//! | `hatching` | what tells the kinds of a whole apart without colour |
//! | `legend` | what the hatchings mean |
//! | `graph` | boxes and arrows |
//! | `combination` | cells that differ in one factor, as lines |
//! | `wait_kinds` | which hatching stands for which wait event |
//! | `data` | the numbers of a figure as comma-separated values |
//! | `trend` | one figure of many results, with its changes |
//! | the others | a figure each |

mod against;
mod combination;
mod data;
pub mod frame;
pub mod graph;
mod hatching;
mod latency;
mod legend;
pub mod marks;
mod rows;
mod safety;
mod scale;
mod silence;
pub mod subject;
mod sweep;
#[cfg(test)]
mod tests;
mod throughput;
mod time_ledger;
mod trend;
mod wait_kinds;
mod waits;

use isobench_result::document::Document;

pub use trend::trend;

/// A picture of the report with everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The anchor: the same in every report.
    pub id: &'static str,
    /// The subject of the picture, in a few words.
    pub title: String,
    /// The quantity shown, its population and its period.
    pub caption: String,
    /// The picture in words, with the numbers that matter: for readers who can't see it.
    pub description: String,
    /// The meaning of the marks, as HTML above the picture; empty where everything is labelled.
    pub legend: String,
    /// The picture, as an element of an HTML page.
    pub svg: String,
    /// The data, comma-separated (RFC 4180) with a line of titles.
    pub csv: String,
}

type Draw = fn(&Document) -> Option<Figure>;

/// The figures of rates and time, in the order of the report.
static RATES: [Draw; 7] = [
    throughput::figure,
    against::clients,
    against::rates,
    |document| against::parameter(document, 0),
    |document| against::parameter(document, 1),
    |document| against::parameter(document, 2),
    time_ledger::figure,
];

/// The figures of latency and waits.
static COURSE: [Draw; 3] = [latency::figure, sweep::figure, waits::figure];

fn drawn(figures: &[Draw], document: &Document) -> Vec<Figure> {
    figures.iter().filter_map(|figure| figure(document)).collect()
}

/// Draws cost against safety; `None` if no history was checked. As with all figures, the document's
/// summaries must have been computed.
pub fn safety(document: &Document) -> Option<Figure> {
    safety::figure(document)
}

/// Draws the time without commits; `None` if nothing happened to a server.
pub fn silence(document: &Document) -> Option<Figure> {
    silence::figure(document)
}

/// Draws rates and time, as far as the document has data for them.
pub fn rates(document: &Document) -> Vec<Figure> {
    drawn(&RATES, document)
}

/// Draws latencies and waits, as far as the document has data for them.
pub fn course(document: &Document) -> Vec<Figure> {
    drawn(&COURSE, document)
}
