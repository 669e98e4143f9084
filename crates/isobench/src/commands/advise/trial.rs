//! Scripts that are tried against each other on tables of isobench's own.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use isobench_advice::{ChangeSet, Executed, NotChanged, ScriptText, TriedSet, Tries};
use isobench_comparison::interleavings::{Extent, tried, try_interleavings};
use isobench_comparison::{
    Condition, Failure, Outcome, Site, Sources, Target, Work, catalog, read_statements,
};
use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_limits::LIMITS;
use isobench_pgwire::SqlState;
use isobench_probe::Options;
use isobench_probe::interleaving::{Found, LevelFound, TryError};
use isobench_program::{Templates, templates};
use isobench_report::folder_of;
use isobench_result::numbers::counted;
use isobench_runner::{Control, Urgency};
use isobench_script::{CommandKind, Script, Weighted};
use isobench_sql::Catalog;

use crate::output::step;

/// The part of the time that is left, for schedules that theory names.
const SHARE: u32 = 6;

/// The same for all scripts together: theory names no schedule, so it takes longer to find one.
const LARGE_SHARE: u32 = 3;

/// The least time for executing a schedule.
const LEAST: Duration = Duration::from_millis(300);

/// The time for making the tables of all schedules, in budgets of trying.
const MAKING_BUDGETS: u32 = 3;

/// The limit of a statement of a script that is tried.
const STEP: Duration = Duration::from_secs(5);

/// Why trying a script in vain says nothing, after its name.
const ELSEWHERE: &str = "it isn't known what the values that it writes are computed from (--@ computed)";

/// A place for trying, with the scripts.
pub(super) struct Trial<'a> {
    pub(super) site: &'a Site,
    pub(super) target: &'a Target,
    pub(super) work: &'a Work,
    pub(super) seed: u64,
    /// The time for executing the schedules that speak against levels, and again for those of changes.
    pub(super) budget: Duration,
    pub(super) control: &'a Control,
    pub(super) names: &'a [String],
    /// Values of variables are parameters.
    pub(super) literals: bool,
    /// What must be true of the tables.
    pub(super) conditions: &'a [Condition],
    /// The scripts that write what was computed elsewhere: that nothing wrong is shown proves nothing.
    pub(super) elsewhere: &'a BTreeSet<String>,
    /// The scripts were made of a capture: one that can't be executed is left out.
    pub(super) of_capture: bool,
    pub(super) state: State,
}

/// How far trying has come.
pub(super) struct State {
    /// Why nothing is tried any more: it was interrupted, or the server is gone. What was found before is
    /// reported.
    ended: RefCell<Option<String>>,
    /// What is left of the time.
    left: Cell<Duration>,
    /// How long the tables have been made so far, for all schedules together.
    making: Cell<Duration>,
    /// The scripts that couldn't be tried when they were last to be, each with the reason.
    refused: RefCell<BTreeMap<String, String>>,
}

impl State {
    pub(super) fn new(budget: Duration) -> State {
        State {
            ended: RefCell::default(),
            left: Cell::new(budget),
            making: Cell::default(),
            refused: RefCell::default(),
        }
    }
}

/// Why scripts can't be tried.
enum NotTried {
    /// A statement of theirs, or of what makes their tables, is wrong.
    Mistake(String),
    /// Something else.
    Other(String),
}

impl NotTried {
    fn why(self) -> String {
        match self {
            NotTried::Mistake(why) | NotTried::Other(why) => why,
        }
    }
}

