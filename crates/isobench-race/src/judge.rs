//! Judges a schedule by the serial orders of the same commands, each of which ran twice: what differs
//! between its two runs says nothing.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::RaceError;
use crate::answer::{Answer, Answers};
use crate::gate::Step;
use crate::ground::AHEAD;
use crate::masks::{Canonical, Contents, Masks, Odd};
use crate::outcome::{Outcome, Trouble};
use crate::schedule::{Schedule, name, orders, selections};
use crate::statement::{asks_for_no_change, may_write};
use crate::verdict::Verdict;

/// The times that commands run before their two runs have to end alike: caches are warmed.
const WARMING: usize = 8;

/// The SQLSTATE of a statement in a transaction that has failed before, `in_failed_sql_transaction`.
const ABORTED: &str = "25P02";

/// The most characters that are shown of what a command said.
const SAID: usize = 200;

/// The times that an order is run again if its two runs end differently.
const AGAIN: usize = 3;

/// Performs schedules on contents that are put back before each.
pub(crate) trait Performer {
    /// Puts the contents back, with ids `ahead`, and runs a schedule.
    fn run(&mut self, schedule: &Schedule, ahead: i64) -> Result<Outcome, RaceError>;

    /// The first contents.
    fn contents(&self) -> &dyn Contents;

    /// Puts the contents back, runs a schedule, and waits whether more comes of it than was waited for.
    fn run_first(&mut self, schedule: &Schedule) -> Result<Outcome, RaceError>;

    /// Waits longer after commands for what comes of them, at least for this pause. False if that was the
    /// longest time.
    fn settle_longer(&mut self, pause: Duration) -> bool;

    /// How long is waited after commands.
    fn settling(&self) -> Settling;

    /// Waits as long as before.
    fn settle_as(&mut self, before: Settling);

    /// What was learnt of commands: their longest pauses, their statements, and whether all sessions are their
    /// processes'.
    fn learn(&mut self, outcome: &Outcome);

    /// The fewest statements of a command in what was learnt of orders that it begins: it may fill a cache, or test a
    /// connection, only now and then.
    fn fewest(&self, command: usize) -> usize;

    /// Lets the clock go on to the next second, so that times of both runs differ.
    fn next_second(&mut self, outcome: &Outcome);
}

/// How long is waited after commands for what comes of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settling {
    /// The silence.
    pub(crate) silence: Duration,
    /// Something comes after answers.
    pub(crate) works_late: bool,
}

/// What is compared of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    tables: Canonical,
    answers: Vec<(usize, i32, String)>,
    violated: Vec<String>,
}

/// A table that ends wrong, compared with the nearest serial order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WrongTable {
    pub(crate) table: usize,
    /// Its columns; none if the number of rows is wrong.
    pub(crate) columns: Vec<usize>,
}

/// What says nothing about the order of the commands, whatever the level is.
#[derive(Debug, Clone)]
pub(crate) struct Learnt {
    answers: Answers,
    masks: Masks,
}

/// The judge of one level.
pub(crate) struct Judge {
    commands: Vec<usize>,
    /// For each command the first one with the same text.
    alias: Vec<usize>,
    answers: Answers,
    pub(crate) masks: Masks,
    pub(crate) serial: Vec<(Vec<usize>, Outcome)>,
    keys: Vec<Key>,
    /// Serial orders of some of the commands; of none of them nothing.
    fewer: BTreeMap<Vec<usize>, Vec<Option<Outcome>>>,
}

/// Runs commands until they end in the same way twice, or once if they connect themselves: each run of them
/// is a first one. Returns the last run.
fn warm(schedule: &Schedule, performer: &mut dyn Performer) -> Result<Outcome, RaceError> {
    let mut first = performer.run_first(schedule)?;
    // The application may do some of it, or all, after its answer.
    while let Some(pause) = first.late {
        if !performer.settle_longer(pause) {
            break;
        }
        first = performer.run_first(schedule)?;
    }
    performer.learn(&first);
    let mut last = first;
    for _ in 1..WARMING {
        if last.steps.is_empty() && last.changes.is_empty() {
            return Err(RaceError::Untouched { answers: said(&last) });
        }
        if connects_itself(&last) {
            break;
        }
        let before = std::mem::replace(&mut last, performer.run(schedule, 0)?);
        if before.endings() == last.endings() {
            break;
        }
    }
    Ok(last)
}

