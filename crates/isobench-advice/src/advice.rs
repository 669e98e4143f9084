//! What is said: levels with their reasons, changes with their prices. The form of JSON.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_observation::{Carried, Templates};
use isobench_result::Tried;
use isobench_result::words::enumerated;
use isobench_robustness::{Change, How, Objection, Program, Promoted};
use serde::Serialize;

use crate::deadlocks;
use crate::decision::{Decision, Executed, Shown};
use crate::hints::{UniqueIndex, hints};
use crate::patch::{ScriptText, difference, patched};
use crate::twice::Twice;

/// The value of the member `format` of the JSON.
pub const FORMAT: &str = "isobench/advice";

/// How the names of tables begin in which scripts of a capture find recorded values. Nothing writes them.
const INPUTS: &str = "isobench_inputs_";

/// The levels that transactions need, and what lower ones take.
#[derive(Debug, Clone, Serialize)]
pub struct Advice {
    /// `isobench/advice`
    pub format: &'static str,
    /// The version of the format.
    pub version: u32,
    /// The tables. All of it holds if nothing else than these scripts writes them.
    pub tables: Vec<String>,
    /// A transaction for each script.
    pub transactions: Vec<Transaction>,
    /// Each script that writes, twice at once; only of many scripts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub twice: Vec<Twice>,
    /// Values that one transaction of a script reads and a later one writes, which no level protects, a
    /// sentence each.
    pub carried: Vec<String>,
    /// A wrong outcome of all scripts together at serializable; null if none was shown.
    pub at_any_level: Option<Reason>,
    /// Schedules that theory names, and that weren't shown.
    pub unshown: Vec<Unshown>,
    /// Changes of scripts with which lower levels do, the fewest first.
    pub changes: Vec<ChangeSet>,
    /// True if something went wrong at levels that should be enough, in interleavings that were tried or
    /// in the recorded histories: the model is wrong somewhere, and nothing is proved.
    pub contradicted: bool,
    /// Dependencies in the recorded histories that don't follow from what is known of the statements:
    /// that is wrong there, and nothing is proved.
    pub unpredicted: Vec<Dependency>,
    /// Other ways to write the SQL, a sentence each. They weren't tried.
    pub hints: Vec<String>,
    /// Transactions that can wait for each other for rows that they name by their keys, a sentence each. The
    /// server ends one of them with SQLSTATE 40P01.
    pub deadlocks: Vec<String>,
    /// What was measured; null if nothing was.
    pub measured: Option<Measured>,
}

/// The transactions of a script.
#[derive(Debug, Clone, Serialize)]
pub struct Transaction {
    /// The script.
    pub script: String,
    /// The lowest level at which nothing wrong was shown, nor is possible but for [`Advice::unshown`].
    pub level: Level,
    /// The lowest level that is proved, if all statements are known.
    pub proved: Level,
    /// How sure the level is.
    pub status: Status,
    /// Why a lower level isn't enough; null at read committed.
    pub below: Option<Reason>,
    /// Higher levels that wouldn't be safe, because of locks that are older than snapshots.
    pub higher: Vec<Reason>,
    /// Statements of which isn't known what they read and write.
    pub unknown: Vec<UnknownStatement>,
}

/// How sure a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Proved for these statements: no schedule of these transactions can end otherwise than one
    /// after another.
    Proved,
    /// Nothing wrong was shown, but it isn't proved.
    Undecided,
    /// Something wrong was shown at serializable, too.
    Unsafe,
}

/// What happens at a level.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    /// The level.
    pub level: Level,
    /// The levels of all scripts that meet, unless all have [`Reason::level`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, Level>,
    /// The schedule that theory names, a step on each line.
    pub theory: Vec<String>,
    /// The cycle of dependencies that it closes, from the transaction that is split back to it.
    pub cycle: Vec<Dependency>,
    /// What came of executing it; null if it wasn't executed.
    pub shown: Option<Tried>,
    /// Why it wasn't executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untried: Option<String>,
    /// What the measurement showed, if trying didn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
}

/// A transaction depends on another one, which would have to come first in a serial order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The script of the transaction that would have to come first.
    pub first: String,
    /// The script of the one that would have to come later.
    pub then: String,
    /// `rw`: the later one overwrites what the first one read; `wr`: it reads what the first one wrote;
    /// `ww`: it overwrites that; null: any of them.
    pub how: Option<&'static str>,
    /// The statements of both, such as `pay.sql:7`; empty if they may be any.
    pub at: [String; 2],
}

