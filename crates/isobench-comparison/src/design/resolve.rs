//! A plan file and the options combined, and checked before anything is started.
//!
//! Not here: what the servers make of it (`phases.rs`).

use std::time::Duration;

use isobench_database::InitOptions;
use isobench_isolation::{Allocation, Level};
use isobench_plan::{Background, Observe, Plan, Vary};
use isobench_result::figure;
use isobench_runner::{Backoff, Protocol, StopCondition};

use super::kept::{Kept, as_made};
use super::settle::Settling;
use super::standby::no_serializable;
use super::values::{
    at_least_one, distinct, longest_warmup, milliseconds, not_empty, pacing, protocol, seconds, wrong,
};
use super::vary::{self, Assignment, SessionPlan};
use super::work::{Work, WorkBase};
use super::{Design, faults};
use crate::conditions::Condition;
use crate::failure::{Failure, Outcome};
use crate::modes;
use crate::setup::Setup;
use crate::tables::Tables;
use crate::workload::Sources;

/// Default of the time limit if there is a precision to reach, in seconds.
const TIME_LIMIT: f64 = 600.0;

/// A plan of which everything is checked that can be without a server.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub(super) design: Design,
    /// The part of the plan that the user typed. The rest is adapted to what the server supports.
    pub(super) typed: Plan,
}

impl Resolved {
    /// Combines the options, the plan's file and the defaults of a command, in this order of
    /// precedence, and checks the result. `tables` has the options of pgbench's tables, except for
    /// their scale.
    ///
    /// # Errors
    /// A value is out of range; the message names option or key.
    pub fn of(options: &Plan, file: Option<Plan>, defaults: Plan, tables: &InitOptions) -> Outcome<Resolved> {
        if options.time.is_some() && options.transactions.is_some() {
            return Err(Failure::setup("--time and --transactions exclude each other; give one of them"));
        }
        let given = options.clone().or(file.unwrap_or_default());
        let mut plan = given.clone().or(defaults).or(Plan::defaults());
        figure::resolve(&mut plan).map_err(Failure::setup)?;
        let stop = stop(&plan)?;
        not_empty("levels", plan.levels())?;
        distinct("levels", plan.levels())?;
        distinct("clients", plan.clients())?;
        if plan.clients().contains(&0) {
            return Err(Failure::setup("--clients: 0 clients do nothing; use numbers from 1 up"));
        }
        let backoff = Backoff::list(plan.backoff()).map_err(|error| wrong("backoff", error))?;
        not_empty("backoff", &backoff)?;
        distinct("backoff", &backoff)?;
        let workloads = workloads(&plan)?;
        let protocol = protocol(plan.protocol())?;
        let warmup = seconds("warmup", plan.warmup(), 0.0)?;
        let max_warmup = longest_warmup(warmup, plan.max_warmup)?;
        let think_time = plan.think_time.map(|pause| milliseconds("think-time", pause)).transpose()?;
        distinct("rate", plan.rates())?;
        for rate in plan.rates().iter().map(|rate| Some(*rate)).chain([None]) {
            pacing(rate, plan.think_time)?;
        }
        let latency_limit =
            plan.latency_limit.map(|limit| milliseconds("latency-limit", limit)).transpose()?;
        check_sweep(&plan, stop)?;
        distinct("retry-sqlstate", plan.retried())?;
        let (mut server_factors, vary) = vary::split(plan.vary())?;
        server_factors.standbys = faults::standbys(&plan)?;
        let time = match stop {
            StopCondition::Time(time) | StopCondition::Turn(time) => Some(time),
            StopCondition::Transactions(_) => None,
        };
        let faults = faults::fault_plans(&plan, time)?;
        faults::check(&plan, tables.unlogged)?;
        check_background(&plan)?;
        let reconnect = faults::reconnect(&plan)?;
        let scale = at_least_one("scale", plan.scale())?;
        if given.scale.is_some() && vary.iter().any(|one| one.name == "scale") {
            return Err(wrong("vary", "scale is given by --scale, too; give its values in one place"));
        }
        let tables = InitOptions { scale, ..tables.clone() };
        let (works, mut left_out) = works(&workloads, &plan, &tables, &vary)?;
        let plan = reading(plan, &works, given.levels.is_some(), &mut left_out)?;
        let (scaled, made) = (given.scale.is_some(), !as_made(&tables));
        if works.iter().all(|work| matches!(work.tables, Tables::Checked(_))) && (scaled || made) {
            return Err(not_of_pgbench(&workloads, scaled));
        }
        for work in &works {
            work.sources.check(protocol)?;
            work.sources.leave_level_alone()?;
        }
        check_allocations(&plan, &works, protocol)?;
        check_observed(&plan)?;
        at_least_one("jobs", plan.jobs())?;
        at_least_one("rounds", plan.rounds())?;
        let settling = Settling::of(&plan)?;
        let trying = trying(&plan)?;
        let time_limit = plan.time_limit.or(plan.resolve.map(|_| TIME_LIMIT));
        let design = Design {
            workloads,
            left_out,
            works,
            servers: server_factors.servers(),
            sessions: vec![SessionPlan::new()],
            altered: vec![Assignment::new()],
            shares_sessions: false,
            server_factors,
            faults,
            reconnect,
            stop,
            slice: slice(&plan)?,
            warmup,
            max_warmup,
            time_limit: time_limit.map(|limit| seconds("time-limit", limit, 0.0)).transpose()?,
            settling,
            trying,
            latency_limit,
            conditions: Condition::list(plan.invariant())?,
            protocol,
            think_time,
            plan: Plan {
                backoff: Some(backoff.iter().map(Backoff::to_string).collect()),
                max_warmup: Some(max_warmup.as_secs_f64()),
                time_limit,
                tries: trying.map(|budget| budget.as_secs_f64()),
                settle: settling.map(|settling| settling.extra.as_secs_f64()),
                ..plan
            },
            backoff,
        };
        Ok(Resolved { design, typed: options.clone() })
    }
}

