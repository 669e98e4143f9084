//! The hatching of each wait event: the same in every figure, the most frequent events with one of
//! their own.
//!
//! Not here: what is drawn of them.

use super::legend::LegendEntry;
use super::subject::Group;
use crate::document::WaitRow;

/// The hatchings of sessions that work, of idle ones, and of all events without a hatching of their
/// own.
const CPU: usize = 0;
const REST: usize = 7;
const IDLE: usize = 8;

/// The number of events with a hatching of their own: those from 1 on.
const EVENTS: usize = 6;

/// The kinds in the order in which they are stacked: work first, idle last.
pub const ORDER: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, REST, IDLE];

/// The wait events of a document that have a hatching of their own.
pub struct WaitKinds {
    events: Vec<(String, String)>,
}

impl WaitKinds {
    /// The events with the largest shares, added up over all cells.
    pub fn of(groups: &[Group]) -> WaitKinds {
        let mut shares: Vec<(String, String, f64)> = Vec::new();
        for wait in
            groups.iter().flat_map(|group| &group.members).flat_map(|subject| &subject.cell.summary.waits)
        {
            if is_cpu(&wait.kind) || is_idle(&wait.kind) || !wait.share.is_finite() {
                continue;
            }
            let same = |entry: &&mut (String, String, f64)| entry.0 == wait.kind && entry.1 == wait.event;
            match shares.iter_mut().find(same) {
                Some(entry) => entry.2 += wait.share,
                None => shares.push((wait.kind.clone(), wait.event.clone(), wait.share)),
            }
        }
        shares.sort_by(|one, other| other.2.total_cmp(&one.2));
        let events = shares.into_iter().take(EVENTS).map(|(kind, event, _)| (kind, event)).collect();
        WaitKinds { events }
    }

    /// The hatching of an event.
    pub fn kind(&self, kind: &str, event: &str) -> usize {
        if is_cpu(kind) {
            return CPU;
        }
        if is_idle(kind) {
            return IDLE;
        }
        let own = self.events.iter().position(|known| known.0 == kind && known.1 == event);
        own.map_or(REST, |index| index + 1)
    }

    /// The meaning of a hatching.
    pub fn name(&self, kind: usize) -> String {
        match kind {
            CPU => "working (CPU)".to_owned(),
            IDLE => "idle".to_owned(),
            _ => self
                .events
                .get(kind.saturating_sub(1))
                .map_or_else(|| "other waits".to_owned(), |(kind, event)| name_of(kind, event)),
        }
    }

    /// The legend of these hatchings, in the order in which they are stacked.
    pub fn entries(&self, shown: &[usize]) -> Vec<LegendEntry> {
        let used = ORDER.into_iter().filter(|kind| shown.contains(kind));
        used.map(|kind| LegendEntry { kind, name: self.name(kind), meaning: String::new() }).collect()
    }

    /// The sessions of each sample by hatching, in the order in which they are stacked; only those
    /// that were seen.
    pub fn sessions(&self, rows: &[WaitRow], samples: usize) -> Vec<(usize, Vec<f64>)> {
        let mut sums: Vec<(usize, Vec<f64>)> = ORDER.map(|kind| (kind, vec![0.0; samples])).into();
        for row in rows {
            let kind = self.kind(&row.kind, &row.event);
            let Some((_, sum)) = sums.iter_mut().find(|(other, _)| *other == kind) else { continue };
            for (sum, sessions) in sum.iter_mut().zip(&row.sessions) {
                *sum += f64::from(*sessions);
            }
        }
        sums.retain(|(_, sum)| sum.iter().any(|sessions| *sessions > 0.0));
        sums
    }
}

/// "Lock/tuple", or the type alone where it has no events.
pub fn name_of(kind: &str, event: &str) -> String {
    match (is_cpu(kind), event) {
        (true, _) => "working (CPU)".to_owned(),
        (false, "") => kind.to_owned(),
        (false, event) => format!("{kind}/{event}"),
    }
}

fn is_cpu(kind: &str) -> bool {
    kind == "CPU"
}

fn is_idle(kind: &str) -> bool {
    kind == "idle"
}