/// A statement of which isn't known what it reads and writes.
#[derive(Debug, Clone, Serialize)]
pub struct UnknownStatement {
    /// The line of the script, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
    /// Why it isn't known.
    pub reason: String,
}

/// A schedule that wasn't shown.
#[derive(Debug, Clone, Serialize)]
pub struct Unshown {
    /// The schedule that theory names, a step on each line.
    pub theory: Vec<String>,
    /// The interleavings of its scripts that were executed in vain.
    pub interleavings: u64,
}

/// Changes of scripts, with the levels that are enough then.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeSet {
    /// A short name: `lock pay.sql:7`.
    pub name: String,
    /// The changes.
    pub changes: Vec<Changed>,
    /// The levels that are enough.
    pub allocation: Allocation,
    /// The changes as a unified diff of the scripts.
    pub diff: String,
    /// SQL that changes the tables; null if only scripts are changed.
    pub setup: Option<String>,
    /// The interleavings in which nothing wrong was shown, if the levels aren't proved; null if they are.
    pub unproved: Option<u64>,
    /// A wrong outcome that was shown in spite of it; null if there was none.
    pub refuted: Option<Tried>,
    /// Why transactions fail with it that run one after another, so that it changes more than isolation;
    /// null if none does.
    pub refused: Option<String>,
    /// The scripts with the changes.
    #[serde(skip)]
    pub scripts: Vec<ScriptText>,
}

impl ChangeSet {
    /// Whether nothing was shown that speaks against it.
    pub fn is_proposed(&self) -> bool {
        self.refuted.is_none() && self.refused.is_none()
    }
}

/// A changed read.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    /// The statement: `pay.sql:7`.
    pub at: String,
    /// The table.
    pub table: String,
    /// `FOR SHARE` or another lock; `UPDATE` for writing the row back as it is; what an UPDATE sets then:
    /// `SET stock = stock - :quantity`; or for an insert `CREATE UNIQUE INDEX …`.
    pub to: String,
}

/// The prices.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// What they are relative to: the first row.
    pub to: String,
    /// The dependencies between transactions in the recorded histories of the scripts as they were, which
    /// were compared with those that their statements predict; counted by row.
    pub dependencies: u64,
    /// The rows, in the order of measurement.
    pub candidates: Vec<Candidate>,
}

/// A row of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Its levels.
    pub allocation: Allocation,
    /// The name of its changes of scripts; null: the scripts are as they were.
    pub changes: Option<String>,
    /// True if one transaction has a lower level than it needs, to see how often that goes wrong here.
    pub control: bool,
    /// Committed transactions per second, the mean of the rounds; null if no round was complete.
    pub tps: Option<f64>,
    /// Its ratio to the first row, paired by round.
    pub ratio: Option<f64>,
    /// The interval of the ratio, with 95 % confidence for all rows together.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// Attempts that failed by a serialization failure or a deadlock, of all attempts.
    pub conflicts: f64,
    /// The number of attempts that ended in a deadlock (SQLSTATE 40P01), in all rounds.
    pub deadlocks: u64,
    /// The anomalies in the histories of the counted transactions; null if they weren't judged.
    pub anomalies: Option<u64>,
}

