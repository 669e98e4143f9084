//! sibench: queries that read everything, against updates of single rows.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// Cahill's benchmark of the cost of tracking reads.
pub static SIBENCH: Workload = Workload {
    name: "sibench",
    summary: "Queries look for the row with the least value of all, updates add one to a row",
    source: "Cahill, Röhm and Fekete, Serializable Isolation for Snapshot Databases, ACM TODS 34(4), 2009: as many queries as \
             updates (mixed), or ten queries to an update (query-mostly: queries=10,updates=1); 10, 100 or 1000 items",
    tables: &["sibench"],
    setup: include_str!("sibench/tables.sql"),
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
    parameters: &[
        Parameter::int("items", 100, (1, 10_000_000), "rows"),
        Parameter::int("queries", 1, (0, 1_000_000), "weight of queries"),
        Parameter::int("updates", 1, (0, 1_000_000), "weight of updates"),
    ],
    at_most: &[],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "It is there for its speed: all its schedules under snapshot isolation are serializable, so what serializable costs here \
             is the price of tracking reads. The history would show a lost or doubled update, and a query that went back in time.",
    blind: "Of a query only the row that it returns is observed, not those that it looked at: returning all would be another \
            benchmark. There are no multi-statement transactions, so read committed shows nothing either. With 10 \
            items the table is one page, which PostgreSQL's updates read sequentially, too: at serializable two updates of different \
            items are in conflict by their predicate locks, which the application isn't to blame for.",
};
