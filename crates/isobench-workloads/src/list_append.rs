//! Lists to which elements are appended.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// Elle's list-append.
pub static LIST_APPEND: Workload = Workload {
    name: "list-append",
    summary: "Appends to some lists and reads others as a whole; lists are replaced by new ones \
              after a while",
    source: "Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from Experimental \
             Observations, PVLDB 14(3), 2020",
    tables: &["lists"],
    setup: include_str!("list_append/tables.sql"),
    load: None,
    scripts: &[ScriptFile {
        name: "append",
        text: include_str!("list_append/append.sql"),
        weight: Weight::Fixed(1),
    }],
    rate_of: None,
    parameters: &[
        Parameter::int("lists", 100, (1, 10_000), "lists in use at a time"),
        Parameter::int(
            "operations",
            4,
            (1, 8),
            "operations per transaction, each on a list from its own share of the lists in use",
        ),
        Parameter::int("appends", 50, (1, 100), "percent of the operations that append; the others read"),
        Parameter::int("elements", 8, (1, 1000), "elements per list, on average"),
    ],
    at_most: &[("operations", "lists")],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "A list's value shows the order of its versions, so no version counters are needed. All \
             cycles, lost and duplicate elements, and aborted reads.",
    blind: "Lost appends at read committed, since SQL appends them. The order of a list's last elements, \
            if no transaction read them. The tables have no invariant.",
};
