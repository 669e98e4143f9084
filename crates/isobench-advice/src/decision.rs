//! The levels that are proved, and those below which something was shown.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use isobench_isolation::Level;
use isobench_program::Templates;
use isobench_result::Tried;
use isobench_robustness::{Allocated, Harmful, Objection, Struck, allocate, decide};

use crate::shown::{Executed, Shown, combinations};

/// The most schedules that are executed, so that the answer comes in minutes.
const MOST_EXECUTED: usize = 24;

/// What is asked.
pub struct Question<'a> {
    /// The programs of the scripts.
    pub templates: &'a Templates,
    /// Asked between two steps of theory; if it returns true, no further one is begun. The answer is then
    /// what was found before, and the caller says that it is incomplete.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

/// A schedule that is to be executed: the programs that meet, the first of which is split, each at its
/// level.
pub struct Execute<'a> {
    /// The scripts' numbers: the one that is split, and those within, in order. First those that theory
    /// names, then all pairs of them: a single statement can't be split, but what it does to another one
    /// before it commits shows the same.
    pub combinations: Vec<Vec<usize>>,
    /// A level for each program.
    pub levels: &'a [Level],
}

/// A schedule that theory names, and that wasn't shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Possible {
    /// The schedule.
    pub objection: Objection,
    /// The interleavings that were executed.
    pub interleavings: u64,
}

/// Levels at which nothing wrong was shown, though theory proves them for no one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// A level for each program.
    pub levels: Vec<Level>,
    /// The interleavings of all scripts together that were executed there.
    pub interleavings: u64,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The lowest levels that are proved to be safe.
    pub proved: Allocated,
    /// The lowest levels without the schedules that could not be shown: those of `reasons`.
    pub lowest: Vec<Level>,
    /// The answer: the levels that are proved; all serializable if something wrong was shown there.
    pub levels: Vec<Level>,
    /// Something wrong was shown at the levels that are proved: the model is wrong somewhere.
    pub contradicted: bool,
    /// Lower levels at which nothing wrong was shown.
    pub passed: Option<Passed>,
    /// For each program above read committed in `lowest`, what happens one level lower.
    pub reasons: Vec<Shown>,
    /// The schedules that could not be shown.
    pub possible: Vec<Possible>,
    /// Programs for which a higher level wouldn't be safe, with what happens there.
    pub harmful: Vec<Shown>,
    /// Programs that no level makes safe, with what may happen.
    pub unprotected: Vec<Shown>,
    /// The highest levels that all scripts together were tried at with a wrong outcome, which theory
    /// didn't name.
    pub refuted: Option<(Vec<Level>, Box<Tried>)>,
    /// A wrong outcome of all scripts together at serializable: no level is enough.
    pub at_any_level: Option<Box<Tried>>,
    /// A wrong outcome of scripts of which one transaction writes what an earlier one read, at the levels that their
    /// transactions need: no level protects that.
    pub carried: Option<Box<Tried>>,
}

/// Where a level is, from that of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The next lower one.
    Lower,
    /// Read committed below serializable.
    TwoLower,
    /// A higher one.
    Higher,
}

