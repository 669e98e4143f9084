//! Figures: measurements against the numbers of clients, against the rates that were asked for, and
//! against parameters.
//!
//! Drawn only where the plan varies them: a line for each level, a pair of plots for each
//! combination of the other factors. Against a parameter it is what a level costs beside the first
//! one, so there the lines may be of another parameter's values. Not here: which cells make a line
//! (`combination`).

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::Figure;
use super::combination::{self, Combination, LevelLine};
use super::data::Data;
use super::frame::{ABOVE, BELOW, LINE, NAMES, Name, Plot, WIDTH, left_of, picture, text};
use super::marks::{marker, path, series, tipped, whisker};
use super::scale::{Scale, Tick};
use super::subject::{Group, STYLES, Subject, VALUES, groups};
use crate::csv::number;
use isobench_result::document::{Cell, Document, Interval};
use isobench_result::factor::{Factor, FactorId, varying};
use isobench_result::figure::{self as result, Shown};
use isobench_result::numbers::{count, optional, short};
use isobench_result::overhead;
use isobench_result::words::distinct;

const HEIGHT: f64 = 170.0;

/// More combinations make a figure long without showing more.
const MOST: usize = 3;

/// A cell's value on an axis.
type Value<'a> = Box<dyn Fn(&Cell) -> Option<f64> + 'a>;

/// True for a factor that varies within a plot.
type Varies<'a> = Box<dyn Fn(&Factor) -> bool + 'a>;

/// The factor that is varied.
struct Axis<'a> {
    document: &'a Document,
    id: &'static str,
    title: String,
    caption: String,
    /// Its value in a cell.
    of: Value<'a>,
    /// Its name below the axis.
    name: &'a str,
    /// Its name at the value 1.
    singular: &'a str,
    /// True if the name stands before a value, as in "rows 1,000", and not after it, as in "8
    /// clients".
    before: bool,
    /// True for the factors that vary within a plot: this one, and what goes with it.
    varies: Varies<'a>,
    /// True if its axis is logarithmic.
    logarithmic: bool,
    /// The quantities measured, a plot each.
    plots: Vec<Measure>,
}

impl Axis<'_> {
    /// A value with the name.
    fn said(&self, value: f64) -> String {
        let value = short_label(value);
        let name = if value == "1" { self.singular } else { self.name };
        if self.before { format!("{name} {value}") } else { format!("{value} {name}") }
    }
}

/// A plot of a figure.
struct Measure {
    /// The figure's name.
    figure: &'static str,
    logarithmic: bool,
    /// True if a line shows where the measurement equals the factor.
    diagonal: bool,
}

const COMMITTED: Measure = Measure { figure: "tps", logarithmic: false, diagonal: false };
const RATIO: Measure = Measure { figure: "ratio", logarithmic: false, diagonal: false };
const CONFLICTS: Measure = Measure { figure: "conflict_ratio", logarithmic: false, diagonal: false };
const P99: Measure = Measure { figure: "latency_p99_ms", logarithmic: true, diagonal: false };
const LOCKS: Measure = Measure { figure: "predicate_locks", logarithmic: true, diagonal: false };

impl Measure {
    fn figure(&self) -> &'static result::Figure {
        result::Figure::known(self.figure)
    }

    fn is_share(&self) -> bool {
        self.figure().shown == Shown::Share
    }

    /// The heading of its column in the table of results.
    fn heading(&self) -> String {
        let (what, unit) = self.figure().heading;
        format!("{what} {unit}").trim_end().to_owned()
    }

    /// Its name at the axis.
    fn name(&self) -> String {
        self.heading() + if self.is_share() { ", %" } else { "" }
    }

    /// Its value in a cell, a share in percent. A logarithmic axis has no place for 0.
    fn of(&self, document: &Document, cell: &Cell) -> Interval {
        let Ok(value) = self.figure().measured(document, cell) else { return Interval::default() };
        let factor = if self.is_share() { 100.0 } else { 1.0 };
        let ends = [Some(value.number), value.low, value.high].map(|end| end.map(|end| end * factor));
        if self.logarithmic && value.number <= 0.0 {
            return Interval::default();
        }
        Interval { mean: ends[0], low: ends[1], high: ends[2], ..Interval::default() }
    }

    /// A scale for all that is shown of it.
    fn scale(&self, document: &Document, shown: &[Combination], from: f64, to: f64) -> Scale {
        let points = shown.iter().flat_map(|combination| &combination.lines).flat_map(|line| &line.points);
        let values = points
            .map(|(_, cell)| self.of(document, cell))
            .flat_map(|interval| [interval.mean, interval.low, interval.high]);
        if self.logarithmic {
            Scale::log(values.flatten(), 1.15, from, to)
        } else {
            Scale::from_zero(values.flatten(), from, to)
        }
    }

    /// "committed per s 392 (382–402)".
    fn said(&self, interval: Interval) -> String {
        let ends = interval.low.zip(interval.high);
        let around =
            ends.map_or_else(String::new, |(low, high)| format!(" ({}–{})", short(low), short(high)));
        let sign = if self.is_share() { " %" } else { "" };
        format!("{} {}{around}{sign}", self.heading(), optional(interval.mean))
    }
}

