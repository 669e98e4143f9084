//! One cell in one round: the tables in their starting state, all clients connected at the level, warm-up, measurement,
//! invariants, verdict.

use std::time::Duration;

use isobench_isolation::EffectiveLevel;
use isobench_report::{Conflict, Round, Warmup};
use isobench_runner::{Control, Event, Job, Outcome as Run, Progress, Stop, Watch};
use rustix::time::{ClockId, clock_gettime};

use crate::books::Books;
use crate::failure::{Failure, Outcome};
use crate::judgement::Judging;
use crate::messages::Messages;
use crate::plan::{CellPlan, Plan};
use crate::sessions;
use crate::tables::Tables;
use crate::target::Target;

/// How often the display of a cell's progress is renewed.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// What measuring a cell needs, the same for all cells.
pub struct Bench<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The server.
    pub target: &'a Target,
    /// The tables.
    pub tables: &'a Tables,
    /// How histories are checked; `None` if none is recorded.
    pub judging: Option<&'a Judging>,
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
    /// What the history shows, in full, for people.
    pub judgement: Option<String>,
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
        let mut notes = self.tables.make(target)?;
        let workload = plan.sources.workload(plan.scale, plan.seed, &[])?;
        let job = sessions::job(plan.spec(cell), workload, &target.database);
        let file = self.judging.map(|judging| judging.file(&cell.file_name(number))).transpose()?.flatten();
        let job = if self.judging.is_some() { Judging::recording(job, file.as_deref())? } else { job };
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
        let books = Books::open(&connector, &plan.sources, plan.setup.is_some());
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
        let promised = target.database.product.promises(cell.level);
        round.invariants = books.close(&connector, &run, Some(promised));
        let mut judgement = None;
        if let (Some(judging), Some(recording)) = (self.judging, job.into_recording()) {
            match judging.judge(recording, file.as_deref(), Some(promised)) {
                Ok((verdict, text)) => {
                    round.verdict = Some(verdict);
                    judgement = Some(text);
                }
                Err(problem) => notes.push(problem),
            }
        }
        Ok(Measured { round, effective, notes, judgement })
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
            object: conflict.object.as_deref().map(str::to_owned),
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
        steps: 1,
        steady: None,
        attempts: ledger.attempts.started,
        committed: ledger.transactions.committed,
        ambiguous: ledger.transactions.ambiguous,
    }
}
