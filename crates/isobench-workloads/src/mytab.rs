//! Write skew on a predicate: the table `mytab(class, value)`.

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Pairs of classes: count the rows of one, insert into the other.
pub static MYTAB: Workload = Workload {
    name: "mytab",
    summary: "Counts the rows of one class, and inserts a row with that number into the other class of the pair",
    source: "PostgreSQL: Transaction Isolation, Serializable Isolation Level (mytab; the number of \
             rows replaces their sum, because it gives an invariant)",
    tables: &["mytab"],
    setup: include_str!("mytab/tables.sql"),
    load: None,
    scripts: &[ScriptFile {
        name: "insert",
        text: include_str!("mytab/insert.sql"),
        weight: Weight::Fixed(1),
    }],
    rate_of: None,
    parameters: &[
        Parameter::int("pairs", 32, (1, 10_000), "pairs of classes in use at a time"),
        Parameter::int("uses", 8, (1, 1000), "transactions that use a pair, on average"),
    ],
    at_most: &[],
    variants: &[Variant {
        name: "materialized-conflict",
        summary: "Each transaction first updates the pair's row in an additional table. (There is \
                  no variant for-update, because rows that don't exist yet can't be locked.)",
        tables: &["mytab_pairs"],
        ..Variant::LINES
    }],
    invariants: &[Invariant {
        name: "each-pair-in-order",
        meaning: "of two transactions that use a pair from opposite sides, exactly one counted the \
                  other's row; counts the cases in which neither or both did",
        unit: "pairs",
        sql: "SELECT CAST(coalesce(sum(abs(missed)), 0) AS bigint), \
              'class ' || CAST(min(CASE WHEN missed <> 0 THEN class END) AS varchar(20)) FROM \
              (SELECT class - mod(class, 2) AS class, sum(mod(class, 2)) * sum(1 - mod(class, 2)) - \
              sum(val) AS missed FROM mytab WHERE id > 0 GROUP BY class - mod(class, 2)) AS pairs",
    }],
    assertions: &[],
    proves: "Each predicate read has all its rows, each row its class: write skew on a predicate (G2) \
             below serializable. The tables show it too: in a serial execution the values of a pair add \
             up to the product of its classes' row counts.",
    blind: "Lost updates and read skew: rows are never updated, and a transaction reads once. Read \
            committed looks like snapshot isolation.",
};
