//! One cell in one round: the tables in their starting state, all clients connected at the level, warm-up, measurement,
//! invariants, verdict.
//!
//! Not here: how a run becomes a round of the document (`round.rs`), what the server's statistics tell (`observation.rs`).

mod warmup;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use isobench_isolation::EffectiveLevel;
use isobench_observer::Observer;
use isobench_report::Round;
use isobench_runner::{Control, Event, Job, NoThreads, Progress, Watch};

use crate::books::Books;
use crate::failure::{Failure, Outcome};
use crate::judgement::Judging;
use crate::messages::Messages;
use crate::observation::{OwnWork, server_side};
use crate::plan::{CellPlan, Plan};
use crate::round::{cpu_seconds, round};
use crate::sessions::{self, Opened};
use crate::tables::Tables;
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
    /// Requests to stop.
    pub control: &'a Control,
    /// The servers and works whose tables have been made before, so that it is known how long that takes.
    pub made: RefCell<BTreeSet<(usize, usize)>>,
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
        let (target, work) = (self.target(cell), &self.plan.works[cell.work]);
        let known = !self.made.borrow_mut().insert((cell.server, cell.work));
        self.control.patience().set_limited(known);
        let made = work.tables.make(target);
        self.control.patience().set_limited(true);
        let mut notes = made?;
        let file = self
            .judging
            .map(|judging| judging.file(&cell.file_name(self.plan, number)))
            .transpose()?
            .flatten();
        let job = self.job(cell)?;
        let job = if self.judging.is_some() { Judging::recording(job, file.as_deref())? } else { job };
        let (mut round, effective) = self.run(&job, cell, number, watch)?;
        let promised = target.database.product.promises(cell.level);
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

    fn job(&self, cell: &CellPlan) -> Outcome<Job> {
        let (plan, target) = (self.plan, self.target(cell));
        let workload = plan.works[cell.work].workload(plan.seed)?;
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
    ) -> Outcome<(Round, EffectiveLevel)> {
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
        let messages = Messages::kept();
        let report = |event: Event| messages.take(&event, job);
        let warmup = self.warm_up(&mut fleet, job, &report, watch, &mut own)?;
        let books = Books::open(
            &connector,
            target.database.product,
            &work.sources,
            matches!(work.tables, Tables::Own(_)),
        );
        own.admin(books.sessions(), books.transactions());
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
        drop(fleet);
        let observed = observer.map(Observer::after_sessions);
        let mut round = round(job, &run, number, messages.into_errors(), cpu);
        round.connect_s = Some(connecting.as_secs_f64());
        round.complete &= warmup.as_ref().is_none_or(|warmup| warmup.complete);
        round.warmup = warmup.map(|warmup| warmup.figures);
        round.server = observed.map(|observed| server_side(observed, &own));
        let promised = target.database.product.promises(cell.level);
        round.invariants = books.close(&connector, &run, Some(promised));
        Ok((round, effective))
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
