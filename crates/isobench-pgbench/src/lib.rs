//! The strict drop-in: a program that behaves exactly like pgbench.
//!
//! Everything whose wording or layout must be pgbench's is here: options, messages, summary,
//! progress, exit status, and the differences between its versions. Other crates do the work: the
//! script language, the load, its logs and messages, the tables. `isobench run` uses the summary and
//! the progress lines too, and adds its own figures.
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
//! | `password` | asking for a password |
//! | `progress` | the lines of `-P` |
//! | `summary` | the report at the end |

mod benchmark;
pub mod console;
pub mod initialize;
mod interrupt;
pub mod options;
mod password;
pub mod progress;
pub mod scripts;
pub mod setup;
pub mod summary;
pub mod version;

pub use console::{Console, Message};
pub use version::Version;

use std::ffi::OsString;

use isobench_pgwire::process_environment;

use crate::options::{Request, UsageError};

/// Runs a command line, whose first word is the program's name, and returns the exit status.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let console = Console::new(&process_environment);
    match options::parse(words, &process_environment, &mut |message| console.say(message)) {
        Err(UsageError(message)) => {
            console.say(&message);
            1
        }
        Ok(Request::Print(text)) => {
            benchmark::print(&text);
            0
        }
        Ok(Request::Tell(text)) => {
            console.say(&Message::plain(text));
            0
        }
        Ok(Request::Initialize(common, tables)) => {
            initialize::initialize(&common, &tables, console.with_debugging(common.debug))
        }
        Ok(Request::Benchmark(common, options)) => {
            benchmark::benchmark(&common, *options, console.with_debugging(common.debug))
        }
    }
}
