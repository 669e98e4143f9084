//! Registers: transactions read some and write some of those.

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Read-write registers with version counters.
pub static REGISTERS: Workload = Workload {
    name: "registers",
    summary: "Reads some registers and increments some of those, computing the new values in the client",
    source: "the rw-register histories of Elle (Kingsbury and Alvaro, Elle: Inferring Isolation \
             Anomalies from Experimental Observations, PVLDB 14(3), 2020), with a version counter \
             in each row so that the order of versions is observed",
    tables: &["registers"],
    setup: include_str!("registers/tables.sql"),
    load: None,
    scripts: &[ScriptFile {
        name: "registers",
        text: include_str!("registers/registers.sql"),
        weight: Weight::Fixed(1),
    }],
    rate_of: None,
    parameters: &[
        Parameter::int("keys", 100, (1, 10_000_000), "registers"),
        Parameter::int(
            "operations",
            4,
            (1, 8),
            "registers that a transaction reads, each from its own share of the keys",
        ),
        Parameter::int("writes", 50, (0, 100), "percent of the registers read that are also written"),
        Parameter::int(
            "hot",
            0,
            (0, 100),
            "percent of the registers that form a hot spot, which receives 90 % of the operations; 0: none",
        ),
        Parameter::real(
            "zipfian",
            0.0,
            (0.0, 1000.0),
            "above 1: registers are chosen by a Zipfian distribution with this parameter",
        ),
    ],
    at_most: &[("operations", "keys")],
    variants: &[Variant {
        name: "for-update",
        summary: "Registers are read with SELECT … FOR UPDATE, so that no update is lost at read \
                  committed either",
        ..Variant::LINES
    }],
    invariants: &[Invariant {
        name: "increments-counted",
        meaning: "a register's value is the number of its updates; each lost increment is counted",
        unit: "increments",
        sql: "SELECT CAST(coalesce(sum(abs(version - val)), 0) AS bigint), \
              'register ' || CAST(min(CASE WHEN version <> val THEN id END) AS varchar(20)) FROM registers",
    }],
    assertions: &[],
    proves: "Lost updates and read skew at read committed, write skew at repeatable read, and any cycle \
             at serializable.",
    blind: "Phantoms (no predicate reads) and deadlocks (registers are taken in ascending order).",
};
