//! Takes the samples of a measured part when they are due: of the sessions often, of the locks now
//! and then.
//!
//! Not here: what a sample asks (`activity`, `locks`), and when a part begins and ends (`watch`).

use std::time::{Duration, Instant};

use crate::activity;
use crate::locks::Locks;
use crate::observed::{Observed, Sample};
use crate::options::ObserverOptions;
use crate::pace::Pace;
use crate::server::Server;
use crate::session::{ObserverSession, Refusal};

/// Sessions may be sampled this seldom if they must.
const SELDOM: Duration = Duration::from_secs(1);

/// Locks may be sampled this seldom if they must.
const LOCKS_SELDOM: Duration = Duration::from_secs(10);

/// The first sample of the locks comes after one part in so many of the usual gap, and each of the
/// next after as much time as has passed, so that short parts have some, too.
const LOCKS_FIRST: u32 = 5;

/// One part in so many of the time may be spent on samples of the sessions, and of the locks.
const SESSIONS_SHARE: u32 = 20;
const LOCKS_SHARE: u32 = 100;

/// The samples so far, and when the next ones are due.
#[derive(Default)]
pub struct Sampler {
    samples: Vec<Sample>,
    locks: Locks,
    /// What they took.
    spent: Duration,
    sessions: Option<Turn>,
    locks_turn: Option<Turn>,
    locks_every: Duration,
    /// Since when samples count.
    began: Option<Instant>,
    notes: Vec<String>,
}

/// When something is due next.
struct Turn {
    due: Instant,
    pace: Pace,
}

impl Turn {
    fn new(first: Duration, most: Duration, share: u32) -> Turn {
        Turn { due: Instant::now() + first, pace: Pace::new(first, most, share) }
    }

    /// A look that began then has ended; the next one is due after the gap, or after `least`.
    fn next(&mut self, began: Instant, cost: Duration, least: Duration) {
        self.pace.took(cost);
        self.due = began + self.pace.gap().max(least);
    }
}

impl Sampler {
    /// Looks at the sessions from now on, if they can be seen, without counting it.
    pub fn look(&mut self, server: &Server, options: &ObserverOptions) {
        self.sessions = server.sees_sessions.then(|| Turn::new(options.every, SELDOM, SESSIONS_SHARE));
    }

    /// Counts from now on.
    pub fn begin(&mut self, server: &Server, options: &ObserverOptions) {
        *self = Sampler { locks_every: options.locks_every, ..Sampler::default() };
        self.look(server, options);
        let first = options.locks_every / LOCKS_FIRST;
        self.locks_turn = server.sees_locks.then(|| Turn::new(first, LOCKS_SELDOM, LOCKS_SHARE));
        self.began = Some(Instant::now());
    }

    /// Looks no more.
    pub fn end(&mut self) {
        (self.sessions, self.locks_turn, self.began) = (None, None, None);
    }

    /// When the next look is due.
    pub fn due(&self) -> Option<Instant> {
        self.sessions.as_ref().map(|turn| turn.due)
    }

    /// Looks at the sessions but for `others`, and at the locks if it is their turn. Returns what
    /// the sessions do.
    pub fn sample(
        &mut self,
        session: &mut ObserverSession,
        server: &mut Server,
        others: &[u32],
    ) -> Option<Sample> {
        let began = Instant::now();
        let looked = activity::look(session, others);
        let took = began.elapsed();
        let sample = match looked {
            Ok(sessions) => {
                let at_s = self.began.map(|begin| (began + took / 2).saturating_duration_since(begin));
                Some(Sample { at_s: at_s.map(|at| at.as_secs_f64()), sessions })
            }
            Err(refusal) => {
                if self.refused(refusal, "sessions") {
                    server.sees_sessions = false;
                    self.sessions = None;
                    return None;
                }
                None
            }
        };
        let cost = took.saturating_sub(session.round_trip);
        if let Some(turn) = &mut self.sessions {
            turn.next(began, cost, Duration::ZERO);
        }
        if self.began.is_some() {
            self.spent += cost;
            self.samples.extend(sample.clone());
            self.sample_locks(session, server);
        }
        sample
    }

    fn sample_locks(&mut self, session: &mut ObserverSession, server: &mut Server) {
        let now = Instant::now();
        let (Some(begin), Some(turn)) = (self.began, &mut self.locks_turn) else { return };
        if now < turn.due {
            return;
        }
        let looked = self.locks.look(session, (now - begin).as_secs_f64());
        let cost = now.elapsed().saturating_sub(session.round_trip);
        turn.next(now, cost, (now - begin).min(self.locks_every));
        self.spent += cost;
        if let Err(refusal) = looked
            && self.refused(refusal, "locks")
        {
            server.sees_locks = false;
            self.locks_turn = None;
        }
    }

    /// Notes a refusal; whether there is no use in asking again.
    fn refused(&mut self, refusal: Refusal, what: &str) -> bool {
        let (note, for_good) = match refusal {
            Refusal::Never(why) => (format!("the {what} can't be sampled any more: {why}"), true),
            Refusal::Now(why) => (format!("a sample of the {what} failed: {why}"), false),
            // Told with its reason at the end.
            Refusal::Lost => return true,
        };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        for_good
    }

    /// What was seen.
    pub fn into_observed(self) -> Observed {
        let (at_s, waits) = activity::rows(&self.samples);
        let lock_samples = self.locks.samples();
        let (predicate_locks, lock_waits) = self.locks.into_parts();
        Observed {
            at_s,
            waits,
            predicate_locks,
            lock_waits,
            lock_samples,
            sampling_s: self.spent.as_secs_f64(),
            notes: self.notes,
            ..Observed::default()
        }
    }
}
