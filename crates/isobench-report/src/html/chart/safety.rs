//! Figure: what each level, with each strategy, costs and lets through: throughput against the rate
//! of anomalies.
//!
//! The rate's axis is logarithmic and has no zero, so cells in which nothing was found have a band
//! of their own at its safe end, and those that weren't checked another one, lest they look safe.
//! Not here: what makes a cell unsafe (`view/matrix`).

mod labels;

use isobench_stats::poisson_interval;
use maud::{Markup, html};

use self::labels::Labels;
use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, BELOW, LINE, Plot, WIDTH, left_of, picture, text};
use super::legend::marker_legend;
use super::marks::{interval, marker, series, tipped, u, whisker};
use super::scale::Scale;
use super::subject::{Group, Subject, groups, name_of};
use crate::csv::number;
use isobench_result::document::{Document, Interval};
use isobench_result::factor::{FactorId, strategies_vary};
use isobench_result::numbers::short;
use isobench_result::view::matrix::Safety;
use isobench_result::words::distinct;

const ID: &str = "safety";
const TITLE: &str = "Cost and safety";

/// More combinations of other factors make the figure long without showing more.
const MOST: usize = 3;

/// The heights of the part with a scale, of an empty band, and of each point in a band.
const HEIGHT: f64 = 190.0;
const BAND: f64 = 24.0;
const STEP: f64 = 17.0;
const GAP: f64 = 10.0;

/// The room for the names of the bands.
const LEFT: f64 = 118.0;

/// What is known of the anomalies of a cell, per million committed attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Found {
    /// So many, with the interval of a count.
    Some { mean: f64, low: f64, high: f64, at_least: bool },
    /// None; there may be as many as this.
    None { high: f64 },
    /// Nothing was recorded, or a doubt withholds what it shows.
    Unknown,
}

/// A cell in the picture.
struct Point<'a> {
    subject: &'a Subject<'a>,
    /// Its level; and its strategy, where there are several.
    name: String,
    /// The same as far as it isn't told by the colour.
    short: String,
    /// The number of its marker.
    shape: usize,
    tps: Interval,
    rate: f64,
    found: Found,
    safety: Safety,
}

/// The cells that differ in nothing but level and strategy.
struct Choice<'a> {
    name: String,
    points: Vec<Point<'a>>,
}

/// Draws the figure; `None` if no history was checked.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let choices = choices(document, &groups);
    let points = || choices.iter().flat_map(|choice| &choice.points);
    if points().all(|point| point.found == Found::Unknown) {
        return None;
    }
    let shown = choices.get(..MOST).unwrap_or(&choices);
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for choice in shown {
        let (plot, height) = plot(choice, shown, top);
        drawn.push(plot);
        top += height;
    }
    let description = words(&choices);
    let left_out = if choices.len() > MOST {
        format!(" The first {MOST} of {} combinations of other factors; the data have all.", choices.len())
    } else {
        String::new()
    };
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: format!(
            "Right is cheaper, down is safer. Along: committed transactions per second, with the 95 % interval of the \
             rounds. Up: anomalies per million committed attempts that were looked at, logarithmic, with the 95 % \
             interval of a count; where none was found, the dashed line reaches up to what there may be all the same. \
             Crossed out: a promise was broken, or the row can't be trusted.{left_out}"
        ),
        svg: picture(ID, TITLE, top, &html! { @for plot in &drawn { (plot) } }),
        description,
        legend: legend(document, &choices),
        csv: data(&choices),
    })
}

