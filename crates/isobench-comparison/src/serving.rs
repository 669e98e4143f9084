//! The work of every machine but rank 0: what rank 0 orders.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_isolation::check::refuse;
use isobench_isolation::{Allocation, Level};
use isobench_limits::LIMITS;
use isobench_peers::{ClockOffset, PeersError};
use isobench_plan::Background;
use isobench_runner::{
    ClientEvent, CommonStart, Control, Fleet, Job, Nanos, NoThreads, Recording, RunOutcome, RunProgress,
    StopCondition, Urgency, Watch,
};

use crate::conditions::Conditions;
use crate::failure::{Failure, Outcome};
use crate::judgement::Judging;
use crate::machines::{
    Handling, Left, Machines, Open, Opened, Order, Ran, RecordedAs, Reply, Urge, compare_clocks, unpack,
};
use crate::measurement::{Invariants, Measurement};
use crate::messages::Messages;
use crate::observed::Recorded;
use crate::round::cpu_seconds;
use crate::sessions::{self, Places, no_threads};
use crate::site::Site;
use crate::workload::Sources;

/// What is said of a measurement that isn't known.
const NO_SUCH: &str = "has no such measurement";

/// How often a machine looks whether the user wants it to stop.
const LOOK: Duration = Duration::from_millis(100);

/// How often it reports how far its clients are.
const REPORT: Duration = Duration::from_millis(250);

/// A measurement that this machine takes part in.
pub struct Entered {
    /// What its clients do.
    pub job: Job,
    /// Where.
    pub site: Site,
    /// The level of all sessions; `None`: the server's default.
    pub level: Option<Level>,
    /// The last clients of all machines, so many, have their sessions on the standby.
    pub readers: usize,
}

impl Entered {
    /// Prepares the clients of a job as rank 0's are: at a level or one for each script, with so many
    /// readers, and recorded.
    ///
    /// # Errors
    /// Its statements can't be recorded here as they are there.
    pub fn new(
        open: &Open,
        job: Job,
        site: Site,
        sources: &Sources,
        (level, mixed, (readers, readers_wait)): (Option<Level>, Option<&Allocation>, (usize, bool)),
        recorded: &Recorded,
        control: &Control,
    ) -> Outcome<Entered> {
        let recording = open.recorded != RecordedAs::Nothing;
        let alike = !recording || open.recorded == RecordedAs::of(recorded);
        if !alike {
            return Err(Failure::setup("sees other rows of the statements than rank 0"));
        }
        let judging = Judging::default();
        let measurement = Measurement {
            site: &site,
            sources,
            level,
            mixed,
            strict: false,
            warmup: (Duration::ZERO, Duration::ZERO),
            stop: StopCondition::Time(Duration::ZERO),
            log: None,
            fresh_tables: true,
            invariants: Invariants::Skipped,
            conditions: Conditions::holding(&[]),
            judging: recording.then_some(&judging),
            recorded,
            history: None,
            faults: None,
            observer: None,
            background: Background::None,
            readers,
            readers_wait,
            others: None,
            control,
        };
        let job = measurement.job(job)?;
        Ok(Entered { job, site, level, readers })
    }

    /// The same, if its tables are those of rank 0.
    fn checked(self, open: &Open) -> Outcome<Entered> {
        let identity = self.site.identity().map_err(Failure::setup)?;
        if identity == open.identity {
            return Ok(self);
        }
        let place = self.site.connector().options().describe();
        Err(Failure::setup(format!("is connected to another database than rank 0: {place}")))
    }
}

/// A measurement whose clients are connected.
struct Serving<'s> {
    entered: Entered,
    fleet: Fleet,
    messages: Messages<'s>,
}

/// Does what rank 0 orders until it says that this is all, and returns the number of runs. `enter`
/// prepares a measurement.
///
/// # Errors
/// A machine is gone, rank 0 has ended early, or the user wants to stop.
pub fn serve(
    machines: &Machines,
    control: &Control,
    say: &(dyn Fn(&str) + Sync),
    enter: &mut dyn FnMut(&Open) -> Outcome<Entered>,
) -> Outcome<u64> {
    let served = serve_all(machines, control, say, enter);
    if machines.lost().is_some() {
        machines.peers().linger();
    }
    served
}

