//! Figures: one figure of many results, a picture for each series, with its changes.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, BELOW, Plot, WIDTH, left_of, picture};
use super::marks::{marker, path, series as stop, tipped, u, upright_interval};
use super::scale::{Scale, Tick};
use crate::csv::number;
use isobench_result::numbers::short;
use isobench_result::trend::{Trend, TrendPoint, TrendSeries};

const HEIGHT: f64 = 190.0;

/// The anchors of the figures. Further ones are left out; the table has all cells.
static IDS: [&str; 12] = [
    "trend-1", "trend-2", "trend-3", "trend-4", "trend-5", "trend-6", "trend-7", "trend-8", "trend-9",
    "trend-10", "trend-11", "trend-12",
];

/// Draws a picture for each series; of further ones than there are anchors the page has numbers only.
pub fn trend(trend: &Trend) -> Vec<Figure> {
    trend.series.iter().zip(IDS).map(|(series, id)| figure(trend, series, id)).collect()
}

fn figure(trend: &Trend, series: &TrendSeries, id: &'static str) -> Figure {
    let upright = |from, to| Scale::from_zero([series.range().1], from, to);
    let left = left_of(&[(&upright(0.0, HEIGHT), 5)]).max(70.0);
    let plot = Plot { left, right: WIDTH - 8.0, top: ABOVE, bottom: ABOVE + HEIGHT };
    let upright = upright(plot.bottom, plot.top);
    let last = series.points.len().saturating_sub(1).max(1) as f64;
    let along = Scale::up_to(last, plot.left + 8.0, plot.right - 8.0);
    let ticks: Vec<Tick> = series.points.iter().enumerate().map(tick).collect();
    let description = format!("{}: {}", series.title(), words(series));
    let drawn = html! {
        (plot.rising(&upright, 5, &trend.metric))
        (plot.across(&along, &ticks, &format!("result, by {}", trend.by)))
        @for change in &series.changes {
            @let x = along.at(change.at as f64 - 1.5);
            (tipped("point", &change.said(), &html! {
                line class="limit" x1=(u(x)) x2=(u(x)) y1=(u(plot.top)) y2=(u(plot.bottom)) {}
            }))
        }
        (line(series, &along, &upright, &description))
    };
    Figure {
        id,
        title: series.title(),
        caption: format!(
            "{} in each result, with its 95 % interval where it has one. Dashed: a change.",
            isobench_result::words::capital(trend.meaning)
        ),
        svg: picture(id, &series.title(), plot.bottom + BELOW, &drawn),
        description,
        legend: String::new(),
        csv: data(series),
    }
}

/// The place of a result on the axis; of a time the day.
fn tick((index, point): (usize, &TrendPoint)) -> Tick {
    let is_time = point.started_at.as_ref() == Some(&point.at);
    let label = point.at.get(..10).filter(|_| is_time).unwrap_or(&point.at);
    Tick { value: index as f64, label: label.to_owned() }
}

fn line(series: &TrendSeries, along: &Scale, upright: &Scale, words: &str) -> Markup {
    let place = |index: usize, value: f64| (along.at(index as f64), upright.at(value));
    let places = || series.points.iter().enumerate().map(|(index, point)| place(index, point.value));
    let marks = html! {
        path class="line" d=(path(places().map(Some))) {}
        @for (index, point) in series.points.iter().enumerate() {
            @if let Some(ends) = point.low.zip(point.high) {
                (upright_interval(upright, ends, along.at(index as f64)))
            }
        }
        @for (x, y) in places() { (marker(0, x, y)) }
    };
    stop("s0", words, &marks)
}

fn words(series: &TrendSeries) -> String {
    let points = series.points.iter().map(|point| format!("{} at {}", short(point.value), point.at));
    format!("{}. {}", points.collect::<Vec<_>>().join(", "), series.said().join(" "))
}

fn data(series: &TrendSeries) -> String {
    let mut data = Data::new(&["at", "result", "value", "low", "high", "change"]);
    for (point, place) in series.points.iter().zip(1..) {
        let change = series.changes.iter().any(|change| change.at == place);
        data.row(vec![
            point.at.clone(),
            point.result.clone(),
            number(Some(point.value)),
            number(point.low),
            number(point.high),
            change.to_string(),
        ]);
    }
    data.finish()
}