impl Advice {
    /// What follows from a decision.
    pub fn of(templates: &Templates, decision: &Decision, changes: Vec<ChangeSet>) -> Advice {
        let programs = &templates.programs;
        let unknown = |script: usize| {
            let of_script = templates.statements.iter().filter(move |statement| statement.script == script);
            of_script.filter_map(|statement| {
                Some(UnknownStatement {
                    line: statement.line,
                    text: statement.text.clone(),
                    reason: statement.unknown.clone()?,
                })
            })
        };
        // What was tried at the levels that are proved was wrong.
        let reaches = |levels: &Vec<Level>| levels.iter().zip(&decision.proved.levels).all(|(a, b)| a >= b);
        let contradicted = decision.refuted.as_ref().is_some_and(|(levels, _)| reaches(levels));
        let all_known = templates.branching.is_empty()
            && templates.statements.iter().all(|statement| statement.unknown.is_none());
        let transactions = programs.iter().enumerate().map(|(number, program)| {
            let level = decision.levels[number];
            let proved = decision.proved.levels[number];
            let of_program = |shown: &&Shown| shown.program == number;
            Transaction {
                script: program.name.clone(),
                level,
                proved,
                status: match () {
                    () if decision.at_any_level.is_some() => Status::Unsafe,
                    () if all_known && decision.possible.is_empty() && !contradicted => Status::Proved,
                    () => Status::Undecided,
                },
                below: decision
                    .reasons
                    .iter()
                    .find(of_program)
                    .map(|shown| reason(programs, shown))
                    .or_else(|| refuted(programs, decision, number)),
                higher: decision
                    .harmful
                    .iter()
                    .filter(of_program)
                    .map(|shown| reason(programs, shown))
                    .collect(),
                unknown: unknown(number).collect(),
            }
        });
        let changed = changes.iter().flat_map(|set| &set.changes).map(|change| change.at.as_str());
        let hints = hints(templates, &decision.reasons, &changed.collect());
        let unshown = decision.possible.iter().map(|possible| Unshown {
            theory: steps(programs, &possible.objection),
            interleavings: possible.interleavings,
        });
        Advice {
            format: FORMAT,
            version: 1,
            tables: templates.tables.iter().filter(|table| !table.starts_with(INPUTS)).cloned().collect(),
            transactions: transactions.collect(),
            twice: Vec::new(),
            carried: templates.carried.iter().map(carried).collect(),
            at_any_level: decision
                .at_any_level
                .as_deref()
                .map(|tried| Reason::tried(Level::Serializable, tried.clone())),
            unshown: unshown.collect(),
            changes,
            contradicted,
            unpredicted: Vec::new(),
            hints,
            deadlocks: deadlocks::sentences(programs),
            measured: None,
        }
    }

    /// The levels as an allocation.
    pub fn allocation(&self) -> Allocation {
        let levels = self.transactions.iter().map(|one| (one.script.as_str(), one.level));
        allocation(&levels.collect::<Vec<_>>())
    }

    /// Takes the levels that are proved, because recorded histories at lower ones, which trying had found
    /// nothing against, have anomalies. `seen` says how many.
    pub fn raise(&mut self, seen: &str) {
        let all_known = self.transactions.iter().all(|one| one.unknown.is_empty());
        for one in &mut self.transactions {
            if one.level < one.proved {
                let theory = self.unshown.iter().map(|unshown| &unshown.theory);
                let own = theory.filter(|steps| steps.first().is_some_and(|step| step.contains(&one.script)));
                one.below = Some(Reason {
                    theory: own.take(1).flatten().cloned().collect(),
                    measured: Some(seen.to_owned()),
                    ..Reason::at(one.level)
                });
                one.level = one.proved;
            }
            one.status = if all_known { Status::Proved } else { Status::Undecided };
        }
        // These rest on the same trying, and those were decided.
        self.changes.clear();
        self.unshown.clear();
    }

    /// The levels with one of them lowered by one step, for each transaction that needs more than read
    /// committed; at most so many.
    pub fn controls(&self, most: usize) -> Vec<Allocation> {
        let levels: Vec<(&str, Level)> =
            self.transactions.iter().map(|one| (one.script.as_str(), one.level)).collect();
        let lowered = levels.iter().enumerate().filter_map(|(place, (script, level))| {
            let lower = match level {
                Level::Serializable => Level::RepeatableRead,
                Level::RepeatableRead => Level::ReadCommitted,
                Level::ReadCommitted | Level::ReadUncommitted => return None,
            };
            let others: BTreeSet<Level> =
                levels.iter().filter(|(other, _)| other != script).map(|(_, level)| *level).collect();
            if let [rest] = others.iter().collect::<Vec<_>>().as_slice() {
                let scripts = vec![((*script).to_owned(), Mode::of(lower))];
                return Some(Allocation { rest: Mode::of(**rest), scripts });
            }
            let mut levels = levels.clone();
            levels[place] = (*script, lower);
            Some(allocation(&levels))
        });
        lowered.take(most).collect()
    }

    /// The levels that are proved, as an allocation.
    pub fn proved(&self) -> Allocation {
        let levels = self.transactions.iter().map(|one| (one.script.as_str(), one.proved));
        allocation(&levels.collect::<Vec<_>>())
    }
}

