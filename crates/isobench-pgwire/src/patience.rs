//! The time limits of blocking calls to a server that doesn't reply: the policy, shared by all
//! connections of a program.
//!
//! `socket.rs` implements the waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;

/// The least time limit of a call, as a multiple of the longest call before limits applied.
const LIMIT_FACTOR: u32 = 10;

/// The same for a server that has already failed to reply in time.
const DOUBTFUL_FACTOR: u32 = 2;

/// The time limits of blocking calls, shared by its clones.
///
/// At first calls are unlimited, because tables may be large. Once limits apply
/// ([`Patience::set_limited`]), a call may take two minutes, or ten times as long as the longest
/// unlimited one if that is more, so the limit grows with the tables. After a call that wasn't
/// answered in time, the limit is ten seconds, or twice the longest call, until one is answered. A
/// request to hurry ([`Patience::hurry`]) limits every call, including those that are waiting.
///
/// It isn't part of a connection's target, so it is ignored when connection options are compared.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    shared: Arc<Shared>,
    /// The instant at which every call of this clone ends.
    until: Option<Instant>,
}

/// The state shared by all clones.
#[derive(Debug, Default)]
struct Shared {
    /// The number of requests to hurry: 0, 1, or 2 for any more.
    requests: AtomicU8,
    /// The time of the first request, in nanoseconds since `origin`.
    requested: AtomicU64,
    origin: Origin,
    limited: AtomicBool,
    /// True if the last call wasn't answered in time.
    doubted: AtomicBool,
    /// The longest unlimited call, in ns.
    longest: AtomicU64,
}

/// The instant from which atomic instants are measured.
#[derive(Debug)]
struct Origin(Instant);

impl Default for Origin {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl PartialEq for Patience {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Patience {}

impl Patience {
    /// Asks all calls to end: the first time within three seconds, the second time immediately. Calls
    /// that start after the second request have two seconds, so that cleaning up can continue. If the
    /// server didn't answer a call that the first request ended, later ones end two seconds after it,
    /// until one is answered.
    pub fn hurry(&self) {
        if self.shared.requests.load(Ordering::Relaxed) == 0 {
            self.shared.requested.store(nanos(self.shared.origin.0.elapsed()), Ordering::Relaxed);
            self.shared.requests.store(1, Ordering::Release);
        } else {
            self.shared.requests.store(2, Ordering::Release);
        }
    }

    /// The number of calls of [`Patience::hurry`]: 0, 1, or 2 for any more.
    pub fn requests(&self) -> u8 {
        self.shared.requests.load(Ordering::Acquire)
    }

    /// Switches the limits of further calls on or off.
    pub fn set_limited(&self, limited: bool) {
        self.shared.limited.store(limited, Ordering::Relaxed);
    }

    /// Records that the server may not reply any more, so that the next call ends early.
    pub fn doubt(&self) {
        self.shared.doubted.store(true, Ordering::Relaxed);
    }

    /// True if the last call wasn't answered in time.
    pub(crate) fn is_doubted(&self) -> bool {
        self.shared.doubted.load(Ordering::Relaxed)
    }

    /// The same limits for calls that must end at an instant; `None` changes nothing.
    #[must_use]
    pub fn until(&self, end: Option<Instant>) -> Self {
        let until = self.until.into_iter().chain(end).min();
        Self { shared: Arc::clone(&self.shared), until }
    }

    /// The time limit of a call; `None` if unlimited.
    pub fn limit(&self) -> Option<Duration> {
        let longest = Duration::from_nanos(self.shared.longest.load(Ordering::Relaxed));
        let (least, factor) = if self.is_doubted() {
            (LIMITS.doubtful_call, DOUBTFUL_FACTOR)
        } else {
            (LIMITS.call, LIMIT_FACTOR)
        };
        let limited = self.shared.limited.load(Ordering::Relaxed);
        limited.then(|| least.max(longest.saturating_mul(factor)))
    }

    /// Records the duration of a call that was answered.
    pub(crate) fn took(&self, time: Duration) {
        self.shared.doubted.store(false, Ordering::Relaxed);
        if !self.shared.limited.load(Ordering::Relaxed) {
            self.shared.longest.fetch_max(nanos(time), Ordering::Relaxed);
        }
    }

    /// The instant beyond which this clone doesn't wait.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.until
    }

    /// The end of a call because of a request to hurry, given its start and the number of requests
    /// at its start.
    pub(crate) fn hurried(&self, began: Instant, requests: u8) -> Option<Instant> {
        match self.requests() {
            0 => None,
            1 => {
                let since = Duration::from_nanos(self.shared.requested.load(Ordering::Relaxed));
                let requested = self.shared.origin.0 + since;
                if requests == 1 && self.is_doubted() {
                    let last = requested + LIMITS.hurried + LIMITS.cleanup;
                    return Some(last.max(began + LIMITS.silent_call));
                }
                Some(began.max(requested) + LIMITS.hurried)
            }
            _ if requests >= 2 => Some(began + LIMITS.cleanup),
            _ => Some(began),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_grows_with_what_took_long_before() {
        let patience = Patience::default();
        assert_eq!(patience.limit(), None);
        patience.took(Duration::from_secs(3));
        patience.clone().set_limited(true);
        assert_eq!(patience.limit(), Some(LIMITS.call));
        let patience = Patience::default();
        patience.took(Duration::from_mins(1));
        patience.took(Duration::from_secs(3));
        patience.set_limited(true);
        patience.took(Duration::from_hours(1));
        assert_eq!(patience.limit(), Some(Duration::from_mins(10)), "what has a limit doesn't count");
        patience.doubt();
        assert_eq!(patience.limit(), Some(Duration::from_mins(2)), "a server that is silent gets less");
        patience.took(Duration::ZERO);
        assert_eq!(patience.limit(), Some(Duration::from_mins(10)), "until it answers");
    }

    #[test]
    fn requests_bound_calls() {
        let patience = Patience::default();
        let began = Instant::now();
        assert_eq!(patience.hurried(began, 0), None);
        patience.hurry();
        assert!(patience.hurried(began, 0).is_some_and(|end| end >= began + LIMITS.hurried));
        let later = began + Duration::from_hours(1);
        assert_eq!(
            patience.hurried(later, 1),
            Some(later + LIMITS.hurried),
            "a call that began later has as long"
        );
        patience.doubt();
        assert_eq!(patience.hurried(later, 1), Some(later + LIMITS.silent_call), "a silent server has less");
        let soon = patience.hurried(began, 1).expect("an end");
        assert!(soon >= began + LIMITS.hurried + LIMITS.cleanup && soon < later, "but for the first seconds");
        assert!(patience.hurried(began, 0).is_some_and(|end| end >= began + LIMITS.hurried));
        patience.clone().hurry();
        assert_eq!(patience.hurried(began, 1), Some(began), "a call that waits ends at once");
        assert_eq!(patience.hurried(later, 2), Some(later + LIMITS.cleanup), "cleaning up continues");
    }

    #[test]
    fn a_clone_with_an_end_keeps_the_earliest() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let patience = Patience::default().until(Some(now));
        assert_eq!(patience.until(Some(later)).end(), Some(now));
        assert_eq!(patience.until(None).end(), Some(now));
    }
}
