//! `isobench advise`: which level each transaction needs, the smallest change with which a lower one
//! does, and what each costs.
//!
//! Not here: the decision and its words (`isobench_advice`), the programs of scripts
//! (`isobench_observation`), and the measurement (`isobench_comparison`).

mod changes;
mod trial;
mod twice;

use std::cell::{self, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use isobench_advice::{
    Advice, AdviceFile, Candidate as Row, ChangeSet, Decision, Executed, MOST_EXECUTED, Measured, Question,
    ScriptText, best, brief, details, frameworks, page,
};
use isobench_comparison::{
    Candidate, Conditions, Design, Failure, Followers, Judging, Outcome, Resolved, Site, Sources,
    Surroundings, Target, Work, catalog, compare as measure, read_statements, refusal, require_relations,
};
use isobench_database::{Database, InitOptions};
use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_observation::{Catalog, Templates, templates};
use isobench_pgwire::SqlState;
use isobench_plan::{Plan, Size};
use isobench_result::numbers::counted;
use isobench_result::words::distinct;
use isobench_result::{Cell, Document, between, summarise};
use isobench_runner::{Control, Urgency};
use isobench_script::{Script, Sql};

use changes::changes;
use trial::{Trial, levels, named};
use twice::twice;

use crate::commands::scripts;
use crate::destination::{Kind, check_file};
use crate::display::Display;
use crate::interrupt;
use crate::options::{AdviseOptions, command};
use crate::output::{self, is_stream, say};
use crate::servers::{Stage, Wanted, stage};

/// The most rows that are measured, without those of `--controls`.
const MOST_MEASURED: usize = 4;

/// The most rows in which one transaction has a lower level than it needs.
const MOST_CONTROLS: usize = 3;

/// The most scripts whose schedules are executed as theory names them; more are tried with themselves.
const MOST_SCRIPTS: usize = 12;

/// Decides, tries, measures, and prints the advice.
///
/// # Errors
/// Wrong options, an error in a script, no server, or one other than PostgreSQL; interrupted; with
/// `--check`, levels that aren't enough.
pub fn advise(options: &AdviseOptions) -> Outcome {
    if let Some(path) = &options.json {
        check_file("--json", path, Kind::Advice)?;
    }
    if let Some(path) = &options.html {
        check_file("--html", path, Kind::Page)?;
    }
    if let Some(path) = &options.write {
        check_file("--write", path, Kind::Levels)?;
    }
    let checked = options.check.as_deref().map(read_file).transpose()?;
    let Stage { mut design, mut targets, control } = set_up(options)?;
    let advised =
        interrupt::blame(&control, carry_out(options, checked.as_ref(), &mut design, &mut targets, &control));
    let closed: Vec<Outcome> = targets.into_iter().map(|target| target.close(false)).collect();
    advised.and(closed.into_iter().collect())
}

fn read_file(path: &Path) -> Outcome<AdviceFile> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::setup(format!("--check: {}: {error}", path.display()));
    let text = isobench_trust::read_to_string(path).map_err(|error| wrong(&error))?;
    AdviceFile::read(&text).map_err(|error| wrong(&error))
}

/// Checks the scripts, and finds or starts the server.
fn set_up(options: &AdviseOptions) -> Outcome<Stage> {
    let resolve = |plan: &Plan| Resolved::of(plan, None, Plan::default(), &InitOptions::default());
    let read = |path: &Path| isobench_plan::read(path, Size::default()).map_err(Failure::setup);
    let of_capture = scripts::plan_of(&options.capture, options.setup.as_deref(), &options.embedded)?;
    let plan_file = options.plan_file.as_deref().or(of_capture.as_deref());
    scripts::say_claim(options.plan_file.as_deref());
    let plan = options.plan(plan_file.map(read).transpose()?);
    // Each transaction has to be able to ask for a level of its own.
    let names = script_names(&resolve(&plan)?.design().works[0].sources);
    let own = names.first().map(|name| (name.clone(), Mode::of(Level::ReadCommitted)));
    let allocation = Allocation { rest: Mode::of(Level::Serializable), scripts: own.into_iter().collect() };
    let plan = resolve(&Plan { allocation: Some(vec![allocation]), ..plan }).map_err(of_advice)?;
    let (connection, embedded) = (&options.connection, &options.embedded);
    stage(
        plan,
        &Wanted { connection, embedded, standby: None, alters: false },
        &|text| {
            eprintln!("note: {text}");
        },
        &|_| {},
    )
}