fn serve_all(
    machines: &Machines,
    control: &Control,
    say: &(dyn Fn(&str) + Sync),
    enter: &mut dyn FnMut(&Open) -> Outcome<Entered>,
) -> Outcome<u64> {
    let mut servant = Servant {
        machines,
        control,
        prepared: BTreeMap::new(),
        measurements: BTreeMap::new(),
        kept: BTreeMap::new(),
        offset: ClockOffset::default(),
    };
    let mut runs = 0;
    loop {
        let order = loop {
            let polled = machines.peers().poll(LOOK);
            if let Some((_, bytes)) = polled.map_err(|error| machines.failed(&error))? {
                break bytes;
            }
            // A first interrupt is reported to rank 0 in the next run.
            if control.urgency() == Urgency::Now {
                return Err(Failure::Incomplete("interrupted".to_owned()));
            }
        };
        let Some((order, _)) = unpack::<Order>(&order) else {
            return Err(machines.astray(0, "sent something that isn't an order"));
        };
        match order {
            Order::Prepare(open) => {
                let entered = enter(&open).and_then(|entered| entered.checked(&open));
                let reply = match entered {
                    Ok(entered) => {
                        servant.prepared.insert(open.measurement, entered);
                        Reply::Prepared
                    }
                    Err(failure) => Reply::Failed(failure.to_string()),
                };
                servant.answer(&reply, &[]);
            }
            Order::Connect { measurement } => {
                let reply = match servant.connect(measurement, say) {
                    Ok(opened) => Reply::Opened(opened),
                    Err(failure) => Reply::Failed(failure.to_string()),
                };
                servant.answer(&reply, &[]);
            }
            Order::Clocks => {
                let own = compare_clocks(&mut machines.peers());
                servant.offset = own.map_err(|error| machines.failed(&error))?.0[0];
            }
            Order::Run { measurement, stop, at, clock, latencies } => {
                runs += 1;
                servant.run(measurement, stop, (at, clock), latencies)?;
            }
            // The run is over already.
            Order::Stop(_) => {}
            Order::Leave { measurement, recorded } => servant.leave(measurement, recorded),
            Order::Check { measurement } => servant.check(measurement)?,
            Order::Abandon { measurement } => {
                servant.kept.remove(&measurement);
                servant.prepared.remove(&measurement);
                servant.measurements.remove(&measurement);
            }
            Order::End { why } => {
                let _ = machines.peers().barrier("the end", LIMITS.end);
                return match why {
                    None => Ok(runs),
                    Some(why) => {
                        Err(Failure::Incomplete(format!("{} has ended early: {why}", machines.name(0))))
                    }
                };
            }
        }
    }
}

/// A machine at the service of rank 0.
struct Servant<'s> {
    machines: &'s Machines,
    control: &'s Control,
    /// What is prepared, and not connected yet.
    prepared: BTreeMap<u64, Entered>,
    measurements: BTreeMap<u64, Serving<'s>>,
    /// What was recorded and is to be checked, and the nanoseconds by which its times may be wrong.
    kept: BTreeMap<u64, (Recording, u64)>,
    /// What was last known of this machine's clock.
    offset: ClockOffset,
}

impl<'s> Servant<'s> {
    /// Connects the clients of this machine.
    fn connect(&mut self, number: u64, say: &'s (dyn Fn(&str) + Sync)) -> Outcome<Opened> {
        let entered = self.prepared.remove(&number).ok_or_else(|| Failure::setup(NO_SUCH))?;
        let (site, spec) = (&entered.site, entered.job.spec());
        let places = Places::new(site, spec.clients, entered.readers)?;
        let opened = sessions::open(&entered.job, &places, &site.database, entered.level)?;
        let reply = Opened {
            effective: opened.effective,
            transactions: opened.transactions,
            connecting: opened.fleet.connecting(),
        };
        let serving = Serving { entered, fleet: opened.fleet, messages: Messages::kept(say) };
        self.measurements.insert(number, serving);
        Ok(reply)
    }

    fn answer(&self, reply: &Reply, body: &[u8]) {
        self.machines.peers().send(0, reply.pack(body));
    }

