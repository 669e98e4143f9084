//! One cell of a comparison in one round: the reset of its tables, then a measurement.
//!
//! Not here: the measurement itself (`measurement.rs`), and the order of the cells
//! (`comparison.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use isobench_isolation::EffectiveLevel;
use isobench_observation::Catalog;
use isobench_observer::Observer;
use isobench_report::{Observation, Round};
use isobench_runner::{Control, Job, RunProgress, RunSpec, RunWorkload, Watch};

use crate::conditions::Conditions;
use crate::design::{CellPlan, Design};
use crate::environment::first_attempt;
use crate::failure::Outcome;
use crate::judgement::Judging;
use crate::measurement::{Invariants, Measurement};
use crate::messages::Messages;
use crate::observed::{Recorded, catalog, recorded};
use crate::sessions;
use crate::tables::{Loaded, Ready, Tables};
use crate::target::Target;

/// Interval at which the progress of a cell is shown.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// Measures cells of a design, one at a time.
pub struct CellMeasurer<'a> {
    /// The design.
    pub design: &'a Design,
    /// The servers, in the order of the design's versions.
    pub targets: &'a [Target],
    /// The check of histories; `None` if none is recorded.
    pub judging: Option<&'a Judging>,
    /// Observers of the servers, one each; empty if the servers aren't observed.
    pub observers: &'a [Observer],
    /// Shows text that scripts print with `debug()`.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Requests to stop.
    pub control: &'a Control,
    /// Tables that are loaded on each server.
    loaded: Vec<Option<Loaded>>,
    /// The servers and works whose tables have been made at least once, so that the time it takes
    /// is known.
    made: BTreeSet<(usize, usize)>,
    /// Tables on which scripts were tried, kept for a sole cell whose setup can't be repeated.
    kept: Option<Ready>,
    /// What the catalogs say, by server and work; `None` if rows aren't observed there.
    catalogs: BTreeMap<(usize, usize), Option<Catalog>>,
    /// Why rows of a work aren't observed, although they could be.
    prevented: BTreeMap<(usize, usize), String>,
}

/// A measured round of a cell.
pub struct MeasuredCell {
    /// The round.
    pub round: Round,
    /// The level that the sessions ran at.
    pub effective: EffectiveLevel,
    /// Notes that concern more than this round.
    pub notes: Vec<String>,
    /// The report on the history, for people.
    pub judgement: Option<String>,
    /// A client lost its connection, so the server may have lost all unsaved state.
    pub lost: bool,
    /// What was seen of its statements, if their rows are observed or could have been.
    pub observation: Option<Observation>,
}

