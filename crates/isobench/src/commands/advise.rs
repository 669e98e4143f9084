//! `isobench advise`: which level each transaction needs, the smallest change with which a lower one
//! does, and what each costs.
//!
//! Not here: the decision and its words (`isobench_advice`), the programs of scripts
//! (`isobench_program`), and the measurement (`isobench_comparison`).

mod prices;
mod questions;
mod trial;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use isobench_advice::{
    Advice, AdviceFile, Executed, Question, allocation, brief, carried_values, details, frameworks, page,
};
use isobench_comparison::{
    Conditions, Design, Failure, Outcome, Resolved, Sources, Target, catalog, refusal, require_relations,
};
use isobench_database::{Database, InitOptions};
use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_plan::{Plan, Size};
use isobench_program::{Templates, templates};
use isobench_runner::{Control, Urgency};
use isobench_script::{Script, Sql};

use prices::Prices;
use questions::Checked;
use trial::{Changing, Trial, levels, named, sends_parameters, texts};

use crate::commands::scripts;
use crate::destination::{Kind, check_file};
use crate::gates;
use crate::interrupt;
use crate::options::AdviseOptions;
use crate::output::{self, is_stream, say};
use crate::servers::{Stage, Wanted, stage};

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
    gates::check(&options.gates)?;
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

fn script_names(sources: &Sources) -> Vec<String> {
    sources.mix().scripts().iter().map(|weighted| weighted.script.name.clone()).collect()
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
        of_capture: options.capture.capture.is_some(),
        state: trial::State::new(budget),
    };
    if let Some(file) = checked {
        return check(options, file, &found, &trial);
    }
    let question = Question { templates: &found, stopped: &|| control.urgency() > Urgency::None };
    let decision = question.decide(
        |schedule| {
            let combinations = named(&names, &schedule.combinations);
            trial.execute(&work.sources, None, Some(&combinations), &levels(&names, schedule.levels))
        },
        |all| trial.execute(&work.sources, None, None, &levels(&names, all)),
    )?;
    let mut printed = Printed::new(options, &site.database);
    let mut advice = Advice::of(&found, &decision, Vec::new());
    advice.note_untried(&trial.refused());
    printed.levels(&advice)?;
    trial.begin_again();
    let changes = question.changes(&decision, &texts(&work.sources), &mut Changing::of(&trial))?;
    advice = Advice::of(&found, &decision, changes);
    advice.note_untried(&trial.refused());
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
        let failing = trial.refused();
        let prices = Prices { options, found: &found, work: &work, targets, control };
        prices.measure(&mut advice, design, &failing).map_err(|failure| match failure {
            // The answer is there; only its prices are missing.
            Failure::Setup(why) => Failure::Incomplete(format!("the measurement is incomplete: {why}")),
            other => other,
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
    let not_enough = || Failure::Broken(format!("the levels of {path} aren't enough any more; see above"));
    let write =
        |checked: &Checked| gates::write(&options.gates, "advise", checked.questions(trial.names, &wanted));
    if !found.carried.is_empty() {
        write(&Checked::carried(found))?;
        output::print(&(carried_values(found).join(".\n") + ".\n"))?;
        return Err(not_enough());
    }
    let question = Question { templates: found, stopped: &stopped };
    let broken = question.broken(&wanted, |schedule| {
        let combinations = named(trial.names, &schedule.combinations);
        trial.execute(&trial.work.sources, None, Some(&combinations), &levels(trial.names, schedule.levels))
    })?;
    trial.require_end()?;
    let Some(broken) = broken else {
        let all = trial.execute(&trial.work.sources, None, None, &levels(trial.names, &wanted))?;
        trial.require_end()?;
        if let Executed::Shown(tried) = all {
            let all = trial.names.iter().zip(&wanted).map(|(name, level)| (name.as_str(), *level));
            write(&Checked::shown(&tried, &allocation(&all.collect::<Vec<_>>()).to_string()))?;
            output::print(&isobench_advice::wrong(&tried))?;
            return Err(not_enough());
        }
        write(&Checked::proved())?;
        let plural = if names.len() == 1 { "" } else { "s" };
        return output::print(&format!(
            "The levels of {path} are enough for {} script{plural}.\n",
            names.len()
        ));
    };
    write(&Checked::broken(found, &broken))?;
    output::print(&isobench_advice::broken(found, &broken))?;
    Err(not_enough())
}
