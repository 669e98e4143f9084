//! The card: one line, one number, one picture, to be pasted elsewhere.
//!
//! The picture is an SVG that needs nothing but itself, so its colours are written into it. They
//! are the light theme's of the page's own pictures, and are taken from their style. Not here: how
//! the answer is found (`isobench_result::answer`).

use maud::{Markup, PreEscaped, html};

use super::chart::frame::{fitting, lines, width_of};
use super::chart::marks::u;
use super::chart::subject::{Subject, groups};
use isobench_result::answer::answer;
use isobench_result::document::{Cell, Document};
use isobench_result::factor::strategies_vary;
use isobench_result::numbers::{optional, short};
use isobench_result::view::matrix::Safety;

/// The anchor.
pub const ID: &str = "card";

/// The heading.
pub const TITLE: &str = "A card to pass on";

/// More bars don't fit.
const MOST: usize = 8;

const WIDTH: f64 = 640.0;
const MARGIN: f64 = 24.0;
const ROW: f64 = 46.0;

/// Letters of the headline are larger than those that widths are known of, those below are smaller.
const LARGE: f64 = 1.35;
const SMALL: f64 = 0.95;

const INK: &str = "#1b1f24";
const MUTED: &str = "#57606a";
const BAD: &str = "#a4161a";

/// What the card says.
struct Card<'a> {
    headline: Vec<String>,
    number: String,
    meaning: String,
    bars: Vec<Bar<'a>>,
    source: String,
}

/// A cell on the card.
struct Bar<'a> {
    cell: &'a Cell,
    name: String,
    style: usize,
    rate: f64,
    safety: Safety,
}

/// The card with its buttons; `None` if nothing was committed.
pub fn figure(document: &Document) -> Option<Markup> {
    let card = Card::of(document)?;
    let text = card.text();
    Some(html! {
        figure id=(ID) aria-labelledby="card-title" {
            h3 id="card-title" { (TITLE) }
            details class="folded" {
                summary { "One line, one number, one picture" }
                div class="card" { (PreEscaped(card.svg(&text))) }
                div class="buttons" {
                    button type="button" class="copy" data-copy="card-text" hidden { "Copy as text" }
                    button type="button" class="save" data-save="card-picture" data-file="isobench.svg" hidden { "Download SVG" }
                }
                p id="card-text" { (text) }
            }
        }
    })
}

impl Card<'_> {
    fn of(document: &Document) -> Option<Card<'_>> {
        let several = strategies_vary(document);
        let mut bars: Vec<Bar> = Vec::new();
        for group in groups(document) {
            for subject in group.members {
                bars.extend(Bar::of(document, &subject, &group.name, several));
            }
        }
        let best = bars.iter().map(|bar| bar.rate).fold(0.0, f64::max);
        if best <= 0.0 {
            return None;
        }
        let headline = answer(document).headline.into_iter().next().unwrap_or_default();
        let (number, meaning) = number(&bars);
        bars.truncate(MOST);
        let facts = [
            document.server.name(),
            document.cells.first().map(|cell| cell.workload.clone()).unwrap_or_default(),
            document.started_at.as_ref().and_then(|at| at.split('T').next()).unwrap_or_default().to_owned(),
            format!("isobench {}", document.client.version),
        ];
        let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
        let room = (WIDTH - 2.0 * MARGIN) / LARGE;
        Some(Card { headline: lines(&headline, room, 4), number, meaning, bars, source: facts.join(" · ") })
    }

    /// The card in words, a line each.
    fn text(&self) -> String {
        let bars = self.bars.iter().map(|bar| format!("{}: {}", bar.name, bar.said()));
        format!(
            "{} {}: {}. {}. {}.",
            self.headline.join(" "),
            self.number,
            self.meaning,
            bars.collect::<Vec<_>>().join("; "),
            self.source
        )
    }

    fn svg(&self, description: &str) -> String {
        let below_headline = MARGIN + 26.0 * self.headline.len() as f64;
        let first = below_headline + 78.0;
        let height = first + ROW * self.bars.len() as f64 + 40.0;
        let most = self.bars.iter().map(|bar| bar.rate).fold(0.0, f64::max);
        let drawn = html! {
            svg id="card-picture" xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (u(WIDTH)) " " (u(height)) }
                width=(u(WIDTH)) height=(u(height)) role="img" aria-label=(description)
                font-family="system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, sans-serif" {
                rect width="100%" height="100%" fill="#ffffff" {}
                @for (index, line) in self.headline.iter().enumerate() {
                    (words((MARGIN, MARGIN + 18.0 + 26.0 * index as f64), 20, INK, true, line))
                }
                (words((MARGIN, below_headline + 46.0), 40, INK, true, &self.number))
                (words((MARGIN + width_of(&self.number) * 2.5 + 14.0, below_headline + 44.0), 14, MUTED, false,
                    &fitting(&self.meaning, (WIDTH - 2.0 * MARGIN - 14.0 - width_of(&self.number) * 2.5) / SMALL)))
                @for (index, bar) in self.bars.iter().enumerate() { (bar.drawn(first + ROW * index as f64, most)) }
                (words((MARGIN, height - 16.0), 12, MUTED, false, &self.source))
            }
        };
        drawn.into_string()
    }
}

