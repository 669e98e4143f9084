//! The questions of scripts that were tried against each other: whether an outcome is wrong, at each level.

use isobench_result::view::tried::{AtLevel, masked, notes, summary};
use isobench_result::{TriedStep, WrongOutcome};

use super::{Answer, Finding, Place, Question, Rule, Severity};
use crate::{phrase, witness};

/// The width of a witness.
const WIDTH: usize = 100;

/// A question for each level at which these scripts were tried.
pub fn of_tried(levels: &[AtLevel<'_>], scripts: &[String]) -> Vec<Question> {
    let masked = masked(levels);
    let mut questions: Vec<Question> = levels.iter().map(|level| of_level(level, scripts, &masked)).collect();
    // The time is that of all levels.
    let share = 1.0 / questions.len().max(1) as f64;
    for question in &mut questions {
        question.seconds *= share;
    }
    questions
}

fn of_level((level, tried): &AtLevel<'_>, scripts: &[String], masked: &[String]) -> Question {
    let all: Vec<Finding> = tried.found.iter().map(|wrong| wrong_outcome(wrong, level, masked)).collect();
    let answer = if !all.is_empty() {
        Answer::Wrong(all)
    } else if tried.all_combinations() {
        Answer::Nothing(format!("{}, which proves nothing", summary(tried)))
    } else {
        let untried = notes(&[(level.clone(), tried)]);
        let refused = tried.not_tried.iter().map(|refused| &refused.script);
        let place = refused.chain(scripts).find(|script| !script.is_empty());
        let why = [vec![format!("{}.", summary(tried))], untried].concat().join(" ");
        Answer::Open(Finding::undecided(place.map_or("scripts", String::as_str), why))
    };
    Question { name: format!("{level}: {}", scripts.join(", ")), seconds: tried.seconds, answer }
}

/// A wrong outcome at a level.
pub fn wrong_outcome(wrong: &WrongOutcome, level: &str, masked: &[String]) -> Finding {
    let rule = match wrong {
        WrongOutcome { no_level_prevents: true, .. } => Rule::BETWEEN_TRANSACTIONS,
        WrongOutcome { damage: true, .. } => Rule::WRONG_STATE,
        _ => Rule::WRONG_ANSWER,
    };
    let never = if wrong.no_level_prevents { ", between transactions, which no level prevents" } else { "" };
    Finding {
        rule,
        severity: Severity::Error,
        message: format!("{}: {}{never}", wrong.scripts(), phrase(wrong, masked)),
        witness: witness(wrong, &[level.to_owned()], masked, WIDTH),
        places: places(wrong),
    }
}

/// The statement after which transaction 1 is split, and those of the others that write.
fn places(wrong: &WrongOutcome) -> Vec<Place> {
    let script = |step: &TriedStep| wrong.scripts.get(step.transaction.wrapping_sub(1)).cloned();
    let place = |step: &TriedStep| {
        Some(Place {
            name: script(step)?,
            line: Some(step.line?),
            text: format!("T{}: {}", step.transaction, step.sql),
        })
    };
    let of_first = |step: &&TriedStep| step.transaction == 1 && step.line.is_some();
    let before = wrong.steps.iter().take_while(|step| step.transaction == 1);
    let split = before.filter(of_first).last().or(wrong.steps.iter().find(of_first));
    let others = wrong.steps.iter().filter(|step| step.transaction > 1 && writes(&step.sql));
    let mut places: Vec<Place> = split.and_then(place).into_iter().chain(others.filter_map(place)).collect();
    places.dedup();
    if split.is_none() {
        places.splice(0..0, wrong.scripts.first().map(Place::of));
    }
    places
}

/// True unless a statement only reads or ends a transaction.
fn writes(sql: &str) -> bool {
    let first = sql.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    !["select", "begin", "start", "commit", "end", "rollback", "savepoint", "release", "set"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use isobench_result::{NotTried, Tried};

    use super::*;

    fn step(transaction: usize, line: Option<u32>, sql: &str) -> TriedStep {
        TriedStep { transaction, sql: sql.to_owned(), line, answer: Vec::new() }
    }

    #[test]
    fn a_finding_is_where_the_first_transaction_is_split() {
        let wrong = WrongOutcome {
            damage: true,
            scripts: vec!["a.sql".to_owned(), "b.sql".to_owned()],
            steps: vec![
                step(1, Some(2), "BEGIN"),
                step(1, Some(3), "SELECT v FROM t"),
                step(2, Some(1), "UPDATE t SET v = 2"),
                step(2, None, "COMMIT"),
                step(1, Some(4), "UPDATE t SET v = 1"),
            ],
            ..WrongOutcome::default()
        };
        let tried = Tried { found: vec![wrong], interleavings: 1, ..Tried::default() };
        let questions = of_tried(&[("read committed".to_owned(), &tried)], &tried.found[0].scripts);
        assert_eq!(questions[0].name, "read committed: a.sql, b.sql");
        let Answer::Wrong(findings) = &questions[0].answer else { panic!("{questions:?}") };
        let at: Vec<(&str, Option<u32>)> =
            findings[0].places.iter().map(|place| (place.name.as_str(), place.line)).collect();
        assert_eq!(at, [("a.sql", Some(3)), ("b.sql", Some(1))]);
        assert_eq!(findings[0].severity, Severity::Error);
    }

    #[test]
    fn what_was_not_tried_has_no_answer() {
        let answer = |tried: &Tried| of_tried(&[("serializable".to_owned(), tried)], &[]).remove(0).answer;
        let some = Tried { interleavings: 7, complete: true, ..Tried::default() };
        assert!(matches!(answer(&some), Answer::Nothing(text) if text.contains("proves nothing")));
        let refused = NotTried { script: "b.sql".to_owned(), reason: "line 1: TRUNCATE".to_owned() };
        for open in [
            Tried::default(),
            Tried { undetermined: 1, ..some.clone() },
            Tried { untried: vec!["a × b".to_owned()], complete: false, ..some.clone() },
            Tried { not_tried: vec![refused], ..some },
        ] {
            assert!(matches!(answer(&open), Answer::Open(_)), "{open:?}");
        }
    }
}