/// Checks what clients on a standby are to run. A standby runs no serializable transactions, so that level is
/// dropped unless it was asked for.
fn reading(mut plan: Plan, works: &[Work], asked: bool, left_out: &mut Vec<String>) -> Outcome<Plan> {
    if plan.readers() == 0 {
        if !plan.read_scripts().is_empty() {
            return Err(wrong("read-script", "needs --readers NUM, the number of clients that run it"));
        }
        if plan.waits_for_lsn() {
            return Err(wrong("wait-for-lsn", "needs --readers NUM, the number of clients that wait"));
        }
        return Ok(plan);
    }
    for work in works {
        if work.sources.reading().is_empty() {
            return Err(wrong(
                "readers",
                format!(
                    "workload {} has no script that only reads; give one (--read-script FILE)",
                    work.sources.name()
                ),
            ));
        }
    }
    let why = format!("{} (--readers)", no_serializable(Level::Serializable));
    if plan.levels().contains(&Level::Serializable) {
        if asked || plan.levels() == [Level::Serializable] {
            return Err(wrong("levels", why));
        }
        if let Some(levels) = &mut plan.levels {
            levels.retain(|level| *level != Level::Serializable);
        }
        left_out.push(format!("left out: {why}"));
    }
    if !plan.faults().is_empty() {
        return Err(wrong(
            "readers",
            "the standby on which they read may become the primary; leave out --fault or --readers",
        ));
    }
    if plan.connects() {
        return Err(wrong("readers", "they keep their sessions; leave out --connect"));
    }
    Ok(plan)
}

