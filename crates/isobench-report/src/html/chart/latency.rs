//! Figure: distributions of latency on a scale of percentiles.

use isobench_result::document::{Document, PercentileInterval};
use isobench_result::numbers::{counted, short};
use isobench_result::rounds::histograms;
use isobench_stats::{LatencyHistogram, RoundLatencies};
use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, BELOW, LINE, NAMES, Name, Plot, WIDTH, left_of, picture, text};
use super::marks::{marker, path, series, tipped, whisker};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use crate::csv::number;
use crate::html::room;

const ID: &str = "latency";
const TITLE: &str = "Latency of committed transactions";

/// More combinations of factors make the figure long without showing more.
const MOST: usize = 2;

/// Points of a line: more than a screen shows.
const POINTS: u32 = 120;

/// The height of a plot.
const HEIGHT: f64 = 250.0;

/// A cell's distribution.
struct Curve<'a> {
    subject: &'a Subject<'a>,
    /// Percentage and milliseconds, rising.
    points: Vec<(f64, f64)>,
    population: u64,
}

/// Draws the figure; `None` if no distribution is known.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let plots: Vec<(&Group, Vec<Curve>)> = groups
        .iter()
        .map(|group| (group, group.members.iter().filter_map(line).collect::<Vec<_>>()))
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    let points = || plots.iter().flat_map(|(_, lines)| lines).flat_map(|line| &line.points);
    let most = points().map(|(percent, _)| *percent).fold(0.0, f64::max);
    if plots.is_empty() {
        return None;
    }
    let mut latencies: Vec<f64> = points().map(|(_, ms)| *ms).collect();
    for found in plots.iter().flat_map(|(_, lines)| lines).flat_map(|line| percentiles(line.subject)) {
        latencies.extend([Some(found.ms), found.low, found.high].into_iter().flatten());
    }
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for (group, lines) in plots.iter().take(MOST) {
        let (plot, height) = plot(group, lines, &latencies, most, top);
        drawn.push(plot);
        top += height;
    }
    let description = words(&plots);
    let many = room::has_many_cells(document);
    let left_out = if plots.len() > MOST {
        let data = if many { "the data have the percentiles of all" } else { "the data have all" };
        format!(" The first {MOST} of {} combinations of factors; {data}.", plots.len())
    } else {
        String::new()
    };
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: "Milliseconds (logarithmic) that a percentage of the committed transactions of \
                  all rounds didn't exceed, from the scheduled start (from the start of the first \
                  attempt, when unpaced) to the reply to COMMIT, all attempts and backoffs \
                  included. To the right each step holds a tenth of what lies beyond. Lines with \
                  ends: 95 % intervals of percentiles."
            .to_owned()
            + &left_out,
        svg: picture(ID, TITLE, top, &html! { @for plot in &drawn { (plot) } }),
        description,
        legend: String::new(),
        csv: data(&plots, !many),
    })
}

/// The merged distribution of a cell's rounds; `None` if it isn't known.
fn line<'a>(subject: &'a Subject) -> Option<Curve<'a>> {
    let latencies = RoundLatencies::new(histograms(&subject.rounds()));
    let population = latencies.merged().len();
    let points = thinned(latencies.merged());
    (points.len() > 1).then_some(Curve { subject, points, population })
}

/// Points of a distribution, at percentages that are equally far apart in the picture. The last one
/// has one transaction beyond.
fn thinned(distribution: &LatencyHistogram) -> Vec<(f64, f64)> {
    let population = distribution.len() as f64;
    let reach = population.log10().min(6.0);
    let mut steps = distribution.steps().peekable();
    let mut points = Vec::new();
    for index in 0..=POINTS {
        let beyond = 10_f64.powf(-reach * f64::from(index) / f64::from(POINTS));
        let percent = (1.0 - beyond) * 100.0;
        while steps.peek().is_some_and(|(_, below)| (*below as f64) < population * (1.0 - beyond)) {
            steps.next();
        }
        points.extend(steps.peek().map(|(ms, _)| (percent, *ms)).filter(|(_, ms)| ms.is_finite()));
    }
    points
}

