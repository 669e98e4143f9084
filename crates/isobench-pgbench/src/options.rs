//! The command line, resolved and checked: what the program is asked to do.
//!
//! `options/` reads it; nothing else does.
//!
//! | file | holds |
//! |---|---|
//! | `table` | every option: its names, versions, mode and effect |
//! | `getopt` | splitting words into options and operands, as glibc does |
//! | `numbers` | numbers as C's library reads them |
//! | `collected` | what the options have said so far, each checked as it is read |
//! | `resolve` | what they mean together |
//! | `seed`, `open_files`, `help` | the seed, the limit of open files, the text of `--help` |

mod collected;
mod getopt;
mod help;
mod numbers;
mod open_files;
mod resolve;
mod seed;
mod table;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use isobench_database::InitOptions;
use isobench_pgwire::{Env, Given};
use isobench_runner::Protocol;

use crate::console::Message;
use crate::scripts::Scripts;
use crate::version::Version;
use collected::{Collected, Stop};
use getopt::Getopt;

/// What the program is asked to do.
#[derive(Debug, Clone)]
pub enum Request {
    /// Print this on standard output and end with status 0 (`--help`, `--version`).
    Print(String),
    /// Print this on standard error and end with status 0 (`-b list`, `--show-script`).
    Tell(String),
    /// Make the tables (`-i`).
    Initialize(Common, InitOptions),
    /// Run a benchmark.
    Benchmark(Common, Box<Benchmark>),
}

/// What both modes need.
#[derive(Debug, Clone)]
pub struct Common {
    /// Which version is imitated.
    pub version: Version,
    /// Messages for debugging are wanted.
    pub debug: bool,
    /// The connection options as given; the database is always named, as pgbench finds its name.
    pub connection: Given,
}

/// The options of a run, each in the unit that is used, checked against each other.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Benchmark {
    /// The scripts, at least one, read and parsed (`-b`, `-f`, `-N`, `-S`).
    pub scripts: Scripts,
    /// Clients (`-c`).
    pub clients: usize,
    /// Threads, at most as many as clients (`-j`).
    pub threads: usize,
    /// Transactions of each client (`-t`), 10 if nothing else is said; `None` with `-T`.
    pub transactions: Option<u64>,
    /// How long the run takes (`-T`).
    pub duration: Option<Duration>,
    /// A new connection for each transaction (`-C`).
    pub connect: bool,
    /// Variables (`-D`).
    pub defines: Vec<(String, String)>,
    /// Transactions are logged (`-l`).
    pub log: bool,
    /// The beginning of the logs' names (`--log-prefix`).
    pub log_prefix: String,
    /// The share of transactions that is logged, above 0 to 1 (`--sampling-rate`).
    pub sampling_rate: Option<f64>,
    /// The logs have a line for each interval of so long (`--aggregate-interval`).
    pub aggregate_interval: Option<Duration>,
    /// The latency limit in whole microseconds, above 0 (`-L`).
    pub latency_limit: Option<Duration>,
    /// How statements are sent (`-M`).
    pub protocol: Protocol,
    /// Don't vacuum (`-n`).
    pub no_vacuum: bool,
    /// Vacuum all tables (`-v`).
    pub vacuum_all: bool,
    /// Seconds between progress lines (`-P`).
    pub progress: Option<Duration>,
    /// Progress lines bear the time of day (`--progress-timestamp`).
    pub progress_timestamp: bool,
    /// Report each command (`-r`).
    pub per_command: bool,
    /// Target rate, transactions per second over all clients (`-R`).
    pub rate: Option<f64>,
    /// The scale given (`-s`).
    pub scale: Option<u32>,
    /// Report failures by kind (`--failures-detailed`).
    pub failures_detailed: bool,
    /// Most tries; 0 is unlimited (`--max-tries`).
    pub max_tries: u32,
    /// Report every error and retry (`--verbose-errors`).
    pub verbose_errors: bool,
    /// End the run when a client is aborted (`--exit-on-abort`).
    pub exit_on_abort: bool,
    /// Go on after other errors than conflicts (`--continue-on-error`).
    pub continue_on_error: bool,
    /// The seed of all random numbers (`--random-seed`).
    pub seed: u64,
}

/// A command line that is refused; the program ends with status 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(pub Message);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for UsageError {}

/// Reads a command line, its first word being the program's name. Scripts are read and parsed on
/// the way.
///
/// `say` is given what pgbench says before it is done: the seed. Words that aren't UTF-8 are read
/// as far as they are.
///
/// # Errors
/// Whatever pgbench of this version refuses, in its words.
pub fn parse(
    words: impl IntoIterator<Item = OsString>,
    env: Env<'_>,
    say: &mut dyn FnMut(&Message),
) -> Result<Request, UsageError> {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_else(|| "pgbench".into());
    let (version, words) = compat(words).map_err(UsageError)?;
    match words.first().and_then(|word| word.to_str()) {
        Some("--help" | "-?") => return Ok(Request::Print(help::help(version))),
        Some("--version" | "-V") => return Ok(Request::Print(version.line())),
        _ => {}
    }
    let mut given = Collected { version, seed: seed::time(), ..Collected::default() };
    if let Some(text) = env(seed::VARIABLE) {
        let whence = format!("{} environment variable", seed::VARIABLE);
        given.set_seed(&text, &whence).map_err(UsageError)?;
    }
    let mut getopt = Getopt::new(table::options(version), words, env("POSIXLY_CORRECT").is_some());
    loop {
        given.notes.drain(..).for_each(|note| say(&note));
        let next = getopt.next();
        let wrong = |error: Vec<u8>| {
            let text = [program.as_encoded_bytes(), b": ", &error].concat();
            UsageError(with_hint(Message::plain_bytes(text)))
        };
        let next = next.map_err(wrong)?;
        let Some((row, argument)) = next else { break };
        match given.take(row, &argument) {
            Ok(()) => {}
            Err(Stop::Wrong(message)) => return Err(UsageError(message)),
            Err(Stop::Tell(text)) => return Ok(Request::Tell(text)),
        }
    }
    resolve::resolve(given, getopt.operands(), env).map_err(UsageError)
}

/// Takes `--compat` out of the words before `--`; the last one counts. pgbench has no such option,
/// so it has no short form and no abbreviation, and changes no message about others.
fn compat(words: impl Iterator<Item = OsString>) -> Result<(Version, Vec<OsString>), Message> {
    let mut version = Version::default();
    let mut rest = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        let number = match word.as_bytes().strip_prefix(b"--compat") {
            Some(b"") => words.next(),
            Some([b'=', argument @ ..]) => Some(OsStr::from_bytes(argument).to_owned()),
            _ if word == "--" => {
                rest.push(word);
                rest.extend(words);
                break;
            }
            _ => {
                rest.push(word);
                continue;
            }
        };
        let number = number.unwrap_or_default().to_string_lossy().into_owned();
        version = Version::from_number(&number).ok_or_else(|| {
            Message::error(format_args!("invalid value \"{number}\" for option --compat"))
                .detail("Known versions are 15, 16, 17, 18 and 19.")
        })?;
    }
    Ok((version, rest))
}

/// Adds where to find help.
fn with_hint(message: Message) -> Message {
    message.hint("Try \"pgbench --help\" for more information.")
}
