//! One measurement, from connecting its clients to the round of the result. Both the cells of a
//! comparison and `isobench run` are measured here, in one piece or in turns.
//!
//! Not here: the tables before (`tables.rs`), the differences between measurements (`cell.rs`), and
//! whose turn it is (`block.rs`).

mod warmup;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use isobench_isolation::check::Ways;
use isobench_isolation::{Allocation, EffectiveLevel, Level};
use isobench_observer::{Observer, Part};
use isobench_plan::{self as plan, Fault, Observe};
use isobench_result::{BackgroundWork, FaultRound, RecordedHistory, Round, ScriptLevel, StandbyLag};
use isobench_runner::{
    ClientEvent, Control, Job, LogError, LogSettings, LoggedRun, Nanos, RunOutcome, StopCondition, Watch,
};

use crate::background::Background;
use crate::catching_up;
use crate::conditions::Conditions;
use crate::crew::{Boarded, Crew, Elsewhere, Gone, Purpose, accumulate};
use crate::evidence;
use crate::failure::{Failure, Outcome};
use crate::fault::{Struck, Victim};
use crate::held_up::held_up;
use crate::invariants::{InvariantCheck, open_after};
use crate::judgement::{Judged, Judging, Promise};
use crate::lag;
use crate::machines::{Machines, Open, Order, RecordedAs};
use crate::messages::Messages;
use crate::modes;
use crate::observed::{Recorded, SecondSource};
use crate::onlooker::{Onlooker, SoFar};
use crate::round::{cpu_seconds, itemised, note_machines, round};
use crate::server_side::{OwnWork, server_side};
use crate::sessions::{self, Places};
use crate::settlement::{Attested, fault_round};
use crate::site::Site;
use crate::workload::Sources;
use warmup::Warmed;

/// More than what comes before and after the warm-up and the measured time takes: connecting,
/// transactions in progress, the tables' conditions.
const AFTERWARDS: Duration = Duration::from_mins(10);

/// One measurement, except for the job of its clients.
pub struct Measurement<'a> {
    /// The server.
    pub site: &'a Site,
    /// The scripts.
    pub sources: &'a Sources,
    /// The level of all sessions; `None`: the server's default.
    pub level: Option<Level>,
    /// The levels of the scripts, which their transactions ask for, if each has its own.
    pub mixed: Option<&'a Allocation>,
    /// Refuse a level that the server runs as another one.
    pub strict: bool,
    /// Length of a step of the warm-up, zero for none, and the longest warm-up.
    pub warmup: (Duration, Duration),
    /// The end of the measured part.
    pub stop: StopCondition,
    /// Files with a line for each transaction.
    pub log: Option<&'a LogSettings>,
    /// The tables were made for this measurement. Others may have rows of earlier runs, which
    /// aren't held against the database.
    pub fresh_tables: bool,
    /// The check of the tables before and after.
    pub invariants: Invariants,
    /// The user's own conditions.
    pub conditions: Conditions<'a>,
    /// The check of the history; `None` if none is recorded.
    pub judging: Option<&'a Judging>,
    /// How the history is recorded.
    pub recorded: &'a Recorded,
    /// The file of the history.
    pub history: Option<PathBuf>,
    /// What happens to the server during it, if anything does.
    pub faults: Option<Faults<'a>>,
    /// Watches the server, and this measurement's number among those that take turns.
    pub observer: Option<(&'a Observer, Part)>,
    /// What another session does at the same time.
    pub background: plan::Background,
    /// The last clients, so many, whose sessions are on the standby.
    pub readers: usize,
    /// They wait until the standby has caught up, before each of their transactions.
    pub readers_wait: bool,
    /// The other machines whose clients work for it, and what is sent to them.
    pub others: Option<Others<'a>>,
    /// Requests to stop.
    pub control: &'a Control,
}

/// The other machines that have a share of a measurement's clients.
pub struct Others<'a> {
    /// All machines.
    pub machines: &'a Machines,
    /// The cell's index in the plan, and its rate if that isn't in the plan.
    pub cell: (usize, Option<f64>),
    /// The cell's name.
    pub name: String,
}

/// What happens to the server during a measurement.
pub struct Faults<'a> {
    /// What is to happen.
    pub planned: &'a [Fault],
    /// The server.
    pub victim: Victim,
    /// The rows by which attempts are settled afterwards.
    pub attested: &'a Attested,
}

