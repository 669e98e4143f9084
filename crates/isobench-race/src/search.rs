//! Schedules of a level: one switch after each statement of each command, the most promising ones first.
//!
//! None is left out by guessing what statements touch; that only decides the order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::RaceError;
use crate::gate::Step;
use crate::ground::without;
use crate::judge::{Judge, Performer, WrongTable, order_name};
use crate::masks::Contents;
use crate::outcome::Outcome;
use crate::report::{AnswerReport, Count, Difference, Event, Finding, LevelReport, StepReport};
use crate::schedule::{Schedule, name, orders};
use crate::statement::{in_one_line, may_write, names};
use crate::verdict::Verdict;

/// The schedules after which a level is given up if statements never mix.
const NEVER_MIX: usize = 3;

/// The times that more is waited for, as a command seems to have finished before its turn is over. Some
/// commands don't always send the same statements.
const EARLY: usize = 3;

/// The most differences that are kept of a finding.
const DIFFERENCES: usize = 12;

/// The most characters of an output that are kept.
const OUTPUT: usize = 400;

/// The limits of a search.
pub(crate) struct Limits<'a> {
    /// The time for schedules.
    pub(crate) budget: Duration,
    /// The only schedule.
    pub(crate) only: Option<&'a Schedule>,
    /// True once the user asks to stop.
    pub(crate) stopped: &'a dyn Fn() -> bool,
}

/// A finding on its way: what groups schedules.
type Group = (Verdict, Vec<WrongTable>, String);

/// One of the schedules of a group.
struct Shown {
    outcome: Outcome,
    why: String,
    first: usize,
    times: usize,
}

/// The steps of each command when it runs first.
pub(crate) fn alone(judge: &Judge, commands: usize) -> Vec<Vec<Step>> {
    let of = |command: usize| {
        let first = judge.serial.iter().find(|(order, _)| order.first() == Some(&command));
        let steps = first.map(|(_, outcome)| outcome.steps.iter().filter(|step| step.command == command));
        steps.map(|steps| steps.cloned().collect()).unwrap_or_default()
    };
    (0..commands).map(of).collect()
}

/// The schedules with one switch, the most promising first.
pub(crate) fn schedules(judge: &Judge, contents: &dyn Contents, commands: usize) -> Vec<Schedule> {
    let steps = alone(judge, commands);
    let changed: BTreeSet<String> = judge
        .serial
        .iter()
        .flat_map(|(_, outcome)| &outcome.changes)
        .map(|change| contents.table(change.table).short.clone())
        .collect();
    let mut found = Vec::new();
    for (command, own) in steps.iter().enumerate() {
        // Of two equal commands one is enough.
        if commands == 2 && judge.alias(command) != command {
            continue;
        }
        let others: Vec<usize> = (0..commands).filter(|other| *other != command).collect();
        let mut wrote = false;
        for at in 1..own.len() {
            let step = &own[at - 1];
            let touches = names(&step.sql).iter().any(|name| changed.contains(name));
            wrote |= touches && may_write(&step.sql);
            let rank = match (touches, wrote) {
                (true, false) => 0,
                (true, true) => 1,
                _ => 2,
            };
            let steps = u32::try_from(at).unwrap_or(u32::MAX);
            found.extend(orders(&others).iter().map(|rest| (rank, Schedule::split(command, steps, rest))));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, schedule)| schedule).collect()
}

