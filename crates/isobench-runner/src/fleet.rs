//! The clients of a run with their sessions, spread over worker threads, and the outcome of the
//! run.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use isobench_pgwire::{ConnectOptions, Connection};
use isobench_script::Prng;
use isobench_stats::{LatencyHistogram, Ledger, LedgerError};

use crate::client::{Client, RETRIED_INSIDE};
use crate::clients::{WorkerStreams, clients};
use crate::control::Control;
use crate::event::EventHandler;
use crate::event_loop::{self, ChosenLoop, Circumstances, NoRing};
use crate::job::Job;
use crate::load::WorkerLoad;
use crate::observer::TransactionObserver;
use crate::progress::{PublishedProgress, RunProgress};
use crate::recorder::{self, ConflictCount, EndedAttempt, Recorder, ScriptRecord};
use crate::series::{Bin, Series};
use crate::sockets::Sockets;
use crate::spec::StopCondition;
use crate::time::{Clock, Nanos, SystemClock};
use crate::worker::{Worker, WorkerOutcome, WorkerTask};

/// A periodic display of a run's progress.
pub struct Watch<'a> {
    /// Time between two calls; [`Duration::MAX`]: none are made.
    pub every: Duration,
    /// Latencies are shown, too. That costs each worker some microseconds, four times a second.
    pub latencies: bool,
    /// Called with the time and the progress since the start of the run.
    pub show: &'a mut dyn FnMut(Duration, RunProgress),
}

