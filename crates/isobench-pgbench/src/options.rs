//! The command line, resolved and checked.
//!
//! It is read by the files of this folder only.
//!
//! | file | holds |
//! |---|---|
//! | `table` | every option: its names, versions, mode and effect |
//! | `getopt` | splitting words into options and operands, as glibc does |
//! | `numbers` | numbers as C's library reads them |
//! | `collected` | the options read so far, each checked by itself |
//! | `resolve` | their meaning together |
//! | `request` | the result |
//! | `seed`, `open_files`, `help` | the seed, the limit of open files, the text of `--help` |

mod collected;
mod getopt;
mod help;
mod numbers;
mod open_files;
mod request;
mod resolve;
mod seed;
mod table;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use isobench_pgwire::Env;

use crate::console::Message;
use crate::version::Version;
pub use collected::parse_definition;
use collected::{Collected, EarlyEnd};
use getopt::Getopt;
pub use request::{Benchmark, Common, Request};
pub use seed::{SeedError, parse_seed};

/// A command line that is refused; the program ends with status 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(pub Message);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for UsageError {}

/// Parses a command line, whose first word is the program's name. Scripts are read and parsed, too.
///
/// `say` gets pgbench's messages before the result: the seed. Words that aren't UTF-8 are converted
/// as far as possible.
///
/// # Errors
/// Everything that pgbench of this version refuses, in its words.
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
            UsageError(Message::plain_bytes(text).hint_at_help())
        };
        let next = next.map_err(wrong)?;
        let Some((row, argument)) = next else { break };
        match row.apply(&mut given, &argument) {
            Ok(()) => {}
            Err(EarlyEnd::Wrong(message)) => return Err(UsageError(message)),
            Err(EarlyEnd::Tell(text)) => return Ok(Request::Tell(text)),
        }
    }
    resolve::resolve(given, getopt.operands(), env).map_err(UsageError)
}

/// Removes `--compat` from the words before `--`; the last one is used. pgbench has no such option,
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