/// Draws rate and conflicts against clients; `None` if their number doesn't vary.
pub fn clients(document: &Document) -> Option<Figure> {
    let axis = Axis {
        document,
        id: "against-clients",
        title: "Rate and conflicts against the number of clients".to_owned(),
        caption: "Above: committed transactions per second, the mean of the rounds with its 95 % \
                  interval. Below: attempts that ended in a conflict as a share of the attempts \
                  started, over all rounds. The axis of clients is logarithmic."
            .to_owned(),
        of: Box::new(|cell| Some(f64::from(cell.clients))),
        name: "clients",
        singular: "client",
        before: false,
        varies: Box::new(|factor| matches!(factor.id(), FactorId::Clients | FactorId::Jobs)),
        logarithmic: true,
        plots: vec![COMMITTED, CONFLICTS],
    };
    figure(&groups(document), &axis)
}

/// Draws rate and latency against the rate that was asked for; `None` if it doesn't vary.
pub fn rates(document: &Document) -> Option<Figure> {
    let axis = Axis {
        document,
        id: "against-rate",
        title: "Rate and latency against the rate asked for".to_owned(),
        caption: "Above: committed transactions per second, the mean of the rounds with its 95 % \
                  interval; the plain line is where all that was asked for is committed. Below: \
                  99th percentile of the latency from the scheduled start, with its 95 % interval, \
                  logarithmic."
            .to_owned(),
        of: Box::new(|cell| cell.rate),
        name: "transactions due per s",
        singular: "transactions due per s",
        before: false,
        varies: Box::new(|factor| matches!(factor.id(), FactorId::Rate | FactorId::Jobs)),
        logarithmic: false,
        plots: vec![Measure { diagonal: true, ..COMMITTED }, P99],
    };
    figure(&groups(document), &axis)
}

/// The anchors of the figures of parameters, which have names that a plan chooses.
const PARAMETERS: [&str; 3] = ["against-parameter-1", "against-parameter-2", "against-parameter-3"];

/// Draws what a level costs, and predicate locks, against the parameter of this place among those
/// that vary and are numbers. `None` if there is none, or nothing to compare.
pub fn parameter(document: &Document, place: usize) -> Option<Figure> {
    let varying = varying(document);
    let numbers: Vec<&Factor> =
        varying.iter().filter(|factor| factor.is_varied() && factor.is_numeric()).collect();
    let along = numbers.get(place)?;
    let name = along.title();
    let by = lines_by(document, &varying, name);
    let groups = costs(groups(document), by);
    let locks = document.cells.iter().any(|cell| LOCKS.of(document, cell).mean.is_some());
    let within: Vec<&str> = std::iter::once(name).chain(by.map(Factor::title)).collect();
    let axis = Axis {
        document,
        id: PARAMETERS.get(place)?,
        title: format!("What a level costs against {name}"),
        caption: format!(
            "{}Committed transactions per second, divided by those of the first level in the same \
             round: the geometric mean with its 95 % interval.{} The axis of {name} is \
             logarithmic.{}",
            if locks { "Above: " } else { "" },
            if locks { " Below: the most predicate locks that any sample found, logarithmic." } else { "" },
            by.map_or_else(String::new, |by| format!(" A line for each {}.", by.title())),
        ),
        of: Box::new(move |cell| cell.varied.get(name)?.parse().ok()),
        name,
        singular: name,
        before: true,
        varies: Box::new(move |factor| factor.is_varied() && within.contains(&factor.title())),
        logarithmic: true,
        plots: if locks { vec![RATIO, LOCKS] } else { vec![RATIO] },
    };
    figure(&groups, &axis)
}

