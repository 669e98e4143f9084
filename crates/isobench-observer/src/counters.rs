//! Reads the counters of all readable views, subtracts two readings, and adds up differences.

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::arm::Arm;
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

/// View, row and column of a value.
type Place = (usize, String, usize);

/// A reading: values by view, row and column.
pub type CounterReading = BTreeMap<Place, f64>;

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

    /// The queries of all views, as parts of one, with their indexes.
    pub fn queries(&self) -> impl Iterator<Item = (String, Arm)> {
        self.views().map(|(index, view)| (index.to_string(), view.arm()))
    }

    /// The views that can be read, with their indexes.
    fn views(&self) -> impl Iterator<Item = (usize, &'static CounterView)> {
        self.views.iter().enumerate().filter_map(|(index, view)| Some((index, (*view)?)))
    }

    /// Adds a row of the answer to [`queries`](Self::queries) to a reading: that of the view with
    /// this index.
    pub fn take(
        &self,
        reading: &mut CounterReading,
        index: usize,
        name: Option<&str>,
        values: &[Option<String>],
    ) {
        if let Some(view) = self.views.get(index).copied().flatten() {
            let values = values.iter().take(view.columns.len());
            take_row(reading, index, name.unwrap_or_default(), values);
        }
    }

    /// The transactions committed in the database as a reading has them, if it does.
    pub fn commits(&self, reading: &CounterReading) -> Option<f64> {
        let place = |view: &CounterView| view.columns.iter().position(|column| column.name == "xact_commit");
        let (index, column) = self.views().find_map(|(index, view)| Some((index, place(view)?)))?;
        reading.get(&(index, String::new(), column)).copied()
    }

    /// The increase of each counter, by name. Of views with several rows, only counters that
    /// changed.
    pub fn named(&self, sums: &CounterSums) -> Vec<Counter> {
        let mut counters = Vec::new();
        for ((index, row, column), change) in sums.0.iter().flatten() {
            let Some(view) = self.views.get(*index).copied().flatten() else { continue };
            let Some(column) = view.columns.get(*column) else { continue };
            if view.row.is_none() || *change != 0.0 {
                counters.push(counter(view, row, column, *change));
            }
        }
        counters
    }
}

/// Increases of counters, added up. A counter that is unknown in one of the pairs of readings is
/// unknown.
#[derive(Debug, Default)]
pub struct CounterSums(Option<CounterReading>);

impl CounterSums {
    /// Adds the increases between two readings.
    pub fn add(&mut self, before: &CounterReading, after: &CounterReading) {
        let change = |place: &Place| Some(after.get(place)? - before.get(place)?);
        match &mut self.0 {
            None => {
                let changes = after.keys().filter_map(|place| Some((place.clone(), change(place)?)));
                self.0 = Some(changes.collect());
            }
            Some(sums) => sums.retain(|place, sum| {
                let change = change(place);
                *sum += change.unwrap_or_default();
                change.is_some()
            }),
        }
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
        let name = if view.row.is_some() { cells.next().and_then(Option::as_deref) } else { None };
        take_row(reading, index, name.unwrap_or_default(), cells);
    }
}

fn take_row<'a>(
    reading: &mut CounterReading,
    index: usize,
    name: &str,
    values: impl Iterator<Item = &'a Option<String>>,
) {
    for (column, value) in values.enumerate() {
        let value =
            value.as_ref().and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
        if let Some(value) = value {
            reading.insert((index, name.to_owned(), column), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(values: &[(usize, f64)]) -> CounterReading {
        values.iter().map(|(column, value)| ((0, String::new(), *column), *value)).collect()
    }

    fn changes(sums: &CounterSums) -> Vec<(usize, f64)> {
        sums.0.iter().flatten().map(|((_, _, column), change)| (*column, *change)).collect()
    }

    #[test]
    fn increases_are_added_without_those_in_between() {
        let mut sums = CounterSums::default();
        assert_eq!(changes(&sums), []);
        sums.add(&reading(&[(0, 10.0), (1, 5.0)]), &reading(&[(0, 13.0), (1, 5.0)]));
        // Between the two, others have counted.
        sums.add(&reading(&[(0, 100.0), (1, 50.0)]), &reading(&[(0, 104.0), (1, 49.0)]));
        assert_eq!(changes(&sums), [(0, 7.0), (1, -1.0)]);
    }

    #[test]
    fn a_counter_that_was_missed_once_is_unknown() {
        let mut sums = CounterSums::default();
        sums.add(&reading(&[(0, 1.0), (1, 1.0)]), &reading(&[(0, 2.0), (1, 2.0)]));
        sums.add(&reading(&[(0, 2.0), (1, 2.0)]), &reading(&[(0, 3.0)]));
        sums.add(&reading(&[(0, 3.0), (1, 3.0)]), &reading(&[(0, 4.0), (1, 4.0)]));
        assert_eq!(changes(&sums), [(0, 3.0)]);
        sums.add(&CounterReading::new(), &CounterReading::new());
        assert_eq!(changes(&sums), []);
    }

    #[test]
    fn rows_of_several_views_in_one_answer_are_told_apart() {
        let counters = Counters::new(&crate::views::POSTGRESQL_VIEWS, |view| {
            ["pg_stat_database", "pg_stat_slru"].contains(&view.name) && view.versions.contains(&18)
        });
        let row = |texts: &[&str]| texts.iter().map(|text| Some((*text).to_owned())).collect::<Vec<_>>();
        let mut reading = CounterReading::new();
        counters.take(&mut reading, 0, None, &row(&["7", "1"]));
        // Columns that a view doesn't have are filled up.
        counters.take(&mut reading, 2, Some("serializable"), &row(&["1", "2", "3", "4", "5"]));
        counters.take(&mut reading, 9, Some("unknown"), &row(&["1"]));
        assert_eq!(counters.commits(&reading), Some(7.0));
        assert_eq!(reading.len(), 6);
        let mut sums = CounterSums::default();
        sums.add(&reading.keys().map(|place| (place.clone(), 0.0)).collect(), &reading);
        let named: Vec<_> =
            counters.named(&sums).into_iter().map(|counter| (counter.name, counter.change)).collect();
        assert!(named.contains(&("pg_stat_database.xact_rollback".to_owned(), 1.0)), "{named:?}");
        assert!(named.contains(&("pg_stat_slru.serializable.blks_written".to_owned(), 4.0)), "{named:?}");
    }
}