/// The check of the tables before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invariants {
    /// Checked as far as the scripts' tables have known invariants; the user's own tables have
    /// none.
    Checked {
        /// The tables are the user's own, even if the scripts aren't.
        own_tables: bool,
    },
    /// Impossible, for this reason.
    Unavailable(&'static str),
    /// Not requested.
    Skipped,
}

/// The outcome of a measurement.
pub struct Measured {
    /// The round of the result, without a verdict yet.
    pub round: Round,
    /// The outcome of the clients' work in the measured part.
    pub run: RunOutcome,
    /// The level that the sessions ran at; with a level for each script, the allocation's name.
    pub effective: EffectiveLevel,
    /// What the server said of the level of each script, if each has its own.
    pub of_scripts: Vec<ScriptLevel>,
    /// The time that connecting the clients took.
    pub connecting: Duration,
    /// A client lost its connection, so the server may have lost all unsaved state.
    pub lost: bool,
    /// What the clients' clock showed when the measured part began, if it did.
    pub began: Option<Nanos>,
    /// Notes for the user that came up since.
    pub notes: Vec<String>,
    /// An error if the log files are incomplete.
    pub logged: Result<(), LogError>,
    /// What was found to break a promise while the clients worked, which ended the run
    /// ([`Judging::stop_on_broken`]).
    pub broken: Option<String>,
    /// The number by which other machines know what they have recorded and keep for the check.
    pub(crate) kept: Option<u64>,
}

impl Measured {
    /// All that the clients have done in the measured part.
    pub(crate) fn so_far(&self) -> SoFar {
        SoFar::measured(Some(&self.run))
    }
}

