//! Figures of several results: the ratios of two, and the rates of a series.

use isobench_isolation::Level;
use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, BELOW, NAMES, Name, Plot, WIDTH, left_of, picture};
use super::marks::{marker, path, series as stop, u, whisker};
use super::rows::{ENDS, Rows};
use super::scale::{Scale, Tick};
use super::subject::STYLES;
use crate::csv::number;
use isobench_result::numbers::{optional, short};
use isobench_result::pair::{Pair, PairRatio, Side};
use isobench_result::trend::{Trend, TrendCell, TrendPoint};

/// An interval is drawn up to this multiple of the ratio: beyond it nothing is known anyway.
const FARTHEST: f64 = 20.0;

/// A ratio with what it is of.
struct Row<'a> {
    level: &'a str,
    name: &'a str,
    ratio: PairRatio,
}

/// Draws all ratios of two results; `None` if there is none.
pub fn ratios(pair: &Pair) -> Option<Figure> {
    let usable = |ratio: Option<PairRatio>| ratio.filter(|ratio| ratio.mean.is_finite() && ratio.mean > 0.0);
    let cells = pair.cells.iter().filter_map(|cell| {
        Some(Row { level: cell.factors.level(), name: &cell.name, ratio: usable(cell.ratio)? })
    });
    let levels = pair.levels.iter().filter_map(|level| {
        Some(Row { level: &level.level, name: &level.name, ratio: usable(level.ratio)? })
    });
    let groups: [(&str, Vec<Row>); 2] =
        [("Committed transactions per second", cells.collect()), ("Between levels", levels.collect())];
    let rows = || groups.iter().flat_map(|(_, rows)| rows);
    rows().next()?;
    let values = rows().flat_map(|row| [Some(row.ratio.mean)].into_iter().chain(ends(&row.ratio)).flatten());
    let scale = Scale::log(values.chain([0.9, 1.0, 1.1]), 1.06, ENDS.0, ENDS.1);
    let (drawn, height) = drawn(&groups, scale);
    let title = "B as a multiple of A".to_owned();
    let sentences: Vec<String> = rows().map(|row| format!("{}: {}", row.name, said(&row.ratio))).collect();
    let description = format!("B as a multiple of A, with intervals. {}.", sentences.join("; "));
    let mut data = Data::new(&["what", "ratio", "ratio_low", "ratio_high", "significant"]);
    for row in rows() {
        let (ratio, name) = (row.ratio, row.name.to_owned());
        let significant = ratio.significant.to_string();
        data.row(vec![name, number(Some(ratio.mean)), number(ratio.low), number(ratio.high), significant]);
    }
    Some(Figure {
        id: "pair-ratios",
        caption: "On a logarithmic axis: half and twice are equally far from 1. Marker and number: the \
                  ratio; line with ends: its interval, which holds with 95 % for all ratios here together."
            .to_owned(),
        svg: picture("pair-ratios", &title, height, &drawn),
        title,
        description,
        legend: String::new(),
        csv: data.finish(),
    })
}

/// The ends of an interval as they are drawn.
fn ends(ratio: &PairRatio) -> [Option<f64>; 2] {
    let within = |end: f64| end.clamp(ratio.mean / FARTHEST, ratio.mean * FARTHEST);
    [ratio.low.map(within), ratio.high.map(within)]
}

/// "0.80 (0.75 to 0.85)", and whether that is more than noise.
fn said(ratio: &PairRatio) -> String {
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        return format!("{}, no interval", short(ratio.mean));
    };
    let word = if ratio.significant { "" } else { ", no measurable difference" };
    format!("{} ({} to {}){word}", short(ratio.mean), short(low), short(high))
}

fn drawn(groups: &[(&str, Vec<Row>)], scale: Scale) -> (Markup, f64) {
    let mut rows = Rows::new(scale, 7, 24.0);
    for (heading, group) in groups.iter().filter(|(_, group)| !group.is_empty()) {
        rows.heading(heading);
        for row in group {
            let value = said(&row.ratio);
            let track = rows.named(row.name, &value);
            let middle = track.middle();
            let one = scale.at(1.0);
            let marks = html! {
                line class="reference" x1=(u(one)) x2=(u(one)) y1=(u(track.top)) y2=(u(track.bottom)) {}
                @if let [Some(low), Some(high)] = ends(&row.ratio) {
                    (whisker((scale.at(low), middle), (scale.at(high), middle)))
                }
                (marker(style(row.level), scale.at(row.ratio.mean), middle))
            };
            rows.add(&stop(&class(row.level), &format!("{}: {value}", row.name), &marks));
        }
    }
    rows.finish("B as a multiple of A")
}

/// The style of a level: the standard's have theirs, others share one.
fn style(level: &str) -> usize {
    Level::ALL.iter().position(|known| known.name() == level).unwrap_or(Level::ALL.len()) % STYLES
}

fn class(level: &str) -> String {
    format!("s{}", style(level))
}

const HEIGHT: f64 = 190.0;

/// The anchors of a series' figures. Further ones are left out; the table has all cells.
pub(super) static IDS: [&str; 12] = [
    "trend-1", "trend-2", "trend-3", "trend-4", "trend-5", "trend-6", "trend-7", "trend-8", "trend-9",
    "trend-10", "trend-11", "trend-12",
];

