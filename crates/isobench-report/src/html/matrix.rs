//! Strategies by levels as a heat map: a table whose fields are the darker the more was committed,
//! and marked where something was found wrong.
//!
//! Not here: what is in a field (`view/matrix`).

use maud::{Markup, html};

use super::part::{code, scrolling};
use crate::csv::{line, number};
use isobench_result::document::Document;
use isobench_result::view::matrix::{LEGEND, Matrix, MatrixEntry, MatrixGroup, Safety};
use isobench_result::view::{self, Entry, Medium};

/// The heading.
const TITLE: &str = "Strategies by levels";

/// The number of shades.
const SHADES: usize = 6;

/// The matrix; `None` unless strategies and levels vary.
pub fn body(document: &Document) -> Option<Markup> {
    let matrix = view::matrix(document)?;
    let most = entries(&matrix).filter_map(|entry| entry.tps).fold(0.0, f64::max);
    Some(html! {
        figure id="matrix" aria-labelledby="matrix-title" {
            h3 id="matrix-title" { (TITLE) }
            (scrolling(TITLE, &table(&matrix, most)))
            figcaption { (LEGEND) " The darker a field, the more was committed; a striped edge: anomalies were found." }
            div class="extras" {
                details class="data" {
                    summary { "Data as CSV" }
                    (code("matrix-data", "Comma-separated values", "matrix.csv", &data(&matrix)))
                }
            }
        }
    })
}

fn entries(matrix: &Matrix) -> impl Iterator<Item = &MatrixEntry> {
    matrix.groups.iter().flat_map(|group| &group.rows).flat_map(|row| row.entries.iter().flatten())
}

fn table(matrix: &Matrix, most: f64) -> Markup {
    html! {
        table class="heat" {
            caption { "Committed transactions per second, and anomalies" }
            thead {
                tr {
                    th scope="col" { "strategy" }
                    @for level in &matrix.levels { th scope="col" { (level) } }
                }
            }
            @for group in &matrix.groups { (rows(matrix, group, most)) }
        }
    }
}

fn rows(matrix: &Matrix, group: &MatrixGroup, most: f64) -> Markup {
    html! {
        tbody {
            @if !group.name.is_empty() {
                tr { th class="group" scope="rowgroup" colspan=(matrix.levels.len() + 1) { (group.name) } }
            }
            @for row in &group.rows {
                tr {
                    th scope="row" { (row.strategy) }
                    @for (entry, level) in row.entries.iter().zip(&matrix.levels) {
                        @match entry {
                            Some(entry) => (field(entry, level, most)),
                            None => td data-label=(level) { "not measured" },
                        }
                    }
                }
            }
        }
    }
}

fn field(entry: &MatrixEntry, level: &str, most: f64) -> Markup {
    let safety = entry.safety.line();
    let wrong = matches!(entry.safety, Safety::Anomalies { .. } | Safety::Violations(_)) || safety.is_grave();
    let marked = match (wrong, &entry.safety) {
        (true, _) => " wrong",
        (_, Safety::Safe) => " safe",
        _ => "",
    };
    let rate = Entry::Number(entry.tps).lines(Medium::Page);
    html! {
        td class={ "shade" (shade(entry.tps, most)) (marked) } data-label=(level) {
            @for text in &rate { strong { (text.text) } }
            " " span class=(if safety.is_grave() { "line brand" } else { "line" }) { (safety.text) }
        }
    }
}

/// The shade of a rate, from 0 to 5.
fn shade(rate: Option<f64>, most: f64) -> usize {
    let share = rate.filter(|_| most > 0.0).map_or(0.0, |rate| rate / most);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates; the share is positive"
    )]
    let shade = (share * SHADES as f64) as usize;
    shade.min(SHADES - 1)
}

fn data(matrix: &Matrix) -> String {
    let titles = ["group", "strategy", "level", "tps", "anomalies_per_million", "safety"];
    let mut text = line(titles.iter().map(|title| (*title).to_owned()));
    for group in &matrix.groups {
        for row in &group.rows {
            for (entry, level) in row.entries.iter().zip(&matrix.levels) {
                let Some(entry) = entry else { continue };
                let values = [
                    group.name.clone(),
                    row.strategy.clone(),
                    level.clone(),
                    number(entry.tps),
                    number(entry.anomalies_per_million),
                    match &entry.safety {
                        Safety::Anomalies { .. } => "anomalies".to_owned(),
                        other => other.line().text,
                    },
                ];
                text += &line(values.into_iter());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_the_darkest() {
        for (rate, found) in [(None, 0), (Some(0.0), 0), (Some(60.0), 3), (Some(99.0), 5), (Some(100.0), 5)] {
            assert_eq!(shade(rate, 100.0), found, "{rate:?}");
        }
        assert_eq!(shade(Some(f64::NAN), 100.0), 0);
        assert_eq!(shade(Some(1.0), 0.0), 0);
    }
}