impl Trial<'_> {
    /// Tries combinations of scripts, or all, at these levels, on tables in their starting state after
    /// this SQL.
    pub(super) fn execute(
        &self,
        sources: &Sources,
        setup: Option<&str>,
        combinations: Option<&[Vec<String>]>,
        allocation: &Allocation,
    ) -> Outcome<Executed> {
        match self.found("", sources, setup, combinations, allocation)? {
            Err(NotTried::Mistake(why)) if !self.of_capture => Err(Failure::setup(why)),
            found => {
                if let Ok(found) = &found {
                    let mut refused = self.state.refused.borrow_mut();
                    refused.retain(|script, _| !self.meeting(combinations).contains(script.as_str()));
                    refused.extend(found.refused.iter().cloned());
                }
                Ok(self.executed(found, combinations))
            }
        }
    }

    /// The scripts that couldn't be tried when they were last to be, each with the reason.
    pub(super) fn refused(&self) -> BTreeMap<String, String> {
        self.state.refused.borrow().clone()
    }

    /// Gives the whole time again, for changes.
    pub(super) fn begin_again(&self) {
        self.state.left.set(self.budget);
    }

    /// The same with scripts and tables that aren't the user's any more. The inner error is why a change
    /// is none.
    fn execute_changed(
        &self,
        sources: &Sources,
        setup: Option<&str>,
        combinations: Option<&[Vec<String>]>,
        allocation: &Allocation,
    ) -> Outcome<Result<TriedSet, NotChanged>> {
        Ok(match self.found("a change: ", sources, setup, combinations, allocation)? {
            Err(NotTried::Mistake(_)) => Err(NotChanged::Mistake),
            Ok(Found { violated: Some(why), .. }) if setup.is_some() => Err(NotChanged::Refused(why)),
            found => {
                let deadlock = found.as_ref().ok().and_then(|found| deadlocked(&found.levels[0]));
                Ok(TriedSet { executed: self.executed(found, combinations), deadlock })
            }
        })
    }

    /// Fails if trying, or the search for changes, has ended early.
    ///
    /// # Errors
    /// It has; why.
    pub(super) fn require_end(&self) -> Outcome {
        self.note_interrupt();
        self.state.ended.borrow().clone().map_or(Ok(()), |why| Err(Failure::Incomplete(why)))
    }

    /// Nothing is tried any more if the user has interrupted.
    fn note_interrupt(&self) {
        if self.control.urgency() > Urgency::None {
            self.state.ended.replace(Some("interrupted".to_owned()));
        }
    }

    /// Nothing is tried any more.
    fn end(&self, why: String) -> NotTried {
        self.state.ended.replace(Some(why.clone()));
        NotTried::Other(why)
    }

    /// How long making the tables may take, for all schedules together. The next schedule isn't tried then.
    fn most_making(&self) -> Duration {
        LIMITS.making.max(self.budget * MAKING_BUDGETS)
    }

    /// The time for executing the next schedule: less and less, so that all have some.
    fn share(&self, all: bool) -> Duration {
        let left = self.state.left.get();
        let share = if all { left.max(self.budget / 2) / LARGE_SHARE } else { left / SHARE };
        share.max(LEAST.min(self.budget))
    }

    fn executed(&self, found: Result<Found, NotTried>, combinations: Option<&[Vec<String>]>) -> Executed {
        let scripts = self.meeting(combinations);
        let found = match found {
            Ok(found) => found,
            Err(not_tried) => return Executed::Untried(not_tried.why()),
        };
        let level = &found.levels[0];
        if level.gravest().is_some_and(|witness| !witness.no_level_prevents) {
            return Executed::Shown(Box::new(tried(&found, level)));
        }
        let refused = found.refused.iter().find(|(script, _)| scripts.contains(script.as_str()));
        let elsewhere = self.elsewhere.iter().find(|script| scripts.contains(script.as_str()));
        match (refused, elsewhere) {
            (Some((script, why)), _) => Executed::Untried(format!("{script} can't be tried: {why}")),
            (None, Some(script)) => Executed::Untried(format!(
                "nothing wrong was shown in {}, but of {script} {ELSEWHERE}",
                counted(level.trials, "interleaving")
            )),
            (None, None) if level.trials == 0 => {
                Executed::Untried("the time for trying sufficed for no interleaving (--try)".to_owned())
            }
            (None, None) => Executed::Unshown(level.trials),
        }
    }

    /// The scripts of combinations, or all.
    fn meeting<'s>(&'s self, combinations: Option<&'s [Vec<String>]>) -> BTreeSet<&'s str> {
        match combinations {
            Some(all) => all.iter().flatten().map(String::as_str).collect(),
            None => self.names.iter().map(String::as_str).collect(),
        }
    }

    /// Scripts for a line of progress: "sell.sql × restock.sql", without a common folder.
    fn in_short(&self, scripts: &BTreeSet<&str>) -> String {
        if scripts.len() > 1 && scripts.len() == self.names.len() {
            return "all scripts".to_owned();
        }
        let folder = folder_of(self.names.iter().map(String::as_str)).map_or(0, str::len);
        let names: Vec<&str> = scripts.iter().map(|name| name.get(folder..).unwrap_or(name)).collect();
        names.join(" × ")
    }

    /// Tries what [`Trial::execute`] does. The inner error is why it can't be tried.
    fn found(
        &self,
        change: &str,
        sources: &Sources,
        setup: Option<&str>,
        combinations: Option<&[Vec<String>]>,
        allocation: &Allocation,
    ) -> Outcome<Result<Found, NotTried>> {
        self.note_interrupt();
        if let Some(why) = self.state.ended.borrow().clone() {
            return Ok(Err(NotTried::Other(why)));
        }
        let (making, limit) = (self.state.making.get(), self.most_making());
        if making >= limit {
            return Ok(Err(NotTried::Other(format!(
                "making the tables for other schedules took {:.0} s, of at most {:.0} s; a longer --try permits more",
                making.as_secs_f64(),
                limit.as_secs_f64()
            ))));
        }
        let scripts = self.meeting(combinations);
        let levels = allocation_of(&scripts, allocation);
        step(&format!("trying {change}{} at {levels}", self.in_short(&scripts)));
        let work = self.work.with_sources(sources.clone());
        // They were made once, so the server is gone, or has changed.
        let began = Instant::now();
        let made = self.target.make_anew(self.site).and_then(|()| work.tables.make(self.site).map(drop));
        self.state.making.set(making + began.elapsed());
        if let Err(failure) = made {
            return Ok(Err(self.end(failure.to_string())));
        }
        if let Some(sql) = setup {
            let mut connection = match self.site.connector().open() {
                Ok(connection) => connection,
                Err(error) => return Ok(Err(self.end(error.to_string()))),
            };
            if let Err(error) = connection.execute(sql) {
                return Ok(Err(NotTried::Mistake(format!("{sql}: {error}"))));
            }
        }
        let workload = work.workload(self.seed, &self.site.database)?;
        let extent = Extent {
            allocations: std::slice::from_ref(allocation),
            combinations,
            budget: self.share(combinations.is_none()),
            conditions: self.conditions,
            options: Options { step_timeout: STEP, ..Options::default() },
            literals: self.literals,
        };
        let began = Instant::now();
        let found = try_interleavings(self.site, &workload, extent, self.control);
        self.state.left.set(self.state.left.get().saturating_sub(began.elapsed()));
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(error @ TryError::Script { .. }) => Ok(Err(NotTried::Mistake(error.to_string()))),
            Err(error @ (TryError::Stopped | TryError::Lost(_))) => Ok(Err(self.end(error.to_string()))),
            Err(error) => Ok(Err(NotTried::Other(error.to_string()))),
        }
    }
}