/// The other parameter whose values make lines: the one with the most that can be distinguished.
fn lines_by<'a>(document: &Document, varying: &'a [Factor], along: &str) -> Option<&'a Factor> {
    let values = |factor: &Factor| {
        let values: BTreeSet<String> = document.cells.iter().map(|cell| factor.value(cell)).collect();
        values.len()
    };
    let usable = |factor: &&Factor| factor.is_varied() && factor.title() != along && values(factor) <= STYLES;
    varying.iter().filter(usable).max_by_key(|factor| values(factor))
}

/// The cells that are compared with the first level, called by the value of a parameter, if there
/// is one.
fn costs<'a>(groups: Vec<Group<'a>>, by: Option<&Factor>) -> Vec<Group<'a>> {
    let is_compared = |subject: &Subject| overhead::compared(subject.cell).is_some();
    let compared = || groups.iter().flat_map(|group| &group.members).filter(|subject| is_compared(subject));
    let several = compared().any(|one| compared().any(|other| one.cell.level != other.cell.level));
    let values = distinct(by.iter().flat_map(|by| compared().map(|subject| by.value(subject.cell))));
    let mut groups = groups;
    for group in &mut groups {
        group.members.retain(is_compared);
        let Some(by) = by else { continue };
        for subject in &mut group.members {
            let value = by.value(subject.cell);
            if !several {
                subject.style =
                    VALUES + values.iter().position(|known| *known == value).unwrap_or(0) % STYLES;
            }
            let level = if several { format!(", {}", subject.name) } else { String::new() };
            subject.name = format!("{}{level}", by.named(subject.cell));
            // Beside a plot is room for a dozen letters; the caption says of what the value is.
            subject.short = format!("{value}{level}");
        }
    }
    groups
}

fn figure(groups: &[Group], factor: &Axis) -> Option<Figure> {
    let all = combinations(groups, factor);
    let values = combination::values(&all);
    if values.len() < 2 {
        return None;
    }
    let shown = all.get(..MOST).unwrap_or(&all);
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for combination in shown {
        let heading = if combination.name.is_empty() { 0.0 } else { LINE + 6.0 };
        drawn.push(text("heading", (0.0, top + 17.0), &combination.name, WIDTH));
        top += heading;
        for measure in &factor.plots {
            let (plot, height) = plot(combination, factor, measure, shown, &values, top);
            drawn.push(plot);
            top += height;
        }
    }
    let description = words(&all, factor);
    let left_out = if all.len() > MOST {
        format!(" The first {MOST} of {} combinations of other factors; the data have all.", all.len())
    } else {
        String::new()
    };
    Some(Figure {
        id: factor.id,
        title: factor.title.clone(),
        caption: factor.caption.clone() + &left_out,
        svg: picture(factor.id, &factor.title, top, &html! { @for plot in &drawn { (plot) } }),
        description,
        legend: String::new(),
        csv: data(&all, factor),
    })
}