fn choices<'a>(document: &Document, groups: &'a [Group<'a>]) -> Vec<Choice<'a>> {
    let several = strategies_vary(document);
    let strategies =
        distinct(groups.iter().flat_map(|group| &group.members).map(|subject| subject.cell.strategy()));
    let mut choices: Vec<Choice> = Vec::new();
    for group in groups {
        let mut factors = group.factors.clone();
        factors.retain(|(factor, _)| factor.id() != FactorId::Strategy);
        let name = name_of(&factors);
        let shape = |subject: &Subject| {
            let strategy = strategies.iter().position(|name| *name == subject.cell.strategy());
            if several { strategy.unwrap_or(0) } else { subject.style }
        };
        let points = group.members.iter().filter(|subject| !subject.again);
        let points = points.filter_map(|subject| Point::of(document, subject, several, shape(subject)));
        match choices.iter_mut().find(|choice| choice.name == name) {
            Some(choice) => choice.points.extend(points),
            None => choices.push(Choice { name, points: points.collect() }),
        }
    }
    choices.retain(|choice| !choice.points.is_empty());
    choices
}

impl<'a> Point<'a> {
    /// `None` if nothing was measured.
    fn of(document: &Document, subject: &'a Subject<'a>, several: bool, shape: usize) -> Option<Point<'a>> {
        let tps = subject.cell.summary.tps;
        let rate = tps.mean.filter(|mean| mean.is_finite() && *mean >= 0.0)?;
        let strategy = subject.cell.strategy();
        Some(Point {
            subject,
            name: if several { format!("{}, {strategy}", subject.name) } else { subject.name.clone() },
            short: if several { strategy.to_owned() } else { subject.short.clone() },
            shape,
            tps,
            rate,
            found: Found::of(subject),
            safety: Safety::of(document, subject.cell),
        })
    }

    /// The ends of the throughput's interval, where it has one.
    fn ends(&self) -> Option<(f64, f64)> {
        let known = self.tps.low.zip(self.tps.high);
        known.filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// "392 (382–402) committed per s, 1,250 anomalies per million (1,010–1,530)".
    fn said(&self) -> String {
        let ends = self.ends();
        let around =
            ends.map_or_else(String::new, |(low, high)| format!(" ({}–{})", short(low), short(high)));
        let found = match self.found {
            Found::Some { mean, low, high, at_least } => format!(
                "{}{} anomalies per million ({}–{})",
                if at_least { "at least " } else { "" },
                short(mean),
                short(low),
                short(high)
            ),
            Found::None { high } => format!("no anomaly found, so at most {} per million", short(high)),
            Found::Unknown => "not checked".to_owned(),
        };
        let safety = self.safety.line();
        let grave = if safety.is_grave() { format!("; {}", safety.text) } else { String::new() };
        format!("{}{around} committed per s, {found}{grave}", short(self.rate))
    }
}

impl Found {
    fn of(subject: &Subject) -> Found {
        let Some(verdict) = &subject.cell.summary.verdict else { return Found::Unknown };
        let known = verdict.anomalies_per_million.is_some() && verdict.committed > 0;
        if !known || (verdict.kept.is_none() && !verdict.withheld.is_empty()) {
            return Found::Unknown;
        }
        let per_million = |number: f64| number * 1e6 / verdict.committed as f64;
        let blind = verdict.nothing_shared || !verdict.unseen.is_empty();
        if blind && verdict.anomalies == 0 {
            return Found::Unknown;
        }
        let (low, high) = poisson_interval(verdict.anomalies);
        let (low, high) = (per_million(low), per_million(high));
        match verdict.anomalies {
            0 => Found::None { high },
            anomalies => {
                Found::Some { mean: per_million(anomalies as f64), low, high, at_least: verdict.at_least }
            }
        }
    }

    /// The values that the scale must hold.
    fn values(self) -> [Option<f64>; 3] {
        match self {
            Found::Some { mean, low, high, .. } => [Some(low), Some(mean), Some(high)],
            Found::None { high } => [Some(high), None, None],
            Found::Unknown => [None; 3],
        }
    }
}

/// The scales that all plots have in common.
fn scales(shown: &[Choice], plot: &Plot) -> (Scale, Scale) {
    let points = || shown.iter().flat_map(|choice| &choice.points);
    let most = points().map(|point| point.rate).fold(0.0, f64::max);
    // A single wild interval must not squeeze everything else; it has an arrow.
    let ends = points().filter_map(Point::ends).map(|(_, high)| high.min(most * 1.5));
    let along = Scale::from_zero(points().map(|point| point.rate).chain(ends), plot.left, plot.right);
    let found = points().flat_map(|point| point.found.values()).flatten();
    (along, Scale::log(found, 1.4, plot.bottom, plot.top))
}

/// The bands below the scale. In a band height means nothing, so points lie below one another.
struct Bands {
    none: (f64, f64),
    unknown: Option<(f64, f64)>,
}

fn plot(choice: &Choice, shown: &[Choice], top: f64) -> (Markup, f64) {
    let heading = if choice.name.is_empty() { 0.0 } else { LINE + 6.0 };
    let upper = top + heading + ABOVE;
    let plot = Plot { left: LEFT, right: WIDTH - 8.0, top: upper, bottom: upper + HEIGHT };
    let (along, up) = scales(shown, &plot);
    let plot = Plot { left: left_of(&[(&up, 6)]).max(LEFT), ..plot };
    let (along, up) = if plot.left > LEFT { scales(shown, &plot) } else { (along, up) };
    let bands = Bands::below(plot.bottom, choice);
    let bottom = bands.unknown.unwrap_or(bands.none).1;
    let places: Vec<(f64, f64)> = bands
        .heights(choice, &up)
        .zip(&choice.points)
        .map(|(height, point)| (along.at(point.rate), height))
        .collect();
    let mut labels = Labels::new(plot.left, WIDTH, upper, bottom);
    for place in &places {
        labels.occupy(*place);
    }
    let all = Plot { bottom, ..plot };
    let drawn = html! {
        (text("heading", (0.0, top + 17.0), &choice.name, WIDTH))
        (bands.drawn(&plot))
        (plot.rising(&up, 6, "anomalies per million committed"))
        (all.across(&along, &along.ticks(6), "committed transactions per second"))
        @for (point, place) in choice.points.iter().zip(&places) { (drawn_point(point, *place, &along, &up)) }
        @for (point, place) in choice.points.iter().zip(&places) { (labels.place(&point.short, *place)) }
    };
    (drawn, bottom - top + BELOW + 8.0)
}

impl Bands {
    fn below(bottom: f64, choice: &Choice) -> Bands {
        let number = |is: fn(Found) -> bool| choice.points.iter().filter(|point| is(point.found)).count();
        let room = |points: usize| BAND + STEP * points as f64;
        let none = (bottom + GAP, bottom + GAP + room(number(|found| matches!(found, Found::None { .. }))));
        let unknown = match number(|found| found == Found::Unknown) {
            0 => None,
            points => Some((none.1 + GAP, none.1 + GAP + room(points))),
        };
        Bands { none, unknown }
    }

    /// The height of each point.
    fn heights<'a>(&'a self, choice: &'a Choice, up: &'a Scale) -> impl Iterator<Item = f64> + 'a {
        let first = |band: (f64, f64)| band.0 + BAND.midpoint(STEP);
        let (mut none, mut unknown) = (first(self.none), first(self.unknown.unwrap_or(self.none)));
        choice.points.iter().map(move |point| {
            let next = match point.found {
                Found::Some { mean, .. } => return up.at(mean),
                Found::None { .. } => &mut none,
                Found::Unknown => &mut unknown,
            };
            let height = *next;
            *next += STEP;
            height
        })
    }

    fn drawn(&self, plot: &Plot) -> Markup {
        let band = |class: &str, (top, bottom): (f64, f64), name: &str| {
            html! {
                rect class={ "band " (class) } x=(u(plot.left)) y=(u(top)) width=(u(plot.right - plot.left))
                    height=(u(bottom - top)) {}
                text class="tick end" x=(u(plot.left - 7.0)) y=(u(top.midpoint(bottom))) dy="0.35em" { (name) }
            }
        };
        html! {
            (band("safe", self.none, "0 found"))
            @if let Some(unknown) = self.unknown { (band("unknown", unknown, "not checked")) }
        }
    }
}