/// A sentence if an interleaving ended in a deadlock before any failed for another reason.
fn deadlocked(level: &LevelFound) -> Option<String> {
    let deadlock = SqlState::DEADLOCK_DETECTED.to_string();
    level.failure.as_ref().filter(|why| why.contains(&deadlock)).map(|_| {
        let all = counted(level.trials, "interleaving");
        format!("{} of {all} failed, the first by a deadlock (SQLSTATE {deadlock})", level.with_failures)
    })
}

/// The levels of these scripts, in few words.
fn allocation_of(scripts: &BTreeSet<&str>, allocation: &Allocation) -> String {
    let levels: BTreeSet<Level> = scripts.iter().map(|script| allocation.of(script).level).collect();
    levels.iter().map(Level::to_string).collect::<Vec<_>>().join(" and ")
}

pub(super) fn named(names: &[String], combinations: &[Vec<usize>]) -> Vec<Vec<String>> {
    combinations
        .iter()
        .map(|combination| combination.iter().map(|script| names[*script].clone()).collect())
        .collect()
}

pub(super) fn levels(names: &[String], levels: &[Level]) -> Allocation {
    let scripts = names.iter().cloned().zip(levels.iter().copied().map(Mode::of)).collect();
    Allocation { rest: Mode::of(Level::Serializable), scripts }
}

