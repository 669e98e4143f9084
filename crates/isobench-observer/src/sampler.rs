//! Takes the samples of a measured part when they are due: of the sessions often, of the locks less
//! often.
//!
//! Not here: the queries (`activity`, `locks`), and the start and end of a part (`watcher`).

use std::time::{Duration, Instant};

use crate::activity;
use crate::capabilities::Capabilities;
use crate::locks::Locks;
use crate::observed::{Observed, Sample};
use crate::options::ObserverOptions;
use crate::sampling_interval::SamplingInterval;
use crate::session::{ObserverSession, Refusal};

/// The longest interval between samples of the sessions.
const SELDOM: Duration = Duration::from_secs(1);

/// The longest interval between samples of the locks.
const LOCKS_SELDOM: Duration = Duration::from_secs(10);

/// The first sample of the locks is taken after this part of the usual interval, and each further
/// one after as much time as has passed, so that short measured parts have some, too.
const LOCKS_FIRST: u32 = 5;

/// The parts of the time that samples of the sessions, and of the locks, may take.
const SESSIONS_SHARE: u32 = 20;
const LOCKS_SHARE: u32 = 100;

/// The samples so far, and the schedules of the next ones.
#[derive(Default)]
pub struct Sampler {
    samples: Vec<Sample>,
    locks: Locks,
    /// Time spent on samples.
    spent: Duration,
    sessions: Option<SampleSchedule>,
    locks_schedule: Option<SampleSchedule>,
    locks_every: Duration,
    /// Samples are kept since this instant.
    began: Option<Instant>,
    notes: Vec<String>,
}

/// The schedule of a kind of samples.
struct SampleSchedule {
    due: Instant,
    interval: SamplingInterval,
}

impl SampleSchedule {
    fn new(first: Duration, most: Duration, share: u32) -> SampleSchedule {
        SampleSchedule { due: Instant::now() + first, interval: SamplingInterval::new(first, most, share) }
    }

    /// Schedules the sample after one that started at `began`: after the interval, or after
    /// `least`.
    fn next(&mut self, began: Instant, cost: Duration, least: Duration) {
        self.interval.took(cost);
        self.due = began + self.interval.gap().max(least);
    }
}

impl Sampler {
    /// Samples the sessions from now on, if they can be seen, without keeping the samples.
    pub fn look(&mut self, capabilities: &Capabilities, options: &ObserverOptions) {
        self.sessions =
            capabilities.sees_sessions.then(|| SampleSchedule::new(options.every, SELDOM, SESSIONS_SHARE));
    }

    /// Keeps samples from now on.
    pub fn begin(&mut self, capabilities: &Capabilities, options: &ObserverOptions) {
        *self = Sampler { locks_every: options.locks_every, ..Sampler::default() };
        self.look(capabilities, options);
        let first = options.locks_every / LOCKS_FIRST;
        self.locks_schedule =
            capabilities.sees_locks.then(|| SampleSchedule::new(first, LOCKS_SELDOM, LOCKS_SHARE));
        self.began = Some(Instant::now());
    }

    /// Looks up the relations whose locks were sampled, after the end of the measured part, while
    /// they still exist.
    pub fn name_relations(&mut self, session: &mut ObserverSession) {
        if let Err(refusal) = self.locks.name_relations(session) {
            let (Refusal::Never(why) | Refusal::Now(why)) = refusal else { return };
            self.notes.push(format!("the names of the locked tables can't be read: {why}"));
        }
    }

    /// Stops sampling.
    pub fn end(&mut self) {
        (self.sessions, self.locks_schedule, self.began) = (None, None, None);
    }

    /// The instant at which the next sample is due.
    pub fn due(&self) -> Option<Instant> {
        self.sessions.as_ref().map(|schedule| schedule.due)
    }

    /// Samples the sessions except `others`, and the locks if they are due. Returns the sample of
    /// the sessions.
    pub fn sample(
        &mut self,
        session: &mut ObserverSession,
        capabilities: &mut Capabilities,
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
                    capabilities.sees_sessions = false;
                    self.sessions = None;
                    return None;
                }
                None
            }
        };
        let cost = took.saturating_sub(session.round_trip);
        if let Some(schedule) = &mut self.sessions {
            schedule.next(began, cost, Duration::ZERO);
        }
        if self.began.is_some() {
            self.spent += cost;
            self.samples.extend(sample.clone());
            self.sample_locks(session, capabilities);
        }
        sample
    }

    fn sample_locks(&mut self, session: &mut ObserverSession, capabilities: &mut Capabilities) {
        let now = Instant::now();
        let (Some(begin), Some(schedule)) = (self.began, &mut self.locks_schedule) else { return };
        if now < schedule.due {
            return;
        }
        let looked = self.locks.look(session, (now - begin).as_secs_f64());
        let cost = now.elapsed().saturating_sub(session.round_trip);
        schedule.next(now, cost, (now - begin).min(self.locks_every));
        self.spent += cost;
        if let Err(refusal) = looked
            && self.refused(refusal, "locks")
        {
            capabilities.sees_locks = false;
            self.locks_schedule = None;
        }
    }

    /// Notes a refusal. Returns true if it is permanent.
    fn refused(&mut self, refusal: Refusal, what: &str) -> bool {
        let (note, for_good) = match refusal {
            Refusal::Never(why) => (format!("the {what} can't be sampled any more: {why}"), true),
            Refusal::Now(why) => (format!("a sample of the {what} failed: {why}"), false),
            // Reported with its reason at the end.
            Refusal::Lost => return true,
        };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        for_good
    }

    /// Returns the observations.
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