fn drawn_point(point: &Point, (x, y): (f64, f64), along: &Scale, up: &Scale) -> Markup {
    let marks = html! {
        @if let Some(ends) = point.ends() { (interval(along, ends, y)) }
        @match point.found {
            Found::Some { low, high, .. } => (whisker((x, up.at(low)), (x, up.at(high)))),
            Found::None { high } => {
                @let top = up.at(high);
                path class="whisker dashed" d={ "M" (u(x)) " " (u(y)) "L" (u(x)) " " (u(top)) } {}
                path class="whisker" d={ "M" (u(x - 4.0)) " " (u(top)) "L" (u(x + 4.0)) " " (u(top)) } {}
            }
            Found::Unknown => {}
        }
        (marker(point.shape, x, y))
        @if point.safety.line().is_grave() {
            path class="broken" d={
                "M" (u(x - 8.0)) " " (u(y - 8.0)) "L" (u(x + 8.0)) " " (u(y + 8.0))
                "M" (u(x - 8.0)) " " (u(y + 8.0)) "L" (u(x + 8.0)) " " (u(y - 8.0))
            } {}
        }
    };
    let label = format!("{}: {}", point.name, point.said());
    series(&point.subject.class(), &label, &tipped("point", &label, &marks))
}

/// What colours and markers mean, where the labels don't say both.
fn legend(document: &Document, choices: &[Choice]) -> String {
    let points = || choices.iter().flat_map(|choice| &choice.points);
    if !strategies_vary(document) {
        return String::new();
    }
    let mut entries: Vec<(String, usize, String)> = Vec::new();
    let mut add = |class: String, shape: usize, name: &str| {
        if !entries.iter().any(|(_, _, known)| known == name) {
            entries.push((class, shape, name.to_owned()));
        }
    };
    for point in points() {
        add(point.subject.class(), 0, &point.subject.cell.level.name());
    }
    for point in points() {
        add("plain".to_owned(), point.shape, point.subject.cell.strategy());
    }
    marker_legend(&entries)
}