/// True if values of variables are parameters, or never more than a value: those of isobench's own workloads.
pub(super) fn sends_parameters(work: &Work, literals: bool) -> bool {
    literals || work.sources.checked().is_some()
}

/// The texts of scripts, with those of their statements.
pub(super) fn texts(sources: &Sources) -> Vec<ScriptText> {
    let scripts = sources.mix().scripts().iter().zip(sources.texts());
    let text = |(weighted, text): (&Weighted, &str)| ScriptText {
        name: weighted.script.name.clone(),
        text: text.to_owned(),
        commands: weighted
            .script
            .commands
            .iter()
            .map(|command| match &command.kind {
                CommandKind::Sql(sql) => sql.as_written(),
                _ => String::new(),
            })
            .collect(),
    };
    scripts.map(text).collect()
}

/// Scripts with changes.
pub(super) struct Changing<'t, 'a> {
    trial: &'t Trial<'a>,
    /// The tables as they are before anything is tried; read when a change is first read.
    catalog: Option<Catalog>,
}

impl<'t, 'a> Changing<'t, 'a> {
    pub(super) fn of(trial: &'t Trial<'a>) -> Changing<'t, 'a> {
        Changing { trial, catalog: None }
    }

    /// The catalog with how the server reads changed scripts; `None` if the server is gone.
    fn catalog(&mut self, scripts: &[Script]) -> Option<&Catalog> {
        let Trial { target, site, work, .. } = *self.trial;
        if self.catalog.is_none() {
            // Trying has left tables of other OIDs, with its triggers.
            target.make_anew(site).and_then(|()| work.tables.make(site)).ok()?;
            self.catalog = catalog(site, []).ok()?;
        }
        let catalog = self.catalog.as_mut()?;
        catalog.sends_parameters = sends_parameters(work, self.trial.literals);
        read_statements(site, scripts, catalog).ok()?;
        Some(catalog)
    }
}

impl Tries for Changing<'_, '_> {
    type Error = Failure;

    fn execute(
        &mut self,
        set: &ChangeSet,
        combinations: Option<&[Vec<usize>]>,
    ) -> Outcome<Result<TriedSet, NotChanged>> {
        let texts = set.scripts.iter().map(|script| script.text.clone());
        let sources = self.trial.work.sources.with_texts(texts)?;
        let combinations = combinations.map(|combinations| named(self.trial.names, combinations));
        self.trial.execute_changed(&sources, set.setup.as_deref(), combinations.as_deref(), &set.allocation)
    }

    fn read_again(&mut self, scripts: &[ScriptText]) -> Option<Templates> {
        let work = self.trial.work;
        let sources = work.sources.with_texts(scripts.iter().map(|script| script.text.clone())).ok()?;
        let workload =
            work.with_sources(sources).workload(self.trial.seed, &self.trial.site.database).ok()?;
        let scripts: Vec<Script> = workload.mix.scripts().iter().map(|one| one.script.clone()).collect();
        let catalog = self.catalog(&scripts)?;
        Some(templates(&scripts, &workload.symbols, catalog, &BTreeSet::new()))
    }
}
