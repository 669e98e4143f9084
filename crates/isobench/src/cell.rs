//! One cell in one round: the tables in their starting state, all clients connected at the level, warm-up, measurement,
//! invariants.

use std::time::Duration;

use isobench_database::{Baseline, Expectation, InitOptions, Writes, baseline, check};
use isobench_isolation::EffectiveLevel;
use isobench_report::{Conflict, Invariant, Round, Warmup};
use isobench_runner::{Control, Event, Job, Outcome as Run, Progress, Stop, Watch};
use rustix::time::{ClockId, clock_gettime};

use crate::failure::{Failure, Outcome};
use crate::messages::Messages;
use crate::plan::{CellPlan, Plan};
use crate::sessions;
use crate::target::{Connector, Target};

/// How long a server that was lost may take to come back for the check of the invariants (a crashed backend makes
/// PostgreSQL restart by itself).
const COMEBACK: Duration = Duration::from_secs(10);

/// How often the display of a cell's progress is renewed.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// What measuring a cell needs, the same for all cells.
pub struct Bench<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The server.
    pub target: &'a Target,
    /// The tables.
    pub tables: &'a InitOptions,
    /// Requests to stop.
    pub control: &'a Control,
}

/// A measured round of a cell, and the level its sessions really had.
pub struct Measured {
    /// What came out.
    pub round: Round,
    /// The level.
    pub effective: EffectiveLevel,
    /// Things to say that concern more than this round.
    pub notes: Vec<String>,
}

impl Bench<'_> {
    /// Measures one cell. `watch` sees the progress of warm-up and measurement.
    ///
    /// # Errors
    /// Nothing could be measured: the tables couldn't be made, a client couldn't connect, the level was refused.
    pub fn measure(
        &self,
        cell: &CellPlan,
        number: u32,
        watch: &mut dyn FnMut(Duration, Progress),
    ) -> Outcome<Measured> {
        let (plan, target) = (self.plan, self.target);
        let notes = self.starting_state()?;
        let workload = plan.sources.workload(plan.scale, plan.seed, &[])?;
        let job = sessions::job(plan.spec(cell), workload, &target.database);
        let connector = target.connector();
        let (mut fleet, effective) = sessions::open(&job, &connector, &target.database, Some(cell.level))?;
        if plan.strict_levels && effective.differs_from(cell.level) {
            return Err(Failure::setup(refusal(cell, &effective)));
        }
        let messages = Messages::kept();
        let report = |event: Event| messages.take(&event, &job);
        let mut warmup = None;
        if !plan.warmup.is_zero() {
            let watch = Watch { every: WATCH_EVERY, show: watch };
            let stop = Stop::Time(plan.warmup);
            warmup = Some(fleet.run(&job, stop, self.control, &report, watch, &mut []));
        }
        let writes = if plan.setup.is_some() { None } else { plan.sources.writes() };
        let books = Books::open(&connector, writes);
        let cpu = cpu_seconds();
        let watch = Watch { every: WATCH_EVERY, show: watch };
        let run = fleet.run(&job, Stop::Time(plan.time), self.control, &report, watch, &mut []);
        let cpu = cpu_seconds() - cpu;
        let connecting = fleet.connecting();
        drop(fleet);
        let mut round = round(&job, &run, number, messages.into_errors());
        round.client_cpu_s = Some(cpu);
        round.connect_s = Some(connecting.as_secs_f64());
        round.complete &= warmup.as_ref().is_none_or(Run::is_complete);
        round.warmup = warmup.as_ref().map(warmed_up);
        round.invariants = books.close(&connector, &run);
        Ok(Measured { round, effective, notes })
    }

    /// Makes the tables anew.
    fn starting_state(&self) -> Outcome<Vec<String>> {
        let Some(setup) = &self.plan.setup else {
            return self.target.reset(self.tables).map_err(Failure::setup);
        };
        let mut connection = self.target.open().map_err(Failure::setup)?;
        setup.run(&mut connection)?;
        connection.close();
        Ok(Vec::new())
    }
}

