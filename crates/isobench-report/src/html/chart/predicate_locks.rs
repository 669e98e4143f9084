//! Figure: predicate locks over the time of a round, by what they cover.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, BELOW, LINE, NAMES, Name, Plot, WIDTH, left_of, picture, text};
use super::marks::{marker, path, series, tipped};
use super::rows::title;
use super::scale::Scale;
use super::subject::{Group, LOCKS, Subject, groups};
use super::time_series::median_round;
use crate::csv::number;
use isobench_result::document::{Document, Granularity, PredicateLocks, Round};
use isobench_result::numbers::{count, counted};

const ID: &str = "predicate-locks";
const TITLE: &str = "Predicate locks over time";

/// More cells make the figure long without showing more.
const MOST: usize = 4;

/// So many samples are no picture; a sentence says what they show.
const FEW: usize = 4;

const HEIGHT: f64 = 120.0;

/// Samples with a marker, at most.
const MARKERS: usize = 24;

/// A granularity with the style of its lines.
type Styled = (Granularity, usize);

const GRANULARITIES: [Styled; 3] = {
    let [tuple, page, relation] = PredicateLocks::GRANULARITIES;
    [(tuple, LOCKS), (page, LOCKS + 1), (relation, LOCKS + 2)]
};

/// A cell's locks in its median round.
struct Held<'a> {
    subject: &'a Subject<'a>,
    round: &'a Round,
    locks: &'a PredicateLocks,
}

impl Held<'_> {
    /// The samples of a granularity: seconds and locks.
    fn samples(&self, ((_, counts), _): &Styled) -> Vec<(f64, u64)> {
        let times = self.locks.at_s.iter().copied();
        times.zip(counts(self.locks).iter().copied()).filter(|(at, _)| at.is_finite()).collect()
    }

    fn most(&self, granularity: &Styled) -> u64 {
        self.samples(granularity).into_iter().map(|(_, locks)| locks).max().unwrap_or(0)
    }
}

/// Draws the figure; `None` if no predicate lock was seen.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let mut held = all_held(&groups);
    held.retain(|(_, held)| held.locks.at_s.len() > FEW);
    let csv = data(&held);
    let cells = held.len();
    held.truncate(MOST);
    if held.is_empty() {
        return None;
    }
    let seconds = held.iter().flat_map(|(_, held)| &held.locks.at_s).copied().filter(|at| at.is_finite());
    let seconds = seconds.fold(0.0, f64::max);
    let most = held
        .iter()
        .flat_map(|(_, held)| GRANULARITIES.iter().map(|granularity| held.most(granularity)))
        .max()
        .unwrap_or(0);
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for (group, held) in &held {
        let (plot, height) = plot(group, held, seconds, most as f64, top);
        drawn.push(plot);
        top += height;
    }
    let description = words(&held);
    let left_out = if cells > MOST {
        format!(" The first {MOST} of {cells} cells; the data have all.")
    } else {
        String::new()
    };
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: format!(
            "Predicate locks (SIReadLock) that exist in the server, by what they cover, sampled in \
             the median round of each cell that has any; the axis is logarithmic from one on. \
             Where locks on tuples are promoted to pages, and pages to relations, conflicts are \
             found that there aren't.{left_out}"
        ),
        svg: picture(ID, TITLE, top, &html! { @for plot in &drawn { (plot) } }),
        description,
        legend: String::new(),
        csv,
    })
}

/// The cells that held locks, each with its group.
fn all_held<'a>(groups: &'a [Group<'a>]) -> Vec<(&'a Group<'a>, Held<'a>)> {
    let of = |group: &'a Group<'a>| {
        group.members.iter().filter_map(move |subject| Some((group, held_by(subject)?)))
    };
    groups.iter().flat_map(of).collect()
}

/// What was sampled too seldom for the picture, a sentence for each cell.
pub fn too_few(document: &Document) -> Vec<String> {
    let groups = groups(document);
    let mut held = all_held(&groups);
    held.retain(|(_, held)| held.locks.at_s.len() <= FEW);
    let samples = |held: &Held| counted(held.locks.at_s.len() as u64, "sample");
    let sentence = |(group, held): &(&Group, Held)| {
        let (seen, place) = (most_held(held), group.place());
        let name = &held.subject.name;
        format!("Predicate locks of {name}{place}: {seen}, in {} only.", samples(held))
    };
    held.iter().map(sentence).collect()
}

