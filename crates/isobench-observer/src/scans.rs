//! The use of each table: how often it was scanned, with and without an index, and what was written
//! to it.
//!
//! Not here: the sums over all tables, which are counters (`views`).

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::observed::TableUse;
use crate::session::{ObserverSession, Refusal};

/// Tables of the same name in several schemas are one, as in the names of locks.
const QUERY: &str = "select relname, sum(seq_scan), sum(seq_tup_read), sum(idx_scan), sum(n_tup_ins), \
    sum(n_tup_upd), sum(n_tup_hot_upd) from pg_catalog.pg_stat_user_tables group by 1";

/// The number of counters of a table.
const COUNTERS: usize = 6;

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
    session.query(QUERY).map(|rows| take(&rows))
}

fn take(rows: &Rows) -> ScanReading {
    let number = |text: Option<&Option<String>>| {
        // Null where there is no index.
        text.and_then(Option::as_ref).and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let entry = |row: &Vec<Option<String>>| {
        let name = row.first()?.clone()?;
        Some((name, std::array::from_fn(|place| number(row.get(place + 1)))))
    };
    rows.rows.iter().filter_map(entry).collect()
}

/// The use of each table between two readings, the most scanned first. Tables that weren't used,
/// and those that only one reading has, are left out.
pub fn difference(before: &ScanReading, after: &ScanReading) -> Vec<TableUse> {
    let used = |(name, end): (&String, &[u64; COUNTERS])| {
        let begin = before.get(name)?;
        let change: [u64; COUNTERS] = std::array::from_fn(|place| end[place].saturating_sub(begin[place]));
        let [seq_scans, seq_rows, index_scans, inserted, updated, hot_updated] = change;
        change.iter().any(|change| *change > 0).then(|| TableUse {
            table: name.clone(),
            seq_scans,
            seq_rows,
            index_scans,
            inserted,
            updated,
            hot_updated,
        })
    };
    let mut tables: Vec<TableUse> = after.iter().filter_map(used).collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.seq_scans.saturating_add(table.index_scans)));
    tables.truncate(MOST);
    tables
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
        assert_eq!(difference(&before, &after), [big, account]);
    }

    #[test]
    fn a_result_isnt_filled_with_tables() {
        let reading = |count: u64| -> ScanReading {
            (0..100).map(|table: u64| (format!("t{table:03}"), [count * table, 0, 0, 0, 0, 0])).collect()
        };
        let found = difference(&reading(0), &reading(1));
        assert_eq!(found.len(), MOST);
        assert_eq!((found[0].table.as_str(), found[0].seq_scans), ("t099", 99));
    }
}
