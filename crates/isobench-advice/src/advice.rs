//! What is said: levels with their reasons, changes with their prices. The form of JSON.

use std::collections::BTreeSet;

use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_program::{Carried, Ignored, Templates};
use isobench_result::Tried;
use isobench_robustness::Program;
use serde::Serialize;

use crate::change_set::{ChangeSet, allocation};
use crate::deadlocks;
use crate::decision::Decision;
use crate::hints::{hints, written_back};
use crate::reason::{Dependency, Reason, mixed, reason, steps};
use crate::shown::{Executed, Shown};
use crate::warnings::warnings;

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
    /// Values whose order isn't looked at, since no level decides on it: `numbers of sequences`, `times of clocks`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<&'static str>,
    /// A transaction for each script.
    pub transactions: Vec<Transaction>,
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
    /// in the recorded histories: the model is wrong somewhere, and all scripts have to be serializable.
    pub contradicted: bool,
    /// Dependencies in the recorded histories that don't follow from what is known of the statements:
    /// that is wrong there, and nothing is proved.
    pub unpredicted: Vec<Dependency>,
    /// Other ways to write the SQL, a sentence each. They weren't tried.
    pub hints: Vec<String>,
    /// Mistakes that no level prevents, as far as the scripts show them, a sentence or two each.
    pub warnings: Vec<String>,
    /// Transactions that can wait for each other for rows that they name by their keys, a sentence each. The
    /// server ends one of them with SQLSTATE 40P01.
    pub deadlocks: Vec<String>,
    /// What was measured; null if nothing was.
    pub measured: Option<Measured>,
    /// Why trying or measuring ended early; null if it didn't.
    pub incomplete: Option<String>,
}

/// The transactions of a script.
#[derive(Debug, Clone, Serialize)]
pub struct Transaction {
    /// The script.
    pub script: String,
    /// The level that is enough; null: none is proved to be.
    pub level: Option<Level>,
    /// A lower level at which nothing wrong was shown; null if there is none.
    pub passed: Option<Passed>,
    /// How sure the level is.
    pub status: Status,
    /// Why a lower level isn't enough; null at read committed.
    pub below: Option<Reason>,
    /// Levels above the answer, or above a lower one that passed, that wouldn't be safe, because of locks that
    /// are newer than snapshots.
    pub higher: Vec<Reason>,
    /// What may go wrong at every level; null if nothing may.
    pub at_every_level: Option<Reason>,
    /// Values that one of its transactions reads and a later one writes, which no level protects, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
    /// Statements that isobench can't analyse.
    pub unknown: Vec<UnknownStatement>,
    /// Why the script wasn't tried against others, if it wasn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_tried: Option<String>,
}

/// How sure a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Proved for these statements: no schedule of these transactions can end otherwise than one
    /// after another.
    Proved,
    /// The model was contradicted, so that only the server's promise for serializable transactions holds.
    Promised,
    /// No level is proved.
    Unproved,
    /// Something wrong was shown at serializable, too.
    Unsafe,
}

/// A level at which nothing wrong was shown, and that isn't proved.
#[derive(Debug, Clone, Serialize)]
pub struct Passed {
    /// The level.
    pub level: Level,
    /// The interleavings of all scripts that were executed at such levels.
    pub interleavings: u64,
    /// The transactions that were measured and judged at such levels; null if none were.
    pub transactions: Option<u64>,
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

/// The prices.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// What they are relative to: the first row.
    pub to: String,
    /// The dependencies between transactions in the recorded histories of the scripts as they were, which
    /// were compared with those that their statements predict; counted by row.
    pub dependencies: u64,
    /// The rows of which a round is complete, or has an anomaly, in the order of measurement.
    pub candidates: Vec<Candidate>,
    /// The names of the others.
    pub unmeasured: Vec<String>,
    /// The scripts that weren't measured with the others, because they fail.
    pub left_out: Vec<LeftOut>,
}

/// A script that wasn't measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub script: String,
    /// How it fails.
    pub why: String,
}