/// True if all sessions belonged to processes of commands.
fn connects_itself(outcome: &Outcome) -> bool {
    !outcome.steps.is_empty() && outcome.steps.iter().all(|step| step.by_process)
}

/// An order in words: `A;B`.
pub(crate) fn order_name(order: &[usize]) -> String {
    order.iter().map(|command| name(*command).to_string()).collect::<Vec<_>>().join(";")
}

/// The end of a command with what it said, in short.
pub(crate) fn words_of(answer: &Answer) -> String {
    let output = answer.shown();
    let errors = answer.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = [output, errors].join(" ").trim().chars().take(SAID).collect();
    let colon = if text.is_empty() { "" } else { ": " };
    format!("{}{colon}{text}", answer.status())
}

/// The ends of commands with what each of them said, in short; once if that is the same.
fn said(outcome: &Outcome) -> String {
    let all: Vec<(String, String)> = outcome
        .answers
        .iter()
        .map(|(command, answer)| (name(*command).to_string(), words_of(answer)))
        .collect();
    match all.as_slice() {
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => format!("each {first}"),
        all => all.iter().map(|(name, one)| format!("{name} {one}")).collect::<Vec<_>>().join(", "),
    }
}

fn endings(outcome: &Outcome) -> String {
    let ends = outcome.endings();
    ends.iter().map(|(command, end)| format!("{} {end}", name(*command))).collect::<Vec<_>>().join(", ")
}

impl Judge {
    /// Runs all serial orders: each twice, unless it is known from another level what says nothing.
    ///
    /// # Errors
    /// Two runs of an order differ in more than ids, times and texts.
    pub(crate) fn new(
        texts: &[String],
        performer: &mut dyn Performer,
        learnt: Option<&Learnt>,
    ) -> Result<Self, RaceError> {
        let first = |text: &String| texts.iter().position(|other| other == text).unwrap_or_default();
        let mut judge = Self {
            commands: (0..texts.len()).collect(),
            alias: texts.iter().map(first).collect(),
            answers: learnt.map(|learnt| learnt.answers.clone()).unwrap_or_default(),
            masks: learnt.map(|learnt| learnt.masks.clone()).unwrap_or_default(),
            serial: Vec::new(),
            keys: Vec::new(),
            fewer: BTreeMap::new(),
        };
        let all = judge.commands.clone();
        let mut warmed = Some(warm(&Schedule::serial(&all), performer)?);
        for order in orders(&all) {
            let outcome = match (learnt, warmed.take()) {
                (Some(_), Some(first)) => first,
                (Some(_), None) => performer.run(&Schedule::serial(&order), 0)?,
                (None, first) => judge.learn(&order, performer, first)?,
            };
            performer.learn(&outcome);
            judge.serial.push((order, outcome));
        }
        let serial = std::mem::take(&mut judge.serial);
        judge.keys = serial.iter().map(|(_, outcome)| judge.key(performer.contents(), outcome)).collect();
        judge.serial = serial;
        Ok(judge)
    }

    /// What is known for other levels.
    pub(crate) fn learnt(&self) -> Learnt {
        Learnt { answers: self.answers.clone(), masks: self.masks.without_contents() }
    }

    /// Runs an order twice, or once more after its first run, and learns what differs.
    fn learn(
        &mut self,
        order: &[usize],
        performer: &mut dyn Performer,
        mut first: Option<Outcome>,
    ) -> Result<Outcome, RaceError> {
        let schedule = Schedule::serial(order);
        let mut restless = None;
        for _ in 0..AGAIN {
            let one = match first.take() {
                Some(first) => first,
                None => performer.run(&schedule, 0)?,
            };
            if order == self.commands {
                performer.next_second(&one);
            }
            let other = performer.run(&schedule, AHEAD)?;
            if one.endings() != other.endings() {
                restless = Some((endings(&one), endings(&other)));
                continue;
            }
            let mut masks = self.masks.clone();
            if let Err(odd) = masks.learn(performer.contents(), &one.changes, &other.changes) {
                return self.learn_slower(order, performer, &odd);
            }
            self.masks = masks;
            performer.learn(&other);
            for (command, answer) in &one.answers {
                if let Some(again) = other.answers.get(command) {
                    self.answers.learn(self.alias[*command], answer, again);
                }
            }
            return Ok(one);
        }
        let (one, other) = restless.unwrap_or_default();
        Err(RaceError::Restless { order: order_name(order), one, other })
    }

