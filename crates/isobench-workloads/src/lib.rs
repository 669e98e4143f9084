//! Checked workloads: tables, scripts, invariants, and what the history of each can prove.
//!
//! A workload is a file and a folder: `NAME.rs` describes it, `NAME/tables.sql` creates its tables,
//! and the other files are its scripts in the pgbench language, with lines `--@ …` that declare
//! what each statement reads and writes. Running the scripts, recording histories and checking them
//! are left to other crates.
//!
//! | file | holds |
//! |---|---|
//! | `workload` | the types that describe a workload |
//! | `chosen` | a workload with variant and parameters, from a text such as `registers:keys=50` |
//! | `unknown` | the errors in such a text |
//! | `describe` | descriptions for users |
//! | `strategy` | the strategies against conflicts, and the servers that support them |
//! | `pgbench` | pgbench's built-in scripts with each strategy |
//! | `pieces` | lines of files that belong to a variant or to some products |
//! | `tables` | creates the tables |
//! | `invariants` | checks the invariants in the database |
//! | the others | one workload each |
//!
//! ```
//! let chosen = isobench_workloads::find("registers:keys=50")?;
//! assert_eq!(chosen.name(), "registers:keys=50");
//! assert!(chosen.is_checked());
//! # Ok::<(), isobench_workloads::UnknownWorkload>(())
//! ```

mod bank;
mod chosen;
mod describe;
mod invariants;
mod list_append;
mod long_fork;
mod mytab;
mod orders;
mod pgbench;
mod pieces;
mod receipts;
mod registers;
mod reporting;
mod scan;
mod sibench;
mod smallbank;
mod strategy;
mod tables;
mod tpcc;
mod unknown;
mod workload;
mod write_skew;
mod ycsb;
mod ycsb_t;

pub use chosen::{Chosen, Script, Stages, find};
pub use describe::list;
pub use invariants::{Violations, check};
pub use pgbench::{PgbenchStrategy, pgbench_strategies, pgbench_strategy};
pub use strategy::{OnConflict, Strategy, strategies, strategy};
pub use tables::{make, make_among_others, require_tables};
pub use unknown::UnknownWorkload;
pub use workload::{Assertion, Invariant, Load, Parameter, RateOf, ScriptFile, Variant, Weight, Workload};

/// All workloads, in the order of lists.
pub fn all() -> &'static [&'static Workload] {
    &WORKLOADS
}

static WORKLOADS: [&Workload; 15] = [
    &registers::REGISTERS,
    &list_append::LIST_APPEND,
    &bank::BANK,
    &write_skew::WRITE_SKEW,
    &mytab::MYTAB,
    &long_fork::LONG_FORK,
    &orders::ORDERS,
    &smallbank::SMALLBANK,
    &sibench::SIBENCH,
    &receipts::RECEIPTS,
    &reporting::REPORTING,
    &scan::SCAN,
    &tpcc::TPCC,
    &ycsb::YCSB,
    &ycsb_t::YCSB_T,
];
