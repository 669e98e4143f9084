//! Figure: committed transactions per second of every cell, with interval and every round.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::picture;
use super::marks::{self, bar, dots, series, tipped, u};
use super::rows::{ENDS, Rows, Track};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use crate::csv::number;
use crate::html::room;
use isobench_result::document::{Document, Interval, IntervalSource, Round};
use isobench_result::numbers::{counted, short};

const ID: &str = "throughput";
const TITLE: &str = "Committed transactions per second";

/// Draws the figure; `None` if no round of any cell has a rate.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let subjects = || groups.iter().flat_map(|group| &group.members);
    let rates: Vec<f64> = subjects().flat_map(Subject::rounds).filter_map(rate).collect();
    if rates.is_empty() {
        return None;
    }
    let ends = subjects().filter_map(|subject| subject.cell.summary.tps.high);
    // A single wild interval must not squeeze everything else.
    let most = rates.iter().copied().fold(0.0, f64::max);
    let scale =
        Scale::from_zero(rates.iter().copied().chain(ends.map(|end| end.min(most * 1.5))), ENDS.0, ENDS.1);
    let many = room::has_many_rounds(document);
    let (svg, description) = (drawn(&groups, &scale, many), words(&groups));
    let batches = subjects().any(|subject| subject.cell.summary.tps.source == IntervalSource::Batches);
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: format!(
            "Transactions whose COMMIT was acknowledged, per second of the measured part (warm-up \
             excluded), on an axis from zero. Bar and number: the mean of the rounds; line with \
             ends: its 95 % interval{}; dots: each round.{}",
            if batches { " (of a single round: from the differences between its parts)" } else { "" },
            if many { " The data have the lowest and the highest round of every cell." } else { "" }
        ),
        svg: picture(ID, TITLE, svg.1, &svg.0),
        description,
        legend: String::new(),
        csv: if many { data_of_cells(&groups) } else { data_of_rounds(&groups) },
    })
}

fn rate(round: &Round) -> Option<f64> {
    round.tps.filter(|tps| tps.is_finite() && *tps >= 0.0)
}

/// "1,980 (1,950–2,010)".
fn figures(interval: Interval) -> String {
    let mean = interval.mean.map_or_else(|| "not measured".to_owned(), short);
    match interval.low.zip(interval.high) {
        Some((low, high)) => format!("{mean} ({}–{})", short(low), short(high)),
        None => mean,
    }
}

/// `many` rounds are drawn without what a pointer shows of each.
fn drawn(groups: &[Group], scale: &Scale, many: bool) -> (Markup, f64) {
    let mut rows = Rows::new(*scale, 6, 24.0);
    for group in groups {
        rows.heading(&group.name);
        for subject in &group.members {
            let value = figures(subject.cell.summary.tps);
            let track = rows.cell(subject, &value);
            rows.add(&marks_of(subject, scale, track, &value, many));
        }
    }
    rows.finish("committed transactions per second")
}

fn marks_of(subject: &Subject, scale: &Scale, track: Track, value: &str, many: bool) -> Markup {
    let interval = subject.cell.summary.tps;
    let rounds: Vec<(&Round, f64)> =
        subject.rounds().into_iter().filter_map(|round| Some((round, rate(round)?))).collect();
    let middle = track.middle();
    // Equal rounds lie beside each other.
    let height = |index: usize| middle + [0.0, -6.0, 6.0][index % 3];
    let label =
        format!("{}: {value} committed per s in {}", subject.name, counted(rounds.len() as u64, "round"));
    let marks = html! {
        @if let Some(mean) = interval.mean {
            (bar("extent", (scale.at(0.0), scale.at(mean)), (track.top + 3.0, track.bottom - 3.0)))
            line class="mean" x1=(u(scale.at(mean))) x2=(u(scale.at(mean))) y1=(u(track.top)) y2=(u(track.bottom)) {}
        }
        @if let Some(ends) = interval.low.zip(interval.high) { (marks::interval(scale, ends, middle)) }
        @if many {
            path class="rounds" d=(dots(rounds.iter().enumerate().map(|(index, (_, tps))| (scale.at(*tps), height(index))))) {}
        } @else {
            @for (index, (round, tps)) in rounds.iter().enumerate() {
                @let tip = format!("round {}: {} committed per s", round.round, short(*tps));
                @let dot = html! { circle class="dot" cx=(u(scale.at(*tps))) cy=(u(height(index))) r="3.2" {} };
                (tipped("point", &tip, &dot))
            }
        }
    };
    series(&subject.class(), &label, &marks)
}

fn words(groups: &[Group]) -> String {
    let mut sentences = Vec::new();
    for group in groups {
        for subject in &group.members {
            let place = group.place();
            sentences.push(format!("{}{place}: {}", subject.name, figures(subject.cell.summary.tps)));
        }
    }
    format!("Committed per second, with 95 % intervals. {}.", sentences.join("; "))
}

/// A line for each cell.
fn data_of_cells(groups: &[Group]) -> String {
    let mut data = Data::of_cells(&["rounds", "lowest", "highest", "mean", "low", "high"]);
    for subject in groups.iter().flat_map(|group| &group.members) {
        let interval = subject.cell.summary.tps;
        let rates: Vec<f64> = subject.rounds().into_iter().filter_map(rate).collect();
        let extreme = |of: fn(f64, f64) -> f64| number(rates.iter().copied().reduce(of));
        let figures = [interval.mean, interval.low, interval.high].map(number);
        let rounds = [rates.len().to_string(), extreme(f64::min), extreme(f64::max)];
        data.cell(subject, rounds.into_iter().chain(figures).collect());
    }
    data.finish()
}

/// A line for each round.
fn data_of_rounds(groups: &[Group]) -> String {
    let mut data = Data::of_cells(&["round", "complete", "tps", "mean", "low", "high"]);
    for subject in groups.iter().flat_map(|group| &group.members) {
        let interval = subject.cell.summary.tps;
        for round in &subject.cell.rounds {
            data.cell(
                subject,
                vec![
                    round.round.to_string(),
                    round.complete.to_string(),
                    number(rate(round)),
                    number(interval.mean),
                    number(interval.low),
                    number(interval.high),
                ],
            );
        }
    }
    data.finish()
}
