//! One cell in one round: the tables in their starting state, all clients connected at the level,
//! warm-up, measurement, invariants, verdict.
//!
//! Not here: how a run becomes a round of the document (`round.rs`), what the server's statistics
//! tell (`observation.rs`).

mod warmup;

use std::collections::BTreeSet;
use std::time::Duration;

use isobench_isolation::EffectiveLevel;
use isobench_observer::Observer;
use isobench_report::Round;
use isobench_runner::{Control, Event, Job, NoThreads, Progress, Watch};

use crate::evidence;
use crate::failure::{Failure, Outcome};
use crate::invariants::InvariantCheck;
use crate::judgement::Judging;
use crate::messages::Messages;
use crate::observation::{OwnWork, server_side};
use crate::plan::{CellPlan, Plan};
use crate::round::{cpu_seconds, round};
use crate::sessions::{self, Opened};
use crate::tables::{Loaded, Ready, Tables};
use crate::target::Target;

/// How often the display of a cell's progress is renewed.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// What measuring a cell needs, the same for all cells.
pub struct Bench<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The servers, in the order of the plan's versions.
    pub targets: &'a [Target],
    /// How histories are checked; `None` if none is recorded.
    pub judging: Option<&'a Judging>,
    /// Watch the servers, one each; none if that isn't wanted.
    pub observers: &'a [Observer],
    /// Shows what scripts ask for with `debug()`.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Requests to stop.
    pub control: &'a Control,
    /// What is loaded on each server.
    pub loaded: Vec<Option<Loaded>>,
    /// The servers and works whose tables have been made before, so that it is known how long that
    /// takes.
    pub made: BTreeSet<(usize, usize)>,
    /// Tables on which scripts were tried, and which the only cell takes as they are.
    pub kept: Option<Ready>,
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
    /// A client lost its connection: the server may have, too, whatever it had in memory.
    pub lost: bool,
}

/// What came out of the clients' work.
struct Ran {
    round: Round,
    effective: EffectiveLevel,
    lost: bool,
}