    /// A column differs: perhaps work goes on after the answer.
    fn learn_slower(
        &mut self,
        order: &[usize],
        performer: &mut dyn Performer,
        odd: &Odd,
    ) -> Result<Outcome, RaceError> {
        if performer.settle_longer(Duration::ZERO) {
            return self.learn(order, performer, None);
        }
        let what = odd.name(performer.contents());
        Err(RaceError::Unstable { order: order_name(order), what })
    }

    fn key(&mut self, contents: &dyn Contents, outcome: &Outcome) -> Key {
        let answers = outcome.answers.iter().map(|(command, answer)| {
            (*command, answer.exit, self.answers.canonical(self.alias[*command], answer))
        });
        Key {
            answers: answers.collect(),
            tables: self.masks.canonical(contents, &outcome.changes, false),
            violated: outcome.violated.clone(),
        }
    }

    /// True if a serial order gives this answer, but for what says nothing.
    pub(crate) fn is_usual(&self, command: usize, answer: &Answer) -> bool {
        let own = (command, answer.exit, self.answers.canonical(self.alias[command], answer));
        self.keys.iter().any(|key| key.answers.contains(&own))
    }

    /// The first command with the same text.
    pub(crate) fn alias(&self, command: usize) -> usize {
        self.alias[command]
    }

    /// The commands whose outputs aren't compared.
    pub(crate) fn outputs_not_compared(&self) -> Vec<usize> {
        self.answers.whole().collect()
    }

    /// Judges a schedule. The text says what a user needs to know besides the verdict.
    ///
    /// # Errors
    /// Serial orders of fewer commands can't be run.
    pub(crate) fn judge(
        &mut self,
        outcome: &Outcome,
        performer: &mut dyn Performer,
    ) -> Result<(Verdict, String), RaceError> {
        if outcome.troubles.contains(&Trouble::TimedOut) {
            return Ok((Verdict::Infeasible, String::new()));
        }
        let key = self.key(performer.contents(), outcome);
        if self.keys.contains(&key) {
            let verdict = if outcome.is_stuck() { Verdict::NotInterleaved } else { Verdict::Serial };
            return Ok((verdict, String::new()));
        }
        let losers = self.losers(outcome, &key, performer.contents());
        let mut fewest = self.wrong(performer.contents(), outcome).0.len();
        let mut partial = None;
        for lost in selections(&losers) {
            let told = told(outcome, &lost);
            let rest: Vec<usize> = self.commands.iter().copied().filter(|one| !lost.contains(one)).collect();
            for other in self.fewer(&rest, performer)? {
                let (differing, answers) = self.compare_softly(performer.contents(), outcome, other.as_ref());
                if !answers.iter().all(|answer| key.answers.contains(answer)) {
                    continue;
                }
                if differing.is_empty() {
                    let is_error =
                        |command: &usize| outcome.answers.get(command).is_some_and(Answer::is_error);
                    let verdict = if lost.iter().any(is_error) { Verdict::Error } else { Verdict::Declined };
                    return Ok((verdict, told));
                }
                if differing.len() < fewest {
                    fewest = differing.len();
                    let tables: Vec<&str> = differing
                        .iter()
                        .map(|table| performer.contents().table(*table).short.as_str())
                        .collect();
                    partial = Some(format!("{told}, but rows of it stay in {}", tables.join(", ")));
                }
            }
        }
        if let Some(partial) = partial {
            return Ok((Verdict::Partial, partial));
        }
        if !key.violated.is_empty() && !self.keys.iter().any(|other| other.violated == key.violated) {
            return Ok((Verdict::WrongState, format!("{} doesn't hold", key.violated.join(", "))));
        }
        if let Some(failed) = self.fails_alike(outcome, &key) {
            let is_error = |command: &usize| outcome.answers.get(command).is_some_and(Answer::is_error);
            let verdict = if failed.iter().any(is_error) { Verdict::Error } else { Verdict::Declined };
            return Ok((verdict, told(outcome, &failed)));
        }
        let same = self.keys.iter().position(|other| other.tables == key.tables);
        if let Some((order, _)) = same.map(|at| &self.serial[at]) {
            let late = read_late(outcome, performer.contents().functions()).map(late_words);
            let why = format!("the tables are as after {}{}", order_name(order), late.unwrap_or_default());
            return Ok((Verdict::WrongAnswer, why));
        }
        let failed = told(outcome, &losers);
        Ok((Verdict::WrongState, failed))
    }