/// Checks that the levels of scripts are those of scripts that there are, and that all scripts can ask
/// for theirs.
fn check_allocations(plan: &Plan, works: &[Work], protocol: Protocol) -> Outcome {
    let wrong = |why: String| Err(wrong("allocation", why));
    distinct("allocation", &plan.allocations().iter().map(Allocation::spec).collect::<Vec<_>>())?;
    if plan.allocations().is_empty() {
        return Ok(());
    }
    let hindered = [("--sweep", plan.sweeps()), ("--readers", plan.readers() > 0)];
    if let Some((option, _)) = hindered.into_iter().find(|(_, given)| *given) {
        return wrong(format!("excludes {option}; give one of them"));
    }
    for work in works {
        let mix = work.sources.mix();
        let scripts: Vec<&str> = mix.scripts().iter().map(|one| one.script.name.as_str()).collect();
        for allocation in plan.allocations() {
            if let Some(name) = allocation.unknown(&scripts).first() {
                let (known, workload) = (scripts.join(", "), work.sources.name());
                return wrong(format!(
                    "workload {workload} has no script \"{name}\"; its scripts are {known}"
                ));
            }
            if let Some(level) = allocation.level() {
                return wrong(format!("{} is one level for all scripts; name it in --levels", level.short()));
            }
            modes::ask(&mut mix.clone(), allocation, None, protocol)?;
        }
    }
    Ok(())
}

/// The workloads that a plan names: each a value of the factor, or a mix as the only one.
fn workloads(plan: &Plan) -> Outcome<Vec<Sources>> {
    if plan.mixes() {
        if plan.workload.is_some() {
            return Err(Failure::setup(
                "--workload names workloads to compare, --file and --builtin the scripts of one mix; give one or the \
                 other",
            ));
        }
        let mixed = Sources::mixed(plan.builtins(), plan.files())?;
        return Ok(vec![mixed.with_readers(plan.read_scripts())?]);
    }
    not_empty("workload", plan.workload())?;
    distinct("workload", plan.workload())?;
    let named = |name: &String| Sources::named(name)?.with_readers(plan.read_scripts());
    let workloads: Vec<Sources> = plan.workload().iter().map(named).collect::<Outcome<_>>()?;
    distinct("workload", &workloads.iter().map(Sources::name).collect::<Vec<_>>())?;
    Ok(workloads)
}

/// The works of all workloads, and what was left out of some of them, a sentence each.
fn works(
    workloads: &[Sources],
    plan: &Plan,
    tables: &InitOptions,
    vary: &[Vary],
) -> Outcome<(Vec<Work>, Vec<String>)> {
    distinct("strategies", plan.strategies())?;
    let setup = plan.setup.as_deref().map(|file| Setup::read("setup", file)).transpose()?;
    if setup.is_some() && workloads.iter().all(|sources| sources.checked().is_some()) {
        return Err(Failure::setup(format!(
            "--setup: workload {} makes its own tables; leave out one or the other",
            workloads.first().map_or_else(String::new, Sources::name)
        )));
    }
    let own = workloads.iter().any(Sources::is_own);
    let (mut works, mut left_out) = (Vec::new(), Vec::new());
    for (workload, sources) in workloads.iter().enumerate() {
        // Together with scripts of the user's own, a built-in one keeps its own tables.
        let setup = setup.as_ref().filter(|_| sources.is_own() || !own);
        let kept = Kept::of(plan, sources, tables)?;
        let base = WorkBase { workload, sources, setup, kept: kept.as_ref(), tables };
        let strategies = plan.strategies.as_deref();
        let strategies = strategies.map(|names| strategies_of(workload, workloads, names, &mut left_out));
        works.extend(base.works(strategies.as_deref(), vary)?);
    }
    Ok((works, left_out))
}

/// The strategies of one of several workloads: without those that only others have, if any is left.
fn strategies_of<'a>(
    workload: usize,
    workloads: &[Sources],
    names: &'a [String],
    left_out: &mut Vec<String>,
) -> Vec<&'a str> {
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let sources = &workloads[workload];
    let elsewhere = |name: &str| workloads.iter().any(|other| other.has_strategy(name));
    let (kept, dropped): (Vec<&str>, Vec<&str>) =
        all.iter().partition(|name| sources.has_strategy(name) || !elsewhere(name));
    if kept.is_empty() {
        // The error about the first one says which there are.
        return all;
    }
    left_out.extend(dropped.iter().map(|name| {
        format!("workload {} has no strategy {name}, so it is measured without", sources.name())
    }));
    kept
}