impl<'a> CellMeasurer<'a> {
    /// Creates a measurer for this design on these servers. `observers` may be empty.
    pub fn new(
        design: &'a Design,
        targets: &'a [Target],
        judging: Option<&'a Judging>,
        observers: &'a [Observer],
        say: &'a (dyn Fn(&str) + Sync),
        control: &'a Control,
    ) -> CellMeasurer<'a> {
        let loaded = targets.iter().map(|_| None).collect();
        CellMeasurer {
            design,
            targets,
            judging,
            observers,
            say,
            control,
            loaded,
            made: BTreeSet::new(),
            kept: None,
            catalogs: BTreeMap::new(),
            prevented: BTreeMap::new(),
        }
    }

    /// Brings the tables of a cell into their starting state.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn prepare(&mut self, cell: &CellPlan) -> Outcome<Ready> {
        if let Some(ready) = self.kept.take() {
            return Ok(ready);
        }
        let (target, work) = (&self.targets[cell.server], &self.design.works[cell.work]);
        let builtin = work.sources.writes().is_some();
        let known = !self.made.insert((cell.server, cell.work));
        self.control.patience().set_limited(known);
        let ready = match self.loaded.get_mut(cell.server) {
            Some(loaded) => work.tables.prepare(target, builtin, loaded),
            None => work.tables.prepare(target, builtin, &mut None),
        };
        self.control.patience().set_limited(true);
        let ready = ready?;
        self.learn_catalog(cell);
        Ok(ready)
    }

    /// Reads the catalogs for a work whose tables are ready, unless that was done.
    fn learn_catalog(&mut self, cell: &CellPlan) {
        let place = (cell.server, cell.work);
        let wanted = self.judging.is_some() && self.design.plan.observe().shows_rows();
        if wanted && !self.catalogs.contains_key(&place) {
            let catalog = match catalog(&self.targets[cell.server]) {
                Ok(catalog) => catalog,
                Err(failure) => {
                    self.prevent(cell, format!("the server's catalogs can't be read: {failure}"));
                    None
                }
            };
            self.catalogs.insert(place, catalog);
        }
    }

    /// Decides how a cell's transactions are recorded, and prepares its scripts for it.
    pub(crate) fn recorded(&self, cell: &CellPlan, spec: &RunSpec, workload: &mut RunWorkload) -> Recorded {
        let place = (cell.server, cell.work);
        let catalog = self.catalogs.get(&place).filter(|_| !self.prevented.contains_key(&place));
        let catalog = catalog.and_then(Option::as_ref);
        recorded(workload, spec, self.design.plan.observe(), catalog)
    }

    /// From now on the statements of a work are sent as written, for this reason.
    pub(crate) fn prevent(&mut self, cell: &CellPlan, why: String) {
        self.prevented.insert((cell.server, cell.work), why);
    }

    /// Keeps tables for the next cell to be prepared, which must be the only one.
    pub fn keep(&mut self, ready: Ready) {
        self.kept = Some(ready);
    }

    /// Measures one cell, whose tables are ready. `watch` receives the progress of warm-up and
    /// measurement.
    ///
    /// # Errors
    /// Nothing could be measured: a client couldn't connect, the level was refused.
    pub fn measure(
        &self,
        cell: &CellPlan,
        number: u32,
        ready: Ready,
        watch: &mut dyn FnMut(Duration, RunProgress),
    ) -> Outcome<MeasuredCell> {
        let (design, target, work) = (self.design, self.target(cell), &self.design.works[cell.work]);
        let kept = matches!(work.tables, Tables::Kept(_));
        let mut workload = work.workload(design.seed(), &target.database)?;
        let recorded = self.recorded(cell, &design.spec(cell), &mut workload);
        let judging = self.judging.filter(|_| !matches!(recorded, Recorded::Nothing));
        let history = judging.map(|judging| judging.file(&cell.file_name(design, number)));
        let measurement = Measurement {
            target,
            sources: &work.sources,
            level: Some(cell.level),
            strict: design.plan.is_strict(),
            warmup: (design.warmup, design.max_warmup),
            stop: design.stop,
            log: None,
            fresh_tables: !kept,
            invariants: match work.tables {
                Tables::Found => Invariants::Unavailable(
                    "nothing is written on a standby, and its tables change as it follows its primary",
                ),
                Tables::Own(_) | Tables::Kept(_) => Invariants::Checked { own_tables: true },
                Tables::Pgbench { .. } | Tables::Checked(_) => Invariants::Checked { own_tables: false },
            },
            conditions: if kept {
                Conditions::before(&design.conditions, &target.connector())?
            } else {
                Conditions::holding(&design.conditions)
            },
            judging,
            recorded: &recorded,
            history: history.transpose()?.flatten(),
            observer: self.observer(cell),
            control: self.control,
        };
        // Rows that stay have the numbers of those who wrote them.
        let attempts_from = if kept { first_attempt() } else { RunSpec::default().attempts_from };
        let job = self.job(cell, RunSpec { attempts_from, ..design.spec(cell) }, workload);
        let job = measurement.job(job)?;
        let messages = Messages::kept(self.say);
        let mut watch = Watch { every: WATCH_EVERY, show: watch };
        let second = recorded.second_source(design.plan.observe(), target)?;
        let mut measured = measurement.run(&job, number, &messages, &mut watch)?;
        let judgement = measurement.judge(job, second, &mut measured);
        measured.round.starting_state = ready.state;
        let mut notes = ready.notes;
        notes.append(&mut measured.notes);
        Ok(MeasuredCell {
            round: measured.round,
            effective: measured.effective,
            notes,
            judgement,
            lost: measured.lost,
            observation: self.observation(cell, &recorded),
        })
    }

    /// A job of a cell's clients.
    pub(crate) fn job(&self, cell: &CellPlan, spec: RunSpec, workload: RunWorkload) -> Job {
        let target = self.target(cell);
        sessions::job(spec, workload, self.design.plan.retried(), &target.database, &target.connector())
    }

    /// What is seen of a cell's statements.
    fn observation(&self, cell: &CellPlan, recorded: &Recorded) -> Option<Observation> {
        let work = &self.design.works[cell.work];
        let prevented = self.prevented.get(&(cell.server, cell.work)).cloned();
        let statements = match recorded {
            Recorded::Rows(seen) => seen.report(),
            Recorded::Annotations | Recorded::Nothing => Vec::new(),
        };
        let told = !statements.is_empty() || prevented.is_some();
        let strategy = work.strategy.clone();
        told.then(|| Observation { workload: work.sources.name(), strategy, statements, prevented })
    }

    /// The server of a cell.
    pub fn target(&self, cell: &CellPlan) -> &'a Target {
        &self.targets[cell.server]
    }

    /// The observer of a cell's server.
    pub fn observer(&self, cell: &CellPlan) -> Option<&'a Observer> {
        self.observers.get(cell.server)
    }
}
