//! Figure: rates, conflicts and wait events over the time of a round, for every cell.
//!
//! Not here: how a time series is cut into pieces (`time_series`).

use std::fmt::Write as _;

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, LINE, Plot, TITLE_ABOVE, WIDTH, labels_below, left_of, picture, text};
use super::hatching::{hatched, hatchings};
use super::legend::legend;
use super::marks::{bar, path, series, tipped, u};
use super::rows::title;
use super::scale::Scale;
use super::subject::{Group, groups};
use super::time_series::{Bin, Sample, TimeSeries};
use super::wait_kinds;
use crate::csv::number;
use crate::html::room;
use isobench_result::document::Document;
use isobench_result::numbers::short;

const ID: &str = "over-time";
const TITLE: &str = "Rates and waits over time";

/// More cells make the figure long without showing more.
const MOST: usize = 4;

/// The heights of the two plots.
const RATES: f64 = 92.0;
const WAITS: f64 = 66.0;

/// The number of slices of a round that a pointer finds.
const SLICES: u32 = 30;

/// Sessions of fewer than this many on the average aren't named.
const FEW: f64 = 0.05;

/// The parts that all plots of the figure have in common.
struct Common {
    left: f64,
    seconds: f64,
}

/// The values on the vertical axes of one group's plots. Groups have scales of their own: beside 64
/// clients' sessions those of a single one would be invisible.
struct Heights {
    rates: Vec<f64>,
    sessions: Vec<f64>,
}

/// Draws the figure; `None` if no round has a time series.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let all: Vec<(&Group, TimeSeries)> = groups
        .iter()
        .flat_map(|group| group.members.iter().map(move |subject| (group, subject)))
        .filter_map(|(group, subject)| Some((group, TimeSeries::of(subject)?)))
        .collect();
    let shown = all.get(..MOST).unwrap_or(&all);
    if shown.is_empty() {
        return None;
    }
    let many = room::has_many_cells(document);
    let common = Common::of(shown);
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for (group, time_series) in shown {
        let beside = shown.iter().filter(|(other, _)| other.name == group.name);
        let heights = Heights::of(beside.map(|(_, time_series)| time_series));
        let (plots, height) = plots(group, time_series, &common, &heights, top);
        drawn.push(plots);
        top += height;
    }
    let stacked: Vec<usize> =
        shown.iter().flat_map(|(_, time_series)| &time_series.stacked).map(|(kind, _)| *kind).collect();
    let entries = wait_kinds::entries(&stacked);
    let content = html! {
        (hatchings(ID, entries.iter().map(|entry| entry.kind)))
        @for plots in &drawn { (plots) }
        text class="axis end" x=(u(WIDTH)) y=(u(top + 12.0)) { "seconds of the measured part" }
    };
    let description = words(shown);
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: caption(shown, all.len(), !entries.is_empty(), many),
        svg: picture(ID, TITLE, top + 20.0, &content),
        description,
        legend: if entries.is_empty() { String::new() } else { legend(ID, &entries) },
        csv: data(if many { shown } else { &all }),
    })
}

fn caption(shown: &[(&Group, TimeSeries)], cells: usize, waits: bool, many: bool) -> String {
    let mut text = "Committed transactions and conflicts per second, from the start of the \
                    measured part to its end: bold the median round by its rate, thin other \
                    rounds."
        .to_owned();
    if waits {
        text += " Below, of the same round: the clients' sessions on the server by what they did, sampled.";
    }
    if shown.iter().any(|(_, time_series)| time_series.faults().next().is_some()) {
        text += " Dashed upright: what happened to the server; the band lasts until it was back.";
    }
    if cells > MOST {
        let data = if many { "the data have these" } else { "the data have all" };
        let _ = write!(text, " The first {MOST} of {cells} cells; {data}.");
    }
    text
}