fn words(choices: &[Choice]) -> String {
    let sentences = choices.iter().flat_map(|choice| {
        let place = if choice.name.is_empty() { String::new() } else { format!(" ({})", choice.name) };
        choice.points.iter().map(move |point| format!("{}{place}: {}", point.name, point.said()))
    });
    format!("{}.", sentences.collect::<Vec<_>>().join("; "))
}

fn data(choices: &[Choice]) -> String {
    let titles = [
        "tps",
        "tps_low",
        "tps_high",
        "anomalies",
        "looked_at",
        "anomalies_per_million",
        "anomalies_low",
        "anomalies_high",
        "safety",
    ];
    let mut data = Data::of_cells(&titles);
    for point in choices.iter().flat_map(|choice| &choice.points) {
        let verdict = point.subject.cell.summary.verdict.as_ref();
        let counted = |get: fn(&isobench_result::document::VerdictSummary) -> u64| {
            verdict.map_or_else(String::new, |verdict| get(verdict).to_string())
        };
        let [mean, low, high] = match point.found {
            Found::Some { mean, low, high, .. } => [Some(mean), Some(low), Some(high)],
            Found::None { high } => [Some(0.0), Some(0.0), Some(high)],
            Found::Unknown => [None; 3],
        };
        let mut values = vec![number(Some(point.rate)), number(point.tps.low), number(point.tps.high)];
        values.extend([counted(|verdict| verdict.anomalies), counted(|verdict| verdict.committed)]);
        let safety = match point.safety {
            Safety::Anomalies { .. } => "anomalies".to_owned(),
            ref other => other.line().text,
        };
        values.extend([number(mean), number(low), number(high), safety]);
        data.cell(point.subject, values);
    }
    data.finish()
}