fn plot(group: &Group, lines: &[Curve], latencies: &[f64], most: f64, top: f64) -> (Markup, f64) {
    let heading = if group.name.is_empty() { 0.0 } else { LINE + 6.0 };
    let edges = (top + heading + ABOVE, top + heading + ABOVE + HEIGHT);
    let up = Scale::log(latencies.iter().copied(), 1.05, edges.1, edges.0);
    let plot = Plot { left: left_of(&[(&up, 6)]), right: WIDTH - NAMES, top: edges.0, bottom: edges.1 };
    let along = Scale::percentiles(most, plot.left, plot.right);
    let end = |line: &Curve| line.points.last().map_or(plot.bottom, |(_, ms)| up.at(*ms));
    let names: Vec<Name> = lines.iter().map(|line| Name::of(line.subject, end(line))).collect();
    let drawn = html! {
        (text("heading", (0.0, top + 17.0), &group.name, WIDTH))
        (plot.rising(&up, 6, "ms"))
        (plot.across(&along, &along.ticks(7), "of the committed transactions"))
        @for line in lines { (drawn_line(line, &along, &up)) }
        (plot.names(&names))
    };
    (drawn, edges.1 - top + BELOW + 8.0)
}

fn drawn_line(line: &Curve, along: &Scale, up: &Scale) -> Markup {
    let points = line.points.iter().map(|(percent, ms)| Some((along.at(*percent), up.at(*ms))));
    let marked = percentiles(line.subject);
    let marks = html! {
        path class="line" d=(path(points)) {}
        @for found in &marked {
            @let x = along.at(found.percent);
            @let interval = found.low.zip(found.high);
            @let around = interval.map_or_else(String::new, |(low, high)| format!(" ({}–{})", short(low), short(high)));
            @let tip = format!("{}, p{}: {} ms{around}", line.subject.name, found.percent, short(found.ms));
            @let mark = html! {
                @if let Some((low, high)) = interval { (whisker((x, up.at(low)), (x, up.at(high)))) }
                (marker(line.subject.style, x, up.at(found.ms)))
            };
            (tipped("point", &tip, &mark))
        }
    };
    series(&line.subject.class(), &sentence(line), &marks)
}

/// The percentiles of the cell, with their intervals where these were computed.
fn percentiles(subject: &Subject) -> Vec<PercentileInterval> {
    let summary = &subject.cell.summary;
    let usable = |found: &PercentileInterval| found.percent.is_finite() && found.ms.is_finite();
    summary.percentiles.iter().copied().filter(usable).collect()
}

fn sentence(line: &Curve) -> String {
    let found = percentiles(line.subject);
    let figures: Vec<String> =
        found.iter().map(|found| format!("p{} {} ms", found.percent, short(found.ms))).collect();
    format!("{}: {} ({})", line.subject.name, figures.join(", "), counted(line.population, "transaction"))
}

fn words(plots: &[(&Group, Vec<Curve>)]) -> String {
    let mut sentences = Vec::new();
    for (group, lines) in plots {
        let place = if group.name.is_empty() { String::new() } else { format!("{}, ", group.name) };
        sentences.extend(lines.iter().map(|line| place.clone() + &sentence(line)));
    }
    format!("Percentiles of latency. {}.", sentences.join("; "))
}

/// The percentiles of all cells, and their curves, where there is room for them.
fn data(plots: &[(&Group, Vec<Curve>)], with_curves: bool) -> String {
    let mut data = Data::of_cells(&["percent", "ms", "low", "high"]);
    for line in plots.iter().flat_map(|(_, lines)| lines) {
        let points = if with_curves { line.points.as_slice() } else { &[] };
        for (percent, ms) in points {
            data.cell(
                line.subject,
                vec![format!("{percent:.5}"), microseconds(*ms), String::new(), String::new()],
            );
        }
        for found in percentiles(line.subject) {
            let interval = [number(found.low), number(found.high)];
            let figures = [number(Some(found.percent)), number(Some(found.ms))];
            data.cell(line.subject, figures.into_iter().chain(interval).collect());
        }
    }
    data.finish()
}

/// Milliseconds with the microseconds that the buckets know.
fn microseconds(ms: f64) -> String {
    format!("{ms:.3}")
}