impl Measurement<'_> {
    /// Returns a job that asks for its level, reconnects and records as this measurement requires.
    ///
    /// # Errors
    /// The file of the history can't be made, or the server is gone.
    pub fn job(&self, job: Job) -> Outcome<Job> {
        let clients = job.spec().clients;
        let places = self.places(clients)?;
        let job = sessions::reconnecting(job, &places, &self.site.database, self.level);
        let job = if places.are_several() {
            let job = job.with_readers(clients.saturating_sub(self.readers), self.sources.reading());
            if self.readers_wait {
                job.before_reading(catching_up::statements(self.site.connector())?)
            } else {
                job
            }
        } else {
            job
        };
        let judging = self.judging.filter(|_| !matches!(self.recorded, Recorded::Nothing));
        let job = match self.mixed {
            Some(allocation) => {
                let modes = modes::of_scripts(&job.workload().mix, allocation);
                job.in_modes(modes)
            }
            None => job,
        };
        let job = if judging.is_some() || self.level.is_some() {
            job.asking_level(self.site.database.product.level_question())
        } else {
            job
        };
        match (judging, self.recorded) {
            (None, _) | (_, Recorded::Nothing) => Ok(job),
            (Some(_), Recorded::Annotations) => Judging::recording(job, self.history.as_deref()),
            (Some(_), Recorded::Rows(seen)) => {
                let job = seen.job(job, self.site)?;
                Ok(if self.reads_one_snapshot() { seen.asking(job) } else { job })
            }
        }
    }

    /// True if some transactions may read from one snapshot each, because of their level.
    fn reads_one_snapshot(&self) -> bool {
        let strongest = match self.mixed {
            Some(allocation) => Some(allocation.range().1),
            None => self.level,
        };
        strongest.is_none_or(|level| level >= Level::RepeatableRead)
    }

    /// Connects the clients, warms up, measures in one piece, and checks the tables, while `onlooker`
    /// looks on; `number` is that of the round.
    ///
    /// # Errors
    /// Nothing could be measured: a client couldn't connect, a log file couldn't be opened, the
    /// level was refused.
    pub fn run(
        &self,
        job: &Job,
        number: u32,
        messages: &Messages<'_>,
        onlooker: &mut Onlooker<'_>,
    ) -> Outcome<Measured> {
        let mut started = self.start(job, messages, onlooker)?;
        started.work(self.stop, onlooker)?;
        let measured = started.end(number)?;
        (onlooker.show)(&measured.so_far());
        Ok(measured)
    }

    /// Connects the clients, warms up, and reads what the tables' check needs.
    ///
    /// # Errors
    /// A client couldn't connect, or the level was refused.
    pub fn start<'m>(
        &'m self,
        job: &'m Job,
        messages: &'m Messages<'m>,
        onlooker: &mut Onlooker<'_>,
    ) -> Outcome<Started<'m>> {
        let elsewhere = self.others.as_ref().map(|others| self.prepare(others, job)).transpose()?;
        self.reports(job)?;
        self.observe(Observer::before_sessions);
        let places = self.places(job.spec().clients)?;
        places.catch_up()?;
        let Boarded { mut crew, effective, transactions } =
            Crew::open(job, &places, &self.site.database, self.level, elsewhere)?;
        self.refuse(&effective)?;
        let asked = self.mixed.map(|allocation| self.levels_of_scripts(job, allocation)).transpose()?;
        let (of_scripts, admin) = asked.map_or((Vec::new(), None), |(levels, spent)| (levels, Some(spent)));
        if let (Some(judging), Some(recording)) = (self.judging, job.recorded()) {
            let promise = self.promise(&effective, &of_scripts);
            judging.follow(recording, promise, self.sources, self.fresh_tables);
        }
        let mut own = OwnWork::new(job, transactions, self.readers);
        if let Some(transactions) = admin {
            own.admin(1, transactions);
        }
        if self.background != plan::Background::None {
            own.share_the_server();
        }
        let report = |event: ClientEvent| messages.take(&event, job);
        let warmup = if self.warmup.0.is_zero() {
            None
        } else {
            Some(Warmed::up(self.warmup, &mut crew, job, (self.control, &report), onlooker, &mut own)?)
        };
        if let Some(faults) = &self.faults {
            faults.attested.empty()?;
        }
        let check = self.before();
        if let Some(check) = &check {
            own.admin(check.sessions(), check.transactions());
        }
        Ok(Started {
            measurement: self,
            job,
            messages,
            crew,
            effective,
            of_scripts,
            own,
            warmup,
            check,
            run: None,
            began: None,
            struck: Vec::new(),
            lag: None,
            background: None,
            cpu: 0.0,
            logged: Ok(()),
        })
    }

    /// Starts to read the write-ahead log, if that is wanted and rows are recorded. None of its
    /// transactions may have started.
    ///
    /// # Errors
    /// The server refuses.
    pub fn second_source(&self, observe_by: Observe) -> Outcome<Option<SecondSource>> {
        let longest = match self.stop {
            StopCondition::Time(time) | StopCondition::Turn(time) => {
                Some((self.warmup.1 + time) * 2 + AFTERWARDS)
            }
            StopCondition::Transactions(_) => None,
        };
        self.recorded.second_source(observe_by, self.site, longest)
    }

    /// Checks the history that the job recorded, if any, and puts the verdict into the round.
    /// `second` is read for the writes that no statement showed. Returns a report.
    pub fn judge(&self, job: Job, second: Option<SecondSource>, measured: &mut Measured) -> Option<String> {
        let kept = measured.kept.take().zip(self.others.as_ref().map(|others| others.machines));
        let (judging, mut recording) = (self.judging?, job.into_recording()?);
        let settlement = measured.round.faults.as_ref().map(|faults| &faults.settlement);
        if settlement.is_some_and(|settlement| settlement.lost > 0 || settlement.withheld.is_some()) {
            measured.notes.push(
                "where acknowledged commits are lost, the level isn't judged: what clients saw acknowledged isn't what \
                 the database has"
                    .to_owned(),
            );
            if let Some((measurement, machines)) = kept {
                machines.peers().send_all(&Order::Abandon { measurement }.pack(&[]));
            }
            return None;
        }
        match second.map(SecondSource::read) {
            None => {}
            Some(Ok(committed)) => recording.set_committed(committed),
            Some(Err(failure)) => {
                measured.notes.push(format!("{failure}; the verdict rests on what statements showed"));
            }
        }
        let promise = self.promise(&measured.effective, &measured.of_scripts);
        let mut ways = kept.map(|(measurement, machines)| {
            machines.peers().send_all(&Order::Check { measurement }.pack(&[]));
            machines.ways()
        });
        let ways = ways.as_mut().map(|ways| ways as &mut dyn Ways);
        let history = (recording, self.history.as_deref(), ways);
        let Judged { verdict, text, unwritten } =
            judging.judge(history, promise, self.sources, self.fresh_tables);
        measured.round.verdict = Some(verdict);
        let file = self.history.as_deref().filter(|_| unwritten.is_none());
        measured.round.history = file.zip(measured.began).map(|(file, began)| recorded_history(file, began));
        measured.notes.extend(unwritten);
        Some(text)
    }

    /// Prepares the measurement on the other machines.
    ///
    /// # Errors
    /// The server is gone, or one of them is, or can't do it.
    fn prepare<'o>(&self, others: &Others<'o>, job: &Job) -> Outcome<Elsewhere<'o>> {
        let (cell, rate) = others.cell;
        let recorded = job.recorded().map_or(RecordedAs::Nothing, |_| RecordedAs::of(self.recorded));
        let open = Open {
            measurement: others.machines.number_next(),
            cell,
            name: others.name.clone(),
            rate,
            schema: self.site.database.schema.clone(),
            identity: self.site.identity().map_err(Failure::setup)?,
            recorded,
            as_written: match self.recorded {
                Recorded::Rows(seen) => seen.as_written.texts(),
                Recorded::Annotations | Recorded::Nothing => Vec::new(),
            },
            seed: job.spec().seed,
            attempts_from: job.spec().attempts_from,
        };
        Elsewhere::prepare(others.machines, open)
    }

    fn places(&self, clients: usize) -> Outcome<Places> {
        Places::new(self.site, clients, self.readers)
    }

    /// What the level promises. Nothing is promised of what a server and its standby show together
    /// (PostgreSQL manual, "Hot Standby": eventually consistent).
    ///
    /// Where each script has a level, its transactions are promised what that level promises, unless
    /// the server runs another one.
    fn promise(&self, effective: &EffectiveLevel, of_scripts: &[ScriptLevel]) -> Promise {
        let product = self.site.database.product;
        if self.readers > 0 {
            return Promise::None;
        }
        if self.mixed.is_none() {
            return product.promises_effective(effective).map_or(Promise::None, Promise::One);
        }
        let differs = of_scripts.iter().any(|script| script.effective.differs_from(script.requested));
        if differs { Promise::None } else { Promise::OfLevels(product.promises) }
    }

    /// What the server says of transactions that ask for the level of each script; nothing if all
    /// have one level.
    fn levels_of_scripts(&self, job: &Job, allocation: &Allocation) -> Outcome<(Vec<ScriptLevel>, u64)> {
        let mut connection = self.site.open().map_err(Failure::setup)?;
        let product = self.site.database.product;
        let levels = modes::read_back(&mut connection, product, &job.workload().mix, allocation);
        let transactions = connection.transactions();
        connection.close();
        Ok((levels?, transactions))
    }

    /// Lets the sessions of a pooler report to the server's statistics what they did. Returns the number of
    /// transactions that took; `None` without a pooler.
    fn reports(&self, job: &Job) -> Outcome<Option<u64>> {
        let endpoint = self.site.endpoint().filter(|_| self.observer.is_some());
        endpoint.map(|endpoint| endpoint.report(job.spec().clients)).transpose()
    }

    fn before(&self) -> Option<InvariantCheck> {
        match self.invariants {
            Invariants::Checked { own_tables } => Some(InvariantCheck::begin(
                self.site.connector(),
                &self.site.database,
                self.sources,
                own_tables,
                self.fresh_tables,
                !self.conditions.is_empty(),
            )),
            Invariants::Unavailable(why) => Some(InvariantCheck::Unavailable(why.to_owned())),
            Invariants::Skipped => None,
        }
    }

    fn observe(&self, step: fn(&Observer, Part)) {
        if let Some((observer, part)) = self.observer {
            step(observer, part);
        }
    }

    /// # Errors
    /// The sessions run at another level than requested, and strict levels are required.
    fn refuse(&self, effective: &EffectiveLevel) -> Outcome {
        match self.level.filter(|_| self.mixed.is_none()) {
            Some(level) if self.strict && effective.differs_from(level) => {
                Err(Failure::setup(refusal(level, effective)))
            }
            _ => Ok(()),
        }
    }
}