/// The failure of an allocation, without the option that the user didn't give.
fn of_advice(failure: Failure) -> Failure {
    match failure {
        Failure::Setup(text) => Failure::Setup(text.trim_start_matches("--allocation: ").to_owned()),
        other => other,
    }
}

/// True if values of variables are parameters, or never more than a value: those of isobench's own workloads.
fn sends_parameters(work: &Work, literals: bool) -> bool {
    literals || work.sources.checked().is_some()
}

fn script_names(sources: &Sources) -> Vec<String> {
    sources.mix().scripts().iter().map(|weighted| weighted.script.name.clone()).collect()
}

/// The catalog of the tables as they are before anything is tried, with how the server reads changed scripts.
/// `None` if the server is gone.
fn read_changed<'c>(
    target: &Target,
    site: &Site,
    work: &Work,
    known: &'c mut Option<Catalog>,
    scripts: &[Script],
    sends_parameters: bool,
) -> Option<&'c Catalog> {
    if known.is_none() {
        // Trying has left tables of other OIDs, with its triggers.
        target.make_anew(site).and_then(|()| work.tables.make(site)).ok()?;
        *known = catalog(site, []).ok()?;
    }
    let catalog = known.as_mut()?;
    catalog.sends_parameters = sends_parameters;
    read_statements(site, scripts, catalog).ok()?;
    Some(catalog)
}

fn carry_out(
    options: &AdviseOptions,
    checked: Option<&AdviceFile>,
    design: &mut Design,
    targets: &mut [Target],
    control: &Control,
) -> Outcome {
    let target = &mut targets[0];
    if target.standby {
        return Err(refusal(&target.place(), "trying takes transactions that write"));
    }
    // Trying makes the tables again and again, and only where they are isobench's own.
    if let Some(why) = design.works[0].tables.bound(target.is_embedded()) {
        return Err(Failure::setup(format!("--setup: {why}")));
    }
    target.claim_namespace(&say)?;
    let target = &*target;
    let site = target.apart()?.ok_or_else(|| {
        Failure::setup("there is no place for the tables on which transactions are tried; use PostgreSQL")
    })?;
    let work = design.works[0].clone();
    work.tables.make(&site)?;
    let workload = work.workload(design.seed(), &site.database)?;
    let scripts: Vec<Script> = workload.mix.scripts().iter().map(|one| one.script.clone()).collect();
    let mut catalog = catalog(&site, &scripts)?.ok_or_else(|| {
        Failure::setup(format!(
            "{} isn't advised on: which levels are enough is known for PostgreSQL",
            target.database.product.name
        ))
    })?;
    catalog.sends_parameters = sends_parameters(&work, design.sends_parameters());
    require_relations(&site, &work.tables, &scripts)?;
    let found = templates(&scripts, &workload.symbols, &catalog, &BTreeSet::new());
    let names = script_names(&work.sources);
    let budget = Duration::from_secs_f64(options.budget);
    let conditions = design.conditions.clone();
    Conditions::require(&conditions, site.connector())?;
    let elsewhere = scripts.iter().filter(|script| script.sql().any(Sql::computes_elsewhere));
    let elsewhere = elsewhere.map(|script| script.name.clone()).collect();
    let trial = Trial {
        ended: RefCell::default(),
        making: cell::Cell::default(),
        left: cell::Cell::new(budget),
        refused: RefCell::default(),
        elsewhere: &elsewhere,
        site: &site,
        target,
        work: &work,
        seed: design.seed(),
        budget,
        control,
        names: &names,
        literals: design.sends_parameters(),
        conditions: &conditions,
        many: found.programs.len() > MOST_SCRIPTS,
    };
    if let Some(file) = checked {
        return check(options, file, &found, &trial);
    }
    let many = trial.many;
    let twice = if many { twice(&found, &trial)? } else { Vec::new() };
    let most = if many { 0 } else { MOST_EXECUTED };
    let question = Question { templates: &found, most, stopped: &|| control.urgency() > Urgency::None };
    let decision = question.decide(
        |schedule| {
            let casts = named(&names, &schedule.casts);
            trial.execute(&work.sources, None, Some(&casts), &levels(&names, schedule.levels))
        },
        |all| trial.execute(&work.sources, None, None, &levels(&names, all)),
    )?;
    let mut printed = Printed::new(options, &site.database);
    let mut advice = Advice { twice, ..Advice::of(&found, &decision, Vec::new()) };
    advice.note_untried(&trial.refused.borrow());
    printed.levels(&advice)?;
    trial.left.set(budget);
    let changes = if many { Vec::new() } else { changes_of(&question, &decision, &trial)? };
    advice = Advice { twice: advice.twice, ..Advice::of(&found, &decision, changes) };
    advice.note_untried(&trial.refused.borrow());
    let tried = trial.require_end();
    let whole = tried.is_ok();
    let save = |advice: &Advice| match options.write.as_deref() {
        // Levels of half a search aren't to be relied on.
        Some(path) if whole => match AdviceFile::of(advice) {
            Ok(file) => output::save(path, &file.text()),
            Err(script) => Err(Failure::Incomplete(format!(
                "--write: no level is proved for {script}, so nothing is written"
            ))),
        },
        _ => Ok(()),
    };
    let written = save(&advice);
    let decided = advice.allocation();
    let measured = if options.no_measure || !whole {
        tried
    } else {
        measured(options, &mut advice, &found, design, &work, targets, control).map_err(|failure| {
            match failure {
                // The answer is there; only its prices are missing.
                Failure::Setup(why) => Failure::Incomplete(format!("the measurement is incomplete: {why}")),
                other => other,
            }
        })
    };
    advice.incomplete = measured.as_ref().err().map(Failure::to_string);
    printed.rest(&advice)?;
    written?;
    if advice.allocation() != decided {
        save(&advice)?;
    }
    measured
}

