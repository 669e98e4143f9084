//! How long blocking calls wait for a server that doesn't answer: the policy, shared by all
//! connections of a program.
//!
//! Not here: the waiting itself (`socket.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest call that is allowed for once measuring has begun, unless a call before took longer.
const SHORTEST_LIMIT: Duration = Duration::from_mins(2);

/// How many times longer than the longest call before measuring a later one may take.
const LIMIT_FACTOR: u32 = 10;

/// The same two for a server that hasn't answered in time already.
const DOUBTFUL_LIMIT: Duration = Duration::from_secs(10);
const DOUBTFUL_FACTOR: u32 = 2;

/// What a call may still take after the first request to hurry.
const HURRY: Duration = Duration::from_secs(10);

/// What a call that begins after the second request may take: enough to remove what was made on a
/// server that is well.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long blocking calls wait, shared by its clones.
///
/// Before measuring begins, a call takes as long as it takes: tables may be large. Once calls are
/// limited ([`Patience::set_limited`]), one may take two minutes, or ten times as long as the
/// longest one without limit, whichever is longer; so the limit grows with the tables. After a call
/// that wasn't answered in time it is ten seconds, or twice as long as the longest one, until one
/// is answered. A request to hurry ([`Patience::hurry`]) bounds every call, also one that is
/// waiting at that moment.
///
/// It isn't a part of where a connection leads to, so it makes no difference between two values of
/// connection options.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    shared: Arc<Shared>,
    /// No call of this clone lasts longer.
    until: Option<Instant>,
}

/// What all clones know.
#[derive(Debug, Default)]
struct Shared {
    /// Requests to hurry: 0, 1, or 2 for any more.
    requests: AtomicU8,
    /// When the first request came, in nanoseconds since `origin`.
    requested: AtomicU64,
    origin: Origin,
    limited: AtomicBool,
    /// The last call wasn't answered in time.
    doubted: AtomicBool,
    /// The longest call without a limit, ns.
    longest: AtomicU64,
}

/// The instant that atomic instants are counted from.
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
    /// Asks every call to end: the first time within ten seconds, the second time at once. Calls
    /// that begin after the second request have two seconds, so that tidying up goes on.
    pub fn hurry(&self) {
        if self.shared.requests.load(Ordering::Relaxed) == 0 {
            self.shared.requested.store(nanos(self.shared.origin.0.elapsed()), Ordering::Relaxed);
            self.shared.requests.store(1, Ordering::Release);
        } else {
            self.shared.requests.store(2, Ordering::Release);
        }
    }

    /// How often [`Patience::hurry`] was called: 0, 1, or 2 for any more.
    pub fn requests(&self) -> u8 {
        self.shared.requests.load(Ordering::Acquire)
    }

    /// From now on calls have a limit, or none.
    pub fn set_limited(&self, limited: bool) {
        self.shared.limited.store(limited, Ordering::Relaxed);
    }

    /// The server may not answer any more: the next call is to find that out soon.
    pub fn doubt(&self) {
        self.shared.doubted.store(true, Ordering::Relaxed);
    }

    /// The same patience for calls none of which lasts beyond an instant; `None` changes nothing.
    #[must_use]
    pub fn until(&self, end: Option<Instant>) -> Self {
        let until = self.until.into_iter().chain(end).min();
        Self { shared: Arc::clone(&self.shared), until }
    }

    /// The longest that a call may take; `None`: as long as it takes.
    pub fn limit(&self) -> Option<Duration> {
        let longest = Duration::from_nanos(self.shared.longest.load(Ordering::Relaxed));
        let (least, factor) = if self.shared.doubted.load(Ordering::Relaxed) {
            (DOUBTFUL_LIMIT, DOUBTFUL_FACTOR)
        } else {
            (SHORTEST_LIMIT, LIMIT_FACTOR)
        };
        let limited = self.shared.limited.load(Ordering::Relaxed);
        limited.then(|| least.max(longest.saturating_mul(factor)))
    }

    /// A call was answered after this time.
    pub(crate) fn took(&self, time: Duration) {
        self.shared.doubted.store(false, Ordering::Relaxed);
        if !self.shared.limited.load(Ordering::Relaxed) {
            self.shared.longest.fetch_max(nanos(time), Ordering::Relaxed);
        }
    }

    /// The instant that this clone doesn't wait beyond.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.until
    }

    /// When a call that began then must end because of a request; `requests` are those that had
    /// been made when it began.
    pub(crate) fn hurried(&self, began: Instant, requests: u8) -> Option<Instant> {
        match self.requests() {
            0 => None,
            1 => {
                let since = Duration::from_nanos(self.shared.requested.load(Ordering::Relaxed));
                Some(began.max(self.shared.origin.0 + since) + HURRY)
            }
            _ if requests >= 2 => Some(began + FAREWELL),
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
        assert_eq!(patience.limit(), Some(SHORTEST_LIMIT));
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
        assert!(patience.hurried(began, 0).is_some_and(|end| end >= began + HURRY));
        let later = began + Duration::from_hours(1);
        assert_eq!(patience.hurried(later, 1), Some(later + HURRY), "a call that began later has as long");
        patience.clone().hurry();
        assert_eq!(patience.hurried(began, 1), Some(began), "a call that waits ends at once");
        assert_eq!(patience.hurried(later, 2), Some(later + FAREWELL), "tidying up goes on");
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