    /// # Errors
    /// A machine is gone.
    fn run(
        &mut self,
        number: u64,
        stop: StopCondition,
        (at, clock): (Duration, u64),
        latencies: bool,
    ) -> Outcome {
        let (machines, control) = (self.machines, self.control);
        let Some(Serving { entered, fleet, messages }) = self.measurements.get_mut(&number) else {
            self.answer(&Reply::Failed(NO_SUCH.to_owned()), &[]);
            return Ok(());
        };
        let job = &entered.job;
        let at = machines.peers().instant(self.offset.own(at));
        fleet.begin_at(CommonStart { at, clock: Nanos(clock) });
        // A machine that is gone ends the run, and isn't the user's wish.
        let local = Control::new();
        let cpu = cpu_seconds();
        let (ran, kept) = attended(machines, control, &local, |progress| {
            let report = |event: ClientEvent| messages.take(&event, job);
            let show = &mut |_, now| *progress.lock().unwrap_or_else(PoisonError::into_inner) = now;
            fleet.run(job, stop, &local, &report, Watch { every: REPORT, latencies, show }, &mut [])
        });
        kept.map_err(|error| machines.failed(&error))?;
        let cpu_s = cpu_seconds() - cpu;
        let ran = ran.map_err(no_threads).and_then(|run| run.to_bytes().map_err(Failure::setup));
        match ran {
            Ok(bytes) => {
                let late = fleet.began().0.saturating_sub(clock);
                let ran = Ran { cpu_s, late, clock: fleet.clock_after(Duration::ZERO).0 };
                self.answer(&Reply::Ran(ran), &bytes);
            }
            Err(failure) => self.answer(&Reply::Failed(failure.to_string()), &[]),
        }
        Ok(())
    }

    /// Checks what was kept, as rank 0 says.
    ///
    /// # Errors
    /// A machine is gone.
    fn check(&mut self, number: u64) -> Outcome {
        let mut ways = self.machines.ways();
        let Some((recording, within)) = self.kept.remove(&number) else {
            refuse(&mut ways, NO_SUCH);
            return Ok(());
        };
        // If this one can't, rank 0 hears of it, and withholds the verdict.
        let checked = recording.check_share(within, &mut ways);
        match (checked, self.machines.lost()) {
            (Err(_), Some(lost)) => Err(Failure::Incomplete(lost.to_owned())),
            _ => Ok(()),
        }
    }

    fn leave(&mut self, number: u64, recorded: Handling) {
        let Some(Serving { entered, fleet, messages }) = self.measurements.remove(&number) else {
            return self.answer(&Reply::Failed(NO_SUCH.to_owned()), &[]);
        };
        let Entered { job, site, .. } = entered;
        let sessions = fleet.into_sessions(site.connector().options());
        let (levels, transactions) = sessions::leave(sessions, site.database.product);
        let (errors, lost) = (messages.errors(), messages.has_lost_connections());
        let recording = job.into_recording().filter(|_| recorded != Handling::Forgotten);
        let head = recording.as_ref().map(Recording::head);
        self.answer(&Reply::Left(Left { levels, transactions, errors, lost, recording: head }), &[]);
        let Some(recording) = recording else { return };
        if let Handling::Kept { within } = recorded {
            self.kept.insert(number, (recording, within));
            return;
        }
        let chunk = Reply::Chunk;
        match recording.hand_over(&mut |bytes| self.answer(&chunk, &bytes)) {
            Ok(()) => self.answer(&chunk, &[]),
            Err(error) => self.answer(&Reply::Failed(format!("can't read its recording: {error}")), &[]),
        }
    }
}

/// Runs clients in another thread, reports their progress to rank 0, and stops them if rank 0 wants
/// to stop.
fn attended(
    machines: &Machines,
    control: &Control,
    local: &Control,
    work: impl FnOnce(&Mutex<RunProgress>) -> Result<RunOutcome, NoThreads> + Send,
) -> (Result<RunOutcome, NoThreads>, Result<(), PeersError>) {
    let progress = Mutex::new(RunProgress::default());
    let mut peers = machines.peers();
    let waker = peers.waker();
    thread::scope(|scope| {
        let progress = &progress;
        let thread = scope.spawn(move || {
            let done = work(progress);
            waker.wake();
            done
        });
        let (mut asked, mut reported) = (Urgency::None, Instant::now());
        let mut kept = Ok(());
        while !thread.is_finished() {
            let user = control.urgency();
            if user.max(local.urgency()) > asked {
                asked = user.max(local.urgency());
                local.request(asked);
                peers.send(0, Reply::Stopping(Urge::new(asked, user == asked)).pack(&[]));
            }
            if reported.elapsed() >= REPORT {
                reported = Instant::now();
                let now = *progress.lock().unwrap_or_else(PoisonError::into_inner);
                peers.send(0, Reply::Progress(Box::new(now)).pack(&[]));
            }
            if kept.is_err() {
                thread::sleep(LOOK / 10);
                continue;
            }
            match peers.poll(LOOK) {
                Ok(Some((_, bytes))) => {
                    if let Some((Order::Stop(urge), _)) = unpack::<Order>(&bytes) {
                        asked = asked.max(urge.urgency());
                        local.request(urge.urgency());
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    local.request(Urgency::Now);
                    kept = Err(error);
                }
            }
        }
        let ran = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ran, kept)
    })
}
