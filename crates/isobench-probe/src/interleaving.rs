//! Scripts tried against each other: whether some interleaving ends as no serial order of the same
//! transactions does.
//!
//! One transaction is split after a statement, and others run in the middle, one after another. By
//! the theory of robustness that is enough to find every way in which a level fails (Vandevoort,
//! Ketsman, Koch and Neven, "Robustness against Read Committed for Transaction Templates", PVLDB 14,
//! 2021; the same for snapshot isolation). The outcome is compared with that of *every* serial order
//! of the transactions that committed: what the tables hold, and the answers that each got. Nothing
//! has to be known of the SQL, so that functions, triggers and joins are tried like anything else.
//!
//! What isn't determined by an order either (sequences, the clock, random numbers) is learned by
//! running the same order twice, and masked.
//!
//! | file | holds |
//! |---|---|
//! | `program` | scripts, what they draw, and why some can't be tried |
//! | `combinations` | which transactions meet, and with which numbers |
//! | `targets` | numbers that lead to rows which another script finds |
//! | `walk` | the way of a script from one statement to the next |
//! | `prediction` | what a script's own numbers decide, and which ones take each of its ways |
//! | `execution` | one execution of a script, statement by statement |
//! | `tables` | the tables: what has changed, and putting it back |
//! | `step` | a step as it is shown |
//! | `held` | locks that another session takes over |
//! | `behind_locks` | transactions that run while such locks are held |
//! | `side_effects` | triggers and foreign keys, which are switched off meanwhile |
//! | `sessions` | sessions, steps, waiting |
//! | `outcome` | the comparison with serial orders |
//! | `alone` | scripts that run alone first: numbers that work, tables that are used |
//! | `states` | states of the tables that are worth trying |
//! | `search` | states, combinations and splits, within a budget |
//! | `found` | what it found |
//! | `replay` | the same as a specification of the isolation tester |

mod alone;
mod behind_locks;
mod combinations;
mod execution;
mod found;
mod held;
mod outcome;
mod prediction;
mod program;
mod replay;
mod search;
mod sessions;
mod side_effects;
mod states;
mod step;
mod tables;
mod targets;
#[cfg(test)]
mod tests;
mod walk;

use std::time::{Duration, Instant};

use isobench_database::Product;
use isobench_isolation::Allocation;

use self::search::Search;
use self::sessions::Sessions;
use crate::tester::{Opener, Options, RunError};

pub use found::{ByDesign, ChangedTable, Found, LevelFound, Order, Witness};
pub use program::{Programs, names_schema};
pub use step::{Step, StepResult};

/// How scripts are tried.
pub struct Trying<'a> {
    /// Opens a session in the schema of the tables, in which nothing else is.
    pub open: Opener,
    /// The server's product.
    pub product: &'static Product,
    /// The levels of the scripts to try, at least one.
    pub allocations: &'a [Allocation],
    /// The scripts that meet, by name: the one that is split, and those that run in the middle, in
    /// order. The search then ends with the first wrong outcome. `None`: all pairs, then all triples.
    pub combinations: Option<&'a [Vec<String>]>,
    /// The time after which no further combination is begun.
    pub budget: Duration,
    /// Conditions that the tables have to meet: the first column of a query's row is true.
    pub conditions: &'a [TriedCondition],
    /// The limits of statements.
    pub options: Options,
    /// Called repeatedly; if it returns true, the search is stopped.
    pub stopped: &'a dyn Fn() -> bool,
}

/// A condition that the tables have to meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedCondition {
    /// Its name.
    pub name: String,
    /// One query, without a semicolon.
    pub sql: String,
}

/// The reason that scripts can't be tried, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    /// The search was stopped.
    #[error("interrupted")]
    Stopped,
    /// The server refused a statement that isn't a script's.
    #[error("{0}")]
    Server(String),
    /// A session is gone, and perhaps the server.
    #[error("the session is lost: {0}")]
    Lost(String),
    /// A session couldn't be opened.
    #[error(transparent)]
    Session(RunError),
    /// A statement took too long.
    #[error("a statement has not ended after {} seconds", .0.as_secs_f64())]
    TooLong(Duration),
    /// The catalog holds something unexpected.
    #[error("the server's answer to {0} has another form than expected")]
    Answer(&'static str),
    /// Rows can't be put back without side effects.
    #[error(
        "the tables have triggers or foreign keys, so their rows can only be put back by a role that owns them or may \
         set session_replication_role: GRANT SET ON PARAMETER session_replication_role TO the role (PostgreSQL 15)"
    )]
    Privilege,
    /// A function of the tables' schema may change rows of another one.
    #[error("a function names schema \"{0}\", whose rows couldn't be put back")]
    Elsewhere(String),
    /// A script has a mistake.
    #[error("{script}: {why}")]
    Script {
        /// Its name.
        script: String,
        /// The line, and what the server says of it.
        why: String,
    },
    /// A table can only be read whole, and is too large for it.
    #[error(
        "table \"{table}\" has more than {most} rows, and without PostgreSQL's triggers all of them are read \
         after each interleaving"
    )]
    TooLarge {
        /// Its name.
        table: String,
        /// The most rows.
        most: usize,
    },
    /// The tables aren't as they were.
    #[error("the rows of the tables could not be put back")]
    NotPutBack,
}

impl TryError {
    /// True if it may not happen again: something took too long on a busy machine, or something else
    /// changed rows.
    pub fn may_pass(&self) -> bool {
        matches!(self, TryError::TooLong(_) | TryError::NotPutBack | TryError::Server(_))
    }
}

impl From<RunError> for TryError {
    fn from(error: RunError) -> TryError {
        match error {
            RunError::Stopped => TryError::Stopped,
            other => TryError::Session(other),
        }
    }
}

/// Tries scripts against each other. The tables are afterwards as they were, apart from a table of
/// changes and its triggers: drop them with their schema.
///
/// # Errors
/// The server refuses or is gone, or the search is stopped.
pub fn explore(programs: &Programs, trying: &Trying<'_>) -> Result<Found, TryError> {
    let began = Instant::now();
    if programs.programs.is_empty() || trying.allocations.is_empty() {
        let levels = trying.allocations.iter().cloned().map(LevelFound::new).collect();
        return Ok(Found { levels, refused: programs.refused.clone(), complete: true, ..Found::default() });
    }
    let sessions = Sessions::open(programs, trying)?;
    Search::new(sessions, programs, trying, began).run()
}
