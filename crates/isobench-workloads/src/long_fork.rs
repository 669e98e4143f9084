//! Long fork: readers that disagree on the order of two writes.

use crate::workload::{Parameter, ScriptFile, Weight, Workload};

/// Writers of single rows, and readers of small groups of them.
pub static LONG_FORK: Workload = Workload {
    name: "long-fork",
    summary: "Writers write one row each, readers read all rows of a small group one after the \
              other, in either direction",
    source: "the long fork test of Jepsen (jepsen.tests.long-fork); the anomaly: Sovran et al., \
             Transactional Storage for Geo-Replicated Systems, SOSP 2011. Here rows are written \
             repeatedly, because their counters show the order",
    tables: &["forks"],
    setup: include_str!("long_fork/tables.sql"),
    load: None,
    scripts: &[
        ScriptFile {
            name: "write",
            text: include_str!("long_fork/write.sql"),
            weight: Weight::Parameter("writes"),
        },
        ScriptFile {
            name: "read",
            text: include_str!("long_fork/read.sql"),
            weight: Weight::Parameter("reads"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int("groups", 16, (1, 1_000_000), "groups"),
        Parameter::int("rows", 8, (2, 8), "rows of each group"),
        Parameter::int("writes", 50, (0, 1_000_000), "weight of writers"),
        Parameter::int("reads", 50, (0, 1_000_000), "weight of readers"),
    ],
    at_most: &[],
    variants: &[],
    invariants: &[],
    assertions: &[],
    proves: "Two readers that saw two writes in different orders (G-nonadjacent). Snapshot isolation \
             forbids this; parallel snapshot isolation (replicas, some clusters) and read committed \
             don't. With the order of sessions, read skew too.",
    blind: "Lost updates and write skew: no transaction reads and writes. The tables keep no trace of a \
            fork.",
};
