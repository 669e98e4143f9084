//! Reads the counters of all readable views, and subtracts two readings.

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::session::{ObserverSession, Refusal};
use crate::views::{CounterColumn, CounterView};

/// A counter of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counter {
    /// View and column, separated by the row if a view has several: "`pg_stat_wal.wal_bytes`",
    /// "`pg_stat_slru.serializable.blks_hit`".
    pub name: String,
    /// Its meaning, with its unit.
    pub meaning: String,
    /// Its increase.
    pub change: f64,
}

/// A reading: values by view, row and column.
pub type CounterReading = BTreeMap<(usize, String, usize), f64>;

/// A view that couldn't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The view.
    pub what: &'static str,
    /// The server's reason.
    pub why: String,
    /// It won't be tried again.
    pub for_good: bool,
}

/// The views that this server has and the role may read.
#[derive(Debug, Default)]
pub struct Counters {
    /// Readings refer to the indexes of this list; `None` replaces a view that can't be read.
    views: Vec<Option<&'static CounterView>>,
}

impl Counters {
    /// The views of a list that `choose` accepts.
    pub fn new(views: &'static [CounterView], choose: impl Fn(&CounterView) -> bool) -> Self {
        Counters { views: views.iter().filter(|view| choose(view)).map(Some).collect() }
    }

    /// Reads all views. Reports one that can't be read to `note`; if that is permanent, doesn't
    /// read it again.
    pub fn read(
        &mut self,
        session: &mut ObserverSession,
        note: &mut dyn FnMut(Unreadable),
    ) -> CounterReading {
        let mut reading = CounterReading::new();
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

    /// The increase of each counter between two readings that both have it. Of views with several
    /// rows, only counters that changed.
    pub fn difference(&self, before: &CounterReading, after: &CounterReading) -> Vec<Counter> {
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

fn counter(view: &CounterView, row: &str, column: &CounterColumn, change: f64) -> Counter {
    let (name, meaning) = if view.row.is_some() {
        (format!("{}.{row}.{}", view.name, column.name), format!("{} ({row})", column.meaning))
    } else {
        (format!("{}.{}", view.name, column.name), column.meaning.to_owned())
    };
    Counter { name, meaning, change }
}

fn take(reading: &mut CounterReading, index: usize, view: &CounterView, rows: &Rows) {
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
