//! Which isolation level each transaction of a set needs, so that whatever commits is serializable.
//!
//! A program ([`Program`]) is a template of transactions: linear branches of operations on rows that
//! parameters name. A set of programs is *safe* at an allocation of levels if no schedule that
//! PostgreSQL may execute of any of their transactions has a cycle of dependencies. Where it isn't,
//! one transaction split in two suffices to show it: it runs up to a read, others run one after
//! another, and it runs on ([`Objection`]). [`decide`] looks for those, [`allocate`] for the lowest
//! levels, and [`promote`] for few reads that should lock their rows so that lower levels do.
//!
//! The crate is pure. It knows no SQL and no server: who makes programs from statements is
//! elsewhere, and that each objection can be executed is for others to use.
//!
//! | file | holds |
//! |---|---|
//! | `model`, `columns` | programs, operations, rows and columns; which operation a statement is |
//! | `compiled` | the same as numbers |
//! | `conflict` | which operations depend on each other, and which exclude each other |
//! | `unification` | which variables are equal |
//! | `symbolic` | the split schedules of any transactions of programs |
//! | `objection` | a split schedule as an answer |
//! | `struck` | those that are left out, since they could not be shown |
//! | `allocation` | the lowest safe levels |
//! | `deadlock` | transactions that can wait for each other |
//! | `predicted` | the dependencies that are possible, to be compared with recorded ones |
//! | `promotion` | locks and writes that make lower levels safe |
//! | `concrete` | the same question for given transactions, each run once; programs on small domains |
//!
//! ```
//! use isobench_isolation::Level;
//! use isobench_robustness::{Branch, Operation, Program, Struck, allocate};
//!
//! // Two doctors of a shift may go off call if the other one is on call.
//! let leave = |mine: &str, other: &str| {
//!     Branch::new(mine, vec![
//!         Operation::read("doctors", [("shift", ":s"), ("id", other)], ["on_call"]),
//!         Operation::update("doctors", [("shift", ":s"), ("id", mine)], ["on_call"], ["on_call"]),
//!     ])
//! };
//! let programs = [Program::new("leave", vec![leave("1", "2"), leave("2", "1")])];
//! assert_eq!(allocate(&programs, &Struck::new()).levels, [Level::Serializable]);
//! ```
//!
//! Sources: Vandevoort, Ketsman, Koch and Neven, "Robustness against Read Committed for Transaction
//! Templates", PVLDB 14(11), 2021, and "Allocating Isolation Levels to Transactions in a Multiversion
//! Setting", PODS 2023; Fekete et al., "Making Snapshot Isolation Serializable", ACM TODS 30(2), 2005.
//! Locking reads, and what of the conditions is PostgreSQL's, are isobench's own (decision 0069), and
//! tested against all schedules of small sets.

mod allocation;
mod columns;
mod compiled;
pub mod concrete;
mod conflict;
mod deadlock;
mod model;
mod objection;
mod predicted;
mod promotion;
mod statement_id;
mod struck;
mod symbolic;
mod unification;

pub use allocation::{Allocated, Harmful, Raised, allocate};
pub use columns::Columns;
pub use deadlock::{Deadlock, Waiting, deadlocks};
pub use model::{Branch, Kind, Operation, Program, Strength, Term};
pub use objection::{Dependency, Equal, How, Objection, Place, Role};
pub use predicted::Predicted;
pub use promotion::{Change, Promoted, Promoting, Promotion, promote, promoted, subsets};
pub use statement_id::StatementId;
pub use struck::{Strike, Struck};
pub use symbolic::{decide, objections};
