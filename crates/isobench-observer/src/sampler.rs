//! Takes the samples of a measured part when they are due: of the sessions often, of the locks less
//! often. Only the time of its slices counts: in between, nothing is due.
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
    /// Samples have been kept.
    started: bool,
    /// Samples are kept since this instant, the beginning of the slice.
    began: Option<Instant>,
    /// The length of the slices before.
    before: Duration,
    notes: Vec<String>,
}

/// The schedule of a kind of samples.
struct SampleSchedule {
    due: Due,
    interval: SamplingInterval,
}

/// When the next sample is due.
#[derive(Clone, Copy)]
enum Due {
    At(Instant),
    /// After so much time of the next slices.
    In(Duration),
}

impl SampleSchedule {
    fn new(first: Duration, most: Duration, share: u32) -> SampleSchedule {
        SampleSchedule {
            due: Due::At(Instant::now() + first),
            interval: SamplingInterval::new(first, most, share),
        }
    }

    /// The time until the next sample goes on, or stands still.
    fn run(&mut self, runs: bool) {
        let now = Instant::now();
        self.due = match (self.due, runs) {
            (Due::In(left), true) => Due::At(now + left),
            (Due::At(due), false) => Due::In(due.saturating_duration_since(now)),
            (due, _) => due,
        };
    }

    fn due(&self) -> Option<Instant> {
        match self.due {
            Due::At(due) => Some(due),
            Due::In(_) => None,
        }
    }

    /// Schedules the sample after one that started at `began`: after the interval, or after
    /// `least`.
    fn next(&mut self, began: Instant, cost: Duration, least: Duration) {
        self.interval.took(cost);
        self.due = Due::At(began + self.interval.gap().max(least));
    }
}

impl Sampler {
    /// Samples the sessions from now on, if they can be seen, without keeping the samples.
    pub fn look(&mut self, capabilities: &Capabilities, options: &ObserverOptions) {
        self.sessions =
            capabilities.sees_sessions.then(|| SampleSchedule::new(options.every, SELDOM, SESSIONS_SHARE));
    }

    /// Keeps samples from now on: a slice begins. What was due in the last one is due in this one.
    pub fn begin(&mut self, capabilities: &Capabilities, options: &ObserverOptions) {
        self.end();
        if !std::mem::replace(&mut self.started, true) {
            self.locks_every = options.locks_every;
            self.look(capabilities, options);
            let first = options.locks_every / LOCKS_FIRST;
            self.locks_schedule =
                capabilities.sees_locks.then(|| SampleSchedule::new(first, LOCKS_SELDOM, LOCKS_SHARE));
        }
        self.schedules().for_each(|schedule| schedule.run(true));
        self.began = Some(Instant::now());
    }

    fn schedules(&mut self) -> impl Iterator<Item = &mut SampleSchedule> {
        self.sessions.iter_mut().chain(&mut self.locks_schedule)
    }

    /// The measured time so far; `None` outside slices.
    fn measured(&self, now: Instant) -> Option<Duration> {
        self.began.map(|began| self.before + now.saturating_duration_since(began))
    }

    /// Looks up the relations whose locks were sampled, after the end of the measured part, while
    /// they still exist.
    pub fn name_relations(&mut self, session: &mut ObserverSession) {
        if let Err(refusal) = self.locks.name_relations(session) {
            let (Refusal::Never(why) | Refusal::Now(why)) = refusal else { return };
            self.notes.push(format!("the names of the locked tables can't be read: {why}"));
        }
    }

    /// Stops sampling: the slice has ended, if there was one.
    pub fn end(&mut self) {
        self.before = self.measured(Instant::now()).unwrap_or(self.before);
        self.began = None;
        self.schedules().for_each(|schedule| schedule.run(false));
    }

    /// The instant at which the next sample is due.
    pub fn due(&self) -> Option<Instant> {
        self.sessions.as_ref().and_then(SampleSchedule::due)
    }

    /// Samples the sessions except `others`, and the locks if they are due, except predicate locks of
    /// others and of `past` sessions. Returns the sample of the sessions.
    pub fn sample(
        &mut self,
        session: &mut ObserverSession,
        capabilities: &mut Capabilities,
        others: &[u32],
        past: &[u32],
    ) -> Option<Sample> {
        let began = Instant::now();
        let looked = activity::look(session, others);
        let took = began.elapsed();
        let sample = match looked {
            Ok(sessions) => {
                let at_s = self.measured(began + took / 2).map(|at| at.as_secs_f64());
                Some(Sample { at_s, sessions })
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
            self.sample_locks(session, capabilities, &[others, past].concat());
        }
        sample
    }

    fn sample_locks(
        &mut self,
        session: &mut ObserverSession,
        capabilities: &mut Capabilities,
        others: &[u32],
    ) {
        let now = Instant::now();
        let (Some(measured), Some(schedule)) = (self.measured(now), &mut self.locks_schedule) else { return };
        if schedule.due().is_none_or(|due| now < due) {
            return;
        }
        let looked = self.locks.look(session, others, measured.as_secs_f64());
        let cost = now.elapsed().saturating_sub(session.round_trip);
        schedule.next(now, cost, measured.min(self.locks_every));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_of_slices_passes() {
        let day = Duration::from_hours(24);
        let mut schedule = SampleSchedule::new(day, day, SESSIONS_SHARE);
        let due = schedule.due().expect("it runs");
        schedule.run(false);
        assert_eq!(schedule.due(), None);
        let Due::In(left) = schedule.due else { panic!("it stands still") };
        assert!(left <= day);
        schedule.run(false);
        schedule.run(true);
        // It has stood still for a moment.
        assert!(schedule.due().is_some_and(|later| later >= due));
        schedule.run(true);
        schedule.due = Due::In(Duration::ZERO);
        schedule.run(true);
        assert!(schedule.due().is_some_and(|due| due <= Instant::now()), "what was missed comes at once");
    }

    #[test]
    fn the_measured_time_is_that_of_all_slices() {
        let mut sampler = Sampler::default();
        let (capabilities, options) = (Capabilities::default(), ObserverOptions::default());
        assert_eq!(sampler.measured(Instant::now()), None);
        sampler.before = Duration::from_secs(40);
        for _ in 0..3 {
            sampler.begin(&capabilities, &options);
            let began = sampler.began.expect("a slice");
            let before = sampler.before;
            assert_eq!(
                sampler.measured(began + Duration::from_secs(2)),
                Some(before + Duration::from_secs(2))
            );
            sampler.end();
            assert_eq!(sampler.measured(Instant::now()), None);
            assert!(sampler.before >= before);
        }
        assert!(sampler.due().is_none());
    }
}
