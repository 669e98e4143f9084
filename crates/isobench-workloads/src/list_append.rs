//! Lists to which elements are appended.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// Elle's list-append.
pub static LIST_APPEND: Workload = Workload {
    name: "list-append",
    summary: "Appends to some lists and reads others whole; after a while come other lists",
    source: "Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from Experimental Observations, PVLDB 14(3), 2020",
    tables: &["lists"],
    setup: include_str!("list_append/tables.sql"),
    scripts: &[ScriptFile {
        name: "append",
        text: include_str!("list_append/append.sql"),
        weight: Weight::Fixed(1),
    }],
    parameters: &[
        Parameter::int("lists", 100, (1, 10_000), "lists in use at a time"),
        Parameter::int(
            "operations",
            4,
            (1, 8),
            "operations of a transaction, each with a list of a part of its own of the lists in use",
        ),
        Parameter::int("appends", 50, (1, 100), "percent of the operations that append; the others read"),
        Parameter::int("elements", 8, (1, 1000), "elements that a list gets, on average"),
    ],
    at_most: &[("operations", "lists")],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "A list tells the order of its versions by itself, without counters that the database would have to count: whatever \
             was read proves what came before. All cycles, and what was lost, written twice, or read though aborted.",
    blind: "Appends are made in SQL, so that no element is lost at read committed as an application's read and write would lose it. \
            The last elements of a list that nobody read any more have no known order. The tables have no invariant.",
};
