//! Tries every script once before the measurement, in a transaction that is rolled back, so that a
//! missing table, a wrong column or an unsupported statement is found within a second, and not
//! after the cells before it.
//!
//! Not here: making a script harmless (`isobench_script`), and the consequences for the comparison
//! (`comparison.rs`).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use isobench_isolation::Level;
use isobench_pgwire::SqlState;
use isobench_runner::{
    AbortCause, ClientEvent, CommandPlace, Control, Detail, Job, OnError, OnLost, Pacing, RetryPolicy,
    RunSpec, RunWorkload, StopCondition, Storage, Urgency, Watch,
};
use isobench_script::Variables;

use crate::cell::{CellMeasurer, Prepared};
use crate::conditions::Conditions;
use crate::design::CellPlan;
use crate::failure::{Failure, Outcome};
use crate::observed::Recorded;
use crate::plans::Values;
use crate::relations::missing;
use crate::remedy::remedy;
use crate::sessions::{self, Places};
use crate::site::Site;
use crate::tables::Tables;

/// Time limit of a trial; a script that exceeds it has worked so far and is accepted.
const LONGEST: Duration = Duration::from_secs(3);

/// Interval at which requests to stop are checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Errors that only mean that a script can't be tried within a transaction block: it isn't allowed
/// there, or contains transaction control.
const NOT_IN_A_BLOCK: [SqlState; 3] = [SqlState(*b"25001"), SqlState(*b"25P01"), SqlState(*b"2D000")];

/// Classes of errors of statements that are wrong in themselves: a feature that isn't supported, a
/// name or a type that doesn't exist, a right that is missing (PostgreSQL manual, "Error Codes").
const WRONG_STATEMENT: [&str; 4] = ["0A", "3D", "3F", "42"];

/// Why a script failed.
struct Problem {
    /// The place and the reason, for people.
    text: String,
    /// The reason.
    why: String,
    /// The command.
    command: usize,
}

