//! The independent random streams of a run, all split from one seed.

use super::prng::Prng;

/// The source of a run's random streams.
///
/// To get equal numbers, the runner must take them in pgbench's order: one stream per client (for
/// expressions); one number for the variable `default_seed`, unless `-D default_seed=…` is given;
/// three streams per worker (choice of scripts, schedule of `--rate`, sampling of the log).
#[derive(Clone, Debug)]
pub struct Streams {
    base: Prng,
}

impl Streams {
    /// The streams of a run's seed (`--random-seed`).
    pub fn new(seed: u64) -> Self {
        Self { base: Prng::seed(seed) }
    }

    /// The next stream.
    pub fn split(&mut self) -> Prng {
        Prng::seed(self.base.next_u64())
    }

    /// The next number, used as the value of `default_seed`.
    pub fn number(&mut self) -> i64 {
        self.base.next_u64().cast_signed()
    }
}
