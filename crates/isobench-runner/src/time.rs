//! Instants and the clock: nanoseconds since the run's own origin.
//!
//! The runner reads time only from [`Clock`], so that a simulation can supply it.

use std::time::{Duration, Instant, SystemTime};

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
        self.plus(nanos(duration))
    }

    /// The instant this many nanoseconds later; never beyond [`Nanos::NEVER`].
    pub(crate) fn plus(self, ns: u64) -> Nanos {
        Nanos(self.0.saturating_add(ns))
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

/// A source of time. Implemented by [`SystemClock`] and by the simulation.
pub trait Clock {
    /// The current instant. Never goes backwards.
    fn now(&self) -> Nanos;

    /// The processor time of the calling thread so far; `None` if time is simulated.
    fn thread_time(&self) -> Option<ThreadTime> {
        None
    }
}

/// The processor time of a thread since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTime {
    /// Time on a processor, user and system.
    pub cpu: Duration,
    /// Time in which it was ready to run and had no processor; `None` if the system doesn't report
    /// it.
    pub starved: Option<Duration>,
}

/// The operating system's monotonic clock, counted from its creation.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    /// Reading of the system's clock at the origin, ns.
    origin: u64,
    epoch: SystemTime,
}

impl SystemClock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        SystemClock { origin: monotonic(), epoch: SystemTime::now() }
    }

    /// The same clock, set back to an instant at which it has stopped.
    #[must_use]
    pub(crate) fn stopped_since(self, at: Nanos) -> Self {
        SystemClock { origin: monotonic() - at.0, ..self }
    }

    /// A clock that shows `shown` at an instant of the operating system's clock.
    pub(crate) fn showing(shown: Nanos, at: Instant) -> Self {
        let (now, left) = (Instant::now(), monotonic());
        let until = nanos(at.saturating_duration_since(now));
        let since = nanos(now.saturating_duration_since(at));
        let origin = (left + until).saturating_sub(since).saturating_sub(shown.0);
        SystemClock { origin, epoch: SystemTime::now() }
    }

    /// The time of day at the origin.
    pub fn epoch(&self) -> SystemTime {
        self.epoch
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos(monotonic().saturating_sub(self.origin))
    }

    fn thread_time(&self) -> Option<ThreadTime> {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::new(cpu.tv_sec.try_into().ok()?, cpu.tv_nsec.try_into().ok()?);
        Some(ThreadTime { cpu, starved: starved() })
    }
}

/// Time that this thread has waited for a processor: the second number of the file (Linux:
/// `sched-stats.rst`).
fn starved() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// The system's monotonic clock in nanoseconds. It is read once or twice per transaction;
/// [`std::time::Instant`] would spend more on checks and conversions.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
