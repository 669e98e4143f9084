//! Figure: every cell's rate as a multiple of the first level's, with interval, beside what equal
//! cells differ by.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::picture;
use super::marks::{bar, interval, marker, series, u};
use super::rows::{ENDS, Rows, Track};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use crate::csv::number;
use isobench_result::document::{Document, RatioToFirst};
use isobench_result::numbers::{percent, short};

const ID: &str = "ratio";

/// Draws the figure; `None` if nothing was compared.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let compared: Vec<&RatioToFirst> =
        groups.iter().flat_map(|group| &group.members).filter_map(compared).collect();
    let first = compared.first()?.to.clone();
    let scale = scale(&compared);
    let title = format!("Rate as a multiple of that of {first}");
    let (drawn, height) = drawn(&groups, &scale);
    let description = words(&groups, &first);
    let noise = compared.iter().find_map(|ratio| ratio.noise);
    Some(Figure {
        id: ID,
        caption: format!(
            "Committed transactions per second, divided by those of {first} in the same round, on \
             a logarithmic axis: half and twice are equally far from 1. Marker and number: the \
             geometric mean of the rounds; line with ends: its 95 % interval.{}",
            noise.map_or_else(String::new, |share| format!(
                " Grey band: what equal cells differ by on this machine, up to {}, from measuring {first} twice.",
                if share < 1.0 { percent(share) } else { format!("a factor of {}", short(share + 1.0)) }
            ))
        ),
        svg: picture(ID, &title, height, &drawn),
        title,
        description,
        legend: String::new(),
        csv: data(&groups),
    })
}

/// The ratio of a cell that isn't the one that the others are compared with.
fn compared<'a>(subject: &'a Subject) -> Option<&'a RatioToFirst> {
    let ratio = subject.cell.summary.ratio.as_ref()?;
    let is_first = ratio.to == subject.cell.level.name() && !subject.again;
    (!is_first && ratio.mean.is_finite() && ratio.mean > 0.0).then_some(ratio)
}

fn scale(ratios: &[&RatioToFirst]) -> Scale {
    let mut values = vec![1.0, 0.9, 1.1];
    for ratio in ratios {
        values.push(ratio.mean);
        // An interval of two wild rounds reaches anywhere; what it crosses of the picture says
        // enough.
        values.extend(ratio.low.map(|low| low.max(ratio.mean / 4.0)));
        values.extend(ratio.high.map(|high| high.min(ratio.mean * 4.0)));
        values.extend(ratio.noise.filter(|share| *share < 1.0).map(|share| 1.0 + share));
    }
    Scale::log(values, 1.06, ENDS.0, ENDS.1)
}

/// "0.49 (0.47–0.51)", and whether that is more than noise.
fn figures(ratio: &RatioToFirst) -> String {
    match ratio.low.zip(ratio.high) {
        None => format!("{}, no interval", short(ratio.mean)),
        Some((low, high)) => {
            let word = if ratio.significant { "" } else { ", noise" };
            format!("{} ({}–{}){word}", short(ratio.mean), short(low), short(high))
        }
    }
}

fn drawn(groups: &[Group], scale: &Scale) -> (Markup, f64) {
    let mut rows = Rows::new(*scale, 7, 24.0);
    for group in groups {
        let members: Vec<(&Subject, &RatioToFirst)> =
            group.members.iter().filter_map(|subject| Some((subject, compared(subject)?))).collect();
        if members.is_empty() {
            continue;
        }
        rows.heading(&group.name);
        for (subject, ratio) in members {
            let value = figures(ratio);
            let track = rows.cell(subject, &value);
            rows.add(&marks_of(subject, ratio, scale, track, &value));
        }
    }
    rows.finish("times the first level's rate")
}

fn marks_of(subject: &Subject, ratio: &RatioToFirst, scale: &Scale, track: Track, value: &str) -> Markup {
    let middle = track.middle();
    let label = format!("{}: {value} times the rate of {}", subject.name, ratio.to);
    let marks = html! {
        @if let Some(noise) = ratio.noise.filter(|share| share.is_finite() && *share > 0.0) {
            (bar("noise", (scale.nearest(1.0 / (1.0 + noise)), scale.nearest(1.0 + noise)), (track.top, track.bottom)))
        }
        line class="reference" x1=(u(scale.at(1.0))) x2=(u(scale.at(1.0))) y1=(u(track.top)) y2=(u(track.bottom)) {}
        @if let Some(ends) = ratio.low.zip(ratio.high) { (interval(scale, ends, middle)) }
        (marker(subject.style, scale.at(ratio.mean), middle))
    };
    series(&subject.class(), &label, &marks)
}

fn words(groups: &[Group], first: &str) -> String {
    let mut sentences = Vec::new();
    for group in groups {
        for subject in &group.members {
            let Some(ratio) = compared(subject) else { continue };
            let place = group.place();
            sentences.push(format!("{}{place}: {}", subject.name, figures(ratio)));
        }
    }
    format!("Multiples of the rate of {first}, with 95 % intervals. {}.", sentences.join("; "))
}

fn data(groups: &[Group]) -> String {
    let mut data = Data::of_cells(&["to", "ratio", "low", "high", "significant", "noise"]);
    for subject in groups.iter().flat_map(|group| &group.members) {
        let Some(ratio) = compared(subject) else { continue };
        data.cell(
            subject,
            vec![
                ratio.to.clone(),
                number(Some(ratio.mean)),
                number(ratio.low),
                number(ratio.high),
                ratio.significant.to_string(),
                number(ratio.noise),
            ],
        );
    }
    data.finish()
}