/// "at most 12 tuple, 3 page, 0 relation locks".
fn most_held(held: &Held) -> String {
    let most: Vec<String> = GRANULARITIES
        .iter()
        .map(|granularity @ ((name, _), _)| format!("{} {name}", count(held.most(granularity))))
        .collect();
    format!("at most {} locks", most.join(", "))
}

fn held_by<'a>(subject: &'a Subject<'a>) -> Option<Held<'a>> {
    let locks_of = |round: &'a Round| round.server.as_ref()?.predicate_locks.as_ref();
    let any = |round: &Round| {
        let locks = round.server.as_ref().and_then(|server| server.predicate_locks.as_ref());
        locks.is_some_and(|locks| {
            !locks.at_s.is_empty()
                && GRANULARITIES.iter().any(|((_, counts), _)| counts(locks).iter().any(|locks| *locks > 0))
        })
    };
    let round = median_round(subject, any)?;
    Some(Held { subject, round, locks: locks_of(round)? })
}

fn plot(group: &Group, held: &Held, seconds: f64, most: f64, top: f64) -> (Markup, f64) {
    let heading = if group.name.is_empty() { 0.0 } else { LINE + 3.0 };
    let (label, height) = title(held.subject, &format!("round {}", held.round.round), top + heading);
    let upper = top + heading + height + ABOVE;
    let up = Scale::counts([most], upper + HEIGHT, upper);
    let plot =
        Plot { left: left_of(&[(&up, 5)]), right: WIDTH - NAMES + 30.0, top: upper, bottom: upper + HEIGHT };
    let along = Scale::up_to(seconds, plot.left, plot.right);
    let seen: Vec<&Styled> =
        GRANULARITIES.iter().filter(|granularity| !held.samples(granularity).is_empty()).collect();
    let end = |granularity: &Styled| {
        held.samples(granularity).last().map_or(plot.bottom, |(_, locks)| up.at(*locks as f64))
    };
    let names: Vec<Name> = seen
        .iter()
        .map(|granularity @ ((name, _), style)| Name {
            class: format!("s{style}"),
            style: *style,
            words: (*name).to_owned(),
            end: end(granularity),
        })
        .collect();
    let drawn = html! {
        (text("heading", (0.0, top + 17.0), &group.name, WIDTH))
        (label)
        (plot.rising(&up, 5, "locks"))
        (plot.across(&along, &along.ticks(6), "seconds of the measured part"))
        @for granularity in &seen { (drawn_line(held, granularity, &along, &up)) }
        (plot.names(&names))
    };
    (drawn, upper + HEIGHT - top + BELOW + 8.0)
}

fn drawn_line(held: &Held, granularity: &Styled, along: &Scale, up: &Scale) -> Markup {
    let ((name, _), style) = granularity;
    let samples = held.samples(granularity);
    let place = |(at, locks): &(f64, u64)| (along.at(*at), up.at(*locks as f64));
    let stride = samples.len().div_ceil(MARKERS).max(1);
    let marks = html! {
        path class="line" d=(path(samples.iter().map(|sample| Some(place(sample))))) {}
        @for sample in samples.iter().step_by(stride) {
            @let (x, y) = place(sample);
            @let tip = format!("{:.1} s: {} {} locks", sample.0, count(sample.1), name);
            (tipped("point", &tip, &marker(*style, x, y)))
        }
    };
    let label = format!("{}: at most {} {} locks", held.subject.name, count(held.most(granularity)), name);
    series(&format!("s{style}"), &label, &marks)
}

fn words(held: &[(&Group, Held)]) -> String {
    let sentences = held.iter().map(|(group, held)| {
        let place = group.place();
        format!("{}{place}: {}", held.subject.name, most_held(held))
    });
    format!("{}.", sentences.collect::<Vec<_>>().join("; "))
}

fn data(held: &[(&Group, Held)]) -> String {
    let mut data = Data::of_cells(&["round", "at_s", "tuple", "page", "relation"]);
    for (_, held) in held {
        for (index, at) in held.locks.at_s.iter().enumerate() {
            let locks = |((_, counts), _): &Styled| {
                counts(held.locks).get(index).map_or_else(String::new, u64::to_string)
            };
            let mut values = vec![held.round.round.to_string(), number(Some(*at))];
            values.extend(GRANULARITIES.iter().map(locks));
            data.cell(held.subject, values);
        }
    }
    data.finish()
}