impl CellMeasurer<'_> {
    /// Tries the scripts of a cell on tables in their starting state. Returns the reason why it
    /// can't be measured, if it can't.
    ///
    /// # Errors
    /// The server is gone, or a condition of the user's doesn't hold there.
    pub fn try_scripts(&mut self, cell: &CellPlan) -> Outcome<Option<String>> {
        let prepared = match self.make_ready(cell, 0) {
            Ok(prepared) => prepared,
            Err(failure) => return self.unless_gone(cell, failure),
        };
        let (site, work) = (&prepared.site, &self.design.works[cell.work]);
        Conditions::require(&self.design.conditions, site.connector())?;
        let spec = RunSpec {
            clients: 1,
            workers: 1,
            pacing: Pacing::Unpaced,
            latency_limit: None,
            series: None,
            retry: RetryPolicy::NEVER,
            on_error: OnError::Abort,
            on_lost: OnLost::End,
            keeps_attempts: false,
            grace: Duration::ZERO,
            ..self.design.spec(cell)
        };
        let mut tried = work.tried(self.design.seed(), &site.database)?;
        for workload in &mut tried {
            self.design.ask_for_levels(cell, site.connector().place(), &mut workload.mix)?;
        }
        let scripts = tried.iter().flat_map(|workload| workload.mix.scripts());
        if let Some(problem) = missing(site, &work.tables, scripts.map(|weighted| &weighted.script))? {
            return Ok(Some(problem));
        }
        let problem = match self.try_workloads(cell, &prepared, &spec, &tried) {
            Ok(problem) => problem,
            Err(failure) => return self.unless_gone(cell, failure),
        };
        if problem.is_some() {
            return Ok(problem);
        }
        self.note_size(cell, site);
        // A setup of the user's own that works only once is enough for a single cell.
        let only = self.design.cells().len() == 1
            && self.design.plan.rounds() == 1
            && self.design.plan.resolve.is_none();
        if only {
            self.keep(prepared);
        } else if let Tables::Own(setup) = &self.design.works[cell.work].tables
            && (!site.is_embedded() || setup.reach().is_some())
            && let Err(failure) = self.prepare(cell, 0)
        {
            // What lies outside of the schema may be in the way the second time.
            return self.unless_gone(cell, failure);
        }
        Ok(None)
    }

    /// Tries scripts: all as written, which gives variables their values, and then those whose
    /// statements show rows with the columns that show them. Returns the reason why one fails as
    /// written.
    fn try_workloads(
        &mut self,
        cell: &CellPlan,
        prepared: &Prepared,
        spec: &RunSpec,
        tried: &[RunWorkload],
    ) -> Outcome<Option<String>> {
        let name = self.design.works[cell.work].workload;
        let mut values = self.values.remove(&name).unwrap_or_default();
        for workload in tried {
            let problem = self.try_as_written(cell, prepared, spec, workload, &mut values)?;
            if problem.is_some() {
                return Ok(problem);
            }
        }
        self.values.insert(name, values);
        self.compare_plans(cell, prepared)?;
        for workload in tried {
            self.try_with_columns(cell, prepared, spec, workload)?;
        }
        Ok(None)
    }

    /// Tries a script as written, with recording, so that `--@` lines are tried, too.
    fn try_as_written(
        &self,
        cell: &CellPlan,
        prepared: &Prepared,
        spec: &RunSpec,
        workload: &RunWorkload,
        values: &mut Values,
    ) -> Outcome<Option<String>> {
        let recorded = self.recorded(cell, prepared, spec, &mut workload.clone());
        let annotated = self.judging.is_some() && matches!(recorded, Recorded::Annotations);
        let spec = RunSpec { detail: Detail { variables: true, ..spec.detail }, ..spec.clone() };
        let job = self.job(&prepared.site, spec, workload.clone());
        let job = if annotated { job.recording(Storage::default()).map_err(Failure::setup)? } else { job };
        let values = Mutex::new(values);
        let sends = |place: CommandPlace, variables: &Variables| {
            let script = workload.mix.scripts().get(place.script).map(|weighted| &weighted.script);
            let command = script.and_then(|script| Some((script, script.commands.get(place.command)?)));
            if let Some((script, command)) = command {
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                values.note(&script.name, command.line, variables, &workload.symbols);
            }
        };
        Ok(self.try_script(&job, &prepared.site, cell.level, &sends)?.map(|problem| problem.text))
    }

    /// Tries a script with the columns that show rows. Statements that fail with these columns alone
    /// are sent as written from now on.
    fn try_with_columns(
        &mut self,
        cell: &CellPlan,
        prepared: &Prepared,
        spec: &RunSpec,
        workload: &RunWorkload,
    ) -> Outcome {
        let site = &prepared.site;
        loop {
            let mut changed = workload.clone();
            let recorded = self.recorded(cell, prepared, spec, &mut changed);
            let (Recorded::Rows(seen), Some(_)) = (&recorded, self.judging) else { return Ok(()) };
            let job = seen.job(self.job(site, spec.clone(), changed), site)?;
            let Some(problem) = self.try_script(&job, site, cell.level, &|_, _| {})? else { return Ok(()) };
            let own = seen.forms.iter().filter(|own| own.command == problem.command);
            let texts: Vec<String> = own.map(|own| own.text.clone()).collect();
            if self.send_as_written(cell, site, &texts, &problem.why) {
                continue;
            }
            (self.say)(&format!(
                "warning: {} is sent as written, and its rows aren't observed, because with the columns that show \
                 them: {}",
                self.design.works[cell.work].sources.name(),
                problem.text
            ));
            self.prevent(cell, problem.text);
        }
    }

    /// Runs a script once; `sends` is called with the variables of each command, if the job reports
    /// them. Returns the reason why it failed, unless the trial itself is the cause.
    fn try_script(
        &self,
        job: &Job,
        site: &Site,
        level: Level,
        sends: &(dyn Fn(CommandPlace, &Variables) + Sync),
    ) -> Outcome<Option<Problem>> {
        let places = Places::new(site, 1, 0)?;
        let mut fleet = sessions::open(job, &places, &site.database, Some(level))?.fleet;
        let problem = Mutex::new(None);
        let continues = self.design.plan.continues();
        let report = |event: ClientEvent| {
            if let ClientEvent::Sends(place, variables) = &event {
                sends(*place, variables);
            }
            if let ClientEvent::Aborted(place, cause) = &event
                && let Some(why) = why(cause, job, *place)
                && !(continues && is_of_data(cause))
            {
                let at = job.place(place.script, place.command);
                let text = format!("{at}\n  {why}");
                let found = Problem { text, why, command: place.command };
                problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
            }
        };
        let control = Control::new();
        let watch = Watch {
            every: LOOK_EVERY,
            latencies: false,
            show: &mut |elapsed, _| {
                if elapsed > LONGEST || self.control.urgency() > Urgency::None {
                    control.request(Urgency::Now);
                }
            },
        };
        fleet
            .run(job, StopCondition::Transactions(1), &control, &report, watch, &mut [])
            .map_err(Failure::setup)?;
        drop(fleet);
        Ok(problem.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Attributes a failure to the cell if its server still answers.
    fn unless_gone(&self, cell: &CellPlan, failure: Failure) -> Outcome<Option<String>> {
        if self.answers(cell) { Ok(Some(failure.to_string())) } else { Err(failure) }
    }

    /// Returns whether the server of a cell accepts connections and no request to stop is pending.
    pub fn answers(&self, cell: &CellPlan) -> bool {
        self.control.urgency() == Urgency::None && self.target(cell).open().is_ok()
    }
}

/// Returns whether an error may come from the data. A measurement that continues after errors goes
/// on after it, so that a trial that meets it proves nothing; a statement that is wrong in itself
/// never works.
fn is_of_data(cause: &AbortCause) -> bool {
    let AbortCause::Server(failed) = cause else { return false };
    let code = failed.error.code;
    !WRONG_STATEMENT.iter().any(|class| code.as_str().starts_with(class))
}

/// Returns the problem, if it is one of the script.
fn why(cause: &AbortCause, job: &Job, place: CommandPlace) -> Option<String> {
    match cause {
        AbortCause::Server(failed) if NOT_IN_A_BLOCK.contains(&failed.error.code) => None,
        AbortCause::Server(failed) => {
            Some(failed.error.report(failed.text.as_deref()) + &remedy(cause, job, place))
        }
        AbortCause::Evaluation(why) => Some(why.to_string()),
        AbortCause::Execution(why)
        | AbortCause::Assignment(why)
        | AbortCause::NotAllowed(why)
        | AbortCause::Annotation(why) => Some(why.clone()),
        AbortCause::Result { problem, .. } => Some(problem.clone() + &remedy(cause, job, place)),
        AbortCause::Copy => {
            Some("COPY is not supported in scripts; load tables with init, or with psql".to_owned())
        }
        // A problem of the session or of transactions within the script, on which a trial has no
        // bearing.
        AbortCause::Unfinished(_) | AbortCause::Connect(_) | AbortCause::Lost(..) => None,
    }
}