/// The clients couldn't be connected. `E` is what `connect` of [`Fleet::open`] returns.
#[derive(Debug, thiserror::Error)]
pub enum OpenError<E> {
    /// A session couldn't be set up.
    #[error("{0}")]
    Session(E),
    /// The operating system refuses a thread.
    #[error(transparent)]
    Threads(#[from] NoThreads),
    /// The operating system refuses what the event loop needs.
    #[error("could not set up the event loop for {0} connections: {1}")]
    EventLoop(usize, #[source] std::io::Error),
    /// The event loop that was asked for can't be used.
    #[error(transparent)]
    NoRing(#[from] NoRing),
}

/// The operating system refuses to start a thread for each worker.
#[derive(Debug, thiserror::Error)]
#[error("could not start {workers} worker threads: {source}")]
pub struct NoThreads {
    /// Number of threads wanted.
    workers: usize,
    source: std::io::Error,
}

/// Opens and sets up the session of a client. `P` is whatever the caller wants to keep about each
/// session.
pub type ConnectClient<'a, P, E> = dyn Fn(usize) -> Result<(Connection, P), E> + Sync + 'a;

/// The beginning of a run that several machines have agreed on, so that their clients start
/// together and their clocks show the same.
#[derive(Debug, Clone, Copy)]
pub struct CommonStart {
    /// The instant, on this machine's clock.
    pub at: Instant,
    /// What the fleet's clock is to show then.
    pub clock: Nanos,
}

/// The connected clients of a job. They keep their sessions from one run to the next (warm-up,
/// measurement).
pub struct Fleet {
    workers: Vec<Worker<Sockets>>,
    streams: Vec<WorkerStreams>,
    clock: SystemClock,
    /// The clock has stopped at this instant, the end of a turn.
    stopped: Option<Nanos>,
    /// When the next run is to begin, if not at once.
    start: Option<CommonStart>,
    /// When the last run began.
    began: Nanos,
    connecting: Duration,
    event_loop: ChosenLoop,
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// From the instant when all clients could start until the last one has finished. The sum of
    /// all turns, without the pauses between them.
    pub elapsed: Duration,
    /// The part of `elapsed` for which the clients had finished and waited for the last one, on
    /// average over the clients.
    pub idle: Duration,
    /// The turns that this outcome is the sum of ([`RunOutcome::append`]); 0 for a run in one piece.
    pub turns: u32,
    /// One record for each script, in the order of the mix.
    pub scripts: Vec<ScriptRecord>,
    /// Conflicts by code, script, command and reason.
    pub conflicts: Vec<ConflictCount>,
    /// The same for errors that were retried although they are no conflicts.
    pub further_errors: Vec<ConflictCount>,
    /// Clients that ended early.
    pub aborted: usize,
    /// The first worker with such a client, from 0.
    pub aborted_in: Option<usize>,
    /// The run was ended by a request from outside.
    pub interrupted: bool,
    /// Time spent on opening and closing sessions during the run, added up over clients
    /// ([`crate::RunSpec::connect_each`]).
    pub reconnecting: Duration,
    /// Counts over time, if they were asked for ([`crate::RunSpec::series`]).
    pub series: Option<Series>,
    /// How the workers waited for their connections; `None` in a simulation.
    pub event_loop: Option<ChosenLoop>,
    /// The load of each worker.
    pub load: Vec<WorkerLoad>,
    /// Sessions that were lost during the run and given up for others ([`crate::OnLost::Reconnect`]).
    pub lost_sessions: u64,
    /// Clients that had lost their session and no other one at the end of the run.
    pub away: usize,
    /// All attempts, in no order, if they are kept ([`crate::RunSpec::keeps_attempts`]).
    pub ended: Vec<EndedAttempt>,
}

impl Fleet {
    /// Connects every client, all workers in parallel. Returns what `connect` returned for each
    /// session. If each transaction has its own connection, none is opened yet.
    ///
    /// # Errors
    /// The first session that can't be set up; the others are closed.
    pub fn open<P: Send, E: Send>(
        job: &Job,
        connect: &ConnectClient<'_, P, E>,
    ) -> Result<(Fleet, Vec<P>), OpenError<E>> {
        let began = Instant::now();
        let clock = SystemClock::start();
        let (mut clients, streams) = clients(job);
        let mut groups: Vec<Vec<Client>> = Vec::new();
        let workers = job.spec.workers.clamp(1, clients.len().max(1));
        for worker in (1..=workers).rev() {
            // The first workers take one client more than the last ones, as in pgbench.
            let rest = clients.split_off(clients.len().div_ceil(worker));
            groups.push(std::mem::replace(&mut clients, rest));
        }
        let opened = together(
            groups.into_iter().map(|clients| move |()| open_worker(job, clients, connect)).collect(),
            || (),
            |()| (),
        )?;
        let mut workers = Vec::new();
        let mut prepared = Vec::new();
        for outcome in opened {
            let (worker, values) = outcome?;
            workers.push(worker);
            prepared.extend(values);
        }
        let event_loop = event_loop::choose(
            job.spec.event_loop,
            Circumstances {
                clients: workers.iter().map(|worker| worker.clients.len()).max().unwrap_or(0),
                encrypted: workers.iter().any(|worker| worker.transport.is_encrypted()),
                connect_each: job.spec.connect_each,
                reconnects: job.spec.reconnects().is_some(),
            },
        )?;
        for worker in &mut workers {
            worker.transport.set_event_loop(event_loop.event_loop);
        }
        Ok((
            Fleet {
                workers,
                streams,
                clock,
                stopped: None,
                start: None,
                began: Nanos(0),
                connecting: began.elapsed(),
                event_loop,
            },
            prepared,
        ))
    }

    /// Ends the fleet and returns the sessions that can be reused: outside a transaction, without
    /// an outstanding reply. The others are closed. `options` are those with which they were
    /// opened; they name one host.
    pub fn into_sessions(self, options: &ConnectOptions) -> Vec<Connection> {
        let mut sessions = Vec::new();
        for mut worker in self.workers {
            sessions.extend(worker.release(options));
        }
        sessions
    }

    /// The time it took to connect and set up all sessions.
    pub fn connecting(&self) -> Duration {
        self.connecting
    }

    /// Lets the next run begin at an instant that several machines have agreed on.
    pub fn begin_at(&mut self, start: CommonStart) {
        self.start = Some(start);
    }

    /// What the clock will show after this time; at the end of a turn it has stopped.
    pub fn clock_after(&self, time: Duration) -> Nanos {
        self.stopped.unwrap_or_else(|| self.clock.now().after(time))
    }

    /// When the last run began, on the fleet's clock.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// The time of day at the origin of the clock of [`crate::EndedTransaction::at`].
    pub fn epoch(&self) -> SystemTime {
        self.clock.epoch()
    }

    /// For each worker, the random stream that samples the transactions to be logged (pgbench:
    /// `--sampling-rate`).
    pub fn sampling(&self) -> impl Iterator<Item = Prng> + '_ {
        self.streams.iter().map(|streams| streams.sampling.clone())
    }

    /// Runs until `stop`, or until `control` asks to end. `report` is called on the workers'
    /// threads. The first of the `observers` observes the first worker's transactions, and so on.
    ///
    /// # Errors
    /// There are no threads for the workers; nothing has been done then.
    pub fn run(
        &mut self,
        job: &Job,
        stop: StopCondition,
        control: &Control,
        report: &EventHandler<'_>,
        watch: Watch<'_>,
        observers: &mut [Box<dyn TransactionObserver>],
    ) -> Result<RunOutcome, NoThreads> {
        let latencies = watch.latencies;
        let published: Vec<PublishedProgress> =
            self.workers.iter().map(|_| PublishedProgress::default()).collect();
        if let Some(at) = self.stopped.take() {
            self.clock = self.clock.stopped_since(at);
        }
        let start = self.start.take();
        if let Some(CommonStart { at, clock }) = start {
            self.clock = SystemClock::showing(clock, at);
        }
        let clock = self.clock;
        let mut observers = observers.iter_mut();
        let (done, all_done) = channel::<()>();
        let workers = self.workers.iter_mut().zip(&published).zip(&self.streams);
        let workers = workers.map(|((worker, published), streams)| {
            let done = done.clone();
            let observer = observers.next();
            move |began| {
                let task = WorkerTask {
                    job,
                    stop,
                    clock: &clock,
                    began,
                    control,
                    published,
                    latencies,
                    report,
                    streams,
                };
                let outcome = worker.run(&task, observer.map(|observer| &mut **observer));
                drop(done);
                outcome
            }
        });
        let workers = workers.collect();
        drop(done);
        let mut began = Nanos(0);
        let outcomes = beside(job, control, || {
            together(
                workers,
                || {
                    if let Some(start) = start {
                        wait_until(start.at);
                    }
                    clock.now()
                },
                |instant| {
                    began = instant;
                    show_progress(watch, &clock, began, &published, &all_done);
                },
            )
        })?;
        self.began = began;
        self.stopped = matches!(stop, StopCondition::Turn(_)).then(|| clock.now());
        let event_loop = Some(self.event_loop.clone());
        Ok(RunOutcome { event_loop, ..RunOutcome::from_workers(job, began, outcomes) })
    }
}

/// Waits until an instant, to within some microseconds.
fn wait_until(at: Instant) {
    let left = at.saturating_duration_since(Instant::now());
    thread::sleep(left.saturating_sub(SPUN));
    while Instant::now() < at {
        std::hint::spin_loop();
    }
}

/// The last part of a wait, in which a thread doesn't sleep, because it would wake too late.
const SPUN: Duration = Duration::from_micros(500);

/// Shows the progress of a run until the last worker has finished, which closes the channel.
fn show_progress(
    watch: Watch<'_>,
    clock: &SystemClock,
    began: Nanos,
    published: &[PublishedProgress],
    all_done: &Receiver<()>,
) {
    let Watch { every, show, .. } = watch;
    let mut next = every;
    let since = |now: Nanos| now.duration_since(began);
    while all_done.recv_timeout(next.saturating_sub(since(clock.now()))) == Err(RecvTimeoutError::Timeout) {
        show(since(clock.now()), RunProgress::read(published));
        next = next.saturating_add(every);
    }
    // Clients that work until the time is up finish a moment after the last display is due, so
    // without this the last interval would be missing.
    let ended = since(clock.now());
    if ended >= next {
        show(ended, RunProgress::read(published));
    }
}

/// Does work while a thread follows the job's recording, if it is to be followed.
fn beside<T>(
    job: &Job,
    control: &Control,
    work: impl FnOnce() -> Result<T, NoThreads>,
) -> Result<T, NoThreads> {
    let Some(recording) = job.recording.as_ref().filter(|recording| recording.is_followed()) else {
        return work();
    };
    let (running, over) = channel::<()>();
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("checker".to_owned());
        let thread = thread.spawn_scoped(scope, move || recording.keep_up(control, &over));
        let done = thread.map_err(|source| NoThreads { workers: 1, source }).and_then(|_| work());
        drop(running);
        done
    })
}

