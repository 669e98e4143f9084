//! The strict drop-in: a program that behaves as pgbench does, down to its words.
//!
//! Everything whose wording or layout has to be pgbench's lives here: options, messages, summary, progress, logs, exit
//! status, and the differences between its versions. What happens between them is the other crates': the script language,
//! the load, the tables. `isobench run` uses the summary, the progress lines and the logs too, and adds its own account.
//!
//! Behaviour is taken from the manual and from running the real program (`tests/differential`).
//!
//! | file | holds |
//! |---|---|
//! | `version` | the versions of pgbench that can be imitated, and every difference between them |
//! | `console` | messages on standard error: `pgbench: error: …`, with colours |
//! | `options` | the command line, resolved and checked |
//! | `initialize` | `-i` |
//! | `benchmark` | a run from connecting to the exit status |
//! | `scripts` | finding and parsing scripts |
//! | `wording` | what pgbench says of errors and retries while a run goes on |
//! | `progress` | the lines of `-P` |
//! | `transaction_log` | the files of `-l` |
//! | `summary` | what is printed at the end |

pub mod console;
pub mod options;
pub mod progress;
pub mod scripts;
pub mod summary;
pub mod transaction_log;
pub mod version;
pub mod wording;

pub use console::{Console, Message};
pub use version::Version;
