//! Figure: what the sessions did on the server, as shares, stacked for every cell.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::picture;
use super::hatching::{hatched_bar, hatchings};
use super::legend::legend;
use super::marks::{series, tipped};
use super::rows::{ENDS, Rows, Track};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use super::wait_kinds::{entries, kind_of, name_of, order};
use crate::csv::number;
use isobench_result::document::{Document, WaitShare};
use isobench_result::numbers::percent;

const ID: &str = "waits";
const TITLE: &str = "What the sessions did on the server";

/// Events that the words name of every cell.
const NAMED: usize = 4;

/// Draws the figure; `None` if the server wasn't sampled.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let waits = || groups.iter().flat_map(|group| &group.members).flat_map(waits_of);
    let shown: Vec<usize> =
        order().filter(|kind| waits().any(|wait| kind_of(&wait.kind, &wait.event) == *kind)).collect();
    if shown.is_empty() {
        return None;
    }
    let (rows, height) = drawn(&groups);
    let drawn = html! { (hatchings(ID, shown.iter().copied())) (rows) };
    let description = words(&groups);
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: "The clients' sessions in all samples of all rounds, by wait event (type/event, \
                  as the server names them); sessions that don't wait are working. Numbers: the \
                  event, or the work, with the largest share."
            .to_owned(),
        svg: picture(ID, TITLE, height, &drawn),
        description,
        legend: legend(ID, &entries(&shown)),
        csv: data(&groups),
    })
}

/// The shares of a cell that are numbers above zero, the largest first.
fn waits_of<'a>(subject: &'a Subject) -> impl Iterator<Item = &'a WaitShare> {
    subject.cell.summary.waits.iter().filter(|wait| wait.share.is_finite() && wait.share > 0.0)
}

fn drawn(groups: &[Group]) -> (Markup, f64) {
    let scale = Scale::up_to(100.0, ENDS.0, ENDS.1);
    let mut rows = Rows::new(scale, 6, 22.0);
    for group in groups {
        rows.heading(&group.name);
        for subject in &group.members {
            let most = waits_of(subject).next().map_or_else(
                || "not sampled".to_owned(),
                |wait| format!("{} {}", name_of(&wait.kind, &wait.event), percent(wait.share)),
            );
            let track = rows.cell(subject, &most);
            rows.add(&marks_of(subject, &scale, track));
        }
    }
    rows.finish("% of the sessions in all samples")
}

fn marks_of(subject: &Subject, scale: &Scale, track: Track) -> Markup {
    let mut left = 0.0;
    let mut segments = Vec::new();
    for kind in order() {
        for wait in waits_of(subject).filter(|wait| kind_of(&wait.kind, &wait.event) == kind) {
            let tip = format!("{}: {}", name_of(&wait.kind, &wait.event), percent(wait.share));
            let ends = (scale.at(left * 100.0), scale.at((left + wait.share) * 100.0));
            left += wait.share;
            let segment = hatched_bar(ID, kind, ends, (track.top, track.bottom));
            segments.push(tipped("point", &tip, &segment));
        }
    }
    let label = format!("{}: {}", subject.name, main_waits(subject));
    series(&subject.class(), &label, &html! { @for segment in &segments { (segment) } })
}

fn main_waits(subject: &Subject) -> String {
    let named: Vec<String> = waits_of(subject)
        .take(NAMED)
        .map(|wait| format!("{} {}", name_of(&wait.kind, &wait.event), percent(wait.share)))
        .collect();
    if named.is_empty() { "not sampled".to_owned() } else { named.join(", ") }
}

fn words(groups: &[Group]) -> String {
    let mut sentences = Vec::new();
    for group in groups {
        for subject in &group.members {
            let place = group.place();
            sentences.push(format!("{}{place}: {}", subject.name, main_waits(subject)));
        }
    }
    format!("The largest shares of the sessions' time. {}.", sentences.join("; "))
}

fn data(groups: &[Group]) -> String {
    let mut data = Data::of_cells(&["wait_type", "wait_event", "share"]);
    for subject in groups.iter().flat_map(|group| &group.members) {
        for wait in waits_of(subject) {
            data.cell(subject, vec![wait.kind.clone(), wait.event.clone(), number(Some(wait.share))]);
        }
    }
    data.finish()
}