/// The stack of a worker's thread, bytes.
const STACK: usize = 2 << 20;

/// Memory that must be left for everything else, bytes.
const ROOM: usize = 16 << 20;

/// Checks that there is memory for one more worker. Without the check, a thread may still get its
/// stack, and the next allocation anywhere would then abort the program.
fn room() -> std::io::Result<()> {
    let mut trial = Vec::<u8>::new();
    let outcome = trial.try_reserve_exact(STACK + ROOM);
    // Keeps the compiler from removing an allocation that nothing uses.
    std::hint::black_box(&mut trial);
    outcome.map_err(|_| std::io::ErrorKind::OutOfMemory.into())
}

/// Runs each closure in a thread of its own. They start together, with the value of `begin`, which
/// is called once all threads exist; if a thread can't be started, none runs. `meanwhile` runs in
/// this thread.
fn together<T: Send, B: Copy + Send + Sync>(
    works: Vec<impl FnOnce(B) -> T + Send>,
    begin: impl FnOnce() -> B,
    meanwhile: impl FnOnce(B),
) -> Result<Vec<T>, NoThreads> {
    let workers = works.len();
    // `None`: there aren't enough threads, and none starts.
    let gate = OnceLock::<Option<B>>::new();
    thread::scope(|scope| {
        let gate = &gate;
        // One after the other, because `room` sees only the memory that earlier threads have
        // already taken.
        let start = |work: _| {
            room()?;
            let (started, has_started) = channel::<()>();
            let thread = thread::Builder::new().name("worker".to_owned()).stack_size(STACK);
            let thread = thread.spawn_scoped(scope, move || {
                drop(started);
                gate.wait().map(work)
            })?;
            let (Ok(()) | Err(_)) = has_started.recv();
            Ok(thread)
        };
        let threads = works.into_iter().map(start).collect::<std::io::Result<Vec<_>>>();
        let opened = *gate.get_or_init(|| threads.is_ok().then(begin));
        if let Some(begun) = opened {
            meanwhile(begun);
        }
        let threads = threads.map_err(|source| NoThreads { workers, source })?;
        let join = |thread: thread::ScopedJoinHandle<'_, Option<T>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok(threads.into_iter().filter_map(join).collect())
    })
}

