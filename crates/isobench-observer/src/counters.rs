//! Reads the counters of all views that may be read, and subtracts two readings.

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::session::{ObserverSession, Refusal};
use crate::views::{Column, View};

/// A counter of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counter {
    /// View and column, with the row between them where a view has several:
    /// "`pg_stat_wal.wal_bytes`", "`pg_stat_slru.serializable.blks_hit`".
    pub name: String,
    /// What it counts, with its unit.
    pub meaning: String,
    /// By how much it rose.
    pub change: f64,
}

/// A reading: values by view, row and column.
pub type Reading = BTreeMap<(usize, String, usize), f64>;

/// Something that couldn't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The view.
    pub what: &'static str,
    /// What the server said.
    pub why: String,
    /// It won't be tried again.
    pub for_good: bool,
}

/// The views that this server has and the role may read.
#[derive(Debug, Default)]
pub struct Counters {
    /// Readings refer to the places in this list; `None` takes the place of a view that can't be
    /// read.
    views: Vec<Option<&'static View>>,
}

impl Counters {
    /// The views of a list that this one chooses.
    pub fn new(views: &'static [View], choose: impl Fn(&View) -> bool) -> Self {
        Counters { views: views.iter().filter(|view| choose(view)).map(Some).collect() }
    }

    /// Reads all. A view that can't be read is told to `note`; if that won't change, it isn't read
    /// again.
    pub fn read(&mut self, session: &mut ObserverSession, note: &mut dyn FnMut(Unreadable)) -> Reading {
        let mut reading = Reading::new();
        for (index, place) in self.views.iter_mut().enumerate() {
            let Some(view) = *place else { continue };
            match session.query(&view.query()) {
                Ok(rows) => take(&mut reading, index, view, &rows),
                Err(Refusal::Never(why)) => {
                    *place = None;
                    note(Unreadable { what: view.name, why, for_good: true });
                }
                Err(Refusal::Now(why)) => note(Unreadable { what: view.name, why, for_good: false }),
                Err(Refusal::Lost) => break,
            }
        }
        reading
    }

    /// By how much each counter rose from one reading to the other; what only one of them has is
    /// left out. Of views with several rows, only what changed.
    pub fn difference(&self, before: &Reading, after: &Reading) -> Vec<Counter> {
        let mut counters = Vec::new();
        for (place @ (index, row, column), end) in after {
            let (Some(begin), Some(view)) = (before.get(place), self.views.get(*index).copied().flatten())
            else {
                continue;
            };
            let (Some(column), change) = (view.columns.get(*column), end - begin) else { continue };
            if view.row.is_none() || change != 0.0 {
                counters.push(counter(view, row, column, change));
            }
        }
        counters
    }
}

fn counter(view: &View, row: &str, column: &Column, change: f64) -> Counter {
    let (name, meaning) = if view.row.is_some() {
        (format!("{}.{row}.{}", view.name, column.name), format!("{} ({row})", column.meaning))
    } else {
        (format!("{}.{}", view.name, column.name), column.meaning.to_owned())
    };
    Counter { name, meaning, change }
}

fn take(reading: &mut Reading, index: usize, view: &View, rows: &Rows) {
    for row in &rows.rows {
        let mut cells = row.iter();
        let name = if view.row.is_some() { cells.next().cloned().flatten() } else { None };
        for (column, value) in cells.enumerate() {
            let value =
                value.as_ref().and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
            if let Some(value) = value {
                reading.insert((index, name.clone().unwrap_or_default(), column), value);
            }
        }
    }
}