/// Tries the schedules of a level, and adds what is found to its report.
///
/// # Errors
/// The user asks to stop, or the server is lost. The report has what was found until then.
pub(crate) fn search(
    judge: &mut Judge,
    performer: &mut dyn Performer,
    limits: &Limits<'_>,
    commands: usize,
    report: &mut LevelReport,
    tell: &mut dyn FnMut(Event),
) -> Result<(), RaceError> {
    let began = Instant::now();
    let planned = match limits.only {
        Some(only) => vec![only.clone()],
        None => schedules(judge, performer.contents(), commands),
    };
    report.planned = planned.len();
    let mut patience = EARLY;
    let known: Vec<usize> = alone(judge, commands).iter().map(Vec::len).collect();
    let mut groups: BTreeMap<Group, Shown> = BTreeMap::new();
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    let mut problem = None;
    for schedule in &planned {
        let apart = counts.get(&Verdict::NotInterleaved) == Some(&report.tried);
        if began.elapsed() > limits.budget || (report.tried >= NEVER_MIX && apart) {
            break;
        }
        match perform(performer, schedule, &known, &mut patience).and_then(|outcome| {
            let (verdict, why) = judge.judge(&outcome, performer)?;
            Ok((outcome, verdict, why))
        }) {
            Ok((outcome, verdict, why)) => {
                report.tried += 1;
                *counts.entry(verdict).or_default() += 1;
                if verdict > Verdict::Declined {
                    continue;
                }
                let group = group(judge, performer.contents(), &outcome, verdict, &why);
                let shown = groups.entry(group).or_insert_with(|| {
                    let (level, schedule) = (report.level.clone(), schedule.to_string());
                    tell(Event::Found { level, verdict, schedule });
                    Shown { outcome: outcome.clone(), why: why.clone(), first: report.tried, times: 0 }
                });
                shown.times += 1;
                // One without waits is easier to read.
                if outcome.troubles.len() < shown.outcome.troubles.len() {
                    (shown.outcome, shown.why) = (outcome, why);
                }
            }
            Err(error) => {
                problem = Some(error);
                break;
            }
        }
    }
    report.verdicts =
        counts.iter().map(|(verdict, count)| Count { verdict: *verdict, schedules: *count }).collect();
    for (group, shown) in groups {
        let mut repeated = false;
        if problem.is_none() && !(limits.stopped)() {
            match comes_again(judge, performer, &group, &shown.outcome.schedule) {
                Ok(same) => repeated = same,
                Err(error) => problem = Some(error),
            }
        }
        report.findings.push(finding(judge, performer.contents(), group.0, shown, repeated));
    }
    report.not_compared = judge.masks.names(performer.contents());
    report.outputs_not_compared =
        judge.outputs_not_compared().into_iter().map(|command| name(command).to_string()).collect();
    report.seconds = began.elapsed().as_secs_f64();
    problem.map_or(Ok(()), Err)
}

/// Runs a schedule. If a command seems to have finished before its turn is over, more is waited for.
fn perform(
    performer: &mut dyn Performer,
    schedule: &Schedule,
    known: &[usize],
    patience: &mut usize,
) -> Result<Outcome, RaceError> {
    loop {
        let outcome = performer.run(schedule, 0)?;
        if *patience == 0 || !outcome.is_early(known) || !performer.settle_longer(Duration::ZERO) {
            return Ok(outcome);
        }
        *patience -= 1;
    }
}

/// Runs a schedule again. True if it ends in the same way.
fn comes_again(
    judge: &mut Judge,
    performer: &mut dyn Performer,
    (verdict, wrong, _): &Group,
    schedule: &Schedule,
) -> Result<bool, RaceError> {
    let outcome = performer.run(schedule, 0)?;
    let (again, _) = judge.judge(&outcome, performer)?;
    let same = *verdict != Verdict::WrongState || judge.wrong(performer.contents(), &outcome).0 == *wrong;
    Ok(again == *verdict && same)
}

fn group(
    judge: &mut Judge,
    contents: &dyn Contents,
    outcome: &Outcome,
    verdict: Verdict,
    why: &str,
) -> Group {
    match verdict {
        Verdict::WrongState => (verdict, judge.wrong(contents, outcome).0, String::new()),
        _ => (verdict, Vec::new(), why.to_owned()),
    }
}

fn finding(
    judge: &mut Judge,
    contents: &dyn Contents,
    verdict: Verdict,
    shown: Shown,
    repeated: bool,
) -> Finding {
    let Shown { outcome, why, first, times } = shown;
    let (wrong, nearest) = judge.wrong(contents, &outcome);
    // Where a command failed as if it had not been, a serial order of all is no measure.
    let differences = match verdict {
        Verdict::WrongState | Verdict::Partial => differences(judge, contents, &outcome, &wrong, nearest),
        _ => Vec::new(),
    };
    let order = judge.serial.get(nearest).map(|(order, _)| order_name(order)).unwrap_or_default();
    Finding {
        verdict,
        why,
        schedule: outcome.schedule.to_string(),
        first,
        times,
        repeated,
        steps: steps(contents, &outcome, &wrong),
        answers: answers(judge, &outcome),
        nearest: order,
        differences,
    }
}