impl Common {
    fn of(shown: &[(&Group, TimeSeries)]) -> Common {
        let all_series = || shown.iter().map(|(_, time_series)| time_series);
        let seconds = all_series().map(|time_series| time_series.seconds).fold(0.0, f64::max);
        // Labels are the widest where the numbers are the largest.
        let Heights { rates, sessions } = Heights::of(all_series());
        let left = left_of(&[
            (&Scale::from_zero(rates.iter().copied(), 1.0, 0.0), 5),
            (&Scale::from_zero(sessions.iter().copied(), 1.0, 0.0), 4),
        ]);
        Common { left, seconds }
    }

    fn along(&self) -> Scale {
        Scale::up_to(self.seconds, self.left, WIDTH - 6.0)
    }

    fn plot(&self, top: f64, height: f64) -> Plot {
        Plot { left: self.left, right: WIDTH - 6.0, top, bottom: top + height }
    }
}

impl Heights {
    fn of<'a>(all_series: impl Iterator<Item = &'a TimeSeries<'a>>) -> Heights {
        let (mut rates, mut sessions) = (Vec::new(), Vec::new());
        for time_series in all_series {
            rates.extend(time_series.bins.iter().flat_map(|bin| [bin.committed, bin.conflicts]));
            rates.extend(time_series.others.iter().flatten().map(|bin| bin.committed));
            sessions.extend(time_series.samples.iter().map(|sample| sample.sessions.iter().sum::<f64>()));
        }
        Heights { rates, sessions }
    }
}

fn plots(
    group: &Group,
    time_series: &TimeSeries,
    common: &Common,
    heights: &Heights,
    top: f64,
) -> (Markup, f64) {
    let subject = time_series.subject;
    let along = common.along();
    let mut y = top;
    let heading = text("heading", (0.0, y + 17.0), &group.name, WIDTH);
    y += if group.name.is_empty() { 0.0 } else { LINE + 3.0 };
    let (label, height) = title(subject, &format!("round {}", time_series.round.round), y);
    y += height;
    let rates = (!time_series.bins.is_empty()).then(|| common.plot(y + ABOVE, RATES));
    y += if rates.is_some() { ABOVE + RATES + 3.0 } else { 0.0 };
    let waits = (!time_series.stacked.is_empty()).then(|| common.plot(y + ABOVE, WAITS));
    y += if waits.is_some() { ABOVE + WAITS } else { 0.0 };
    let first = rates.or(waits).map_or(y, |plot| plot.top);
    let ticks = along.ticks(7);
    let drawn = html! {
        (heading)
        (label)
        @for tick in &ticks {
            @let x = along.at(tick.value);
            line class="grid" x1=(u(x)) x2=(u(x)) y1=(u(first)) y2=(u(y)) {}
        }
        @if let Some(plot) = &rates {
            (faults(time_series, common, plot.top, y))
            (drawn_rates(time_series, common, heights, plot))
        }
        @if let Some(plot) = &waits { (drawn_waits(time_series, common, heights, plot)) }
        (labels_below(&along, &ticks, y))
        (slices(time_series, common, first, y))
    };
    let all = series(&subject.class(), &sentence(time_series), &drawn);
    (all, y - top + LINE + 16.0)
}

fn drawn_rates(time_series: &TimeSeries, common: &Common, heights: &Heights, plot: &Plot) -> Markup {
    let up = Scale::from_zero(heights.rates.iter().copied(), plot.bottom, plot.top);
    let along = common.along();
    let line = |bins: &[Bin], value: fn(&Bin) -> f64| {
        path(bins.iter().map(|bin| Some((along.at(bin.at), up.at(value(bin))))))
    };
    let y = plot.top - TITLE_ABOVE - 5.0;
    html! {
        (plot.rising(&up, 5, ""))
        path class="rate" d=(path([Some((0.0, y)), Some((22.0, y))])) {}
        (text("axis", (29.0, plot.top - TITLE_ABOVE), "committed per s", WIDTH))
        path class="conflicts" d=(path([Some((196.0, y)), Some((218.0, y))])) {}
        (text("axis", (225.0, plot.top - TITLE_ABOVE), "conflicts per s", WIDTH))
        @for other in &time_series.others { path class="thin" d=(line(other, |bin| bin.committed)) {} }
        path class="conflicts" d=(line(&time_series.bins, |bin| bin.conflicts)) {}
        path class="rate" d=(line(&time_series.bins, |bin| bin.committed)) {}
    }
}