/// The number that says the most: what the cell that is compared last does beside the first one,
/// else what the only one commits.
fn number(bars: &[Bar]) -> (String, String) {
    let compared = bars.iter().rev().find_map(|bar| {
        let ratio = bar.cell.summary.ratio.as_ref().filter(|ratio| ratio.mean.is_finite())?;
        (ratio.to != bar.cell.level.name()).then_some((bar, ratio))
    });
    if let Some((bar, ratio)) = compared {
        let meaning = format!("{} against {}, committed per s", bar.name, ratio.to);
        return (format!("{} ×", short(ratio.mean)), meaning);
    }
    let first = bars.first();
    let name = first.map(|bar| bar.name.clone()).unwrap_or_default();
    (optional(first.map(|bar| bar.rate)), format!("committed per s, {name}"))
}

impl<'a> Bar<'a> {
    /// `None` for what was only measured again, and for what committed nothing known.
    fn of(document: &'a Document, subject: &Subject<'a>, group: &str, several: bool) -> Option<Bar<'a>> {
        let rate = subject.cell.summary.tps.mean.filter(|rate| rate.is_finite() && *rate >= 0.0)?;
        let level = subject.cell.level.name();
        let name = match (several, group) {
            (true, _) => format!("{level}, {}", subject.cell.strategy()),
            (false, "") => level,
            (false, group) => format!("{level}, {group}"),
        };
        let safety = Safety::of(document, subject.cell);
        (!subject.again).then_some(Bar { cell: subject.cell, name, style: subject.style, rate, safety })
    }

    /// What is known of its safety, in words that stand alone.
    fn found(&self) -> String {
        match &self.safety {
            Safety::Anomalies { per_million, at_least } => {
                let least = if *at_least { "at least " } else { "" };
                format!("{least}{} anomalies per million", short(*per_million))
            }
            Safety::Safe => "no anomaly found".to_owned(),
            other => other.line().text,
        }
    }

    /// "392 committed per s, no anomaly found".
    fn said(&self) -> String {
        format!("{} committed per s, {}", short(self.rate), self.found())
    }

    fn drawn(&self, top: f64, most: f64) -> Markup {
        let width = (WIDTH - 2.0 * MARGIN) * self.rate / most;
        let (value, found) = (short(self.rate), self.found());
        let colour_of_found = if self.safety.line().is_grave() { BAD } else { MUTED };
        let room = (WIDTH - 2.0 * MARGIN) / SMALL - width_of(&value) - width_of(&found) - 40.0;
        html! {
            (words((MARGIN, top + 14.0), 14, INK, true, &fitting(&self.name, room)))
            text x=(u(WIDTH - MARGIN)) y=(u(top + 14.0)) font-size="14" text-anchor="end" fill=(INK) {
                (value) " per s · " tspan fill=(colour_of_found) { (found) }
            }
            rect x=(u(MARGIN)) y=(u(top + 20.0)) width=(u(width.max(1.0))) height="12" rx="2" fill=(colour(self.style)) {}
        }
    }
}

fn words((x, y): (f64, f64), size: u8, colour: &str, bold: bool, text: &str) -> Markup {
    html! {
        text x=(u(x)) y=(u(y)) font-size=(size) fill=(colour) font-weight=(if bold { "600" } else { "400" }) { (text) }
    }
}

/// The colour of a level in the light theme.
fn colour(style: usize) -> &'static str {
    let name = format!("--level-{style}: light-dark(");
    let rest = super::FIGURES_STYLE.split_once(&name).map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split(',').next()).unwrap_or(MUTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::subject::STYLES;

    #[test]
    fn every_level_has_the_colour_of_the_pictures() {
        for style in 0..STYLES {
            let colour = colour(style);
            assert!(colour.starts_with('#') && colour.len() == 7 && colour != MUTED, "{style}: {colour}");
        }
    }
}