fn open_worker<P, E>(
    job: &Job,
    mut clients: Vec<Client>,
    connect: &ConnectClient<'_, P, E>,
) -> Result<(Worker<Sockets>, Vec<P>), OpenError<E>> {
    let count = clients.len();
    let refused = |error| OpenError::EventLoop(count, error);
    let mut transport = Sockets::new(count);
    let mut prepared = Vec::new();
    if !job.spec.connect_each {
        for (index, client) in clients.iter_mut().enumerate() {
            let (connection, value) = connect(client.id()).map_err(OpenError::Session)?;
            let received = transport.adopt(index, connection.into_established()).map_err(refused)?;
            client.take_over(&received);
            prepared.push(value);
        }
    }
    Ok((Worker::new(clients, transport), prepared))
}

/// The attempts with the times of their ends since the start of the run.
fn since(mut ended: Vec<EndedAttempt>, began: Nanos) -> Vec<EndedAttempt> {
    for attempt in &mut ended {
        attempt.at = Nanos(attempt.at).since(began);
    }
    ended
}

impl RunOutcome {
    /// Adds up the outcomes of the workers.
    pub(crate) fn from_workers(job: &Job, began: Nanos, outcomes: Vec<WorkerOutcome>) -> RunOutcome {
        let mut sum = job.recorder();
        for outcome in &outcomes {
            sum.merge(&outcome.recorder);
        }
        let ended = outcomes.iter().map(|outcome| outcome.ended).max().unwrap_or(began);
        let finished = outcomes.iter().map(|outcome| outcome.finished);
        let (clients, times) = finished.fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        let elapsed = ended.duration_since(began);
        let worked = times.checked_div(clients).map_or(elapsed, Duration::from_nanos);
        RunOutcome {
            elapsed,
            idle: elapsed.saturating_sub(worked),
            turns: 0,
            scripts: sum.scripts,
            conflicts: sum.conflicts,
            further_errors: sum.further_errors,
            lost_sessions: sum.lost_sessions,
            away: outcomes.iter().map(|outcome| outcome.away).sum(),
            ended: since(sum.ended, began),
            series: sum.series.map(|counter| counter.finish(ended)),
            aborted: outcomes.iter().map(|outcome| outcome.aborted).sum(),
            aborted_in: outcomes.iter().position(|outcome| outcome.aborted > 0),
            interrupted: outcomes.iter().any(|outcome| outcome.interrupted),
            reconnecting: outcomes.iter().map(|outcome| outcome.reconnecting).sum(),
            event_loop: None,
            load: outcomes.into_iter().map(|outcome| outcome.load).collect(),
        }
    }