/// The refusal of options of pgbench's tables where every workload has tables of its own.
fn not_of_pgbench(workloads: &[Sources], scaled: bool) -> Failure {
    let options = if scaled { "--scale is" } else { "options such as --fillfactor and --foreign-keys are" };
    let name = workloads.first().map_or_else(String::new, Sources::name);
    Failure::setup(format!(
        "{options} for pgbench's tables, but workload {name} makes its own; name a script that uses them, such as -w \
         tpcb-like, or leave it out (isobench workloads {name} lists the workload's parameters)"
    ))
}

/// The end of a cell's measured part: a time, or a number of transactions of each client.
fn stop(plan: &Plan) -> Outcome<StopCondition> {
    match plan.transactions {
        Some(transactions) => Ok(StopCondition::Transactions(at_least_one("transactions", transactions)?)),
        None => Ok(StopCondition::Time(seconds("time", plan.time.unwrap_or_default(), 0.01)?)),
    }
}

/// # Errors
/// Snapshots are asked for where rows aren't observed, or where sessions read from several servers.
fn check_observed(plan: &Plan) -> Outcome {
    if plan.observe() != Observe::Snapshot {
        return Ok(());
    }
    let hindered = [
        ("--rate", !plan.rates().is_empty()),
        ("--think-time", plan.think_time.is_some()),
        ("--fault", !plan.faults().is_empty()),
        ("--readers", plan.readers() > 0),
    ];
    match hindered.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(wrong("observe", format!("snapshot excludes {option}; give one of them"))),
        None => Ok(()),
    }
}

/// The default of `--try`, in seconds, where measuring takes at least as long.
const TRYING: f64 = 5.0;

/// The time for trying interleavings; `None` if none are tried.
///
/// # Errors
/// It is out of range, or the plan has no tables of isobench's on which to try anything.
fn trying(plan: &Plan) -> Outcome<Option<Duration>> {
    let hindered = [
        ("--sweep", plan.sweeps()),
        ("--fault", !plan.faults().is_empty()),
        ("--schema", plan.schema.is_some()),
    ];
    let hindered = hindered.into_iter().find(|(_, given)| *given);
    match (plan.tries, hindered) {
        (Some(asked), Some((option, _))) if asked != 0.0 => {
            Err(wrong("try", format!("excludes {option}; give one of them")))
        }
        (Some(0.0), _) | (_, Some(_)) => Ok(None),
        (None, None) if plan.experiment.is_some() || plan.transactions.is_some() => Ok(None),
        (None, None) => {
            let levels = plan.levels().len() + plan.allocations().len();
            let cells = levels.max(1) * plan.clients().len().max(1);
            let measured = plan.time.unwrap_or_default() * f64::from(plan.rounds()) * cells as f64;
            seconds("try", measured.min(TRYING), 0.0).map(Some)
        }
        (Some(asked), None) => seconds("try", asked, 0.01).map(Some),
    }
}

/// The shortest slice.
fn slice(plan: &Plan) -> Outcome<Duration> {
    match plan.slice.unwrap_or_default() {
        0.0 => Ok(Duration::ZERO),
        given => seconds("slice", given, 0.01),
    }
}

/// # Errors
/// Background work is there twice, or wouldn't survive what else the plan wants.
fn check_background(plan: &Plan) -> Outcome {
    not_empty("background", plan.background())?;
    distinct("background", plan.background())?;
    let works = plan.background().iter().any(|one| *one != Background::None);
    let why = if !plan.faults().is_empty() {
        "what happens to the server (--fault) would end it"
    } else if plan.sweeps() {
        "a search for the highest rate (--sweep) needs a server that does nothing else"
    } else {
        return Ok(());
    };
    if works { Err(wrong("background", why)) } else { Ok(()) }
}

fn check_sweep(plan: &Plan, stop: StopCondition) -> Outcome {
    let fixed = !plan.rates().is_empty() || plan.think_time.is_some();
    if plan.sweeps() && (plan.latency_limit.is_none() || fixed) {
        return Err(Failure::setup(
            "--sweep searches for the highest rate within a latency limit: give --latency-limit, and neither \
             --rate nor --think-time",
        ));
    }
    if plan.sweeps() && matches!(stop, StopCondition::Transactions(_)) {
        return Err(Failure::setup(
            "--sweep measures rates over a time: give --time instead of --transactions",
        ));
    }
    Ok(())
}
