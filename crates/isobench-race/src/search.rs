//! Schedules of a level: one switch after each statement of each command; then, if none of these shows a race,
//! two switches. The most promising ones come first.
//!
//! None is left out by guessing what statements touch; that only decides the order. Those are left out that are
//! known to be the same as another one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::RaceError;
use crate::gate::Step;
use crate::ground::without;
use crate::judge::{Judge, Performer, WrongTable, order_name};
use crate::masks::Contents;
use crate::outcome::{Outcome, Trouble};
use crate::report::{AnswerReport, Count, Difference, Event, Finding, LevelReport, StepReport, Switches};
use crate::schedule::{Schedule, Turn, name, orders};
use crate::statement::{in_one_line, may_write, names};
use crate::verdict::Verdict;

/// The most switches of a schedule.
const MOST_SWITCHES: u8 = 2;

/// The schedules after which a level is given up if statements never mix.
const NEVER_MIX: usize = 3;

/// The times that more is waited for, as a command seems to have finished before its turn is over. Some
/// commands don't always send the same statements.
const EARLY: usize = 3;

/// The times that a schedule is tried again in which statements didn't mix, while others do.
const STUCK: usize = 3;

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

/// How promising a switch after each statement of a command is, from 0: first those after a read of a table that
/// commands change, then those after writes.
fn ranks(steps: &[Step], changed: &BTreeSet<String>) -> Vec<u8> {
    let mut wrote = false;
    let rank = |step: &Step| {
        let touches = names(&step.sql).iter().any(|name| changed.contains(name));
        wrote |= touches && may_write(&step.sql);
        match (touches, wrote) {
            (true, false) => 0,
            (true, true) => 1,
            _ => 2,
        }
    };
    steps.iter().map(rank).collect()
}

/// The commands of a level, and the places at which they may be switched.
struct Plan {
    /// For each command the first one with the same text.
    alias: Vec<usize>,
    /// For each command how promising a switch after each of its statements is.
    ranks: Vec<Vec<u8>>,
    /// For a command and its statements before a switch, how many statements of the other command may come before
    /// a second switch, and one more.
    bounds: BTreeMap<(usize, usize), usize>,
}

impl Plan {
    fn new(judge: &Judge, contents: &dyn Contents, commands: usize) -> Self {
        let changed: BTreeSet<String> = judge
            .serial
            .iter()
            .flat_map(|(_, outcome)| &outcome.changes)
            .map(|change| contents.table(change.table).short.clone())
            .collect();
        Self {
            alias: (0..commands).map(|command| judge.alias(command)).collect(),
            ranks: alone(judge, commands).iter().map(|steps| ranks(steps, &changed)).collect(),
            bounds: BTreeMap::new(),
        }
    }

    /// True if no other schedule differs only in the names of equal commands: these start in the order of their
    /// names.
    fn is_first_of_its_kind(&self, schedule: &Schedule) -> bool {
        let mut begun: Vec<usize> = Vec::new();
        schedule.0.iter().all(|turn| {
            let command = turn.command;
            let earlier = (0..command).filter(|other| self.alias[*other] == self.alias[command]);
            let right = begun.contains(&command) || earlier.into_iter().all(|other| begun.contains(&other));
            begun.push(command);
            right
        })
    }