    /// The levels that transactions of all scripts reported when asked ([`Job::asking_level`]), with
    /// the number of answers.
    pub fn levels(&self) -> BTreeMap<String, u64> {
        let mut sum = BTreeMap::new();
        for (level, count) in self.scripts.iter().flat_map(|script| &script.levels) {
            *sum.entry(level.clone()).or_default() += count;
        }
        sum
    }

    /// The outcome of a job that hasn't run.
    pub fn nothing(job: &Job) -> RunOutcome {
        RunOutcome::from_workers(job, Nanos(0), Vec::new())
    }

    /// No outcome at all.
    pub(crate) fn empty() -> RunOutcome {
        RunOutcome {
            elapsed: Duration::ZERO,
            idle: Duration::ZERO,
            turns: 0,
            scripts: Vec::new(),
            conflicts: Vec::new(),
            further_errors: Vec::new(),
            aborted: 0,
            aborted_in: None,
            interrupted: false,
            reconnecting: Duration::ZERO,
            series: None,
            event_loop: None,
            load: Vec::new(),
            lost_sessions: 0,
            away: 0,
            ended: Vec::new(),
        }
    }

    /// The figures shown while a run goes on, as they were at its end.
    pub fn progress(&self) -> RunProgress {
        let latencies = recorder::latencies(&self.scripts);
        RunProgress { latencies, ..recorder::progress(&self.scripts, &self.conflicts) }
    }

    /// The same outcome as the first of several turns, whose series has a bin of the length `bin`
    /// for each.
    #[must_use]
    pub fn into_turn(mut self, bin: Duration) -> RunOutcome {
        self.turns = 1;
        self.series = self.series.map(|series| Series { bin, bins: vec![series.total()] });
        self
    }

    /// Adds the outcome of the next turn of the same clients.
    pub fn append(&mut self, next: RunOutcome) {
        self.turns += 1;
        if let Some(series) = &mut self.series {
            series.bins.push(Bin::default());
        }
        self.close(next);
    }