/// The statements, and which of them matter: those on tables that end wrong, or else on tables that another
/// command changes.
fn steps(contents: &dyn Contents, outcome: &Outcome, wrong: &[WrongTable]) -> Vec<StepReport> {
    let short = |table: usize| contents.table(table).short.clone();
    let odd: BTreeSet<String> = wrong.iter().map(|wrong| short(wrong.table)).collect();
    let touched: Vec<Vec<String>> = outcome.steps.iter().map(|step| names(&step.sql)).collect();
    let written = |command: usize, table: &String| {
        let mut others = outcome.steps.iter().zip(&touched).filter(|(step, _)| step.command != command);
        others.any(|(step, names)| names.contains(table) && may_write(&step.sql))
    };
    let report = |(at, step): (usize, &Step)| {
        let on = |table: &String| {
            if odd.is_empty() { written(step.command, table) } else { odd.contains(table) }
        };
        StepReport {
            number: step.command,
            command: name(step.command).to_string(),
            session: step.session,
            sql: in_one_line(&step.sql),
            tag: step.tag.clone(),
            columns: step.columns.clone(),
            row: step.row.clone(),
            error: step.error.clone(),
            waited: step.waited,
            matters: step.error.is_some() || step.waited || touched[at].iter().any(on),
            ends: step.ends,
        }
    };
    outcome.steps.iter().enumerate().map(report).collect()
}

fn answers(judge: &Judge, outcome: &Outcome) -> Vec<AnswerReport> {
    let cut = |text: String| text.chars().take(OUTPUT).collect::<String>();
    let one = |(command, answer): (&usize, &crate::answer::Answer)| {
        let mut serial: Vec<String> = Vec::new();
        for (_, other) in &judge.serial {
            let text = other.answers.get(command).map(|answer| {
                let (status, output) = (answer.status(), answer.shown());
                cut(if output.is_empty() { status } else { format!("{status} {output}") })
            });
            serial.extend(text.filter(|text| !serial.contains(text)));
        }
        let errors = answer.errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        AnswerReport {
            command: name(*command).to_string(),
            status: answer.status(),
            output: cut(answer.shown()),
            usual: judge.is_usual(*command, answer),
            errors: if answer.failed() { cut(errors.trim().to_owned()) } else { String::new() },
            serial,
        }
    };
    outcome.answers.iter().map(one).collect()
}

fn differences(
    judge: &mut Judge,
    contents: &dyn Contents,
    outcome: &Outcome,
    wrong: &[WrongTable],
    nearest: usize,
) -> Vec<Difference> {
    let [here, there] = judge.both(contents, outcome, nearest);
    let none = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for WrongTable { table, columns } in wrong {
        let all = &contents.table(*table).columns;
        let name = contents.table(*table).short.clone();
        let (new, expected) = (&here.get(table).unwrap_or(&none).1, &there.get(table).unwrap_or(&none).1);
        if columns.is_empty() {
            let (here, serial) = (new.len().to_string(), expected.len().to_string());
            found.push(Difference { table: name, row: String::new(), column: String::new(), here, serial });
            continue;
        }
        for (odd, missing) in without(new, expected).iter().zip(&without(expected, new)) {
            let value = |row: &crate::ground::Row, at: usize| {
                row.get(at).cloned().flatten().unwrap_or_else(|| "NULL".to_owned())
            };
            let same = (0..all.len()).find(|at| odd[*at] == missing[*at] && odd[*at].as_deref() != Some("*"));
            let row = same.map(|at| format!("{} {}", all[at].name, value(odd, at))).unwrap_or_default();
            for at in columns.iter().copied().filter(|at| odd[*at] != missing[*at]) {
                found.push(Difference {
                    table: name.clone(),
                    row: row.clone(),
                    column: all[at].name.clone(),
                    here: value(odd, at),
                    serial: value(missing, at),
                });
            }
        }
    }
    found.truncate(DIFFERENCES);
    found
}
