//! Reporting: short sales, and a long report that reads everything.

use crate::workload::{Assertion, Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Short transactions that write, and a long one that reads.
pub static REPORTING: Workload = Workload {
    name: "reporting",
    summary: "Sales add an item's price to its revenue and its department's, prices change, and a \
              report reads all prices, departments and items in several statements",
    source: "short transactions during long queries on the same tables, as in CH-benCHmark (Cole et \
             al., The mixed workload CH-benCHmark, DBTest 2011); the read-only anomaly: Fekete, \
             O'Neil and O'Neil, A Read-Only Transaction Anomaly Under Snapshot Isolation, SIGMOD \
             Record 33(3), 2004; safe snapshots and DEFERRABLE: Ports and Grittner, Serializable \
             Snapshot Isolation in PostgreSQL, PVLDB 5(12), 2012, §4",
    tables: &["departments", "prices", "items"],
    setup: include_str!("reporting/tables.sql"),
    load: None,
    scripts: &[
        ScriptFile {
            name: "sale",
            text: include_str!("reporting/sale.sql"),
            weight: Weight::Parameter("sales"),
        },
        ScriptFile {
            name: "repricing",
            text: include_str!("reporting/repricing.sql"),
            weight: Weight::Parameter("repricings"),
        },
        ScriptFile {
            name: "report",
            text: include_str!("reporting/report.sql"),
            weight: Weight::Parameter("reports"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int("departments", 100, (1, 100_000), "departments"),
        Parameter::int("items", 500, (1, 1_000_000), "items of all departments"),
        Parameter::int("parts", 4, (1, 32), "statements in which a report reads the items"),
        Parameter::int("pause", 0, (0, 60_000), "milliseconds for which a report pauses before each of them"),
        Parameter::int("sales", 75, (0, 1_000_000), "weight of sales"),
        Parameter::int("repricings", 20, (0, 1_000_000), "weight of price changes"),
        Parameter::int("reports", 5, (0, 1_000_000), "weight of reports"),
    ],
    at_most: &[("departments", "items"), ("parts", "items")],
    variants: &[
        Variant {
            name: "read-only",
            summary: "Reports begin with READ ONLY: at serializable PostgreSQL then stops tracking \
                      their reads as soon as their snapshot is safe",
            ..Variant::LINES
        },
        Variant {
            name: "deferrable",
            summary: "Reports begin with READ ONLY DEFERRABLE: at serializable PostgreSQL lets them \
                      wait for a safe snapshot, and then neither tracks nor aborts them",
            ..Variant::LINES
        },
    ],
    invariants: &[Invariant {
        name: "totals-agree",
        meaning: "a department's revenue is the sum of its items'; the amount missing or in excess is counted",
        unit: "units of money",
        sql: "SELECT CAST(sum(abs(departments.revenue - earned)) AS bigint), \
              'department ' || CAST(min(CASE WHEN departments.revenue <> earned THEN departments.id END) AS \
              varchar(20)) FROM departments JOIN (SELECT department, sum(revenue) AS earned FROM items GROUP BY \
              department) AS sums ON sums.department = departments.id",
    }],
    assertions: &[Assertion {
        name: "agreement",
        meaning: "the revenues of all departments and of all items, as a report has read them, have the same sum",
    }],
    proves: "At read committed: read skew, also as reports whose sums don't agree. At repeatable read: \
             the read-only anomaly, a report that saw a new price, but not a sale at the old one. The \
             figures by script show what reports cost the others.",
    blind: "Lost updates; without reports, any anomaly. Reports leave no trace in the tables. On one \
            server the waiting of deferrable reports is part of their latency.",
};