/// Draws the rates of a series: a figure for each combination of the factors besides the level.
pub fn series(trend: &Trend) -> Vec<Figure> {
    let mut groups: Vec<Vec<&TrendCell>> = Vec::new();
    for cell in trend.cells.iter().filter(|cell| cell.points.iter().any(|point| rate(point).is_some())) {
        match groups.iter_mut().find(|group| group[0].others == cell.others) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups.iter().zip(IDS).map(|(group, id)| figure(trend, group, id)).collect()
}

fn rate(point: &TrendPoint) -> Option<f64> {
    point.figures.tps.mean.filter(|rate| rate.is_finite())
}

fn figure(trend: &Trend, cells: &[&TrendCell], id: &'static str) -> Figure {
    let points = || cells.iter().flat_map(|cell| &cell.points);
    let values = points().flat_map(|point| [rate(point), point.figures.tps.high]).flatten();
    let values: Vec<f64> = values.collect();
    let rates = |from, to| Scale::from_zero(values.iter().copied(), from, to);
    let left = left_of(&[(&rates(0.0, HEIGHT), 5)]).max(70.0);
    let plot = Plot { left, right: WIDTH - NAMES, top: ABOVE, bottom: ABOVE + HEIGHT };
    let upright = rates(plot.bottom, plot.top);
    let last = trend.results.len().saturating_sub(1).max(1) as f64;
    let along = Scale::up_to(last, plot.left + 8.0, plot.right - 8.0);
    let ticks: Vec<Tick> = trend.results.iter().enumerate().map(|(index, side)| tick(index, side)).collect();
    let names: Vec<Name> = cells.iter().filter_map(|cell| name(cell, &upright)).collect();
    let drawn = html! {
        (plot.rising(&upright, 5, "committed per s"))
        (plot.across(&along, &ticks, "result, with the day that it was measured"))
        @for cell in cells { (line(cell, &along, &upright)) }
        (plot.names(&names))
    };
    let title = format!("Rate over the results: {}", cells[0].others);
    let description = words(cells);
    Figure {
        id,
        caption: "Committed transactions per second in each result: the mean of the rounds with its 95 % \
                  interval. Results stand in the order in which they were named."
            .to_owned(),
        svg: picture(id, &title, plot.bottom + BELOW, &drawn),
        title,
        description,
        legend: String::new(),
        csv: data(trend, cells),
    }
}

/// The number of a result with the day on which it was measured.
fn tick(index: usize, side: &Side) -> Tick {
    let day = side.started_at.as_deref().and_then(|time| time.get(..10));
    let label = day.map_or_else(|| (index + 1).to_string(), |day| format!("{}: {day}", index + 1));
    Tick { value: index as f64, label }
}

/// The name beside the end of a cell's line.
fn name(cell: &TrendCell, upright: &Scale) -> Option<Name> {
    let level = cell.factors.level();
    let last = cell.points.iter().rev().find_map(rate)?;
    Some(Name { class: class(level), style: style(level), words: level.to_owned(), end: upright.at(last) })
}

fn line(cell: &TrendCell, along: &Scale, upright: &Scale) -> Markup {
    let level = cell.factors.level();
    let place = |result: usize, value: f64| (along.at(result as f64 - 1.0), upright.at(value));
    let drawn = cell.points.iter().filter_map(|point| Some(place(point.result, rate(point)?)));
    let drawn: Vec<(f64, f64)> = drawn.collect();
    let marks = html! {
        path class="line" d=(path(drawn.iter().copied().map(Some))) {}
        @for point in &cell.points {
            @if let Some((low, high)) = point.figures.tps.low.zip(point.figures.tps.high) {
                (whisker(place(point.result, high), place(point.result, low)))
            }
        }
        @for (x, y) in &drawn { (marker(style(level), *x, *y)) }
    };
    stop(&class(level), &words(&[cell]), &marks)
}

fn words(cells: &[&TrendCell]) -> String {
    let one = |cell: &&TrendCell| {
        let points = cell.points.iter().map(|point| {
            let tps = point.figures.tps;
            let ends = tps.low.zip(tps.high);
            let ends =
                ends.map_or_else(String::new, |(low, high)| format!(" ({} to {})", short(low), short(high)));
            format!("{} in result {}{ends}", optional(tps.mean), point.result)
        });
        format!("{}: {}", cell.name, points.collect::<Vec<_>>().join(", "))
    };
    format!("Committed transactions per second. {}.", cells.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn data(trend: &Trend, cells: &[&TrendCell]) -> String {
    let mut data = Data::new(&["result", "started_at", "level", "tps", "tps_low", "tps_high"]);
    for cell in cells {
        for point in &cell.points {
            let tps = point.figures.tps;
            let started = trend.results.get(point.result - 1).and_then(|side| side.started_at.clone());
            data.row(vec![
                point.result.to_string(),
                started.unwrap_or_default(),
                cell.factors.level().to_owned(),
                number(tps.mean),
                number(tps.low),
                number(tps.high),
            ]);
        }
    }
    data.finish()
}