/// The changes with which lower levels do.
fn changes_of(question: &Question<'_>, decision: &Decision, trial: &Trial<'_>) -> Outcome<Vec<ChangeSet>> {
    let (site, work) = (trial.site, trial.work);
    let mut known: Option<Catalog> = None;
    let read_again = |texts: &[ScriptText]| -> Option<Templates> {
        let sources = work.sources.with_texts(texts.iter().map(|script| script.text.clone())).ok()?;
        let workload = work.with_sources(sources).workload(trial.seed, &site.database).ok()?;
        let scripts: Vec<Script> = workload.mix.scripts().iter().map(|one| one.script.clone()).collect();
        let catalog = read_changed(
            trial.target,
            site,
            work,
            &mut known,
            &scripts,
            sends_parameters(work, trial.literals),
        )?;
        Some(templates(&scripts, &workload.symbols, catalog, &BTreeSet::new()))
    };
    changes(question, decision, trial, read_again)
}

/// What of the answer is printed: the levels as soon as they are decided, the rest at the end.
struct Printed<'a> {
    options: &'a AdviseOptions,
    server: String,
    /// Standard output is taken by a file.
    takes_stdout: bool,
    /// The levels as they were printed.
    levels: Option<String>,
}

impl<'a> Printed<'a> {
    fn new(options: &'a AdviseOptions, database: &Database) -> Self {
        let files = [options.json.as_deref(), options.html.as_deref()];
        let takes_stdout = files.into_iter().flatten().any(is_stream);
        Printed {
            options,
            server: format!("{} {}", database.product.name, database.version),
            takes_stdout,
            levels: None,
        }
    }

    fn screen(&self) -> brief::Screen<'_> {
        brief::Screen { width: output::width(), unicode: output::unicode(), server: &self.server }
    }

    fn tell(&self, text: &str) -> Outcome {
        output::tell(text, self.takes_stdout)
    }

    /// Prints the levels, unless all details are printed at the end.
    fn levels(&mut self, advice: &Advice) -> Outcome {
        if self.options.details {
            return Ok(());
        }
        let text = brief::levels(advice, self.screen());
        self.tell(&text)?;
        self.levels = Some(text);
        Ok(())
    }

    /// Writes the files, and prints what follows the levels. If the measurement has changed these, they are
    /// printed again.
    fn rest(&self, advice: &Advice) -> Outcome {
        if let Some(path) = &self.options.json {
            let json = serde_json::to_string_pretty(advice).map_err(Failure::setup)?;
            output::save(path, &(json + "\n"))?;
        }
        if let Some(path) = &self.options.html {
            output::save(path, &page(advice))?;
        }
        let width = output::width();
        let mut text = String::new();
        if self.options.details {
            text += &details(advice, width);
        } else {
            let again = brief::levels(advice, self.screen());
            if self.levels.as_ref() != Some(&again) {
                text += "The measurement changes this answer:\n\n";
                text += &again;
            }
            text += &brief::change(advice, width);
            text += &brief::prices(advice, width);
            text += &brief::rest(advice, width);
        }
        if self.options.frameworks {
            text += &frameworks(advice);
        }
        self.tell(&text)
    }
}