impl Measured {
    /// A sentence for each script that was left out.
    pub(crate) fn without(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|one| format!("Measured without {}: {}", one.script, one.why))
    }
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
        let contradicted = decision.contradicted;
        let transactions = programs.iter().enumerate().map(|(number, program)| {
            let level = decision.levels[number];
            let of_program = |shown: &&Shown| shown.program == number;
            let unprotected = decision.unprotected.iter().find(of_program);
            let carries = templates.carried.iter().filter(|one| one.written.file == program.name);
            let carries: Vec<String> = carries.map(within).collect();
            let shown = |tried: &Tried| tried.found.iter().any(|wrong| wrong.scripts.contains(&program.name));
            let carried = decision.carried.as_deref().filter(|tried| !carries.is_empty() && shown(tried));
            let carried = carried.map(|tried| Reason::tried(level, tried.clone()));
            let status = match unprotected {
                _ if decision.at_any_level.is_some() || carried.is_some() => Status::Unsafe,
                _ if !carries.is_empty() => Status::Unproved,
                Some(shown) if matches!(shown.executed, Executed::Shown(_)) => Status::Unsafe,
                Some(_) => Status::Unproved,
                None if contradicted => Status::Promised,
                None => Status::Proved,
            };
            let passed = decision.passed.as_ref().filter(|passed| passed.levels[number] < level);
            Transaction {
                script: program.name.clone(),
                level: matches!(status, Status::Proved | Status::Promised).then_some(level),
                passed: passed.map(|passed| Passed {
                    level: passed.levels[number],
                    interleavings: passed.interleavings,
                    transactions: None,
                }),
                status,
                below: refuted(programs, decision, number).or_else(|| {
                    let own = decision.reasons.iter().filter(of_program);
                    own.filter(|shown| shown.level() < level).map(|shown| reason(programs, shown)).next()
                }),
                higher: decision
                    .harmful
                    .iter()
                    .filter(of_program)
                    .filter(|shown| {
                        let between = passed.is_some_and(|passed| passed.levels[number] < shown.level());
                        let was_shown = matches!(shown.executed, Executed::Shown(_));
                        shown.level() > level || shown.level() < level && between && was_shown
                    })
                    .map(|shown| reason(programs, shown))
                    .collect(),
                at_every_level: carried.or_else(|| unprotected.map(|shown| reason(programs, shown))),
                carries,
                unknown: unknown(number).collect(),
                not_tried: None,
            }
        });
        let changed = changes.iter().filter(|set| !set.is_not_made()).flat_map(|set| &set.changes);
        let changed = changed.map(|change| &change.at).collect();
        let good = changes.iter().any(ChangeSet::is_good);
        let mut hints = hints(templates, &decision.reasons, &changed, good);
        hints.extend(written_back(templates, &decision.harmful));
        let unshown = decision.possible.iter().map(|possible| Unshown {
            theory: steps(programs, &possible.objection),
            interleavings: possible.interleavings,
        });
        Advice {
            format: FORMAT,
            version: 2,
            tables: templates.tables.iter().filter(|table| !table.starts_with(INPUTS)).cloned().collect(),
            ignored: ignored(templates.ignored),
            transactions: transactions.collect(),
            carried: carried_values(templates),
            at_any_level: decision
                .at_any_level
                .as_deref()
                .map(|tried| Reason::tried(Level::Serializable, tried.clone())),
            unshown: unshown.collect(),
            changes,
            contradicted,
            unpredicted: Vec::new(),
            hints,
            warnings: warnings(templates),
            deadlocks: deadlocks::sentences(programs),
            measured: None,
            incomplete: None,
        }
    }

    /// The levels as an allocation; where none is proved, the highest one.
    pub fn allocation(&self) -> Allocation {
        let levels = self.transactions.iter().map(|one| (one.script.as_str(), one.at()));
        allocation(&levels.collect::<Vec<_>>())
    }

    /// The lower levels at which nothing wrong was shown, as an allocation; `None` if there are none.
    pub fn passed(&self) -> Option<Allocation> {
        let levels = self.transactions.iter().map(|one| {
            let passed = one.passed.as_ref().map(|passed| passed.level);
            (one.script.as_str(), passed.unwrap_or(one.at()))
        });
        let any = self.transactions.iter().any(|one| one.passed.is_some());
        any.then(|| allocation(&levels.collect::<Vec<_>>()))
    }

    /// Notes what was measured at the lower levels at which nothing wrong had been shown: so many judged
    /// transactions, or what went wrong.
    pub fn note_passed(&mut self, measured: Result<u64, &str>) {
        for one in &mut self.transactions {
            match measured {
                Ok(count) => {
                    if let Some(passed) = &mut one.passed {
                        passed.transactions = Some(count);
                    }
                }
                Err(seen) => {
                    let Some(passed) = one.passed.take() else { continue };
                    let theory = self.unshown.iter().map(|unshown| &unshown.theory);
                    let own =
                        theory.filter(|steps| steps.first().is_some_and(|step| step.contains(&one.script)));
                    one.below = Some(Reason {
                        theory: own.take(1).flatten().cloned().collect(),
                        measured: Some(seen.to_owned()),
                        ..Reason::at(passed.level)
                    });
                }
            }
        }
    }

    /// Takes serializable for all scripts, because recorded histories at the levels that are proved have
    /// anomalies: the model is wrong somewhere. `seen` says how many.
    pub fn contradict(&mut self, seen: &str) {
        self.contradicted = true;
        for one in &mut self.transactions {
            if let Some(level) = one.level.filter(|level| *level < Level::Serializable) {
                one.below = Some(Reason { measured: Some(seen.to_owned()), ..Reason::at(level) });
            }
        }
        self.distrust();
    }

    /// Takes back what rests on the model of the statements: what is left is the promise of the server.
    pub(crate) fn distrust(&mut self) {
        for one in &mut self.transactions {
            one.level = one.level.map(|_| Level::Serializable);
            one.passed = None;
            if one.status == Status::Proved {
                one.status = Status::Promised;
            }
        }
        self.changes.clear();
        self.unshown.clear();
    }

    /// The levels with one of them lowered by one step, for each transaction that needs more than read
    /// committed; at most so many.
    pub fn controls(&self, most: usize) -> Vec<Allocation> {
        let levels: Vec<(&str, Level)> =
            self.transactions.iter().map(|one| (one.script.as_str(), one.at())).collect();
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
}