    /// The commands that failed: those with such a status, and those that answer what no serial order
    /// answers after the server refused a statement of theirs, or they rolled back what they wrote. Where no
    /// order leaves the tables so, also those that otherwise write, and said something else instead.
    fn losers(&self, outcome: &Outcome, key: &Key, contents: &dyn Contents) -> Vec<usize> {
        let is_wrong = !self.keys.iter().any(|other| other.tables == key.tables);
        let changes = |outcome: &Outcome, command: usize| {
            let mut own = outcome.steps.iter().filter(|step| step.command == command);
            own.any(|step| !asks_for_no_change(&step.sql, &step.tag, contents.functions()))
        };
        let refrained = |command: usize| {
            is_wrong
                && !changes(outcome, command)
                && self.serial.iter().any(|(_, serial)| changes(serial, command))
        };
        let is_odd = |command: usize| {
            let own = key.answers.iter().find(|answer| answer.0 == command);
            !self.keys.iter().any(|other| other.answers.iter().any(|answer| Some(answer) == own))
        };
        let failed = |command: usize| {
            outcome.answers.get(&command).is_some_and(Answer::failed)
                || (is_odd(command) && (gave_up(outcome, command) || refrained(command)))
        };
        self.commands.iter().copied().filter(|command| failed(*command)).collect()
    }

    /// The commands that fail with an answer of their own where a serial order leaves the same tables: there
    /// they fail, too. None if another answer differs.
    fn fails_alike(&self, outcome: &Outcome, key: &Key) -> Option<Vec<usize>> {
        let fails = |answers: &BTreeMap<usize, Answer>, command: &usize| {
            answers.get(command).is_some_and(Answer::failed)
        };
        let same = self.keys.iter().zip(&self.serial);
        same.filter(|(other, _)| other.tables == key.tables && other.violated == key.violated).find_map(
            |(other, (_, serial))| {
                let differing = key.answers.iter().filter(|answer| !other.answers.contains(answer));
                let differing: Vec<usize> = differing.map(|(command, ..)| *command).collect();
                let alike =
                    |command: &usize| fails(&outcome.answers, command) && fails(&serial.answers, command);
                (!differing.is_empty() && differing.iter().all(alike)).then_some(differing)
            },
        )
    }

    /// The commands that fail when they run first, with their answers.
    pub(crate) fn failing(&self) -> Vec<(usize, &Answer)> {
        let first = |command: &usize| {
            let (_, outcome) = self.serial.iter().find(|(order, _)| order.first() == Some(command))?;
            let answer = outcome.answers.get(command).filter(|answer| answer.failed())?;
            Some((*command, answer))
        };
        self.commands.iter().filter_map(first).collect()
    }

    /// The serial orders of some of the commands.
    fn fewer(
        &mut self,
        commands: &[usize],
        performer: &mut dyn Performer,
    ) -> Result<Vec<Option<Outcome>>, RaceError> {
        if let Some(known) = self.fewer.get(commands) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for order in orders(commands) {
            found.push(if order.is_empty() {
                None
            } else {
                Some(performer.run(&Schedule::serial(&order), 0)?)
            });
        }
        self.fewer.insert(commands.to_vec(), found.clone());
        Ok(found)
    }

    /// The tables in which an outcome differs from one of fewer commands in more than what is masked, and
    /// the answers of the latter.
    fn compare_softly(
        &mut self,
        contents: &dyn Contents,
        outcome: &Outcome,
        other: Option<&Outcome>,
    ) -> (Vec<usize>, Vec<(usize, i32, String)>) {
        let here = self.masks.canonical(contents, &outcome.changes, true);
        let there =
            other.map(|other| self.masks.canonical(contents, &other.changes, true)).unwrap_or_default();
        let answers = other.map(|other| self.key(contents, other).answers).unwrap_or_default();
        (differing(&here, &there), answers)
    }

