//! Receipts: the report of a closed batch must never change.

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Batch processing, with an anomaly caused by a read-only transaction.
pub static RECEIPTS: Workload = Workload {
    name: "receipts",
    summary: "NEW-RECEIPT adds a receipt to the till's current batch, CLOSE-BATCH starts the next \
              batch, REPORT reads the batch that was closed last",
    source: "Ports and Grittner, Serializable Snapshot Isolation in PostgreSQL, PVLDB 5(12), 2012, §2.1.2",
    tables: &["control", "receipts"],
    setup: include_str!("receipts/tables.sql"),
    load: None,
    scripts: &[
        ScriptFile {
            name: "new-receipt",
            text: include_str!("receipts/new_receipt.sql"),
            weight: Weight::Parameter("receipts"),
        },
        ScriptFile {
            name: "close-batch",
            text: include_str!("receipts/close_batch.sql"),
            weight: Weight::Parameter("closings"),
        },
        ScriptFile {
            name: "report",
            text: include_str!("receipts/report.sql"),
            weight: Weight::Parameter("reports"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int(
            "tills",
            10,
            (1, 100_000),
            "tills, each with a batch number of its own (the paper has one)",
        ),
        Parameter::int("receipts", 70, (0, 1_000_000), "weight of NEW-RECEIPT"),
        Parameter::int("closings", 10, (0, 1_000_000), "weight of CLOSE-BATCH"),
        Parameter::int("reports", 20, (0, 1_000_000), "weight of REPORT"),
    ],
    at_most: &[],
    variants: &[Variant {
        name: "filed",
        summary: "REPORT also stores the number of receipts that it saw, so that the tables show \
                  whether a report has changed since; it is then no longer read-only",
        tables: &["reports"],
        invariants: &[Invariant {
            name: "reports-final",
            meaning: "a batch has as many receipts as each of its reports counted; counts the \
                      reports that are now wrong",
            unit: "reports",
            sql: "SELECT count(*), 'batch ' || CAST(min(reports.batch) AS varchar(20)) FROM reports \
                  JOIN (SELECT batch, count(*) AS total FROM receipts GROUP BY batch) AS batches ON \
                  batches.batch = reports.batch WHERE total <> seen",
        }],
        ..Variant::LINES
    }],
    invariants: &[],
    assertions: &[],
    proves: "A receipt added to a batch after its report: a cycle of a new receipt, a closing and a \
             report (G2, through the report's predicate read). Snapshot isolation permits it, although \
             the report writes nothing.",
    blind: "Lost updates: only batch numbers are updated, so read committed hardly differs from snapshot \
            isolation. Without +filed the tables keep no trace.",
};