/// Areas on top of one another; each sample holds from half way after the last one to half way
/// before the next.
fn drawn_waits(time_series: &TimeSeries, common: &Common, heights: &Heights, plot: &Plot) -> Markup {
    let up = Scale::from_zero(heights.sessions.iter().copied(), plot.bottom, plot.top);
    let along = common.along();
    let edges = edges(&time_series.samples, time_series.seconds);
    let mut below = vec![0.0; time_series.samples.len()];
    let mut areas = Vec::new();
    for (index, (kind, _)) in time_series.stacked.iter().enumerate() {
        let heights =
            time_series.samples.iter().map(|sample| sample.sessions.get(index).copied().unwrap_or(0.0));
        let above: Vec<f64> = below.iter().zip(heights).map(|(below, height)| below + height).collect();
        let corners = |levels: &[f64]| -> Vec<(f64, f64)> {
            let steps = levels.iter().zip(edges.windows(2));
            steps.flat_map(|(level, ends)| [(ends[0], *level), (ends[1], *level)]).collect()
        };
        let back = corners(&below).into_iter().rev();
        let around = corners(&above).into_iter().chain(back);
        areas.push((*kind, path(around.map(|(at, level)| Some((along.at(at), up.at(level)))))));
        below = above;
    }
    html! {
        (plot.rising(&up, 4, "sessions"))
        @for (kind, area) in &areas {
            @let id = format!("c{:.0}-{kind}", plot.top);
            (hatched(ID, *kind, &id, &format!("{area}Z"), plot.top))
        }
    }
}

/// What happened to the server: a line with its name where it happened, and the time until the server was
/// back as a band.
fn faults(time_series: &TimeSeries, common: &Common, top: f64, bottom: f64) -> Markup {
    let along = common.along();
    let happened = time_series.faults().filter_map(|fault| {
        let at = fault.at_s?;
        let back = fault.back_s.map_or(time_series.seconds, |back| (at + back).min(time_series.seconds));
        Some((fault, along.at(at), along.at(back)))
    });
    html! {
        @for (fault, from, to) in happened {
            rect class="band" x=(u(from)) y=(u(top)) width=(u(to - from)) height=(u(bottom - top)) {}
            line class="limit" x1=(u(from)) x2=(u(from)) y1=(u(top)) y2=(u(bottom)) {}
            (text("note halo", (from + 4.0, top + 12.0), &fault.fault, WIDTH))
        }
    }
}

/// The ends of the samples: one place more than there are samples.
fn edges(samples: &[Sample], seconds: f64) -> Vec<f64> {
    let between = samples.windows(2).map(|pair| pair[0].at.midpoint(pair[1].at));
    [0.0].into_iter().chain(between).chain([seconds]).collect()
}

/// Invisible slices over both plots with tooltips that say what happened in them.
fn slices(time_series: &TimeSeries, common: &Common, top: f64, bottom: f64) -> Markup {
    let along = common.along();
    let width = time_series.seconds / f64::from(SLICES);
    let mut marks = Vec::new();
    for index in 0..SLICES {
        let (from, to) = (f64::from(index) * width, f64::from(index + 1) * width);
        if let Some(tip) = slice(time_series, from, to) {
            let ends = (along.at(from), along.at(to));
            marks.push(tipped("slice", &tip, &bar("hit", ends, (top, bottom))));
        }
    }
    html! { @for mark in &marks { (mark) } }
}