/// What was shown of all scripts together at a lower level of a program than it needs for that.
fn refuted(programs: &[Program], decision: &Decision, program: usize) -> Option<Reason> {
    let (levels, tried) = decision.refuted.as_ref()?;
    let lower = levels[program];
    let meeting: BTreeSet<&str> =
        tried.found.iter().flat_map(|wrong| &wrong.scripts).map(String::as_str).collect();
    let of_all = programs.iter().map(|program| program.name.as_str()).zip(levels.iter().copied());
    (lower < decision.levels[program]).then(|| Reason {
        levels: mixed(of_all.filter(|(script, _)| meeting.contains(script))),
        ..Reason::tried(lower, (**tried).clone())
    })
}

/// The levels of scripts; none if all are the same.
fn mixed<'s>(levels: impl Iterator<Item = (&'s str, Level)>) -> BTreeMap<String, Level> {
    let levels: BTreeMap<String, Level> = levels.map(|(script, level)| (script.to_owned(), level)).collect();
    let same = levels.values().collect::<BTreeSet<_>>().len() < 2;
    if same { BTreeMap::new() } else { levels }
}

impl Reason {
    /// What was shown, without a schedule that theory names.
    pub fn tried(level: Level, tried: Tried) -> Reason {
        Reason { shown: Some(tried), ..Reason::at(level) }
    }

    /// Nothing known at this level.
    pub(crate) fn at(level: Level) -> Reason {
        Reason {
            level,
            levels: BTreeMap::new(),
            theory: Vec::new(),
            cycle: Vec::new(),
            shown: None,
            untried: None,
            measured: None,
        }
    }

    /// The level in words, or the levels with the scripts that have them.
    pub(crate) fn at_levels(&self) -> String {
        let mut scripts: BTreeMap<Level, Vec<&str>> = BTreeMap::new();
        for (script, level) in &self.levels {
            scripts.entry(*level).or_default().push(script);
        }
        let texts: Vec<String> =
            scripts.iter().map(|(level, scripts)| format!("{level} ({})", scripts.join(", "))).collect();
        if texts.is_empty() { self.level.to_string() } else { enumerated(&texts) }
    }
}

impl ChangeSet {
    /// The scripts with some reads changed; `None` if a statement can't be changed so.
    pub fn of(templates: &Templates, before: &[ScriptText], promoted: &Promoted) -> Option<ChangeSet> {
        let scripts = patched(templates, before, &promoted.promotions)?;
        let changes: Vec<Changed> = promoted
            .promotions
            .iter()
            .map(|one| Changed {
                at: one.at.clone(),
                table: one.table.clone(),
                to: match one.change {
                    Change::Lock(strength) => strength.clause().to_owned(),
                    Change::Write => "UPDATE".to_owned(),
                },
            })
            .collect();
        Some(ChangeSet::new(templates, before, scripts, changes, &promoted.levels))
    }

    /// Scripts that were changed, with a level for each.
    pub(crate) fn new(
        templates: &Templates,
        before: &[ScriptText],
        scripts: Vec<ScriptText>,
        changes: Vec<Changed>,
        levels: &[Level],
    ) -> ChangeSet {
        let name = |change: &Changed| {
            let how = match change.to.as_str() {
                "UPDATE" => "write back",
                sets if sets.starts_with("SET ") => "rewrite",
                _ => "lock",
            };
            format!("{how} {}", change.at)
        };
        let names: Vec<String> = changes.iter().map(name).collect();
        let programs = templates.programs.iter().zip(levels);
        let levels: Vec<(&str, Level)> =
            programs.map(|(program, level)| (program.name.as_str(), *level)).collect();
        ChangeSet {
            name: names.join(" + "),
            changes,
            allocation: allocation(&levels),
            diff: difference(before, &scripts),
            setup: None,
            unproved: None,
            refuted: None,
            refused: None,
            scripts,
        }
    }

