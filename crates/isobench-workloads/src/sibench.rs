//! sibench: queries that read the whole table, against updates of single rows.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// Cahill's benchmark for the cost of tracking reads.
pub static SIBENCH: Workload = Workload {
    name: "sibench",
    summary: "Queries find the row with the lowest value, updates increment a row",
    source: "Cahill, Röhm and Fekete, Serializable Isolation for Snapshot Databases, ACM TODS \
             34(4), 2009: as many queries as updates (mixed), or ten queries per update \
             (query-mostly: queries=10,updates=1); 10, 100 or 1000 items",
    tables: &["sibench"],
    setup: include_str!("sibench/tables.sql"),
    load: None,
    scripts: &[
        ScriptFile {
            name: "query",
            text: include_str!("sibench/query.sql"),
            weight: Weight::Parameter("queries"),
        },
        ScriptFile {
            name: "update",
            text: include_str!("sibench/update.sql"),
            weight: Weight::Parameter("updates"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int("items", 100, (1, 10_000_000), "rows"),
        Parameter::int("queries", 1, (0, 1_000_000), "weight of queries"),
        Parameter::int("updates", 1, (0, 1_000_000), "weight of updates"),
    ],
    at_most: &[],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "Made for measuring throughput. All schedules under snapshot isolation are serializable, so \
             serializable costs only the tracking of reads. The history shows lost or duplicate updates, \
             and queries that went back in time.",
    blind: "Rows that a query examined and didn't return; anomalies at read committed. With 10 items the \
            table is one page, so at serializable updates of different items conflict.",
};
