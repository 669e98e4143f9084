//! Scan: a query that reads many rows, to measure the cost of tracking reads.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// The number of rows in the largest table.
const MOST_ROWS: i64 = 1_000_000_000;
/// The number of rows in the smallest table read by index. With fewer rows, a sequential scan and a
/// sort cost less.
const LEAST_ROWS: i64 = 1000;

/// A read-only scan.
pub static SCAN: Workload = Workload {
    name: "scan",
    summary: "A query reads a number of rows, by index or sequentially; nothing is written",
    source: "Heikki Linnakangas on the cost of predicate locks, 2011: SELECT COUNT(*) FROM foo \
             WHERE id < 400000 by index, one session, repeatable read against serializable \
             (plans/e5-heikki.toml)",
    tables: &["scanned"],
    setup: include_str!("scan/tables.sql"),
    load: None,
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
    rate_of: None,
    parameters: &[
        Parameter::int("rows", 1000, (1, MOST_ROWS), "rows that a query reads"),
        Parameter::int(
            "table_rows",
            100_000,
            (LEAST_ROWS, MOST_ROWS),
            "rows of the table that is read by index; a table read sequentially has only the rows \
             that are read",
        ),
        Parameter::int("index", 1, (0, 1), "1: by index, fetching each row; 0: sequentially"),
    ],
    at_most: &[("rows", "table_rows")],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "Made for measuring throughput. Serializable costs only the tracking of reads, without \
             conflicts. The server's statistics show the predicate locks: on rows, up to a few per page, \
             then on pages, then on the relation. Queries aren't declared READ ONLY, which would let \
             PostgreSQL do without these locks.",
    blind: "Everything: nothing is observed, so there is no verdict. Any history of queries alone is \
            serializable.",
};