    /// The places at which a command can be switched: the number of its statements before it, and its rank.
    fn places(&self, command: usize) -> impl Iterator<Item = (usize, u8)> + '_ {
        let ranks = &self.ranks[command];
        ranks.iter().take(ranks.len().saturating_sub(1)).enumerate().map(|(at, rank)| (at + 1, *rank))
    }

    /// The schedules with one switch.
    fn one_switch(&self) -> Vec<Schedule> {
        let commands = self.ranks.len();
        let mut found = Vec::new();
        for command in 0..commands {
            let others: Vec<usize> = (0..commands).filter(|other| *other != command).collect();
            for (at, rank) in self.places(command) {
                let split = |rest: Vec<usize>| (rank, Schedule::split(command, number(at), &rest));
                found.extend(orders(&others).into_iter().map(split));
            }
        }
        found.retain(|(_, schedule)| self.is_first_of_its_kind(schedule));
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, schedule)| schedule).collect()
    }

    /// What a schedule with one switch of two commands says of those with two: for a command and its statements
    /// before the switch, how many of the other one's may come before a second switch, and one more. If the other
    /// command waits for a lock until the first one has no statement left, a later switch is none.
    fn bound(&self, outcome: &Outcome) -> Option<((usize, usize), usize)> {
        let ([first, second], 2) = (outcome.schedule.0.as_slice(), self.ranks.len()) else { return None };
        let at = usize::try_from(first.steps?).ok().filter(|_| second.steps.is_none())?;
        if outcome.is_stuck() || outcome.troubles.iter().any(|trouble| matches!(trouble, Trouble::Early(_))) {
            return None;
        }
        let mine: Vec<&Step> = outcome.steps.iter().filter(|step| step.command == second.command).collect();
        let after = outcome.steps.iter().skip(at).rposition(|step| step.command == first.command);
        let waited = mine.iter().position(|step| step.waited);
        let before = |until: usize| {
            outcome.steps.iter().skip(at).take(until).filter(|step| step.command == second.command).count()
        };
        let bound = match (waited, after) {
            // All its statements came while the other one stood still.
            (None, _) if outcome.troubles.is_empty() => mine.len(),
            (Some(waited), Some(last)) if before(last) == waited + 1 => waited + 1,
            _ => return None,
        };
        Some(((first.command, at), bound))
    }

    /// The schedules with two switches, the most promising first.
    fn two_switches(&self) -> impl Iterator<Item = Schedule> + '_ {
        (0..=4_u8).flat_map(move |rank| {
            let commands = 0..self.ranks.len();
            let pairs = commands.clone().flat_map(move |one| commands.clone().map(move |other| (one, other)));
            pairs.filter(|(one, other)| one != other).flat_map(move |(one, other)| {
                self.places(one).flat_map(move |(at, first)| {
                    let wanted = rank.checked_sub(first);
                    self.second(one, at, other, wanted).chain(self.again(one, at, other, wanted))
                })
            })
        })
    }

    /// The schedules that switch at this place of a command, and then at one of another command.
    fn second(
        &self,
        one: usize,
        at: usize,
        other: usize,
        wanted: Option<u8>,
    ) -> impl Iterator<Item = Schedule> + '_ {
        let bound = self.bounds.get(&(one, at)).copied();
        let most = bound.unwrap_or(self.ranks[other].len());
        let places = (1..most).map(move |then| (then, self.ranks[other].get(then - 1).copied().unwrap_or(2)));
        let places = places.filter(move |(_, rank)| Some(*rank) == wanted);
        places.flat_map(move |(then, _)| {
            let all: Vec<usize> = (0..self.ranks.len()).collect();
            let tails = orders(&all).into_iter().filter(move |tail| tail.first() != Some(&other));
            let schedule = move |tail: Vec<usize>| {
                let begin = [(one, Some(number(at))), (other, Some(number(then)))];
                turns(begin.into_iter().chain(tail.into_iter().map(|command| (command, None))))
            };
            tails.map(schedule).filter(|schedule| self.is_first_of_its_kind(schedule))
        })
    }

    /// The schedules that switch twice within the same command, once to each of two others.
    fn again(
        &self,
        one: usize,
        at: usize,
        other: usize,
        wanted: Option<u8>,
    ) -> impl Iterator<Item = Schedule> + '_ {
        let third = (0..self.ranks.len()).find(|third| *third != one && *third != other);
        let places = self.places(one).filter(move |(then, rank)| *then > at && Some(*rank) == wanted);
        places.filter_map(move |(then, _)| {
            let steps = [Some(number(at)), None, Some(number(then - at)), None, None];
            let schedule = turns([one, other, one, third?, one].into_iter().zip(steps));
            self.is_first_of_its_kind(&schedule).then_some(schedule)
        })
    }
}

fn number(steps: usize) -> u32 {
    u32::try_from(steps).unwrap_or(u32::MAX)
}

