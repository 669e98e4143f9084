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
//! | `decision` | proved and shown levels, and changes of scripts |
//! | `advice` | what is said of it, as it stands in JSON |
//! | `twice` | scripts that run twice at once |
//! | `recorded` | recorded dependencies compared with those that are possible |
//! | `patch` | scripts with changes, and the difference |
//! | `deadlocks` | transactions that can wait for each other |
//! | `hints` | other ways to write the SQL, for people |
//! | `idioms` | how frameworks ask for a level |
//! | `file` | what `--write` writes and `--check` reads |
//! | `text` | the answer for a terminal |
//! | `html` | the same as a page |

mod advice;
mod deadlocks;
mod decision;
mod file;
mod hints;
mod html;
mod idioms;
mod patch;
mod recorded;
mod text;
mod twice;

pub use advice::{
    Advice, Candidate, ChangeSet, Changed, Dependency, FORMAT, Measured, Reason, Status, Transaction,
    UnknownStatement, Unshown,
};
pub use decision::{Decision, Execute, Executed, MOST_EXECUTED, Possible, Question, Shown};
pub use file::{AdviceFile, FileError, LEVELS_START, Mismatch};
pub use html::page;
pub use idioms::{IDIOMS, Idiom};
pub use isobench_robustness::Promotion;
pub use patch::{ScriptText, difference, patched};
pub use text::{answer, broken, wrong};
pub use twice::{AtLevel, Twice, locked, locks, writing};