    /// The tables that differ from those of the nearest serial order, and the number of that order.
    pub(crate) fn wrong(&mut self, contents: &dyn Contents, outcome: &Outcome) -> (Vec<WrongTable>, usize) {
        let here = self.masks.canonical(contents, &outcome.changes, false);
        let distance = |at: &usize| differing(&here, &self.keys[*at].tables).len();
        let nearest = (0..self.keys.len()).min_by_key(distance).unwrap_or_default();
        let empty = Canonical::new();
        let there = self.keys.get(nearest).map_or(&empty, |key| &key.tables);
        let none = (Vec::new(), Vec::new());
        let wrong = |table: usize| {
            let (new, expected) =
                (&here.get(&table).unwrap_or(&none).1, &there.get(&table).unwrap_or(&none).1);
            if new.len() != expected.len() {
                return WrongTable { table, columns: Vec::new() };
            }
            let (odd, missing) =
                (crate::ground::without(new, expected), crate::ground::without(expected, new));
            let differs =
                |at: &usize| odd.iter().zip(&missing).any(|(odd, missing)| odd.get(*at) != missing.get(*at));
            let columns = (0..contents.table(table).columns.len()).filter(differs).collect();
            WrongTable { table, columns }
        };
        (differing(&here, there).into_iter().map(wrong).collect(), nearest)
    }

    /// Rows without what says nothing, of this outcome and of the nearest serial order.
    pub(crate) fn both(
        &mut self,
        contents: &dyn Contents,
        outcome: &Outcome,
        nearest: usize,
    ) -> [Canonical; 2] {
        let here = self.masks.canonical(contents, &outcome.changes, false);
        let there = self.keys.get(nearest).map(|key| key.tables.clone()).unwrap_or_default();
        [here, there]
    }
}

/// True if the server refused a statement of a command, or the command rolled back what it wrote. Many
/// drivers also end a transaction by ROLLBACK that has only read.
fn gave_up(outcome: &Outcome, command: usize) -> bool {
    let mut writing = BTreeSet::new();
    for step in outcome.steps.iter().filter(|step| step.command == command) {
        if step.error.is_some() {
            return true;
        }
        let wrote = writing.contains(&step.session) || may_write(&step.sql);
        let first = step.sql.split_whitespace().next().unwrap_or_default();
        match (step.ends, wrote) {
            (true, true) if first.trim_end_matches(';').eq_ignore_ascii_case("ROLLBACK") => return true,
            (true, _) => writing.remove(&step.session),
            (false, true) => writing.insert(step.session),
            (false, false) => false,
        };
    }
    false
}

/// The command that read, after its own changes were committed, what another one had changed meanwhile.
fn read_late(outcome: &Outcome, functions: &BTreeSet<String>) -> Option<usize> {
    let changes = |step: &Step| !asks_for_no_change(&step.sql, &step.tag, functions);
    outcome.answers.keys().copied().find(|command| {
        let own: Vec<usize> =
            (0..outcome.steps.len()).filter(|at| outcome.steps[*at].command == *command).collect();
        let Some(changed) = own.iter().rposition(|at| changes(&outcome.steps[*at])) else { return false };
        let ended = own[changed..].iter().position(|at| outcome.steps[*at].ends);
        let reads = &own[changed + ended.unwrap_or_default()..];
        let [last, .., read] = reads else { return false };
        outcome.steps[*last..*read].iter().any(|step| step.command != *command && changes(step))
    })
}

/// What to do about an answer that was read late.
fn late_words(command: usize) -> String {
    format!(
        "; {} read again after its COMMIT, so its answer shows the change of another command: no level ends that, but \
         an answer from the transaction itself does; if the newer value is meant, leave it out (curl -o /dev/null)",
        name(command)
    )
}

/// What the users of commands that failed see, with the last error of the server.
fn told(outcome: &Outcome, lost: &[usize]) -> String {
    let one = |command: &usize| {
        let answer = outcome.answers.get(command);
        let how = answer.filter(|answer| answer.failed()).map(Answer::status);
        let own = outcome.steps.iter().filter(|step| step.command == *command);
        let codes: Vec<&str> =
            own.filter_map(|step| step.error.as_ref()).filter_map(|error| error.split(' ').next()).collect();
        // What comes after an error in the same transaction says nothing of its cause.
        let code = codes.iter().rfind(|code| **code != ABORTED).or(codes.last());
        let code = code.map_or_else(String::new, |code| format!(" ({code})"));
        format!("{} gets {}{code}", name(*command), how.as_deref().unwrap_or("another answer"))
    };
    lost.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The tables in which two outcomes differ.
fn differing(one: &Canonical, other: &Canonical) -> Vec<usize> {
    let mut tables: Vec<usize> = one.keys().chain(other.keys()).copied().collect();
    tables.sort_unstable();
    tables.dedup();
    tables.retain(|table| one.get(table) != other.get(table));
    tables
}
