//! Figure: where the clients' time went, as shares, stacked for every cell.

use isobench_stats::seconds;
use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::picture;
use super::hatching::{hatched_bar, hatchings};
use super::legend::{LegendEntry, legend};
use super::marks::{series, tipped};
use super::rows::{ENDS, Rows, Track};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use crate::csv::number;
use isobench_result::document::Document;
use isobench_result::numbers::{percent, short};

const ID: &str = "time-ledger";
const TITLE: &str = "Where the clients' time went";

/// The kinds of time: name, meaning, hatching.
const KINDS: [(&str, &str, usize); 5] = [
    ("useful", "attempts that committed", 0),
    ("wasted", "attempts that didn't", 1),
    ("backoff", "between a failed attempt and the next", 2),
    ("waiting", "for the schedule or thinking", 3),
    ("other", "of no attempt: starting, finishing, the client itself", 4),
];

/// The seconds of a cell, in the order of the kinds; their sum is the time of all clients.
struct Spent {
    seconds: [f64; 5],
    total: f64,
}

impl Spent {
    /// `None` if no time passed.
    fn of(subject: &Subject) -> Option<Spent> {
        let time = subject.cell.summary.time_s;
        let known = [time.useful, time.wasted, time.backoff, time.waiting].map(seconds);
        let sum: f64 = known.iter().sum();
        let measured: f64 =
            subject.rounds().iter().map(|round| round.seconds).filter(|seconds| *seconds > 0.0).sum();
        let of_clients = measured * f64::from(subject.cell.clients);
        // What was under way when the clock started or stopped may count a little more than the
        // clock.
        let other = if of_clients.is_finite() { (of_clients - sum).max(0.0) } else { 0.0 };
        let total = sum + other;
        let [useful, wasted, backoff, waiting] = known;
        (total > 0.0 && total.is_finite())
            .then_some(Spent { seconds: [useful, wasted, backoff, waiting, other], total })
    }

    fn share(&self, kind: usize) -> f64 {
        self.seconds.get(kind).map_or(0.0, |seconds| seconds / self.total)
    }
}

/// Draws the figure; `None` if no client spent any time.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let spent: Vec<Spent> = groups.iter().flat_map(|group| &group.members).filter_map(Spent::of).collect();
    if spent.is_empty() {
        return None;
    }
    let shown: Vec<usize> =
        (0..KINDS.len()).filter(|kind| spent.iter().any(|spent| spent.share(*kind) > 0.000_5)).collect();
    let entries: Vec<LegendEntry> = shown
        .iter()
        .map(|kind| KINDS[*kind])
        .map(|(name, meaning, hatching)| LegendEntry {
            kind: hatching,
            name: name.to_owned(),
            meaning: meaning.to_owned(),
        })
        .collect();
    let (rows, height) = drawn(&groups, &shown);
    let drawn = html! { (hatchings(ID, entries.iter().map(|entry| entry.kind))) (rows) };
    let description = words(&groups, &shown);
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: "The time of all clients in the measured part of all rounds (clients × seconds), \
                  by what it was spent on. Numbers: the useful share."
            .to_owned(),
        svg: picture(ID, TITLE, height, &drawn),
        description,
        legend: legend(ID, &entries),
        csv: data(&groups),
    })
}

fn drawn(groups: &[Group], shown: &[usize]) -> (Markup, f64) {
    let scale = Scale::up_to(100.0, ENDS.0, ENDS.1);
    let mut rows = Rows::new(scale, 6, 22.0);
    for group in groups {
        rows.heading(&group.name);
        for subject in &group.members {
            let Some(spent) = Spent::of(subject) else {
                rows.cell(subject, "not measured");
                continue;
            };
            let track = rows.cell(subject, &format!("{} useful", percent(spent.share(0))));
            rows.add(&marks_of(subject, &spent, &scale, track, shown));
        }
    }
    rows.finish("% of the clients' time")
}

fn marks_of(subject: &Subject, spent: &Spent, scale: &Scale, track: Track, shown: &[usize]) -> Markup {
    let mut left = 0.0;
    let mut segments = Vec::new();
    for kind in shown {
        let share = spent.share(*kind);
        let (name, _, hatching) = KINDS[*kind];
        let tip = format!(
            "{name}: {} ({} s of {} s)",
            percent(share),
            short(spent.seconds[*kind]),
            short(spent.total)
        );
        let ends = (scale.at(left * 100.0), scale.at((left + share) * 100.0));
        left += share;
        if share > 0.0 {
            let segment = hatched_bar(ID, hatching, ends, (track.top, track.bottom));
            segments.push(tipped("point", &tip, &segment));
        }
    }
    let label = format!("{}: {}", subject.name, shares(spent, shown));
    series(&subject.class(), &label, &html! { @for segment in &segments { (segment) } })
}

fn shares(spent: &Spent, shown: &[usize]) -> String {
    let share = |kind: &usize| format!("{} {}", KINDS[*kind].0, percent(spent.share(*kind)));
    shown.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn words(groups: &[Group], shown: &[usize]) -> String {
    let mut sentences = Vec::new();
    for group in groups {
        for subject in &group.members {
            let place = group.place();
            let shares =
                Spent::of(subject).map_or_else(|| "not measured".to_owned(), |spent| shares(&spent, shown));
            sentences.push(format!("{}{place}: {shares}", subject.name));
        }
    }
    format!("Shares of the clients' time. {}.", sentences.join("; "))
}

fn data(groups: &[Group]) -> String {
    let mut data = Data::of_cells(&["useful_s", "wasted_s", "backoff_s", "waiting_s", "other_s"]);
    for subject in groups.iter().flat_map(|group| &group.members) {
        if let Some(spent) = Spent::of(subject) {
            data.cell(subject, spent.seconds.iter().map(|seconds| number(Some(*seconds))).collect());
        }
    }
    data.finish()
}
