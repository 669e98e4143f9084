//! Write skew on rows: doctors on call.

use crate::workload::{Assertion, Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Doctors who go off call only if another doctor stays.
pub static WRITE_SKEW: Workload = Workload {
    name: "write-skew",
    summary: "A doctor of a shift goes off call if another one is on call, and comes back the next time",
    source: "the doctors on call of Cahill, Röhm and Fekete, Serializable Isolation for Snapshot \
             Databases, SIGMOD 2008; \
             the remedies: Fekete et al., Making Snapshot Isolation Serializable, ACM TODS 30(2), 2005",
    tables: &["doctors"],
    setup: include_str!("write_skew/tables.sql"),
    load: None,
    scripts: &[ScriptFile {
        name: "toggle",
        text: include_str!("write_skew/toggle.sql"),
        weight: Weight::Fixed(1),
    }],
    rate_of: None,
    parameters: &[
        Parameter::int("shifts", 50, (1, 1_000_000), "shifts"),
        Parameter::int("doctors", 2, (2, 100), "doctors of each shift"),
    ],
    at_most: &[],
    variants: &[
        Variant {
            name: "for-update",
            summary: "The shift is read with SELECT … FOR UPDATE, so that its transactions wait \
                      for each other at any level",
            ..Variant::LINES
        },
        Variant {
            name: "materialized-conflict",
            summary: "Each transaction first updates the shift's row in an additional table, so \
                      that two transactions of a shift conflict at any level",
            tables: &["shifts"],
            ..Variant::LINES
        },
    ],
    invariants: &[Invariant {
        name: "shifts-covered",
        meaning: "every shift has a doctor on call; counts the shifts without one that \
                  transactions found or that exist now",
        unit: "shifts",
        sql: "SELECT CAST(coalesce(sum(found), 0) AS bigint), 'shift ' || CAST(min(CASE WHEN found \
              > 0 THEN shift END) AS varchar(20)) FROM (SELECT shift, sum(alarms) + CASE WHEN \
              sum(on_call) = 0 THEN 1 ELSE 0 END AS found FROM doctors GROUP BY shift) AS \
              each_shift",
    }],
    assertions: &[Assertion {
        name: "shift-covered",
        meaning: "the shift that was read has a doctor on call",
    }],
    proves: "Write skew (G2-item): a cycle of two transactions in the history, a shift without a doctor \
             in the tables.",
    blind: "Phantoms and dirty writes. One statement reads a shift, so read skew and long forks are rare \
            at read committed.",
};
