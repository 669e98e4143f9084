//! Figure: why attempts ended in conflicts: reason, command and object, for every cell.

use maud::Markup;

use super::Figure;
use super::data::Data;
use super::frame::picture;
use super::marks::{bar, series};
use super::rows::{ENDS, PARTS, Rows, Track};
use super::scale::Scale;
use super::subject::{Group, Subject, groups};
use crate::document::{Conflict, Document};
use crate::numbers::{count, percent};

const ID: &str = "conflicts-by-reason";
const TITLE: &str = "Why attempts failed";

/// The most bars of a cell; there are fewer where there are many cells.
const MOST: usize = 8;
const FEW: usize = 3;
const MANY_CELLS: usize = 8;

/// Reasons of fewer than one in this many conflicts have no bar of their own.
const RARE: u64 = 100;

/// The conflicts of a cell.
struct Reasons<'a> {
    subject: &'a Subject<'a>,
    /// Attempts started.
    attempts: u64,
    /// All that ended in a conflict.
    total: u64,
    /// Alike ones together, the most frequent first.
    alike: Vec<Conflict>,
}

impl Reasons<'_> {
    /// Those that get a bar of their own, at most so many: rare ones stand together.
    fn shown(&self, most: usize) -> &[Conflict] {
        let frequent = self.alike.iter().take_while(|conflict| conflict.count >= self.total / RARE);
        self.alike.get(..frequent.count().min(most)).unwrap_or(&self.alike)
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.attempts.max(1) as f64
    }
}

/// Draws the figure; `None` if no attempt ended in a conflict.
pub fn figure(document: &Document) -> Option<Figure> {
    let groups = groups(document);
    let all: Vec<(&Group, Reasons)> = groups
        .iter()
        .flat_map(|group| group.members.iter().map(move |subject| (group, reasons(subject))))
        .filter(|(_, reasons)| reasons.attempts > 0)
        .collect();
    if all.iter().all(|(_, reasons)| reasons.total == 0) {
        return None;
    }
    let shares = all.iter().filter_map(|(_, own)| Some(100.0 * own.share(own.alike.first()?.count)));
    let scale = Scale::from_zero(shares, PARTS, ENDS.1);
    let most = if all.len() > MANY_CELLS { FEW } else { MOST };
    let (drawn, height) = drawn(&all, &scale, most);
    let description = words(&all);
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: "Attempts that ended in a conflict (a retryable error), by the server's reason, \
                  the command that got it, and the object that the message names, as shares of the \
                  attempts started in all rounds."
            .to_owned(),
        svg: picture(ID, TITLE, &description, height, &drawn),
        description,
        legend: String::new(),
        csv: data(&all),
    })
}

fn reasons<'a>(subject: &'a Subject<'a>) -> Reasons<'a> {
    let mut reasons: Vec<Conflict> = Vec::new();
    let rounds = subject.rounds();
    for conflict in rounds.iter().flat_map(|round| &round.conflicts) {
        let alike = |other: &&mut Conflict| {
            (&other.sqlstate, &other.command, &other.reason, &other.object)
                == (&conflict.sqlstate, &conflict.command, &conflict.reason, &conflict.object)
        };
        match reasons.iter_mut().find(alike) {
            Some(known) => known.count = known.count.saturating_add(conflict.count),
            None => reasons.push(conflict.clone()),
        }
    }
    reasons.retain(|conflict| conflict.count > 0);
    reasons.sort_by_key(|conflict| std::cmp::Reverse(conflict.count));
    let sum = |sum: u64, count: u64| sum.saturating_add(count);
    Reasons {
        subject,
        attempts: rounds.iter().map(|round| round.attempts.started).fold(0, sum),
        total: reasons.iter().map(|conflict| conflict.count).fold(0, sum),
        alike: reasons,
    }
}

fn drawn(all: &[(&Group, Reasons)], scale: &Scale, most: usize) -> (Markup, f64) {
    let mut rows = Rows::new(*scale, 6, 0.0);
    let mut heading = "";
    for (group, own) in all {
        if group.name != heading {
            heading = &group.name;
            rows.heading(heading);
        }
        rows.title(own.subject, &figures(own));
        let shown = own.shown(most);
        for conflict in shown {
            let share = own.share(conflict.count);
            let value = format!("{} · {}", count(conflict.count), percent(share));
            let track = rows.part(&one_line(&conflict.reason), &detail(conflict), &value);
            rows.add(&bar_of(
                own.subject,
                scale,
                share,
                track,
                &format!("{}: {value} of the attempts", sentence(conflict)),
            ));
        }
        let rest =
            own.alike.iter().skip(shown.len()).map(|conflict| conflict.count).fold(0, u64::saturating_add);
        if rest > 0 {
            let share = own.share(rest);
            let value = format!("{} · {}", count(rest), percent(share));
            let track = rows.part("all other reasons", "listed in the data", &value);
            rows.add(&bar_of(
                own.subject,
                scale,
                share,
                track,
                &format!("all other reasons: {value} of the attempts"),
            ));
        }
        rows.gap();
    }
    rows.finish("% of the attempts")
}

fn bar_of(subject: &Subject, scale: &Scale, share: f64, track: Track, label: &str) -> Markup {
    let ends = (scale.at(0.0), scale.at(100.0 * share).max(scale.at(0.0) + 1.0));
    series(&subject.class(), label, &bar("own", ends, (track.top, track.bottom)))
}

/// "1,900 of 3,820 attempts, 49.7 %".
fn figures(own: &Reasons) -> String {
    match own.total {
        0 => "no conflict".to_owned(),
        total => {
            format!("{} of {} attempts, {}", count(total), count(own.attempts), percent(own.share(total)))
        }
    }
}

/// "40001 at command END, on branches".
fn detail(conflict: &Conflict) -> String {
    let object =
        conflict.object.as_ref().map_or_else(String::new, |object| format!(", on {}", one_line(object)));
    format!("{} at command {}{object}", one_line(&conflict.sqlstate), one_line(&conflict.command))
}

fn sentence(conflict: &Conflict) -> String {
    format!("{} ({})", one_line(&conflict.reason), detail(conflict))
}

/// A command may have several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words(all: &[(&Group, Reasons)]) -> String {
    let sentences = all.iter().map(|(group, own)| {
        let place = group.place();
        let first = own.alike.first().map_or_else(String::new, |conflict| {
            format!(", most often {}, {}", sentence(conflict), count(conflict.count))
        });
        format!("{}{place}: {}{first}", own.subject.name, figures(own))
    });
    format!("Attempts that ended in a conflict. {}.", sentences.collect::<Vec<_>>().join("; "))
}

fn data(all: &[(&Group, Reasons)]) -> String {
    let mut data = Data::of_cells(&["sqlstate", "command", "reason", "object", "count", "attempts"]);
    for (_, own) in all {
        for conflict in &own.alike {
            data.cell(
                own.subject,
                vec![
                    conflict.sqlstate.clone(),
                    conflict.command.clone(),
                    conflict.reason.clone(),
                    conflict.object.clone().unwrap_or_default(),
                    conflict.count.to_string(),
                    own.attempts.to_string(),
                ],
            );
        }
    }
    data.finish()
}
