//! How busy a worker was: what tells whether the client, and not the server, was the bottleneck.
//!
//! Not here: the loop that is measured (`worker.rs`), and from when on a client counts as
//! overloaded (whoever judges the run).

use std::time::Duration;

use isobench_stats::LatencyHistogram;

use crate::time::{Clock, Nanos, ThreadTime};

/// What one worker did besides waiting, from the begin of its run until its last client had
/// finished.
///
/// A *pass* of its loop begins when the poller comes back with news or because a timer is due,
/// serves all of that, and ends when the worker waits again. The start, when every client begins
/// its first transaction, is a pass, too.
#[derive(Debug, Clone)]
pub struct WorkerLoad {
    /// Its clients.
    pub clients: usize,
    /// From the begin of its run until its last client had finished.
    pub elapsed: Duration,
    /// Of that, the time outside of the poller: in passes. It includes what the worker spent
    /// waiting for a core in them, opening sessions ([`crate::RunSpec::connect_each`]) and running
    /// programs (`\shell`), and lacks what the poller itself costs.
    pub busy: Duration,
    /// Processor time of the worker's thread, user and system, over `elapsed`; the poller's
    /// included, waiting excluded. `None` where the clock doesn't tell (a simulation).
    pub cpu: Option<Duration>,
    /// How long the thread was ready to run and had no core, over `elapsed`: in passes, and when
    /// the poller had news but couldn't come back. `None` where the system doesn't tell (Linux:
    /// `/proc/thread-self/schedstat`).
    pub starved: Option<Duration>,
    /// Passes of the loop.
    pub passes: u64,
    /// How long each pass took, counted once for every reply and every timer that it served. So it
    /// is weighted by what had to wait: nothing that a pass served waited longer for its turn, and
    /// what arrived meanwhile waited for the rest of it. Where the worker has always something to
    /// do, a reply waits half a pass to be noticed and half a pass for its turn on average, and the
    /// mean is the delay that the client adds to each reply.
    pub lag: LatencyHistogram,
    /// How late timers were served (schedule, think time, backoff, `\sleep`): from the instant that
    /// was asked for to the begin of the worker's turn at the timers. Includes how long the system
    /// took to wake the worker.
    pub timers: LatencyHistogram,
}

impl WorkerLoad {
    /// Share of the time outside of the poller, 0 to 1; 0 if no time passed.
    pub fn busy_share(&self) -> f64 {
        share(self.busy, self.elapsed)
    }

    /// Processor time as a share of the time elapsed, 0 to 1: how much of one core the worker used.
    pub fn cpu_share(&self) -> Option<f64> {
        self.cpu.map(|cpu| share(cpu, self.elapsed))
    }

    /// Share of the time in which the worker could have run but had no core, 0 to 1.
    pub fn starved_share(&self) -> Option<f64> {
        self.starved.map(|starved| share(starved, self.elapsed))
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    // Clocks of different kinds may differ by a little.
    if whole.is_zero() { 0.0 } else { (part.as_secs_f64() / whole.as_secs_f64()).min(1.0) }
}

/// Measures the load of one worker.
pub(crate) struct LoadMeter {
    began: Nanos,
    /// The thread's time at the begin.
    thread: Option<ThreadTime>,
    /// When the present pass began.
    woke: Nanos,
    busy: u64,
    passes: u64,
    lag: LatencyHistogram,
    timers: LatencyHistogram,
}

impl LoadMeter {
    /// Begins with the first pass. To be called on the worker's thread.
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

    /// The worker has come back from the poller.
    #[inline]
    pub(crate) fn begin_pass(&mut self, now: Nanos) {
        self.woke = now;
    }

    /// A timer that was due at `due` is served.
    #[inline]
    pub(crate) fn timer(&mut self, due: Nanos, now: Nanos) {
        self.timers.record(now.since(due));
    }

    /// The pass is over, in which so many replies and timers were served.
    #[inline]
    pub(crate) fn end_pass(&mut self, now: Nanos, served: usize) {
        let took = now.since(self.woke);
        self.busy += took;
        self.passes += 1;
        self.lag.record_many(took, served as u64);
    }

    /// What was measured, when the last client has finished. To be called on the worker's thread.
    pub(crate) fn finish(self, clock: &dyn Clock, ended: Nanos, clients: usize) -> WorkerLoad {
        let thread = self.thread.zip(clock.thread_time());
        let starved = thread.and_then(|(before, after)| after.starved?.checked_sub(before.starved?));
        WorkerLoad {
            clients,
            elapsed: ended.duration_since(self.began),
            busy: Duration::from_nanos(self.busy),
            cpu: thread.map(|(before, after)| after.cpu.saturating_sub(before.cpu)),
            starved,
            passes: self.passes,
            lag: self.lag,
            timers: self.timers,
        }
    }
}
