//! Scan: one query that reads many rows, for what it costs to remember them.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// Rows of the largest table.
const MOST_ROWS: i64 = 1_000_000_000;
/// Rows of the smallest table that is read by index. With few rows, sorting what was read
/// sequentially costs less.
const LEAST_ROWS: i64 = 1000;

/// A read-only scan.
pub static SCAN: Workload = Workload {
    name: "scan",
    summary: "One query reads so many rows, by index or sequentially; nothing is written",
    source: "Heikki Linnakangas on the cost of predicate locks, 2011: SELECT COUNT(*) FROM foo WHERE id < 400000 by index, one session, \
             repeatable read against serializable (plans/e5-heikki.toml)",
    tables: &["scanned"],
    setup: include_str!("scan/tables.sql"),
    scripts: &[
        ScriptFile {
            name: "by-index",
            text: include_str!("scan/by_index.sql"),
            weight: Weight::Parameter("index"),
        },
        ScriptFile {
            name: "sequential",
            text: include_str!("scan/sequential.sql"),
            weight: Weight::Unless("index"),
        },
    ],
    parameters: &[
        Parameter::int("rows", 1000, (1, MOST_ROWS), "rows that a query reads"),
        Parameter::int(
            "table_rows",
            100_000,
            (LEAST_ROWS, MOST_ROWS),
            "rows of the table that is read by index; one that is read sequentially has no more rows than are read",
        ),
        Parameter::int("index", 1, (0, 1), "1: by index, fetching each row; 0: sequentially"),
    ],
    at_most: &[("rows", "table_rows")],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "It is there for its speed: what serializable costs here over repeatable read is the price of remembering what was read, \
             without any conflict. The server's side shows the predicate locks: single rows up to a few of a page, then pages, then \
             the relation. A query is one statement and a transaction by itself, which isn't declared READ ONLY: that would let \
             PostgreSQL do without predicate locks.",
    blind: "Nothing is observed, so there is no verdict: of queries alone every history is serializable.",
};