fn combinations<'a>(groups: &'a [Group<'a>], factor: &Axis) -> Vec<Combination<'a>> {
    let measured =
        |cell: &Cell| factor.plots.iter().any(|measure| measure.of(factor.document, cell).mean.is_some());
    let value = |cell: &Cell| (factor.of)(cell).filter(|_| measured(cell));
    combination::all(groups, value, &factor.varies)
}

fn plot(
    combination: &Combination,
    factor: &Axis,
    measure: &Measure,
    shown: &[Combination],
    values: &[f64],
    top: f64,
) -> (Markup, f64) {
    let edges = (top + ABOVE, top + ABOVE + HEIGHT);
    let up = measure.scale(factor.document, shown, edges.1, edges.0);
    let lefts =
        factor.plots.iter().map(|measure| left_of(&[(&measure.scale(factor.document, shown, 1.0, 0.0), 5)]));
    let left = lefts.fold(0.0, f64::max);
    let plot = Plot { left, right: WIDTH - NAMES, top: edges.0, bottom: edges.1 };
    let along = if factor.logarithmic {
        Scale::log(values.iter().copied(), 1.08, plot.left, plot.right)
    } else {
        Scale::from_zero(values.iter().copied(), plot.left, plot.right)
    };
    let ticks: Vec<Tick> =
        values.iter().map(|value| Tick { value: *value, label: short_label(*value) }).collect();
    let end = |line: &LevelLine| {
        let mut means = line.points.iter().filter_map(|(_, cell)| measure.of(factor.document, cell).mean);
        means.next_back().map(|mean| Name::of(line.subject, up.at(mean)))
    };
    let names: Vec<Name> = combination.lines.iter().filter_map(end).collect();
    let most = along.high().min(up.high());
    let equal = |value: f64| Some((along.at(value), up.at(value)));
    let drawn = html! {
        (plot.rising(&up, 5, &measure.name()))
        (plot.across(&along, &ticks, factor.name))
        @if measure.diagonal { path class="equal" d=(path([equal(0.0), equal(most)])) {} }
        @for line in &combination.lines { (drawn_line(line, factor, measure, &along, &up)) }
        (plot.names(&names))
    };
    (drawn, HEIGHT + ABOVE + BELOW + 8.0)
}

/// A value of the factor, which is a whole number mostly.
fn short_label(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates; the value is positive"
    )]
    if value.fract() == 0.0 { count(value as u64) } else { short(value) }
}

fn drawn_line(line: &LevelLine, factor: &Axis, measure: &Measure, along: &Scale, up: &Scale) -> Markup {
    let known: Vec<(f64, Interval, f64)> = line
        .points
        .iter()
        .map(|(value, cell)| (*value, measure.of(factor.document, cell)))
        .filter_map(|(value, interval)| {
            Some((value, interval, interval.mean.filter(|mean| mean.is_finite())?))
        })
        .collect();
    let marks = html! {
        path class="line" d=(path(known.iter().map(|(value, _, mean)| Some((along.at(*value), up.at(*mean)))))) {}
        @for (value, interval, mean) in &known {
            @let x = along.at(*value);
            @let ends = interval.low.zip(interval.high);
            @let tip = format!("{}, {}: {}", line.subject.name, factor.said(*value), measure.said(*interval));
            @let mark = html! {
                @if let Some((low, high)) = ends { (whisker((x, up.at(low)), (x, up.at(high)))) }
                (marker(line.subject.style, x, up.at(*mean)))
            };
            (tipped("point", &tip, &mark))
        }
    };
    let values: Vec<String> =
        known.iter().map(|(value, _, mean)| format!("{} at {}", short(*mean), short_label(*value))).collect();
    let label = format!("{}, {}: {}", line.subject.name, measure.name(), values.join(", "));
    series(&line.subject.class(), &label, &marks)
}

fn words(all: &[Combination], factor: &Axis) -> String {
    let mut sentences = Vec::new();
    for combination in all {
        let place =
            if combination.name.is_empty() { String::new() } else { format!(" ({})", combination.name) };
        for line in &combination.lines {
            let points: Vec<String> = line
                .points
                .iter()
                .map(|(value, cell)| {
                    let said =
                        factor.plots.iter().map(|measure| measure.said(measure.of(factor.document, cell)));
                    let said = said.collect::<Vec<_>>().join(", ");
                    format!("{said} at {}", factor.said(*value))
                })
                .collect();
            sentences.push(format!("{}{place}: {}", line.subject.name, points.join("; ")));
        }
    }
    format!("{}.", sentences.join(". "))
}

fn data(all: &[Combination], factor: &Axis) -> String {
    let titles: Vec<String> = factor
        .plots
        .iter()
        .flat_map(|measure| ["", ": low", ": high"].map(|end| measure.name() + end))
        .collect();
    let mut data = Data::of_cells(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for line in all.iter().flat_map(|combination| &combination.lines) {
        for (_, cell) in &line.points {
            let intervals = factor.plots.iter().map(|measure| measure.of(factor.document, cell));
            let values =
                intervals.flat_map(|interval| [interval.mean, interval.low, interval.high]).map(number);
            data.cell(&line.subject.with(cell), values.collect());
        }
    }
    data.finish()
}
