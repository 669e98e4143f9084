//! The seed of all random numbers: `--random-seed`, `PGBENCH_RANDOM_SEED`, or the time.

use std::fs::File;
use std::io::Read as _;

use super::numbers::unsigned;
use crate::console::Message;

/// The environment variable that sets the seed before any option is read.
pub(super) const VARIABLE: &str = "PGBENCH_RANDOM_SEED";

/// Parses a seed; `whence` is the option or variable in messages.
///
/// # Errors
/// It is neither `time` nor `rand` nor a number, or there is no source of random numbers.
pub(super) fn seed(text: &str, whence: &str) -> Result<u64, Message> {
    let failed = format!("error while setting random seed from {whence}");
    match text {
        "time" => Ok(time()),
        "rand" => rand().map_err(|_| Message::error("could not generate random seed").then_error(failed)),
        number => unsigned(number).ok_or_else(|| {
            Message::error(format_args!("unrecognized random seed option \"{number}\""))
                .detail("Expecting an unsigned integer, \"time\" or \"rand\".")
                .then_error(failed)
        }),
    }
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
