//! The seed of all random numbers: `--random-seed`, `PGBENCH_RANDOM_SEED`, or the time.

use std::fs::File;
use std::io::Read as _;

use super::numbers::unsigned;
use crate::console::Message;

/// The environment variable that sets the seed before any option is read.
pub(super) const VARIABLE: &str = "PGBENCH_RANDOM_SEED";

/// A seed that can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// The text is something else.
    #[error("unrecognized random seed option \"{0}\"")]
    Unrecognized(String),
    /// The system has no random numbers.
    #[error("could not generate random seed")]
    NoRandomness,
}

impl SeedError {
    /// The texts that are understood, if the text wasn't.
    pub fn detail(&self) -> Option<&'static str> {
        matches!(self, SeedError::Unrecognized(_))
            .then_some("Expecting an unsigned integer, \"time\" or \"rand\".")
    }
}

/// Parses a seed: an unsigned integer, `time` or `rand`.
///
/// # Errors
/// It is something else, or there is no source of random numbers.
pub fn parse_seed(text: &str) -> Result<u64, SeedError> {
    match text {
        "time" => Ok(time()),
        "rand" => rand().map_err(|_| SeedError::NoRandomness),
        number => unsigned(number).ok_or_else(|| SeedError::Unrecognized(number.to_owned())),
    }
}

/// The same with pgbench's message; `whence` is the option or variable in it.
pub(super) fn seed(text: &str, whence: &str) -> Result<u64, Message> {
    parse_seed(text).map_err(|error| {
        let message = Message::error(&error);
        let message = error.detail().map_or(message.clone(), |detail| message.detail(detail));
        message.then_error(format!("error while setting random seed from {whence}"))
    })
}

/// The default seed: microseconds of the system's monotonic clock.
pub(super) fn time() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec * 1_000_000 + now.tv_nsec / 1_000).cast_unsigned()
}

fn rand() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
