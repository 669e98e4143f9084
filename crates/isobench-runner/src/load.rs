//! The load of a worker: shows whether the client rather than the server was the bottleneck.
//!
//! Not here: the loop that is measured (`worker.rs`), and the threshold for an overloaded client
//! (it is the caller's).

use std::time::Duration;

use isobench_stats::LatencyHistogram;

use crate::time::{Clock, Nanos, ThreadTime};

/// The work of one worker from the start of its run until its last client had finished.
///
/// A *pass* of its loop starts when the poller returns with sockets that are ready or because a
/// timer is due, serves all of these, and ends when the worker waits again. The start, when every
/// client starts its first transaction, is a pass, too.
#[derive(Debug, Clone)]
pub struct WorkerLoad {
    /// Its number of clients.
    pub clients: usize,
    /// From the start of its run until its last client had finished.
    pub elapsed: Duration,
    /// The part of `elapsed` spent in passes, or `cpu` if that is more. Includes time in which the
    /// worker waited for a core, opened sessions ([`crate::RunSpec::connect_each`]) or ran programs
    /// (`\shell`). Passes exclude what the poller does when there is nothing to wait for, and with
    /// `io_uring` sending, which is a part of waiting then; `cpu` includes both.
    pub busy: Duration,
    /// Processor time of the worker's thread, user and system, during `elapsed`. Includes the
    /// poller's, excludes waiting. `None` if the clock can't measure it (a simulation).
    pub cpu: Option<Duration>,
    /// Time during `elapsed` in which the thread was ready to run and had no core: in passes, and
    /// when the poller could have returned. `None` if the system doesn't report it (Linux:
    /// `/proc/thread-self/schedstat`).
    pub starved: Option<Duration>,
    /// Passes of the loop.
    pub passes: u64,
    /// Duration of each pass, counted once for every reply and every timer that it served.
    ///
    /// It is therefore weighted by what had to wait: nothing that a pass served waited longer for
    /// its turn, and what arrived meanwhile waited for the rest of it. If the worker always has
    /// something to do, a reply waits on average half a pass to be noticed and half a pass for its
    /// turn, so the mean is the delay that the client adds to each reply.
    pub lag: LatencyHistogram,
    /// Lateness of timers (schedule, think time, backoff, `\sleep`): from the instant asked for to
    /// the start of the worker's turn at the timers. Includes the time that the system took to wake
    /// the worker.
    pub timers: LatencyHistogram,
}

impl WorkerLoad {
    /// Adds the load of the worker's next turn.
    pub(crate) fn append(&mut self, next: &WorkerLoad) {
        let sum =
            |one: Option<Duration>, other: Option<Duration>| one.zip(other).map(|(one, other)| one + other);
        self.elapsed += next.elapsed;
        self.busy += next.busy;
        self.cpu = sum(self.cpu, next.cpu);
        self.starved = sum(self.starved, next.starved);
        self.passes += next.passes;
        self.lag.merge(&next.lag);
        self.timers.merge(&next.timers);
    }

    /// Share of the time outside the poller, 0 to 1; 0 if no time passed.
    pub fn busy_share(&self) -> f64 {
        share(self.busy, self.elapsed)
    }

    /// Share of the time in which the worker could have run but had no core, 0 to 1.
    pub fn starved_share(&self) -> Option<f64> {
        self.starved.map(|starved| share(starved, self.elapsed))
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    // Different clocks may differ a little.
    if whole.is_zero() { 0.0 } else { (part.as_secs_f64() / whole.as_secs_f64()).min(1.0) }
}

/// Measures the load of one worker.
pub(crate) struct LoadMeter {
    began: Nanos,
    /// The thread's times at the start.
    thread: Option<ThreadTime>,
    /// Start of the current pass.
    woke: Nanos,
    busy: u64,
    passes: u64,
    lag: LatencyHistogram,
    timers: LatencyHistogram,
}

impl LoadMeter {
    /// Starts the first pass. Must be called on the worker's thread.
    pub(crate) fn new(clock: &dyn Clock, began: Nanos) -> LoadMeter {
        LoadMeter {
            began,
            thread: clock.thread_time(),
            woke: began,
            busy: 0,
            passes: 0,
            lag: LatencyHistogram::new(),
            timers: LatencyHistogram::new(),
        }
    }

    /// Starts a pass: the poller has returned.
    #[inline]
    pub(crate) fn begin_pass(&mut self, now: Nanos) {
        self.woke = now;
    }

    /// Records a timer that was due at `due` and is served now.
    #[inline]
    pub(crate) fn timer(&mut self, due: Nanos, now: Nanos) {
        self.timers.record(now.since(due));
    }

    /// Ends a pass in which this many replies and timers were served.
    #[inline]
    pub(crate) fn end_pass(&mut self, now: Nanos, served: usize) {
        let took = now.since(self.woke);
        self.busy += took;
        self.passes += 1;
        self.lag.record_many(took, served as u64);
    }

    /// Returns the measurements after the last client has finished. Must be called on the worker's
    /// thread.
    pub(crate) fn finish(self, clock: &dyn Clock, ended: Nanos, clients: usize) -> WorkerLoad {
        let thread = self.thread.zip(clock.thread_time());
        let (passes, elapsed) = (Duration::from_nanos(self.busy), ended.duration_since(self.began));
        let cpu = thread.map(|(before, after)| after.cpu.saturating_sub(before.cpu));
        let starved = thread.and_then(|(before, after)| after.starved?.checked_sub(before.starved?));
        WorkerLoad {
            clients,
            elapsed,
            busy: cpu.map_or(passes, |cpu| cpu.max(passes).min(elapsed)),
            cpu,
            starved,
            passes: self.passes,
            lag: self.lag,
            timers: self.timers,
        }
    }
}