impl Question<'_> {
    /// Decides the levels, and executes what speaks against lower ones. At last all scripts are tried
    /// together by `all`, at the lowest levels against which nothing was shown, and at those that are proved:
    /// there may be more to them than theory knows, such as conditions of the user's. If something is wrong
    /// at the latter, all have to be serializable.
    ///
    /// # Errors
    /// Those of `execute` and `all`.
    pub fn decide<E>(
        &self,
        execute: impl FnMut(&Execute<'_>) -> Result<Executed, E>,
        mut all: impl FnMut(&[Level]) -> Result<Executed, E>,
    ) -> Result<Decision, E> {
        let mut decision = self.by_theory(execute)?;
        let proved = decision.proved.levels.clone();
        let highest = vec![Level::Serializable; proved.len()];
        let lowest = decision.lowest.iter().zip(&proved).map(|(level, most)| *level.min(most));
        let lowest: Vec<Level> = lowest.collect();
        let in_between = lowest.iter().zip(&proved).map(|(level, most)| match level {
            Level::Serializable => *level,
            _ => Level::RepeatableRead.min(*most),
        });
        let mut lower = vec![lowest.clone(), in_between.collect()];
        lower.dedup();
        lower.retain(|levels| *levels != proved);
        for levels in lower {
            match all(&levels)? {
                Executed::Shown(tried) => decision.refuted = Some((levels, tried)),
                Executed::Unshown(interleavings) => {
                    decision.passed = Some(Passed { levels, interleavings });
                    break;
                }
                Executed::Untried(_) => break,
            }
        }
        if let Executed::Shown(tried) = all(&proved)? {
            if !decision.unprotected.is_empty() {
                // That is what theory says: no level is enough for these.
                for shown in &mut decision.unprotected {
                    shown.executed = Executed::Shown(tried.clone());
                }
                return Ok(decision);
            }
            if self.is_carried(&tried) {
                decision.carried = Some(tried);
                return Ok(decision);
            }
            decision.contradicted = true;
            decision.passed = None;
            decision.at_any_level = if proved == highest {
                Some(tried.clone())
            } else {
                match all(&highest)? {
                    Executed::Shown(tried) => Some(tried),
                    _ => None,
                }
            };
            decision.refuted = Some((proved, tried));
            decision.levels = highest;
        }
        Ok(decision)
    }

    /// What theory says, without executing anything.
    pub(crate) fn by_theory_alone(&self) -> Decision {
        let untried = |_: &Execute<'_>| Ok::<_, Infallible>(Executed::Untried(String::new()));
        match self.by_theory(untried) {
            Ok(decision) => decision,
            Err(never) => match never {},
        }
    }

    /// True if each wrong outcome has a script that writes in one transaction what another one read.
    fn is_carried(&self, tried: &Tried) -> bool {
        let carries = |script: &String| self.templates.carried.iter().any(|one| one.written.file == *script);
        !tried.found.is_empty() && tried.found.iter().all(|wrong| wrong.scripts.iter().any(carries))
    }

    fn by_theory<E>(
        &self,
        mut execute: impl FnMut(&Execute<'_>) -> Result<Executed, E>,
    ) -> Result<Decision, E> {
        let programs = &self.templates.programs;
        let proved = allocate(programs, &Struck::new());
        let mut struck = Struck::new();
        let mut possible: Vec<Possible> = Vec::new();
        // A schedule that was shown stands against levels again when these are decided anew, and whoever
        // meets at some levels shows all that they can do to each other.
        let mut known: BTreeMap<(Vec<Vec<usize>>, Vec<Level>), Executed> = BTreeMap::new();
        loop {
            let allocated = allocate(programs, &struck);
            let (mut reasons, mut harmful) = (Vec::new(), Vec::new());
            let before = struck.len();
            let raised =
                allocated.raised.iter().map(|one| (one.program, one.lower, &one.objection, Side::Lower));
            let two_lower = allocated
                .two_lower
                .iter()
                .map(|one| (one.program, one.lower, &one.objection, Side::TwoLower));
            let higher =
                allocated.harmful.iter().map(|one| (one.program, one.level, &one.objection, Side::Higher));
            for (program, level, objection, side) in raised.chain(two_lower).chain(higher) {
                // Where only the next lower level goes wrong.
                let goes_wrong =
                    |shown: &Shown| shown.program == program && matches!(shown.executed, Executed::Shown(_));
                if side == Side::TwoLower && !reasons.iter().any(goes_wrong) {
                    continue;
                }
                let strike = objection.strike(programs);
                if struck.contains(&strike) {
                    continue;
                }
                let mut levels = allocated.levels.clone();
                levels[program] = level;
                let combinations = combinations(objection);
                let meeting: BTreeSet<usize> = combinations.iter().flatten().copied().collect();
                let key = (combinations, meeting.iter().map(|program| levels[*program]).collect());
                let executed = match known.get(&key) {
                    Some(executed) => executed.clone(),
                    None if known.len() >= MOST_EXECUTED => {
                        Executed::Untried(format!("{MOST_EXECUTED} schedules were tried before"))
                    }
                    None => {
                        let executed = execute(&Execute { combinations: key.0.clone(), levels: &levels })?;
                        known.entry(key).or_insert(executed).clone()
                    }
                };
                if let Executed::Unshown(interleavings) = executed {
                    struck.insert(strike);
                    possible.push(Possible { objection: objection.clone(), interleavings });
                    continue;
                }
                let shown = Shown { program, levels, objection: objection.clone(), executed };
                match side {
                    Side::Lower => reasons.push(shown),
                    Side::Higher => harmful.push(shown),
                    Side::TwoLower => {}
                }
            }
            if struck.len() == before || (self.stopped)() {
                let mut unprotected = Vec::new();
                for Harmful { program, objection, .. } in &proved.unprotected {
                    let (program, objection) = (*program, objection.clone());
                    let combinations = combinations(&objection);
                    let executed = execute(&Execute { combinations, levels: &proved.levels })?;
                    unprotected.push(Shown { program, levels: proved.levels.clone(), objection, executed });
                }
                return Ok(Decision {
                    levels: proved.levels.clone(),
                    proved,
                    lowest: allocated.levels,
                    contradicted: false,
                    passed: None,
                    reasons,
                    possible,
                    harmful,
                    unprotected,
                    refuted: None,
                    at_any_level: None,
                    carried: None,
                });
            }
        }
    }

    /// What may happen at these levels: a schedule that was shown, or else one that theory names. `None` if
    /// they are proved to be enough.
    ///
    /// # Errors
    /// Those of `execute`.
    pub fn broken<E>(
        &self,
        levels: &[Level],
        mut execute: impl FnMut(&Execute<'_>) -> Result<Executed, E>,
    ) -> Result<Option<Shown>, E> {
        let programs = &self.templates.programs;
        let (mut struck, mut first) = (Struck::new(), None);
        for _ in 0..MOST_EXECUTED {
            if (self.stopped)() {
                break;
            }
            let Some(objection) = decide(programs, levels, &struck) else { break };
            let executed = execute(&Execute { combinations: combinations(&objection), levels })?;
            let is_shown = matches!(executed, Executed::Shown(_));
            struck.insert(objection.strike(programs));
            let program = objection.read.role.program;
            let shown = Shown { program, levels: levels.to_vec(), objection, executed };
            if is_shown {
                return Ok(Some(shown));
            }
            first.get_or_insert(shown);
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use isobench_program::{FirstLock, FirstLockKind, TemplateStatement};
    use isobench_result::WrongOutcome;
    use isobench_robustness::{Branch, Columns, Operation, Program, Strength};

    use super::*;
    use crate::advice::Advice;
    use crate::makers;
    use crate::patch::ScriptText;
    use crate::text::details as answer;

    /// A script that calls a function of which nothing is known.
    fn calls() -> Templates {
        let statement = TemplateStatement {
            line: 4,
            at: "pay.sql:4".into(),
            text: "SELECT pay(:a)".to_owned(),
            unknown: Some("what pay reads and writes isn't known".to_owned()),
            ..TemplateStatement::default()
        };
        Templates {
            statements: vec![statement],
            programs: vec![Program::new(
                "pay.sql",
                vec![Branch::new(
                    "pay",
                    vec![
                        Operation::search("other tables", [], Columns::All).in_statement("pay.sql:4"),
                        Operation::update("other tables", [], Columns::All, Columns::All)
                            .any([])
                            .in_statement("pay.sql:4"),
                    ],
                )],
            )],
            ..Templates::default()
        }
    }

    /// A script that counts names behind a lock of which theory does not know that it is the name's, and adds
    /// one; and one that removes them.
    fn joins_and_leaves() -> Templates {
        let join = vec![
            Operation::lock(Strength::Update, "mutex", [("key", ":hash")], Columns::NONE)
                .in_statement("join.sql:1"),
            Operation::search("member", [("name", ":n")], ["name"]).in_statement("join.sql:2"),
            Operation::insert("member", []).knowing([("name", ":n")]).in_statement("join.sql:3"),
        ];
        let leave = vec![Operation::delete("member", []).any([("name", ":n")]).in_statement("leave.sql:1")];
        let program = |name: &str, operations| Program::new(name, vec![Branch::new("", operations)]);
        let programs = vec![program("join.sql", join), program("leave.sql", leave)];
        Templates { programs, ..Templates::default() }
    }

    #[test]
    fn behind_a_lock_read_committed_may_do_where_repeatable_read_does_not() {
        let templates = joins_and_leaves();
        let question = Question { templates: &templates, stopped: &|| false };
        let (committed, repeatable) = (Level::ReadCommitted, Level::RepeatableRead);
        // At repeatable read the count is older than the lock.
        let execute = |execute: &Execute<'_>| {
            let wrong = execute.levels[0] == repeatable;
            Ok::<_, ()>(if wrong { Executed::Shown(Box::default()) } else { Executed::Unshown(5) })
        };
        let decision = question.decide(execute, |_| Ok(Executed::Unshown(5))).expect("nothing fails");
        assert_eq!(decision.proved.levels, [Level::Serializable, committed]);
        assert_eq!(decision.levels, decision.proved.levels);
        let passed = Passed { levels: vec![committed; 2], interleavings: 5 };
        assert_eq!(decision.passed, Some(passed));
        let harmful: Vec<(usize, Level)> =
            decision.harmful.iter().map(|shown| (shown.program, shown.levels[0])).collect();
        assert_eq!(harmful, [(0, repeatable)]);
        let text = answer(&Advice::of(&templates, &decision, Vec::new()), 200);
        let said =
            "read committed passed 5 interleavings, but isn't proved; repeatable read would be unsafe [1]\n";
        assert!(text.contains(said), "{text}");
        // What is shown at read committed, too, stays as it is.
        let execute = |execute: &Execute<'_>| {
            let wrong = execute.levels[0] < Level::Serializable;
            Ok::<_, ()>(if wrong { Executed::Shown(Box::default()) } else { Executed::Unshown(5) })
        };
        let decision = question.decide(execute, |_| Ok(Executed::Unshown(5))).expect("nothing fails");
        assert_eq!(decision.levels[0], Level::Serializable);
    }

    /// After Ctrl-C theory looks for nothing more.
    #[test]
    fn an_interrupted_search_reads_no_changed_scripts_and_finds_no_schedule() {
        let (table, text) = ("mutex".to_owned(), "SELECT 1 FROM mutex WHERE key = :hash".to_owned());
        let first = FirstLock { script: 0, line: 1, alone: None, table, text, kind: FirstLockKind::Lock };
        let templates = Templates { first_locks: vec![first], ..joins_and_leaves() };
        let executed = |execute: &Execute<'_>| {
            let wrong = execute.levels[0] < Level::Serializable;
            Ok::<_, ()>(if wrong { Executed::Shown(Box::default()) } else { Executed::Unshown(5) })
        };
        for (stopped, expected) in [(false, (1, true)), (true, (0, false))] {
            let question = Question { templates: &templates, stopped: &|| stopped };
            let decision = question.decide(executed, |_| Ok(Executed::Unshown(5))).expect("nothing fails");
            let mut read = 0;
            let text = "SELECT name FROM member WHERE name = :n;\n".to_owned();
            let before = [ScriptText { name: "join.sql".to_owned(), text, commands: Vec::new() }];
            makers::all(&question, &decision, &before, &mut |_| {
                read += 1;
                None
            });
            let lowest = [Level::ReadCommitted; 2];
            let broken = question.broken(&lowest, executed).expect("nothing fails");
            assert_eq!((read, broken.is_some()), expected);
        }
    }

    #[test]
    fn a_level_that_only_passed_is_not_the_answer() {
        let templates = calls();
        let question = Question { templates: &templates, stopped: &|| false };
        let highest_wrong = |highest_wrong: Level| {
            let tried = RefCell::new(Vec::new());
            let all = |levels: &[Level]| {
                tried.borrow_mut().push(levels[0]);
                let wrong = WrongOutcome {
                    damage: true,
                    scripts: vec!["pay.sql".to_owned(); 2],
                    ..WrongOutcome::default()
                };
                let found = Tried { found: vec![wrong], ..Tried::default() };
                let is_wrong = levels[0] <= highest_wrong;
                Ok::<Executed, ()>(if is_wrong {
                    Executed::Shown(Box::new(found))
                } else {
                    Executed::Unshown(7)
                })
            };
            let decision = question.decide(|_| Ok(Executed::Unshown(0)), all).expect("nothing fails");
            (tried.into_inner(), answer(&Advice::of(&templates, &decision, Vec::new()), 200))
        };
        let all = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
        for (wrong, expected, said) in [
            (
                0,
                &all[..],
                "\npay.sql      serializable  proved; shown unsafe at read committed [1]; repeatable read passed 7 \
                 interleavings, but isn't proved; isobench doesn't know what line 4 may do\n",
            ),
            (
                1,
                &all,
                "\npay.sql      serializable  proved; shown unsafe at repeatable read [1]; isobench doesn't know what \
                 line 4 may do\n",
            ),
            (2, &all, "No level is enough: this goes wrong at serializable, too [1]."),
        ] {
            let (tried, text) = highest_wrong(all[wrong]);
            assert_eq!(tried, expected);
            assert!(text.contains(said), "{text}");
        }
    }
}