    /// The same scripts with a unique index.
    pub(crate) fn index(
        templates: &Templates,
        scripts: &[ScriptText],
        index: &UniqueIndex<'_>,
        sql: &str,
        levels: &[Level],
    ) -> ChangeSet {
        let set = ChangeSet::new(templates, scripts, scripts.to_vec(), Vec::new(), levels);
        let at = index.insert.to_owned();
        ChangeSet {
            name: index.name(),
            changes: vec![Changed { at, table: index.table.to_owned(), to: sql.to_owned() }],
            diff: format!("{sql};\n"),
            setup: Some(sql.to_owned()),
            unproved: Some(0),
            ..set
        }
    }
}

fn carried(carried: &Carried) -> String {
    let Carried { read, written } = carried;
    format!(
        "{}:{} writes what another transaction, of line {}, read before: no level protects that; put both into one \
         transaction",
        written.file, written.line, read.line
    )
}

/// Levels as an allocation: the lowest is that of all scripts that aren't named.
fn allocation(levels: &[(&str, Level)]) -> Allocation {
    let rest = levels.iter().map(|(_, level)| *level).min().unwrap_or(Level::ReadCommitted);
    let own = levels.iter().filter(|(_, level)| *level != rest);
    let scripts = own.map(|(script, level)| ((*script).to_owned(), Mode::of(*level))).collect();
    Allocation { rest: Mode::of(rest), scripts }
}

fn steps(programs: &[Program], objection: &Objection) -> Vec<String> {
    objection.steps(programs).to_string().lines().map(str::to_owned).collect()
}

pub(crate) fn reason(programs: &[Program], shown: &Shown) -> Reason {
    let (tried, untried) = match &shown.executed {
        Executed::Shown(tried) => (Some((**tried).clone()), None),
        Executed::Untried(why) => (None, Some(why.clone())),
        Executed::Unshown(_) => (None, None),
    };
    let dependency = |one: isobench_robustness::Dependency| Dependency {
        first: programs[one.first].name.clone(),
        then: programs[one.then].name.clone(),
        how: one.how.map(How::short),
        at: one.at,
    };
    let meeting: BTreeSet<usize> = shown.casts().into_iter().flatten().collect();
    let of_meeting =
        meeting.into_iter().map(|program| (programs[program].name.as_str(), shown.levels[program]));
    Reason {
        level: shown.level(),
        levels: mixed(of_meeting),
        theory: steps(programs, &shown.objection),
        cycle: shown.objection.cycle(programs).into_iter().map(dependency).collect(),
        shown: tried,
        untried,
        measured: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::answer;

    #[test]
    fn levels_that_differ_are_said_with_their_scripts() {
        let at = |levels: &[(&'static str, Level)]| {
            let levels = mixed(levels.iter().copied());
            Reason { levels, ..Reason::at(Level::Serializable) }.at_levels()
        };
        assert_eq!(at(&[("a.sql", Level::Serializable), ("b.sql", Level::Serializable)]), "serializable");
        assert_eq!(
            at(&[
                ("a.sql", Level::Serializable),
                ("b.sql", Level::ReadCommitted),
                ("c.sql", Level::ReadCommitted)
            ]),
            "read committed (b.sql, c.sql) and serializable (a.sql)"
        );
    }

    #[test]
    fn what_was_measured_raises_levels_that_are_not_proved() {
        let transaction = |script: &str, level, proved| Transaction {
            script: script.to_owned(),
            level,
            proved,
            status: Status::Undecided,
            below: None,
            higher: Vec::new(),
            unknown: Vec::new(),
        };
        let mut advice = Advice {
            format: FORMAT,
            version: 1,
            tables: vec!["doctor".to_owned()],
            transactions: vec![
                transaction("leave.sql", Level::ReadCommitted, Level::Serializable),
                transaction("list.sql", Level::ReadCommitted, Level::ReadCommitted),
            ],
            twice: Vec::new(),
            carried: Vec::new(),
            at_any_level: None,
            unshown: vec![Unshown { theory: vec!["T1 leave.sql runs".to_owned()], interleavings: 32 }],
            changes: Vec::new(),
            contradicted: false,
            unpredicted: Vec::new(),
            hints: Vec::new(),
            deadlocks: Vec::new(),
            measured: None,
        };
        advice.raise("104 of 9,000 transactions had an anomaly");
        assert_eq!(advice.allocation(), advice.proved());
        let text = answer(&advice, 200);
        let said = "serializable    unsafe at read committed, as was measured [1]: 104 of 9,000 transactions had an anomaly";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("list.sql     read committed  proved for these statements"), "{text}");
    }
}
