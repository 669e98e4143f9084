//! Write skew on a predicate: the table `mytab(class, value)`.

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Pairs of classes: count the one, insert into the other.
pub static MYTAB: Workload = Workload {
    name: "mytab",
    summary: "Counts the rows of one class, and inserts a row with that number into the other class of the pair",
    source: "PostgreSQL: Transaction Isolation, Serializable Isolation Level (mytab; there it is the sum, here the number, \
             because then an invariant exists)",
    tables: &["mytab"],
    setup: include_str!("mytab/tables.sql"),
    scripts: &[ScriptFile {
        name: "insert",
        text: include_str!("mytab/insert.sql"),
        weight: Weight::Fixed(1),
    }],
    parameters: &[
        Parameter::int("pairs", 32, (1, 10_000), "pairs of classes in use at a time"),
        Parameter::int("uses", 8, (1, 1000), "transactions that use a pair, on average"),
    ],
    at_most: &[],
    variants: &[Variant {
        name: "materialized-conflict",
        summary: "Each transaction first writes the pair's row in a table made for that. (There is no variant for-update: \
                  rows that aren't there yet can't be locked.)",
        tables: &["mytab_pairs"],
        ..Variant::LINES
    }],
    invariants: &[Invariant {
        name: "each-pair-in-order",
        meaning: "of two transactions that use a pair from both sides, exactly one counted the other's row; those are \
                  counted of which none did, or both",
        sql: "SELECT CAST(coalesce(sum(abs(missed)), 0) AS bigint), \
              'class ' || CAST(min(CASE WHEN missed <> 0 THEN class END) AS varchar(20)) \
              FROM (SELECT class - mod(class, 2) AS class, sum(mod(class, 2)) * sum(1 - mod(class, 2)) - sum(val) AS missed \
              FROM mytab WHERE id > 0 GROUP BY class - mod(class, 2)) AS pairs",
    }],
    assertions: &[],
    proves: "Each predicate read is observed with all its rows, each row with its class: write skew on a predicate (G2), at every \
             level below serializable. The tables show it, too: run one after the other, the values of a pair add up to the \
             product of its classes' row counts, because each two rows of different classes are counted once.",
    blind: "Rows are never updated, and a transaction reads once: nothing is lost, no row is read in two versions, and nothing tells \
            read committed from snapshot isolation.",
};