fn turns(all: impl Iterator<Item = (usize, Option<u32>)>) -> Schedule {
    Schedule(all.map(|(command, steps)| Turn { command, steps }).collect())
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
    let mut plan = Plan::new(judge, performer.contents(), commands);
    let known: Vec<usize> = (0..commands).map(|command| performer.fewest(command)).collect();
    let mut tries = Tries { patience: EARLY, stuck: STUCK, groups: BTreeMap::new(), counts: BTreeMap::new() };
    let mut problem = None;
    let rounds = if limits.only.is_some() { 1 } else { MOST_SWITCHES };
    for switches in 1..=rounds {
        let schedules: Box<dyn Iterator<Item = Schedule>> = match (limits.only, switches) {
            (Some(only), _) => Box::new(std::iter::once(only.clone())),
            (None, 1) => Box::new(plan.one_switch().into_iter()),
            // The simplest schedule is the best one to show.
            (None, _) if problem.is_some() || tries.never_mix() || tries.race() => break,
            (None, _) => Box::new(plan.two_switches()),
        };
        let (mut planned, mut tried) = (0, 0);
        let mut bounds = BTreeMap::new();
        for schedule in schedules {
            planned += 1;
            let over = problem.is_some() || began.elapsed() > limits.budget;
            if over || (tries.tried() >= NEVER_MIX && tries.never_mix()) {
                continue;
            }
            match tries.add(judge, performer, &schedule, &known, report, tell) {
                Ok(outcome) => {
                    tried += 1;
                    bounds.extend(plan.bound(&outcome));
                }
                Err(error) => problem = Some(error),
            }
        }
        plan.bounds.extend(bounds);
        report.planned += planned;
        report.tried += tried;
        if limits.only.is_none() {
            report.switches.push(Switches { switches, planned, tried });
        }
    }
    let Tries { groups, counts, .. } = tries;
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

/// The schedules that were tried so far.
struct Tries {
    /// The times that more is waited for.
    patience: usize,
    /// The times that a schedule is tried again in which statements didn't mix.
    stuck: usize,
    groups: BTreeMap<Group, Shown>,
    counts: BTreeMap<Verdict, usize>,
}

impl Tries {
    fn tried(&self) -> usize {
        self.counts.values().sum()
    }

    /// True if no schedule mixed statements.
    fn never_mix(&self) -> bool {
        self.tried() > 0 && self.counts.get(&Verdict::NotInterleaved) == Some(&self.tried())
    }

    fn race(&self) -> bool {
        self.counts.keys().any(|verdict| verdict.is_race())
    }

    /// Tries a schedule.
    fn add(
        &mut self,
        judge: &mut Judge,
        performer: &mut dyn Performer,
        schedule: &Schedule,
        known: &[usize],
        report: &LevelReport,
        tell: &mut dyn FnMut(Event),
    ) -> Result<Outcome, RaceError> {
        let mut outcome = perform(performer, schedule, known, &mut self.patience)?;
        let (mut verdict, mut why) = judge.judge(&outcome, performer)?;
        // Where statements of others mix, one command may have waited for a busy machine.
        if verdict == Verdict::NotInterleaved && self.tried() > 0 && !self.never_mix() && self.stuck > 0 {
            self.stuck -= 1;
            outcome = perform(performer, schedule, known, &mut self.patience)?;
            (verdict, why) = judge.judge(&outcome, performer)?;
        }
        *self.counts.entry(verdict).or_default() += 1;
        if verdict > Verdict::Declined {
            return Ok(outcome);
        }
        let first = self.tried();
        let group = group(judge, performer.contents(), &outcome, verdict, &why);
        let shown = self.groups.entry(group).or_insert_with(|| {
            let (level, schedule) = (report.level.clone(), schedule.to_string());
            tell(Event::Found { level, verdict, schedule });
            Shown { outcome: outcome.clone(), why: why.clone(), first, times: 0 }
        });
        shown.times += 1;
        // One without waits is easier to read.
        if outcome.troubles.len() < shown.outcome.troubles.len() {
            (shown.outcome, shown.why) = (outcome.clone(), why);
        }
        Ok(outcome)
    }
}

/// Runs a schedule. If a command seems to have finished before its turn is over, more is waited for. If nothing more
/// comes, the command sends fewer statements this time, such as no test of its connection.
fn perform(
    performer: &mut dyn Performer,
    schedule: &Schedule,
    known: &[usize],
    patience: &mut usize,
) -> Result<Outcome, RaceError> {
    let before = performer.settling();
    loop {
        let outcome = performer.run(schedule, 0)?;
        if !outcome.is_early(known) {
            return Ok(outcome);
        }
        if *patience == 0 || !performer.settle_longer(Duration::ZERO) {
            performer.settle_as(before);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Commands that send so many statements, all equally promising.
    fn plan(alias: &[usize], statements: &[usize]) -> Plan {
        let ranks = statements.iter().map(|number| vec![1; *number]).collect();
        Plan { alias: alias.to_vec(), ranks, bounds: BTreeMap::new() }
    }

    fn texts(schedules: impl Iterator<Item = Schedule>) -> Vec<String> {
        schedules.map(|schedule| schedule.to_string()).collect()
    }

    fn step(command: usize, waited: bool) -> Step {
        Step {
            command,
            session: 1,
            sql: String::new(),
            tag: String::new(),
            columns: Vec::new(),
            row: None,
            error: None,
            waited,
            ends: false,
            by_process: true,
        }
    }

    /// What came of a schedule whose statements passed in this order; B waited at its `waited`-th statement.
    fn outcome(schedule: &str, order: &str, waited: usize, troubles: Vec<Trouble>) -> Outcome {
        let mut seen = 0;
        let mut steps = Vec::new();
        for letter in order.chars() {
            let command = usize::from(letter == 'B');
            seen += command;
            steps.push(step(command, command == 1 && seen == waited));
        }
        Outcome {
            schedule: Schedule::read(schedule, 2).expect("a schedule"),
            steps,
            answers: BTreeMap::new(),
            changes: Vec::new(),
            violated: Vec::new(),
            troubles,
            pauses: BTreeMap::new(),
            took: Duration::ZERO,
            late: None,
        }
    }

    #[test]
    fn two_switches_stop_both_commands_before_their_ends() {
        let different = plan(&[0, 1], &[3, 2]);
        assert_eq!(texts(different.one_switch().into_iter()), ["A1,B", "A2,B", "B1,A"]);
        assert_eq!(texts(different.two_switches()), ["A1,B1,A,B", "A2,B1,A,B", "B1,A1,B,A", "B1,A2,B,A"]);
        let equal = plan(&[0, 0], &[3, 3]);
        assert_eq!(texts(equal.one_switch().into_iter()), ["A1,B", "A2,B"]);
        assert_eq!(
            texts(equal.two_switches()),
            ["A1,B1,A,B", "A1,B2,A,B", "A2,B1,A,B", "A2,B2,A,B"],
            "the names of equal commands don't matter"
        );
        assert!(texts(plan(&[0, 1], &[1, 5]).two_switches()).is_empty(), "A can't stop");
    }

    #[test]
    fn of_three_equal_commands_the_names_do_not_matter() {
        let equal = plan(&[0, 0, 0], &[3, 3, 3]);
        assert_eq!(texts(equal.one_switch().into_iter()), ["A1,B,C", "A2,B,C"]);
        let two = texts(equal.two_switches());
        assert!(two.iter().all(|text| text.starts_with('A')), "{two:?}");
        for expected in ["A1,B1,A,B,C", "A1,B1,A,C,B", "A2,B2,C,A,B", "A1,B,A1,C,A"] {
            assert_eq!(two.iter().filter(|text| *text == expected).count(), 1, "{expected} in {two:?}");
        }
        let different = plan(&[0, 1, 2], &[2, 2, 2]);
        assert_eq!(different.one_switch().len(), 6);
        let two = texts(different.two_switches());
        assert_eq!((two.len(), two.iter().collect::<BTreeSet<_>>().len()), (24, 24), "{two:?}");
    }

    #[test]
    fn promising_places_come_first() {
        let mut plan = plan(&[0, 1], &[3, 3]);
        plan.ranks = vec![vec![2, 0, 1], vec![2, 0, 1]];
        assert_eq!(texts(plan.two_switches())[0], "A2,B2,A,B");
        assert_eq!(plan.two_switches().count(), 8);
        assert_eq!(plan.one_switch()[0].to_string(), "A2,B");
    }

    #[test]
    fn schedules_that_are_known_to_be_another_one_are_left_out() {
        let wait = || vec![Trouble::Blocked(1)];
        let left = |outcome: &Outcome| {
            let mut plan = plan(&[0, 1], &[3, 4]);
            plan.bounds.extend(plan.bound(outcome));
            let two = texts(plan.two_switches());
            let of_one = |text: &&String| text.starts_with("A1,");
            two.iter().filter(of_one).cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(left(&outcome("A1,B", "ABBAABB", 2, wait())), "A1,B1,A,B", "A ends while B waits");
        let all = "A1,B1,A,B A1,B2,A,B A1,B3,A,B";
        assert_eq!(left(&outcome("A1,B", "ABBABAB", 2, wait())), all, "A has more to do afterwards");
        assert_eq!(left(&outcome("A1,B", "ABBAABB", 2, vec![Trouble::Stuck(1)])), all, "not a lock");
        assert_eq!(left(&outcome("A1,B", "ABBAA", 0, Vec::new())), "A1,B1,A,B", "B does less after A1");
        assert_eq!(left(&outcome("A1,B", "ABBBBBAA", 0, Vec::new())), format!("{all} A1,B4,A,B"));
        assert_eq!(left(&outcome("A1,B1,A,B", "ABAAB", 0, Vec::new())), all, "it has two switches itself");
    }
}
