//! The clients of one measurement: those of this machine, and those of the others if there are any.
//! They are connected, run and left as one.
//!
//! Not here: what the other machines do (`serving.rs`), and what the figures are for
//! (`measurement.rs`).

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use isobench_database::{Database, Product};
use isobench_isolation::{EffectiveLevel, Level};
use isobench_limits::LIMITS;
use isobench_peers::{ClockOffset, Peers, PeersError};
use isobench_pgwire::ConnectOptions;
use isobench_result::MachineRound;
use isobench_runner::{
    CommonStart, Control, EventHandler, Fleet, Job, LogSettings, LoggedRun, Nanos, Recording, RunOutcome,
    RunProgress, StartError, StopCondition, Urgency, Watch,
};

use crate::design::count;
use crate::failure::{Failure, Outcome};
use crate::machines::{Handling, Left, Machines, Open, Order, Ran, Reply, Urge, unpack};
use crate::messages::Messages;
use crate::round::{cpu_seconds, load};
use crate::sessions::{self, Places, no_threads};

/// How often rank 0 looks whether it is asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Time between an order to run and the common start, unless orders take longer to reach all.
const LEAD: Duration = Duration::from_millis(10);

/// Connected clients.
pub struct Crew<'c> {
    fleet: Fleet,
    others: Option<Elsewhere<'c>>,
}

/// The clients on other machines, and what is known of each machine.
pub struct Elsewhere<'c> {
    machines: &'c Machines,
    measurement: u64,
    offsets: Vec<ClockOffset>,
    /// The time in which all hear of all.
    phase: Duration,
    /// What the clients' clock shows at least everywhere, ns.
    clock: u64,
    connecting: Option<Duration>,
    /// The sessions are closed.
    left: bool,
    /// What was counted on each machine, by rank.
    counted: Vec<Counted>,
}

/// What was counted on one machine.
#[derive(Default)]
struct Counted {
    run: Option<RunOutcome>,
    cpu_s: f64,
    /// The latest start after the common one, ns.
    late: u64,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To warm up.
    WarmUp,
    /// To be counted.
    Measurement,
    /// To end what waited for another turn.
    Rest,
}

/// A crew just connected.
pub struct Boarded<'c> {
    /// The clients.
    pub crew: Crew<'c>,
    /// The level of their sessions.
    pub effective: EffectiveLevel,
    /// Number of transactions that setting up all sessions took, as the server counts them.
    pub transactions: u64,
}

/// What the sessions of a crew said when they were closed.
pub struct Gone {
    /// The levels that they ran at.
    pub levels: Vec<EffectiveLevel>,
    /// Number of transactions that asking took.
    pub transactions: u64,
    /// What is known of each machine, if there are several.
    pub machines: Vec<MachineRound>,
    /// The measurement of which the other machines keep what they recorded, for a check together.
    pub kept: Option<u64>,
}

