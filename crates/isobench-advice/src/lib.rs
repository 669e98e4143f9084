//! Which level each transaction needs, why, and the smallest change of the scripts with which a lower
//! one does.
//!
//! The theory proposes and the server decides: for each level that isn't safe there is a schedule of few
//! transactions ([`isobench_robustness`]), which the caller executes. Schedules that could not be shown
//! are struck, and the levels are decided anew without them.
//!
//! The crate has no server: executing is a function that the caller gives.
//!
//! | file | holds |
//! |---|---|
//! | `decision` | proved and shown levels |
//! | `makers` | ways to change scripts and tables, one file for each kind |
//! | `search` | changes, each tried |
//! | `shown` | what came of executing the schedules that theory names |
//! | `advice` | what is said of it, as it stands in JSON |
//! | `reason` | in it, why a level isn't enough |
//! | `change_set` | in it, changes with the levels that are enough then |
//! | `recorded` | recorded dependencies compared with those that are possible |
//! | `patch` | scripts with changes, and the difference |
//! | `untried` | scripts that couldn't be tried |
//! | `deadlocks` | transactions that can wait for each other |
//! | `hints` | other ways to write the SQL, for people |
//! | `warnings` | mistakes that no level prevents |
//! | `idioms` | how frameworks ask for a level |
//! | `file` | what `--write` writes and `--check` reads |
//! | `brief` | the answer on one screen |
//! | `short` | scripts of one folder by their file names alone |
//! | `text` | the answer with all details |
//! | `html` | the same as a page |

mod advice;
pub mod brief;
mod change_set;
mod deadlocks;
mod decision;
mod file;
mod hints;
mod html;
mod idioms;
mod makers;
mod patch;
mod reason;
mod recorded;
mod search;
mod short;
mod shown;
mod text;
mod untried;
mod warnings;

pub use advice::{
    Advice, Candidate, FORMAT, LeftOut, Measured, Status, Transaction, UnknownStatement, Unshown,
    carried_values,
};
pub use change_set::{ChangeSet, Changed, allocation};
pub use decision::{Decision, Execute, Possible, Question};
pub use file::{AdviceFile, FileError, LEVELS_START, Mismatch};
pub use html::page;
pub use idioms::{IDIOMS, Idiom};
pub use patch::{ScriptText, difference, patched};
pub use reason::{Dependency, Reason, reason};
pub use search::{NotChanged, TriedSet, Tries};
pub use shown::{Executed, Shown};
pub use text::{best, broken, details, frameworks, wrong};