impl Bench<'_> {
    /// Brings the tables of a cell into their starting state.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn prepare(&mut self, cell: &CellPlan) -> Outcome<Ready> {
        if let Some(ready) = self.kept.take() {
            return Ok(ready);
        }
        let (target, work) = (&self.targets[cell.server], &self.plan.works[cell.work]);
        let builtin = work.sources.writes().is_some();
        let known = !self.made.insert((cell.server, cell.work));
        self.control.patience().set_limited(known);
        let ready = match self.loaded.get_mut(cell.server) {
            Some(loaded) => work.tables.prepare(target, builtin, loaded),
            None => work.tables.prepare(target, builtin, &mut None),
        };
        self.control.patience().set_limited(true);
        ready
    }

    /// Measures one cell, whose tables are ready. `watch` sees the progress of warm-up and
    /// measurement.
    ///
    /// # Errors
    /// Nothing could be measured: a client couldn't connect, the level was refused.
    pub fn measure(
        &self,
        cell: &CellPlan,
        number: u32,
        ready: Ready,
        watch: &mut dyn FnMut(Duration, Progress),
    ) -> Outcome<Measured> {
        let (target, work) = (self.target(cell), &self.plan.works[cell.work]);
        let notes = ready.notes;
        let file = self
            .judging
            .map(|judging| judging.file(&cell.file_name(self.plan, number)))
            .transpose()?
            .flatten();
        let job = self.job(cell)?.asking_level(target.database.product.level_question());
        let job = if self.judging.is_some() { Judging::recording(job, file.as_deref())? } else { job };
        let Ran { mut round, effective, lost } = self.run(&job, cell, number, watch)?;
        round.starting_state = ready.state;
        let promised = target.database.product.promises_effective(&effective);
        let mut judgement = None;
        if let (Some(judging), Some(recording)) = (self.judging, job.into_recording()) {
            let (verdict, text) = judging.judge(recording, file.as_deref(), promised, &work.sources);
            round.verdict = Some(verdict);
            judgement = Some(text);
        }
        Ok(Measured { round, effective, notes, judgement, lost })
    }

    fn job(&self, cell: &CellPlan) -> Outcome<Job> {
        let (plan, target) = (self.plan, self.target(cell));
        let workload = plan.works[cell.work].workload(plan.seed, &target.database)?;
        Ok(sessions::job(plan.spec(cell), workload, &target.database, &target.connector()))
    }

    /// The server of a cell.
    pub fn target(&self, cell: &CellPlan) -> &Target {
        &self.targets[cell.server]
    }

    /// Who watches the server of a cell.
    pub fn observer(&self, cell: &CellPlan) -> Option<&Observer> {
        self.observers.get(cell.server)
    }

    /// From connecting the clients to checking the tables.
    fn run(
        &self,
        job: &Job,
        cell: &CellPlan,
        number: u32,
        watch: &mut dyn FnMut(Duration, Progress),
    ) -> Outcome<Ran> {
        let (plan, target, observer) = (self.plan, self.target(cell), self.observer(cell));
        let work = &plan.works[cell.work];
        let connector = target.connector();
        observe(observer, Observer::before_sessions);
        let Opened { mut fleet, effective, transactions } =
            sessions::open(job, &connector, &target.database, Some(cell.level))?;
        if plan.strict_levels && effective.differs_from(cell.level) {
            return Err(Failure::setup(refusal(cell, &effective)));
        }
        let mut own = OwnWork::new(job, transactions);
        let messages = Messages::kept(self.say);
        let report = |event: Event| messages.take(&event, job);
        let warmup = self.warm_up(&mut fleet, job, &report, watch, &mut own)?;
        let check = if matches!(work.tables, Tables::Found) {
            InvariantCheck::Unavailable(
                "nothing is written on a standby, and its tables change as it follows its primary".to_owned(),
            )
        } else {
            let own_tables = matches!(work.tables, Tables::Own(_));
            InvariantCheck::begin(&connector, &target.database, &work.sources, own_tables)
        };
        own.admin(check.sessions(), check.transactions());
        observe(observer, Observer::begin);
        let cpu = cpu_seconds();
        let watch = Watch { every: WATCH_EVERY, show: watch };
        let run = fleet.run(job, plan.stop, self.control, &report, watch, &mut []).map_err(no_threads)?;
        let cpu = cpu_seconds() - cpu;
        observe(observer, Observer::end);
        own.clients(&run);
        if run.aborted > 0 {
            // They may have been left because the server doesn't answer.
            self.control.patience().doubt();
        }
        let connecting = fleet.connecting();
        let (left, transactions) =
            sessions::leave(fleet.into_sessions(connector.options()), target.database.product);
        own.admin(0, transactions);
        let observed = observer.map(Observer::after_sessions);
        let lost = messages.has_lost_connections();
        let mut round = round(job, &run, number, messages.into_errors(), cpu);
        round.connect_s = Some(connecting.as_secs_f64());
        round.complete &= warmup.as_ref().is_none_or(|warmup| warmup.complete);
        round.levels_named =
            evidence::named(&[warmup.as_ref().map(|warmup| &warmup.levels), Some(&run.levels)]);
        round.warmup = warmup.map(|warmup| warmup.figures);
        round.server = observed.map(|observed| server_side(observed, &own));
        let effective = evidence::weigh(&effective, &left, target, &mut round);
        if plan.strict_levels && effective.differs_from(cell.level) {
            return Err(Failure::setup(refusal(cell, &effective)));
        }
        let promised = target.database.product.promises_effective(&effective);
        round.invariants = check.end(&connector, &target.database, &run, promised);
        Ok(Ran { round, effective, lost })
    }
}

fn observe(observer: Option<&Observer>, step: fn(&Observer)) {
    if let Some(observer) = observer {
        step(observer);
    }
}

/// There are no threads for the workers.
#[expect(clippy::needless_pass_by_value, reason = "so that it can be handed to map_err")]
pub fn no_threads(error: NoThreads) -> Failure {
    Failure::setup(format!("{error}{}", sessions::FEWER_THREADS))
}

/// Why a level is refused.
pub fn refusal(cell: &CellPlan, effective: &EffectiveLevel) -> String {
    format!(
        "--strict-levels: {} was asked for, but the server runs {effective}; leave that level out, or change the server's \
         settings",
        cell.level
    )
}