/// A measurement whose clients are connected and warm.
pub struct Started<'m> {
    measurement: &'m Measurement<'m>,
    job: &'m Job,
    messages: &'m Messages<'m>,
    crew: Crew<'m>,
    effective: EffectiveLevel,
    of_scripts: Vec<ScriptLevel>,
    own: OwnWork,
    warmup: Option<Warmed>,
    check: Option<InvariantCheck>,
    /// The sum of the measured parts so far.
    run: Option<RunOutcome>,
    /// What the clients' clock showed when the first of them began.
    began: Option<Nanos>,
    /// What has happened to the server.
    struck: Vec<Struck>,
    /// How far the standby was behind, if clients read there.
    lag: Option<StandbyLag>,
    /// What another session did at the same time.
    background: Option<BackgroundWork>,
    /// CPU time of this process in these parts, seconds.
    cpu: f64,
    logged: Result<(), LogError>,
}

impl Started<'_> {
    /// Measures: everything, or the next turn. The onlooker sees all turns together.
    ///
    /// # Errors
    /// A log file couldn't be opened, or there are no threads for the workers.
    pub fn work(&mut self, stop: StopCondition, onlooker: &mut Onlooker<'_>) -> Outcome {
        let Measurement { control, log, .. } = *self.measurement;
        let (job, messages) = (self.job, self.messages);
        let report = |event: ClientEvent| messages.take(&event, job);
        let so_far = SoFar::measured(self.run.as_ref());
        let Onlooker { every, latencies, show } = onlooker;
        let show = &mut |elapsed, progress| show(&so_far.and(elapsed, &progress));
        let level = self.measurement.level.unwrap_or(Level::RepeatableRead);
        let background = Background::open(self.measurement.background, level, self.measurement.site)?;
        self.measurement.observe(Observer::begin);
        control.patience().set_limited(true);
        let cpu = cpu_seconds();
        let watch = Watch { every: *every, latencies: *latencies, show };
        let crew = &mut self.crew;
        let work = || crew.run(job, stop, control, &report, watch, log, Purpose::Measurement);
        let work = || match background {
            None => (work(), None),
            Some(background) => {
                let (run, done) = background.during(work);
                (run, Some(done))
            }
        };
        let site = self.measurement.site;
        let work = || match site.standby().filter(|_| self.measurement.readers > 0) {
            None => (work(), None),
            Some(standby) => {
                let (server, last) = (site.controller(), site.is_embedded());
                alongside(|over| lag::watch(server, standby, last, over), work)
            }
        };
        let (((done, background), lag), struck) = match &self.measurement.faults {
            None => (work(), Vec::new()),
            Some(faults) => {
                let began = Instant::now();
                alongside(|over| faults.victim.strike(faults.planned, began, over), work)
            }
        };
        (self.background, self.lag) = (background, lag);
        self.struck.extend(struck);
        let LoggedRun { outcome, logged } = done?;
        self.began.get_or_insert(self.crew.began());
        self.cpu += cpu_seconds() - cpu;
        // The next turn is another measurement's.
        let turn = matches!(stop, StopCondition::Turn(_));
        self.measurement.observe(if turn { Observer::rest } else { Observer::end });
        self.own.clients(&outcome);
        if outcome.aborted > 0 {
            // The sessions may be unusable because the server doesn't answer.
            control.patience().doubt();
        }
        self.logged = std::mem::replace(&mut self.logged, Ok(())).and(logged);
        accumulate(&mut self.run, outcome, stop, Purpose::Measurement);
        Ok(())
    }

    /// Lets the clients rest while others act.
    pub fn rest(&self) {
        self.measurement.observe(Observer::rest);
    }

    /// Ends a rest before [`Started::end`].
    pub fn wake(&self) {
        self.measurement.observe(Observer::wake);
    }

    /// The sum of the measured parts so far; `None` before the first.
    pub fn so_far(&self) -> Option<&RunOutcome> {
        self.run.as_ref()
    }

    /// The part of the warm-up for which clients had finished and waited for the last one, on
    /// average over clients and steps; `None` without a warm-up.
    pub fn idle_in_warmup(&self) -> Option<Duration> {
        self.warmup.as_ref().map(Warmed::idle)
    }

    /// Closes the sessions, and checks the tables. `number` is that of the round.
    ///
    /// # Errors
    /// The level that turned out to be effective is refused.
    pub fn end(self, number: u32) -> Outcome<Measured> {
        let Started {
            measurement,
            job,
            messages,
            mut crew,
            effective,
            of_scripts,
            mut own,
            warmup,
            check,
            ..
        } = self;
        let (connector, database) = (measurement.site.connector(), &measurement.site.database);
        let mut run = self.run.unwrap_or_else(|| RunOutcome::nothing(job));
        if run.turns > 0 {
            // Retries that wait for a turn that isn't to come are cut off.
            let report = |event: ClientEvent| messages.take(&event, job);
            let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
            let stop = StopCondition::Time(Duration::ZERO);
            let rest = crew.run(job, stop, measurement.control, &report, watch, None, Purpose::Rest)?.outcome;
            own.clients(&rest);
            run.close(rest);
        }
        let connecting = crew.connecting();
        // A file has the whole history, and what rows show is a history only as a whole.
        let together =
            measurement.history.is_none() && job.recorded().is_some_and(|recording| !recording.shows_rows());
        let recording = (job.recorded(), together);
        let way = measurement.site.clients();
        let Gone { levels: left, transactions, machines, kept } =
            crew.leave(way.options(), database.product, recording, messages)?;
        own.admin(0, transactions);
        own.behind_pooler(job.spec().clients, measurement.reports(job)?);
        let faults = measurement.faults.as_ref().map(|faults| {
            let settlement = faults.attested.settle(&run, &self.struck);
            fault_round(&run, &self.struck, settlement)
        });
        let observed = measurement.observer.map(|(observer, part)| observer.after_sessions(part));
        let mut round = round(job, measurement.site, &run, number, messages.errors(), self.cpu);
        note_machines(&mut round, machines);
        round.connect_s = Some(connecting.as_secs_f64());
        if let Some(problem) = self.struck.iter().find_map(|struck| struck.problem.as_ref()) {
            round.complete = false;
            round.errors.insert(0, problem.clone());
        }
        let lost = faults.as_ref().map_or(0, |faults: &FaultRound| faults.settlement.lost);
        round.faults = faults;
        round.standby_lag = self.lag;
        if let Some(problem) = self.background.as_ref().and_then(|done| done.problem.as_ref()) {
            round.complete = false;
            round.errors.insert(0, format!("--background {problem}"));
        }
        round.background = self.background;
        round.levels_named.extend(run.levels());
        let errors_before =
            warmup.as_ref().map_or_else(Vec::new, |warmup| itemised(job, measurement.site, &warmup.errors));
        if let Some(warmup) = warmup {
            round.complete &= warmup.complete;
            evidence::add(&mut round.levels_named, &warmup.levels);
            round.warmup = Some(warmup.figures);
        }
        round.server = observed.map(|observed| server_side(observed, &own));
        if let StopCondition::Time(planned) = measurement.stop
            && let Some(why) = held_up(&round, &errors_before, planned, job.spec().grace)
        {
            // Another round would end in the same way.
            round.complete = false;
            round.errors.insert(0, why);
        }
        let alone = measurement.site.is_embedded() && run.turns == 0;
        let product = database.product;
        let effective = match measurement.mixed {
            None => evidence::weigh(&effective, measurement.site.unshared(&left), product, alone, &mut round),
            Some(allocation) => {
                for (script, record) in round.scripts.iter_mut().zip(&run.scripts) {
                    script.levels_named.clone_from(&record.levels);
                }
                modes::weigh(allocation, &of_scripts, &run.scripts, product, alone, &mut round)
            }
        };
        measurement.refuse(&effective)?;
        let promised = product.promises_effective(&effective);
        round.invariants =
            check.map_or_else(Vec::new, |check| check.end(connector, database, &run, lost, promised));
        let conditions = measurement.conditions.after(|| open_after(connector, &run), promised);
        round.invariants.extend(conditions);
        let lost = messages.has_lost_connections();
        let broken = job.recorded().and_then(|recording| recording.broken().map(str::to_owned));
        let (notes, logged, began) = (Vec::new(), self.logged, self.began);
        Ok(Measured {
            round,
            run,
            effective,
            of_scripts,
            connecting,
            lost,
            began,
            notes,
            logged,
            broken,
            kept,
        })
    }
}

/// How a round's recording is found, and where in it the measured part is.
fn recorded_history(file: &Path, began: Nanos) -> RecordedHistory {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    RecordedHistory { file: name, measured_from_s: began.0 as f64 / 1e9 }
}

/// Does work while another thread does something, until its channel is closed.
fn alongside<T, O: Send>(other: impl FnOnce(&Receiver<()>) -> O + Send, work: impl FnOnce() -> T) -> (T, O) {
    let (running, over) = channel::<()>();
    thread::scope(|scope| {
        let thread = scope.spawn(move || other(&over));
        let done = work();
        drop(running);
        (done, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Returns the reason why a level is refused.
pub fn refusal(level: Level, effective: &EffectiveLevel) -> String {
    format!(
        "--strict-levels: {level} was asked for, but the server runs {effective}; leave that level out, or change the \
         server's settings"
    )
}
