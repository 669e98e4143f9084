//! Instants and the clock: one reading is nanoseconds since the run's own origin.
//!
//! The runner never asks the operating system for the time itself, so a simulation can supply it.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// An instant, in nanoseconds since the clock's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// An instant that is never reached (584 years after the origin).
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// The instant `duration` later; never beyond [`Nanos::NEVER`].
    #[must_use]
    pub fn after(self, duration: Duration) -> Nanos {
        Nanos(self.0.saturating_add(nanos(duration)))
    }

    /// Nanoseconds from `earlier` to this instant; 0 if it is not earlier.
    pub fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The distance from `earlier` as a duration; zero if it is not earlier.
    pub fn duration_since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.since(earlier))
    }
}

/// A duration in nanoseconds, capped at 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells the time. Implemented by [`SystemClock`] and by the simulation.
pub trait Clock {
    /// The present instant. Never goes backwards.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock, counted from the moment it was made.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    /// What the system's clock said, in its nanoseconds.
    origin: u64,
    epoch: SystemTime,
}

impl SystemClock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        SystemClock { origin: monotonic(), epoch: SystemTime::now() }
    }

    /// The time of day at the origin.
    pub fn epoch(&self) -> SystemTime {
        self.epoch
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos(monotonic() - self.origin)
    }
}

/// The system's monotonic clock in nanoseconds. It is read once or twice per transaction, and [`std::time::Instant`] would check
/// and convert what is plain here.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