/// Checks levels that were decided before.
///
/// # Errors
/// They aren't enough, or belong to other scripts.
fn check(options: &AdviseOptions, file: &AdviceFile, found: &Templates, trial: &Trial<'_>) -> Outcome {
    let path = options.check.as_deref().unwrap_or(Path::new("")).display();
    let names: Vec<&str> = trial.names.iter().map(String::as_str).collect();
    let control = trial.control;
    let stopped = || control.urgency() > Urgency::None;
    let wanted = file.levels(&names).map_err(|error| Failure::setup(format!("--check: {path}: {error}")))?;
    let question = Question { templates: found, most: MOST_EXECUTED, stopped: &stopped };
    let broken = question.broken(&wanted, |schedule| {
        let casts = named(trial.names, &schedule.casts);
        trial.execute(&trial.work.sources, None, Some(&casts), &levels(trial.names, schedule.levels))
    })?;
    trial.require_end()?;
    let not_enough = || Failure::Broken(format!("the levels of {path} aren't enough any more; see above"));
    let Some(broken) = broken else {
        let all = trial.execute(&trial.work.sources, None, None, &levels(trial.names, &wanted))?;
        trial.require_end()?;
        if let Executed::Shown(tried) = all {
            output::print(&isobench_advice::wrong(&tried))?;
            return Err(not_enough());
        }
        let plural = if names.len() == 1 { "" } else { "s" };
        return output::print(&format!(
            "The levels of {path} are enough for {} script{plural}.\n",
            names.len()
        ));
    };
    output::print(&isobench_advice::broken(found, &broken))?;
    Err(not_enough())
}

/// Measures the candidates, and notes their prices.
fn measured(
    options: &AdviseOptions,
    advice: &mut Advice,
    found: &Templates,
    design: &mut Design,
    work: &Work,
    targets: &[Target],
    control: &Control,
) -> Outcome {
    let plain = |allocation: Allocation| Candidate { allocation, changed: None };
    let judged = design.is_recorded(&targets[0].database);
    let mut rows = vec![Allocation::uniform(Level::ReadCommitted), advice.allocation()];
    rows.push(Allocation::uniform(Level::Serializable));
    // All rows are measured on the same tables.
    let held = advice.changes.iter().filter(|set| set.is_proposed() && set.setup.is_none());
    let mut candidates = Vec::new();
    if let Some(set) = best(&held.collect::<Vec<_>>()) {
        let sources = work.sources.with_texts(set.scripts.iter().map(|script| script.text.clone()))?;
        candidates.push(Candidate {
            allocation: set.allocation.clone(),
            changed: Some((set.name.clone(), sources)),
        });
    }
    rows.extend(advice.passed());
    let rows = distinct(rows);
    candidates.extend(rows.into_iter().take(MOST_MEASURED - candidates.len()).map(plain));
    let controls = if options.controls { advice.controls(MOST_CONTROLS) } else { Vec::new() };
    // Only histories show what goes wrong there.
    if judged {
        candidates.extend(controls.iter().cloned().map(plain));
    }
    design.measure(candidates)?;
    let judging = judged.then_some(Judging { between: true, ..Judging::default() });
    let around = Surroundings {
        targets,
        judging: judging.as_ref(),
        machines: None,
        control,
        say: &say,
        save: &|_| Ok(()),
        command: command(),
    };
    let mut display = Display::new(false);
    let outcome = measure(design, around, &mut Followers(vec![&mut display]));
    drop(display);
    let (mut document, _) = outcome?;
    summarise(&mut document);
    note(advice, found, &controls, &document);
    match &document.incomplete_reason {
        Some(reason) => Err(Failure::Incomplete(format!("the measurement is incomplete: {reason}"))),
        None => Ok(()),
    }
}