    /// Adds the outcome of a run after the last turn, which ended what waited for another one.
    pub fn close(&mut self, next: RunOutcome) {
        self.elapsed += next.elapsed;
        self.idle += next.idle;
        let mut sum = Recorder {
            scripts: std::mem::take(&mut self.scripts),
            conflicts: std::mem::take(&mut self.conflicts),
            further_errors: std::mem::take(&mut self.further_errors),
            series: None,
            lost_sessions: self.lost_sessions,
            ended: std::mem::take(&mut self.ended),
        };
        let RunOutcome { scripts, conflicts, further_errors, lost_sessions, ended, .. } = next;
        for (before, after) in sum.scripts.iter_mut().zip(&scripts) {
            let branches = before.branches.iter_mut().zip(&after.branches);
            branches.for_each(|(before, after)| before.precede(after));
        }
        sum.merge(&Recorder { scripts, conflicts, further_errors, series: None, lost_sessions, ended });
        (self.scripts, self.conflicts) = (sum.scripts, sum.conflicts);
        self.further_errors = sum.further_errors;
        (self.lost_sessions, self.away) = (sum.lost_sessions, next.away);
        self.ended = sum.ended;
        if let (Some(series), Some(more)) = (&mut self.series, &next.series) {
            series.add_to_last(&more.total());
        }
        self.aborted = next.aborted;
        self.aborted_in = next.aborted_in;
        self.interrupted |= next.interrupted;
        self.reconnecting += next.reconnecting;
        for (load, more) in self.load.iter_mut().zip(&next.load) {
            load.append(more);
        }
    }

    /// The outcomes of several machines as one, of clients that have started together; `None` without any.
    /// What was counted adds up; the time is that of the machine that took longest, and the others' clients
    /// were idle for the rest of it.
    pub fn together(outcomes: Vec<RunOutcome>) -> Option<RunOutcome> {
        let mut all = outcomes.into_iter();
        let mut sum = all.next()?;
        for other in all {
            sum.join(other);
        }
        Some(sum)
    }

    fn join(&mut self, other: RunOutcome) {
        let clients = |outcome: &RunOutcome| outcome.load.iter().map(|load| load.clients).sum::<usize>();
        let worked = |outcome: &RunOutcome| outcome.elapsed.saturating_sub(outcome.idle).as_nanos();
        let (mine, theirs) = (clients(self), clients(&other));
        let times = worked(self) * mine as u128 + worked(&other) * theirs as u128;
        let elapsed = self.elapsed.max(other.elapsed);
        let worked = times.checked_div((mine + theirs) as u128).unwrap_or_default();
        let worked = Duration::from_nanos(u64::try_from(worked).unwrap_or(u64::MAX));
        let (aborted, away) = (self.aborted + other.aborted, self.away + other.away);
        let workers = self.load.len();
        let aborted_in = self.aborted_in.or(other.aborted_in.map(|worker| workers + worker));
        let load: Vec<WorkerLoad> =
            std::mem::take(&mut self.load).into_iter().chain(other.load.clone()).collect();
        let turns = self.turns.max(other.turns);
        let series = match (self.series.take(), other.series.clone()) {
            (Some(mine), Some(theirs)) => Some(mine.beside(theirs, elapsed, turns > 0)),
            (mine, theirs) => mine.or(theirs),
        };
        self.close(RunOutcome { series: None, load: Vec::new(), ..other });
        *self = RunOutcome {
            elapsed,
            idle: elapsed.saturating_sub(worked),
            turns,
            aborted,
            aborted_in,
            away,
            series,
            load,
            ..std::mem::replace(self, RunOutcome::empty())
        };
    }

    /// The ledger of all scripts together.
    pub fn ledger(&self) -> Ledger {
        self.scripts.iter().map(|script| &script.ledger).sum()
    }

    /// The latencies of all scripts together.
    pub fn latency(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::new();
        for script in &self.scripts {
            all.merge(&script.latency);
        }
        all
    }

