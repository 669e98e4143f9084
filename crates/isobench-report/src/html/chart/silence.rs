//! Figure: the time without commits around faults, and what became of the commits.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::picture;
use super::marks::{bar, series, tipped, u};
use super::rows::{ENDS, Rows, Track};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use crate::csv::number;
use isobench_result::document::{Cell, Document, Round, Settlement};
use isobench_result::durability::{is_settled, silence};
use isobench_result::numbers::{count, short};

const ID: &str = "silence";
const TITLE: &str = "Time without commits, lost and kept";

/// Draws the figure; `None` if nothing happened to a server.
pub fn figure(document: &Document) -> Option<Figure> {
    if !is_settled(document) {
        return None;
    }
    let groups = groups(document);
    let subjects = || groups.iter().flat_map(|group| &group.members);
    let times = subjects().flat_map(Subject::rounds).filter_map(longest);
    let scale = Scale::from_zero(times, ENDS.0, ENDS.1);
    let mut rows = Rows::new(scale, 6, 18.0);
    for group in &groups {
        rows.heading(&group.name);
        for subject in &group.members {
            let value = outcome(subject.cell);
            let track = rows.cell(subject, &value);
            rows.add(&marks_of(subject, &scale, track, &value));
        }
    }
    let (drawn, height) = rows.finish("seconds without an acknowledged commit");
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: "The longest time without an acknowledged commit around a fault. Bar: the mean of the rounds' \
                  longest; dots: each round. At the right, of all rounds: acknowledged commits that are lost, and \
                  attempts without an answer whose row is there (kept)."
            .to_owned(),
        svg: picture(ID, TITLE, height, &drawn),
        description: words(&groups),
        legend: String::new(),
        csv: data(&groups),
    })
}

/// The longest time without a commit of a round.
fn longest(round: &Round) -> Option<f64> {
    round.faults.as_ref()?.longest(|event| event.silent_s)
}

/// "0.42 s; lost 23 of 2,460, kept 3 of 8".
fn outcome(cell: &Cell) -> String {
    let sum = |of: fn(&Settlement) -> u64| count(cell.settled(|round| of(&round.settlement)).unwrap_or(0));
    let time = silence(cell).map_or_else(String::new, |time| format!("{} s; ", short(time)));
    format!(
        "{time}lost {} of {}, kept {} of {}",
        sum(|it| it.lost),
        sum(|it| it.acknowledged),
        sum(|it| it.kept),
        sum(|it| it.unacknowledged)
    )
}

fn marks_of(subject: &Subject, scale: &Scale, track: Track, value: &str) -> Markup {
    let rounds: Vec<(&Round, f64)> =
        subject.rounds().into_iter().filter_map(|round| Some((round, longest(round)?))).collect();
    let marks = html! {
        @if let Some(mean) = silence(subject.cell) {
            (bar("extent", (scale.at(0.0), scale.at(mean)), (track.top + 3.0, track.bottom - 3.0)))
            line class="mean" x1=(u(scale.at(mean))) x2=(u(scale.at(mean))) y1=(u(track.top)) y2=(u(track.bottom)) {}
        }
        @for (round, time) in &rounds {
            @let tip = format!("round {}: {} s without a commit", round.round, short(*time));
            @let dot = html! { circle class="dot" cx=(u(scale.at(*time))) cy=(u(track.middle())) r="3.2" {} };
            (tipped("point", &tip, &dot))
        }
    };
    series(&subject.class(), &format!("{}: {value}", subject.name), &marks)
}

fn words(groups: &[Group]) -> String {
    let mut sentences = Vec::new();
    for group in groups {
        for subject in &group.members {
            sentences.push(format!("{}{}: {}", subject.name, group.place(), outcome(subject.cell)));
        }
    }
    format!(
        "Time without commits, acknowledged commits lost, unacknowledged attempts kept. {}.",
        sentences.join("; ")
    )
}

/// A line for each round.
fn data(groups: &[Group]) -> String {
    let mut data =
        Data::of_cells(&["round", "silent_s", "acknowledged", "lost", "unacknowledged", "kept", "failed"]);
    for subject in groups.iter().flat_map(|group| &group.members) {
        for round in &subject.cell.rounds {
            let Some(faults) = &round.faults else { continue };
            let it = &faults.settlement;
            let counts = [it.acknowledged, it.lost, it.unacknowledged, it.kept, it.failed];
            let values = [round.round.to_string(), number(longest(round))];
            data.cell(subject, values.into_iter().chain(counts.map(|count| count.to_string())).collect());
        }
    }
    data.finish()
}
