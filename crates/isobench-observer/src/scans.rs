//! The use of each table: how often it was scanned, with and without an index, and what was written
//! to it.
//!
//! Not here: the sums over all tables, which are counters (`views`).

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::arm::Arm;
use crate::observed::TableUse;
use crate::session::{ObserverSession, Refusal};

/// The number of counters of a table.
const COUNTERS: usize = 6;

/// The counters of a table.
const COLUMNS: [&str; COUNTERS] = [
    "sum(seq_scan)",
    "sum(seq_tup_read)",
    "sum(idx_scan)",
    "sum(n_tup_ins)",
    "sum(n_tup_upd)",
    "sum(n_tup_hot_upd)",
];

/// Tables of the same name in several schemas are one, as in the names of locks.
const NAME: &str = "relname";
const FROM: &str = "from pg_catalog.pg_stat_user_tables";

/// More tables than this aren't kept, so that a database with thousands of them doesn't fill the
/// result.
const MOST: usize = 20;

/// A reading: the counters by table, in the query's order.
pub type ScanReading = BTreeMap<String, [u64; COUNTERS]>;

/// Reads the counters of all tables of the database that aren't the server's own.
///
/// # Errors
/// [`Refusal`].
pub fn read(session: &mut ObserverSession) -> Result<ScanReading, Refusal> {
    let query = format!("select {NAME}, {} {FROM} group by 1", COLUMNS.join(", "));
    session.query(&query).map(|rows| take(&rows))
}

/// The same as a part of a query of several views.
pub fn arm() -> Arm {
    Arm {
        name: Some(NAME.to_owned()),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        from: FROM.to_owned(),
        sums: true,
    }
}

fn take(rows: &Rows) -> ScanReading {
    let entry = |row: &Vec<Option<String>>| {
        let (name, values) = row.split_first()?;
        Some((name.clone()?, numbers(values)))
    };
    rows.rows.iter().filter_map(entry).collect()
}

/// The counters of a table from the columns of its row.
pub fn numbers(values: &[Option<String>]) -> [u64; COUNTERS] {
    // Null where there is no index.
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok()).unwrap_or(0);
    std::array::from_fn(|place| values.get(place).map_or(0, number))
}

/// The use of tables between readings, added up.
#[derive(Debug, Default)]
pub struct ScanSums {
    sums: ScanReading,
    /// A reading is missing.
    unknown: bool,
}

impl ScanSums {
    /// Adds what was counted between two readings, of the tables that both have.
    pub fn add(&mut self, before: Option<&ScanReading>, after: Option<&ScanReading>) {
        let Some((before, after)) = before.zip(after) else {
            self.unknown = true;
            return;
        };
        for (name, end) in after {
            let Some(begin) = before.get(name) else { continue };
            if begin == end {
                continue;
            }
            let sums = self.sums.entry(name.clone()).or_default();
            for ((sum, begin), end) in sums.iter_mut().zip(begin).zip(end) {
                *sum += end.saturating_sub(*begin);
            }
        }
    }

    /// The tables that were used, the most scanned first; none if a reading is missing.
    pub fn into_uses(self) -> Vec<TableUse> {
        if self.unknown {
            return Vec::new();
        }
        let used = |(table, change): (String, [u64; COUNTERS])| {
            let [seq_scans, seq_rows, index_scans, inserted, updated, hot_updated] = change;
            change.iter().any(|change| *change > 0).then_some(TableUse {
                table,
                seq_scans,
                seq_rows,
                index_scans,
                inserted,
                updated,
                hot_updated,
            })
        };
        let mut tables: Vec<TableUse> = self.sums.into_iter().filter_map(used).collect();
        tables.sort_by_key(|table| std::cmp::Reverse(table.seq_scans.saturating_add(table.index_scans)));
        tables.truncate(MOST);
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: [&str; 7]) -> Vec<Option<String>> {
        texts.iter().map(|text| (*text != "NULL").then(|| (*text).to_owned())).collect()
    }

    #[test]
    fn what_was_used_between_two_readings_is_kept() {
        let rows = |rows: &[[&str; 7]]| {
            take(&Rows { columns: Vec::new(), rows: rows.iter().copied().map(row).collect() })
        };
        let before = rows(&[
            ["account", "10", "1000", "NULL", "100", "5", "5"],
            ["big", "1", "7", "2", "0", "0", "0"],
            ["unused", "3", "3", "3", "3", "3", "3"],
        ]);
        let after = rows(&[
            ["account", "14", "1400", "NULL", "100", "9", "8"],
            ["big", "1", "7", "12", "0", "0", "0"],
            ["new", "1", "1", "1", "1", "1", "1"],
            ["unused", "3", "3", "3", "3", "3", "3"],
        ]);
        let account = TableUse {
            table: "account".to_owned(),
            seq_scans: 4,
            seq_rows: 400,
            updated: 4,
            hot_updated: 3,
            ..TableUse::default()
        };
        let big = TableUse { table: "big".to_owned(), index_scans: 10, ..TableUse::default() };
        assert_eq!(uses(&[(&before, &after)]), [big.clone(), account.clone()]);
        let twice = uses(&[(&before, &after), (&before, &after)]);
        assert_eq!((twice[0].index_scans, twice[1].seq_rows), (20, 800));
        let mut sums = ScanSums::default();
        sums.add(Some(&before), Some(&after));
        sums.add(Some(&before), None);
        assert_eq!(sums.into_uses(), [], "half of the use is none");
    }

    fn uses(windows: &[(&ScanReading, &ScanReading)]) -> Vec<TableUse> {
        let mut sums = ScanSums::default();
        for (before, after) in windows {
            sums.add(Some(before), Some(after));
        }
        sums.into_uses()
    }

    #[test]
    fn a_result_isnt_filled_with_tables() {
        let reading = |count: u64| -> ScanReading {
            (0..100).map(|table: u64| (format!("t{table:03}"), [count * table, 0, 0, 0, 0, 0])).collect()
        };
        let found = uses(&[(&reading(0), &reading(1))]);
        assert_eq!(found.len(), MOST);
        assert_eq!((found[0].table.as_str(), found[0].seq_scans), ("t099", 99));
    }
}