/// Why a level is refused.
pub fn refusal(cell: &CellPlan, effective: &EffectiveLevel) -> String {
    format!(
        "--strict-levels: {} was asked for, but the server runs {effective}; leave that level out, or change the server's \
         settings",
        cell.level
    )
}

/// CPU time of this process so far, user and system, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The round of the result document that a run makes, with the errors of its clients.
pub fn round(job: &Job, run: &Run, number: u32, errors: Vec<String>) -> Round {
    let conflicts = run
        .conflicts
        .iter()
        .map(|conflict| Conflict {
            sqlstate: conflict.sqlstate.to_string(),
            command: job.command_label(conflict.script, conflict.command),
            reason: conflict.reason.to_string(),
            count: conflict.count,
        })
        .collect();
    let ledger = run.ledger();
    let mut round = Round::from_ledger(number, &ledger, &run.latency(), run.elapsed, conflicts);
    round.complete = run.is_complete();
    round.late = job.spec().latency_limit.map(|_| ledger.late);
    round.errors = errors;
    if let Err(error) = run.check() {
        // A defect of isobench: the round is kept for whoever looks into it, but counts for nothing.
        round.complete = false;
        round.errors.insert(0, error.to_string());
    }
    round
}

fn warmed_up(run: &Run) -> Warmup {
    let ledger = run.ledger();
    Warmup {
        seconds: run.elapsed.as_secs_f64(),
        attempts: ledger.attempts.started,
        committed: ledger.transactions.committed,
        ambiguous: ledger.transactions.ambiguous,
    }
}

/// The invariants of the TPC-B-like tables: what the tables held before the measured part, to compare with afterwards.
pub enum Books {
    /// The scripts are built-in ones, and this was the state.
    Open(Vec<Writes>, Baseline),
    /// Nothing can be checked, for this reason.
    Closed(String),
}

impl Books {
    /// Reads the state before measuring, given what each script writes (`None` if that is not known).
    pub fn open(connector: &Connector, writes: Option<Vec<Writes>>) -> Books {
        let Some(writes) = writes else {
            return Books::Closed(
                "the workload has scripts of your own, whose invariants are not known".to_owned(),
            );
        };
        match connector.open().and_then(|mut connection| baseline(&mut connection)) {
            Ok(before) => Books::Open(writes, before),
            Err(error) => Books::Closed(format!("could not be read before measuring: {error}")),
        }
    }

    /// Reads the state again and compares its change with what the run counted.
    pub fn close(self, connector: &Connector, run: &Run) -> Vec<Invariant> {
        let (writes, before) = match self {
            Books::Open(writes, before) => (writes, before),
            Books::Closed(why) => return vec![Invariant::unchecked("tables", why)],
        };
        let mut expected = Expectation::default();
        for (script, writes) in run.scripts.iter().zip(&writes) {
            if *writes != Writes::Nothing {
                expected.committed += script.ledger.transactions.committed;
                expected.ambiguous += script.ledger.transactions.ambiguous;
            }
        }
        let patience = if run.aborted > 0 { COMEBACK } else { Duration::ZERO };
        let checked = open_again(connector, patience)
            .and_then(|mut connection| check(&mut connection, &before, expected, &writes));
        match checked {
            Ok(checked) => checked
                .into_iter()
                .map(|invariant| Invariant::checked(invariant.name, invariant.held, invariant.detail))
                .collect(),
            Err(error) => vec![Invariant::unchecked("tables", format!("could not be checked: {error}"))],
        }
    }
}

/// Connects to a server that may be restarting.
fn open_again(
    connector: &Connector,
    patience: Duration,
) -> Result<isobench_pgwire::Connection, isobench_database::Error> {
    let began = std::time::Instant::now();
    loop {
        match connector.open() {
            Err(_) if began.elapsed() < patience => std::thread::sleep(Duration::from_millis(200)),
            outcome => return outcome,
        }
    }
}