impl Transaction {
    /// The level at which it is measured: where none is proved, the highest one.
    pub(crate) fn at(&self) -> Level {
        self.level.unwrap_or(Level::Serializable)
    }

    /// The level in words.
    pub(crate) fn level_in_words(&self) -> String {
        match self.level {
            Some(level) => level.to_string(),
            None if self.status == Status::Unsafe || !self.carries.is_empty() => "no level".to_owned(),
            None => "none proved".to_owned(),
        }
    }
}

/// What was shown of all scripts together at a lower level of a program than it needs for that.
fn refuted(programs: &[Program], decision: &Decision, program: usize) -> Option<Reason> {
    let (levels, tried) = decision.refuted.as_ref()?;
    let lower = levels[program];
    let meeting: BTreeSet<&str> =
        tried.found.iter().flat_map(|wrong| &wrong.scripts).map(String::as_str).collect();
    let of_all = programs.iter().map(|program| program.name.as_str()).zip(levels.iter().copied());
    // What goes wrong without it is no reason to raise it.
    let meets = meeting.contains(programs[program].name.as_str());
    (meets && lower < decision.levels[program]).then(|| Reason {
        levels: mixed(of_all.filter(|(script, _)| meeting.contains(script))),
        ..Reason::tried(lower, (**tried).clone())
    })
}

/// Values that one transaction of a script reads and a later one writes, which no level protects, a sentence each.
pub fn carried_values(templates: &Templates) -> Vec<String> {
    templates.carried.iter().map(carried).collect()
}

fn carried(carried: &Carried) -> String {
    let Carried { read, written, decides } = carried;
    let writes = if *decides {
        format!("writes by a check of line {}, in another transaction before", read.line)
    } else {
        format!("writes what another transaction, of line {}, read before", read.line)
    };
    format!(
        "{}:{} {writes}: no level protects that; put both into one transaction",
        written.file, written.line
    )
}

/// The same in a row of its script.
fn within(carried: &Carried) -> String {
    let (written, read) = (carried.written.line, carried.read.line);
    if carried.decides {
        return format!("line {written} writes by a check of line {read}, in another transaction");
    }
    format!("line {written} writes what another transaction, of line {read}, read")
}

/// What the programs leave out, in words.
fn ignored(of: Ignored) -> Vec<&'static str> {
    let all = [
        (of.sequences, "numbers of sequences"),
        (of.clocks, "times of clocks"),
        (of.queues, "rows that SKIP LOCKED takes"),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::text::details as answer;

    /// Two scripts: one is proved to need serializable, though read committed passed; for the other read
    /// committed is proved.
    pub(crate) fn doctors() -> Advice {
        let transaction = |script: &str, level, passed: Option<Level>| Transaction {
            script: script.to_owned(),
            level: Some(level),
            passed: passed.map(|level| Passed { level, interleavings: 32, transactions: None }),
            status: Status::Proved,
            below: None,
            higher: Vec::new(),
            at_every_level: None,
            carries: Vec::new(),
            unknown: Vec::new(),
            not_tried: None,
        };
        Advice {
            format: FORMAT,
            version: 2,
            tables: vec!["doctor".to_owned()],
            ignored: Vec::new(),
            transactions: vec![
                transaction("leave.sql", Level::Serializable, Some(Level::ReadCommitted)),
                transaction("list.sql", Level::ReadCommitted, None),
            ],
            carried: Vec::new(),
            at_any_level: None,
            unshown: vec![Unshown { theory: vec!["T1 leave.sql runs".to_owned()], interleavings: 32 }],
            changes: Vec::new(),
            contradicted: false,
            unpredicted: Vec::new(),
            hints: Vec::new(),
            warnings: Vec::new(),
            deadlocks: Vec::new(),
            measured: None,
            incomplete: None,
        }
    }

    #[test]
    fn a_measurement_counts_for_levels_that_passed_and_against_those_that_are_proved() {
        let mut advice = doctors();
        let mut clean = advice.clone();
        clean.note_passed(Ok(9000));
        let said = "leave.sql    serializable    proved; read committed passed 32 interleavings and 9,000 transactions, but \
                    isn't proved\n";
        let text = answer(&clean, 200);
        assert!(text.contains(said), "{text}");
        let seen = "104 of 9,000 transactions had an anomaly";
        advice.note_passed(Err(seen));
        let text = answer(&advice, 200);
        let said = "serializable    proved; unsafe at read committed, as was measured [1]: 104 of 9,000 transactions had an \
                    anomaly\n";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("list.sql     read committed  proved\n"), "{text}");
        advice.contradict(seen);
        assert_eq!(advice.allocation(), Allocation::uniform(Level::Serializable));
    }
}