fn slice(time_series: &TimeSeries, from: f64, to: f64) -> Option<String> {
    let within = |at: f64| at >= from && at < to;
    let bins: Vec<_> = time_series.bins.iter().filter(|bin| within(bin.at)).collect();
    let samples: Vec<_> = time_series.samples.iter().filter(|sample| within(sample.at)).collect();
    let mean = |sum: f64, number: usize| sum / number as f64;
    let mut parts = Vec::new();
    if !bins.is_empty() {
        let committed = mean(bins.iter().map(|bin| bin.committed).sum(), bins.len());
        let conflicts = mean(bins.iter().map(|bin| bin.conflicts).sum(), bins.len());
        parts.push(format!("{} committed, {} conflicts per s", short(committed), short(conflicts)));
    }
    if !samples.is_empty() {
        let sessions = time_series.stacked.iter().enumerate().map(|(index, (kind, _))| {
            let sum: f64 = samples.iter().filter_map(|sample| sample.sessions.get(index)).sum();
            (mean(sum, samples.len()), wait_kinds::meaning(*kind))
        });
        let seen = sessions.filter(|(sessions, _)| *sessions >= FEW);
        parts.push(
            seen.map(|(sessions, name)| format!("{sessions:.1} {name}")).collect::<Vec<_>>().join(", "),
        );
    }
    parts.retain(|part| !part.is_empty());
    (!parts.is_empty()).then(|| format!("{from:.1}–{to:.1} s: {}", parts.join("; ")))
}

fn sentence(time_series: &TimeSeries) -> String {
    let mut text = format!("{}, round {}", time_series.subject.name, time_series.round.round);
    let extremes = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    if !time_series.bins.is_empty() {
        let (low, high) = extremes(&mut time_series.bins.iter().map(|bin| bin.committed));
        let (_, conflicts) = extremes(&mut time_series.bins.iter().map(|bin| bin.conflicts));
        let _ = write!(
            text,
            ": between {} and {} committed per s, at most {} conflicts per s",
            short(low),
            short(high),
            short(conflicts)
        );
    }
    for fault in time_series.faults() {
        if let Some(at) = fault.at_s {
            let _ = write!(text, ", {} at {} s", fault.fault, short(at));
        }
    }
    text
}

fn words(shown: &[(&Group, TimeSeries)]) -> String {
    let sentences = shown.iter().map(|(group, time_series)| {
        let place = if group.name.is_empty() { String::new() } else { format!("{}, ", group.name) };
        place + &sentence(time_series)
    });
    format!("{}.", sentences.collect::<Vec<_>>().join("; "))
}

fn data(shown: &[(&Group, TimeSeries)]) -> String {
    let mut columns: Vec<usize> = Vec::new();
    for (kind, _) in shown.iter().flat_map(|(_, time_series)| &time_series.stacked) {
        if !columns.contains(kind) {
            columns.push(*kind);
        }
    }
    let names: Vec<String> =
        columns.iter().map(|kind| format!("sessions: {}", wait_kinds::meaning(*kind))).collect();
    let mut titles = vec!["round", "at_s", "committed_per_s", "conflicts_per_s"];
    titles.extend(names.iter().map(String::as_str));
    let mut data = Data::of_cells(&titles);
    for (_, time_series) in shown {
        let round = time_series.round.round.to_string();
        for bin in &time_series.bins {
            let mut values = vec![round.clone()];
            values.extend([bin.at, bin.committed, bin.conflicts].map(rounded));
            values.resize(titles.len(), String::new());
            data.cell(time_series.subject, values);
        }
        for sample in &time_series.samples {
            let mut values = vec![round.clone(), rounded(sample.at), String::new(), String::new()];
            for kind in &columns {
                let index = time_series.stacked.iter().position(|(other, _)| other == kind);
                values.push(number(index.and_then(|index| sample.sessions.get(index).copied())));
            }
            data.cell(time_series.subject, values);
        }
    }
    data.finish()
}

/// To a thousandth, the precision of a bin.
fn rounded(value: f64) -> String {
    number(Some((value * 1000.0).round() / 1000.0))
}