/// The attempts of a cell that ended in a deadlock.
fn deadlocks(cell: &Cell) -> u64 {
    let conflicts = cell.rounds.iter().flat_map(|round| &round.conflicts);
    let deadlock = SqlState::DEADLOCK_DETECTED;
    conflicts.filter(|conflict| conflict.sqlstate == deadlock.as_str()).map(|conflict| conflict.count).sum()
}

/// Notes the prices, and takes back what the histories contradict.
fn note(advice: &mut Advice, found: &Templates, controls: &[Allocation], document: &Document) {
    let Some(first) = document.cells.first() else { return };
    let others = document.cells.len() - 1;
    let row = |cell: &Cell| {
        let ratio = between(document, cell, first, others);
        let changes = cell.strategy.clone().filter(|name| advice.changes.iter().any(|set| set.name == *name));
        let allocation = cell.level.allocation.clone();
        let allocation =
            allocation.unwrap_or(Allocation::uniform(cell.level.requested.unwrap_or(Level::ReadCommitted)));
        Row {
            name: changes.iter().cloned().chain([cell.level.name()]).collect::<Vec<_>>().join(", "),
            control: changes.is_none() && allocation.level().is_none() && controls.contains(&allocation),
            allocation,
            changes,
            tps: cell.summary.tps.mean,
            ratio: ratio.as_ref().map(|ratio| ratio.mean),
            low: ratio.as_ref().and_then(|ratio| ratio.low),
            high: ratio.as_ref().and_then(|ratio| ratio.high),
            conflicts: cell.summary.conflict_ratio,
            deadlocks: deadlocks(cell),
            anomalies: cell.summary.verdict.as_ref().map(|verdict| verdict.anomalies),
        }
    };
    let mut candidates: Vec<Row> = document.cells.iter().map(row).collect();
    let own = advice.allocation();
    let wrong_at = |allocation: &Allocation| {
        let of = |(_, row): &(&Cell, &Row)| row.changes.is_none() && row.allocation == *allocation;
        let (cell, row) = document.cells.iter().zip(&candidates).find(of)?;
        let wrong = row.anomalies.filter(|count| *count > 0 && allocation.range().1 < Level::Serializable)?;
        let committed = cell.summary.verdict.as_ref().map_or(0, |verdict| verdict.committed);
        Some(format!("{wrong} of {} had an anomaly", counted(committed, "transaction")))
    };
    if let Some(passed) = advice.passed() {
        let of = |(_, row): &(&Cell, &Row)| row.changes.is_none() && row.allocation == passed;
        let verdict = document.cells.iter().zip(&candidates).find(of).and_then(|(cell, row)| {
            row.anomalies?;
            cell.summary.verdict.as_ref()
        });
        match (wrong_at(&passed), verdict) {
            (Some(seen), _) => advice.note_passed(Err(&seen)),
            (None, Some(verdict)) => advice.note_passed(Ok(verdict.committed)),
            (None, None) => {}
        }
    }
    // A change with which something went wrong is none.
    let harmed = candidates.iter().filter(|row| row.anomalies.is_some_and(|count| count > 0));
    let harmed: Vec<String> = harmed.filter_map(|row| row.changes.clone()).collect();
    advice.changes.retain(|set| !harmed.contains(&set.name));
    if let Some(seen) = wrong_at(&own) {
        advice.contradict(&seen);
    }
    // The other rows' scripts aren't those that were read.
    let unchanged = document.cells.iter().zip(&candidates).filter(|(_, row)| row.changes.is_none());
    let verdicts = unchanged.flat_map(|(cell, _)| &cell.rounds).filter_map(|round| round.verdict.as_ref());
    let dependencies = advice.compare_with(found, verdicts.flat_map(|verdict| &verdict.between));
    let mut rounds = document.cells.iter().map(|cell| cell.summary.rounds);
    let mut unmeasured = Vec::new();
    candidates.retain(|row| {
        let measured = rounds.next().is_some_and(|rounds| rounds > 0) || row.anomalies > Some(0);
        if !measured {
            unmeasured.push(row.name.clone());
        }
        measured
    });
    let any = dependencies > 0 || !candidates.is_empty();
    advice.measured = any.then(|| Measured { to: first.level.name(), dependencies, candidates, unmeasured });
}