    /// True if no client was aborted and the run wasn't interrupted.
    pub fn is_complete(&self) -> bool {
        self.aborted == 0 && !self.interrupted
    }

    /// Checks the accounting rules: every attempt and every transaction is in exactly one bucket;
    /// the conflicts by kind, and all counts over time, add up to the totals.
    ///
    /// # Errors
    /// The identity that doesn't hold. This is a defect of the program, never of the server.
    pub fn check(&self) -> Result<(), AccountingError> {
        let ledger = self.ledger();
        ledger.check()?;
        for (counts, counted) in
            [(&self.conflicts, ledger.conflicts), (&self.further_errors, ledger.further_errors)]
        {
            let by_kind: u64 = counts.iter().map(|conflict| conflict.count).sum();
            if by_kind != counted {
                return Err(AccountingError::Conflicts { by_kind, counted });
            }
        }
        // Those that the server made inside others have no number of their own.
        let inside = self.conflicts.iter().filter(|conflict| conflict.reason == RETRIED_INSIDE);
        let inside = inside.map(|conflict| conflict.count).sum();
        let (kept, ended) = (self.ended.len() as u64, ledger.attempts.started.saturating_sub(inside));
        if kept > 0 && kept != ended {
            return Err(AccountingError::Attempts { kept, ended });
        }
        let latencies = self.latency().len();
        if latencies != ledger.transactions.committed {
            return Err(AccountingError::Latencies { latencies, committed: ledger.transactions.committed });
        }
        self.series.as_ref().map_or(Ok(()), |series| self.check_series(series, &ledger))
    }

    /// Checks that the counts over time add up to the totals, and that the bins cover the whole
    /// run.
    fn check_series(&self, series: &Series, ledger: &Ledger) -> Result<(), AccountingError> {
        let bins = match self.turns {
            0 => self.elapsed.as_nanos().div_ceil(series.bin.as_nanos().max(1)).max(1),
            turns => turns.into(),
        };
        let sum = series.total();
        let latency: u128 = self.scripts.iter().map(|script| script.latency.moments().sum_ns()).sum();
        let pairs: [(&'static str, u128, u128); 5] = [
            ("committed transactions", sum.committed.into(), ledger.transactions.committed.into()),
            ("conflicts", sum.conflicts.into(), ledger.conflicts.into()),
            ("attempts", sum.attempts.into(), ledger.attempts.started.into()),
            ("nanoseconds of latency", sum.latency_ns.into(), latency),
            ("bins", series.bins.len() as u128, bins),
        ];
        match pairs.into_iter().find(|(_, over_time, counted)| over_time != counted) {
            Some((what, over_time, counted)) => Err(AccountingError::Series { what, over_time, counted }),
            None => Ok(()),
        }
    }
}

/// Figures of a run that contradict each other: a defect of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountingError {
    /// An identity of the ledger is broken.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The table of conflicts or of further errors and the ledger differ.
    #[error("{by_kind} conflicts or retried errors by kind, but {counted} in all; please report this")]
    Conflicts {
        /// Sum over the table.
        by_kind: u64,
        /// Count in the ledger.
        counted: u64,
    },
    /// The histogram and the ledger differ.
    #[error("{latencies} latencies of {committed} committed transactions; please report this")]
    Latencies {
        /// Entries of the histogram.
        latencies: u64,
        /// Count in the ledger.
        committed: u64,
    },
    /// The attempts that were kept and the ledger differ.
    #[error("{kept} attempts were kept of {ended}; please report this")]
    Attempts {
        /// Number of them.
        kept: u64,
        /// Attempts in the ledger.
        ended: u64,
    },
    /// The series and the ledger differ.
    #[error("{over_time} {what} over time, but {counted} in all; please report this")]
    Series {
        /// The quantity.
        what: &'static str,
        /// Sum over the bins.
        over_time: u128,
        /// The count of the whole run.
        counted: u128,
    },
}