impl Crew<'_> {
    /// Connects all clients: here as [`sessions::open`] does, and likewise on the other machines.
    ///
    /// # Errors
    /// A session can't be set up, or a machine is gone.
    pub fn open<'c>(
        job: &Job,
        places: &Places,
        database: &Database,
        level: Option<Level>,
        others: Option<Elsewhere<'c>>,
    ) -> Outcome<Boarded<'c>> {
        let Some(mut others) = others else {
            let opened = sessions::open(job, places, database, level)?;
            let crew = Crew { fleet: opened.fleet, others: None };
            return Ok(Boarded { crew, effective: opened.effective, transactions: opened.transactions });
        };
        let (machines, measurement) = (others.machines, others.measurement);
        machines.peers().send_all(&Order::Connect { measurement }.pack(&[]));
        let opened = sessions::open(job, places, database, level);
        let replies = each(machines, "connecting the clients", |reply| match reply {
            Reply::Opened(opened) => Some(opened),
            _ => None,
        });
        let (replies, opened) = (replies?, opened?);
        (others.offsets, others.phase) = machines.compare_clocks()?;
        others.connecting = replies.iter().map(|opened| opened.connecting).max();
        let levels = replies.iter().map(|opened| opened.effective.clone());
        let levels: Vec<EffectiveLevel> = std::iter::once(opened.effective).chain(levels).collect();
        let transactions = replies.iter().map(|opened| opened.transactions).sum::<u64>();
        Ok(Boarded {
            crew: Crew { fleet: opened.fleet, others: Some(others) },
            effective: sessions::agree(&levels),
            transactions: opened.transactions + transactions,
        })
    }

    /// The time it took to connect and set up all sessions, on the machine where it took longest.
    pub fn connecting(&self) -> Duration {
        let others = self.others.as_ref().and_then(|others| others.connecting);
        self.fleet.connecting().max(others.unwrap_or_default())
    }

    /// What the clients' clock showed when the last run began.
    pub fn began(&self) -> Nanos {
        self.fleet.began()
    }

    /// Runs all clients from a common start until `stop`, or until one of the machines is asked to
    /// end.
    ///
    /// # Errors
    /// A log file can't be opened, there are no threads for the workers, or a machine is gone.
    #[expect(clippy::too_many_arguments, reason = "those of `Fleet::run_logged`, and the purpose")]
    pub fn run(
        &mut self,
        job: &Job,
        stop: StopCondition,
        control: &Control,
        report: &EventHandler<'_>,
        watch: Watch<'_>,
        log: Option<&LogSettings>,
        purpose: Purpose,
    ) -> Outcome<LoggedRun> {
        let Crew { fleet, others } = self;
        let Some(others) = others else {
            return fleet.run_logged(job, stop, control, report, watch, log).map_err(not_started);
        };
        let machines = others.machines;
        let mut peers = machines.peers();
        let at = peers.now() + LEAD.max(2 * others.phase);
        let clock = others.clock.max(fleet.clock_after(at.saturating_sub(peers.now())).0);
        fleet.begin_at(CommonStart { at: peers.instant(at), clock: Nanos(clock) });
        let measurement = others.measurement;
        let Watch { every, latencies, show } = watch;
        peers.send_all(&Order::Run { measurement, stop, at, clock, latencies }.pack(&[]));
        let collector = Collector {
            machines,
            control,
            local: Control::new(),
            progress: Mutex::new(vec![RunProgress::default(); machines.number()]),
        };
        let cpu = cpu_seconds();
        let show = &mut |elapsed, progress| show(elapsed, progress + collector.progress());
        let (own, ran) = thread::scope(|scope| {
            let peers: &mut Peers = &mut peers;
            let collector = &collector;
            let thread = scope.spawn(move || collector.collect(peers));
            let watch = Watch { every, latencies, show };
            let own = fleet.run_logged(job, stop, &collector.local, report, watch, log);
            if own.is_err() {
                collector.local.request(Urgency::Now);
            }
            (own, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let cpu_s = cpu_seconds() - cpu;
        let (ran, outcomes): (Vec<Ran>, Vec<RunOutcome>) = ran?.into_iter().unzip();
        // What a followed recording wants, or a client that ends the run.
        control.request(collector.local.urgency());
        let LoggedRun { outcome, logged } = own.map_err(not_started)?;
        let late = fleet.began().0.saturating_sub(clock);
        let own = Ran { cpu_s, late, clock: fleet.clock_after(Duration::ZERO).0 };
        let ran: Vec<Ran> = std::iter::once(own).chain(ran).collect();
        others.clock = ran.iter().map(|ran| ran.clock).max().unwrap_or(0);
        let outcomes: Vec<RunOutcome> = std::iter::once(outcome).chain(outcomes).collect();
        if purpose != Purpose::WarmUp {
            for ((counted, ran), outcome) in others.counted.iter_mut().zip(&ran).zip(&outcomes) {
                counted.cpu_s += ran.cpu_s;
                counted.late = counted.late.max(ran.late);
                accumulate(&mut counted.run, outcome.clone(), stop, purpose);
            }
        }
        let outcome = RunOutcome::together(outcomes).unwrap_or_else(|| RunOutcome::nothing(job));
        Ok(LoggedRun { outcome, logged })
    }

    /// Closes the sessions. What the other machines have recorded is added to the recording, if one
    /// is given, or kept there if it is to be checked `together`.
    ///
    /// # Errors
    /// A machine is gone, or sends something else.
    pub fn leave(
        self,
        options: &ConnectOptions,
        product: &Product,
        (recording, together): (Option<&Recording>, bool),
        messages: &Messages<'_>,
    ) -> Outcome<Gone> {
        let Crew { fleet, others } = self;
        let Some(mut others) = others else {
            let (levels, transactions) = sessions::leave(fleet.into_sessions(options), product);
            return Ok(Gone { levels, transactions, machines: Vec::new(), kept: None });
        };
        let machines = others.machines;
        let (after, _) = machines.compare_clocks()?;
        let within: Vec<u64> = others
            .offsets
            .iter()
            .zip(&after)
            .enumerate()
            .map(|(rank, (before, after))| if rank == 0 { 0 } else { before.within_until(after) })
            .collect();
        let measurement = others.measurement;
        let together = together && recording.is_some();
        for (rank, within) in within.iter().enumerate().skip(1) {
            let recorded = match recording {
                None => Handling::Forgotten,
                Some(_) if together => Handling::Kept { within: *within },
                Some(_) => Handling::Sent,
            };
            machines.peers().send(rank, Order::Leave { measurement, recorded }.pack(&[]));
        }
        others.left = true;
        let (mut levels, mut transactions) = sessions::leave(fleet.into_sessions(options), product);
        for (rank, within) in within.iter().enumerate().skip(1) {
            let left = others.left(rank, recording, together, *within)?;
            levels.extend(left.levels);
            transactions += left.transactions;
            for error in left.errors {
                messages.note_error(format!("{}: {error}", machines.name(rank)));
            }
            if left.lost {
                messages.note_loss();
            }
        }
        let rows = others.counted.iter().enumerate();
        let rows = rows.filter_map(|(rank, counted)| counted.row(machines, rank, within[rank]));
        Ok(Gone { levels, transactions, machines: rows.collect(), kept: together.then_some(measurement) })
    }
}

impl Drop for Elsewhere<'_> {
    /// The others forget clients whose measurement came to nothing.
    fn drop(&mut self) {
        if !self.left && self.machines.lost().is_none() {
            let measurement = self.measurement;
            self.machines.peers().send_all(&Order::Abandon { measurement }.pack(&[]));
        }
    }
}

impl<'c> Elsewhere<'c> {
    /// Prepares a measurement on the other machines.
    ///
    /// # Errors
    /// It can't be made on one of them, or one is gone.
    pub fn prepare(machines: &'c Machines, open: Open) -> Outcome<Elsewhere<'c>> {
        let others = Elsewhere {
            machines,
            measurement: open.measurement,
            offsets: Vec::new(),
            phase: Duration::ZERO,
            clock: 0,
            connecting: None,
            left: false,
            counted: (0..machines.number()).map(|_| Counted::default()).collect(),
        };
        machines.peers().send_all(&Order::Prepare(open).pack(&[]));
        each(machines, "preparing a measurement", |reply| matches!(reply, Reply::Prepared).then_some(()))?;
        Ok(others)
    }

    /// What a machine says at the end, and its recording unless that stays there.
    fn left(&self, rank: usize, recording: Option<&Recording>, stays: bool, within: u64) -> Outcome<Left> {
        let machines = self.machines;
        let next = || receive(machines, rank, "closing the sessions");
        let wrong = || machines.astray(rank, "sent something else than its sessions' end");
        let (Reply::Left(left), _) = next()? else { return Err(wrong()) };
        let (Some(recording), Some(head)) = (recording, &left.recording) else {
            return if recording.is_some() { Err(wrong()) } else { Ok(left) };
        };
        let astray = |error: isobench_runner::AdoptionError| {
            machines.astray(rank, &format!("has a recording that can't be added: {error}"))
        };
        let adoption = recording.adoption(head, within).map_err(astray)?;
        if stays {
            return Ok(left);
        }
        loop {
            let (Reply::Chunk, chunk) = next()? else { return Err(wrong()) };
            if chunk.is_empty() {
                return Ok(left);
            }
            recording.adopt(&adoption, &chunk).map_err(astray)?;
        }
    }
}

impl Counted {
    fn row(&self, machines: &Machines, rank: usize, within_ns: u64) -> Option<MachineRound> {
        let run = self.run.as_ref()?;
        let (ledger, latency) = (run.ledger(), run.latency());
        let seconds = run.elapsed.as_secs_f64();
        let portrait = machines.portrait(rank);
        Some(MachineRound {
            rank: count(rank),
            address: machines.address(rank).to_owned(),
            host: portrait.host,
            clients: count(run.load.iter().map(|load| load.clients).sum()),
            attempts: ledger.attempts.started,
            committed: ledger.transactions.committed,
            tps: (seconds > 0.0).then(|| ledger.transactions.committed as f64 / seconds),
            latency_mean_ms: latency.mean_ms(),
            latency_p99_ms: latency.percentile(99.0),
            clock_within_ms: within_ns as f64 / 1e6,
            late_ms: self.late as f64 / 1e6,
            cpu_s: self.cpu_s,
            load: load(run, self.cpu_s, portrait.cores as usize),
        })
    }
}

/// Adds the outcome of a run to those before it.
pub fn accumulate(sum: &mut Option<RunOutcome>, outcome: RunOutcome, stop: StopCondition, purpose: Purpose) {
    match (sum.as_mut(), stop) {
        (Some(sum), _) if purpose == Purpose::Rest => sum.close(outcome),
        (Some(sum), _) => sum.append(outcome),
        (None, StopCondition::Turn(length)) => *sum = Some(outcome.into_turn(length)),
        (None, _) => *sum = Some(outcome),
    }
}

/// Collects the outcomes of the other machines while this one's clients run.
struct Collector<'c> {
    machines: &'c Machines,
    /// The user's wishes.
    control: &'c Control,
    /// Ends the run here.
    local: Control,
    /// The progress of the others, by rank.
    progress: Mutex<Vec<RunProgress>>,
}

impl Collector<'_> {
    fn progress(&self) -> RunProgress {
        let all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().fold(RunProgress::default(), |sum, one| sum + *one)
    }

    /// Waits for the outcomes of all other machines, in the order of their ranks. If one wants to
    /// stop, all stop.
    fn collect(&self, peers: &mut Peers) -> Outcome<Vec<(Ran, RunOutcome)>> {
        let mut found: Vec<Option<(Ran, RunOutcome)>> = (1..self.machines.number()).map(|_| None).collect();
        let mut failure = None;
        let mut asked = Urgency::None;
        let mut open = found.len();
        while open > 0 {
            let (user, local) = (self.control.urgency(), self.local.urgency());
            if user.max(local) > asked {
                asked = user.max(local);
                self.local.request(asked);
                peers.send_all(&Order::Stop(Urge::new(asked, user == asked)).pack(&[]));
            }
            let Some((rank, bytes)) = peers.poll(LOOK).map_err(|error| self.lost(&error))? else { continue };
            match unpack::<Reply>(&bytes) {
                Some((Reply::Progress(now), _)) => {
                    self.progress.lock().unwrap_or_else(PoisonError::into_inner)[rank] = *now;
                }
                Some((Reply::Stopping(urge), _)) if urge.user => self.control.request(urge.urgency()),
                Some((Reply::Stopping(urge), _)) => self.local.request(urge.urgency()),
                Some((Reply::Ran(ran), body)) => {
                    open -= 1;
                    match RunOutcome::from_bytes(body) {
                        Ok(outcome) => found[rank - 1] = Some((ran, outcome)),
                        Err(error) => failure = Some(self.machines.astray(rank, &error.to_string())),
                    }
                }
                Some((Reply::Failed(why), _)) => {
                    open -= 1;
                    self.local.request(Urgency::Now);
                    failure = Some(Failure::setup(format!("{}: {why}", self.machines.name(rank))));
                }
                _ => return Err(self.astray(rank)),
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(found.into_iter().flatten().collect()),
        }
    }

    fn lost(&self, error: &PeersError) -> Failure {
        self.local.request(Urgency::Now);
        self.machines.failed(error)
    }

    fn astray(&self, rank: usize) -> Failure {
        self.local.request(Urgency::Now);
        self.machines.astray(rank, "sent something that isn't an outcome")
    }
}

/// Waits for a reply of each other machine, and returns what `wanted` finds in them, by rank.
fn each<T>(machines: &Machines, what: &'static str, wanted: impl Fn(Reply) -> Option<T>) -> Outcome<Vec<T>> {
    let mut found = Vec::new();
    let mut failure = None;
    for rank in 1..machines.number() {
        match receive(machines, rank, what) {
            Ok((reply, _)) => match wanted(reply) {
                Some(one) => found.push(one),
                None => return Err(machines.astray(rank, "sent something else than was asked")),
            },
            // The others' replies are taken nevertheless.
            Err(Failure::Setup(why)) => failure = Some(Failure::Setup(why)),
            Err(lost) => return Err(lost),
        }
    }
    failure.map_or(Ok(found), Err)
}

/// Waits for a reply of a machine.
fn receive(machines: &Machines, rank: usize, what: &'static str) -> Outcome<(Reply, Vec<u8>)> {
    let bytes =
        machines.peers().receive_from(rank, what, LIMITS.step).map_err(|error| machines.failed(&error))?;
    match unpack::<Reply>(&bytes) {
        Some((Reply::Failed(why), _)) => Err(Failure::setup(format!("{}: {why}", machines.name(rank)))),
        Some((reply, body)) => Ok((reply, body.to_vec())),
        None => Err(machines.astray(rank, "sent something that isn't a reply")),
    }
}

fn not_started(error: StartError) -> Failure {
    match error {
        StartError::NoThreads(error) => no_threads(error),
        StartError::Log(error) => Failure::setup(error),
    }
}
