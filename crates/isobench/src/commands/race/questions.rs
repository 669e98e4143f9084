//! The questions that commands, and captures, are asked: whether they race, at each level.

use std::collections::BTreeMap;

use isobench_race::{Difference, Finding as Raced, LevelReport, Report, Verdict};
use isobench_report::gate::{Answer, Finding, Place, Question, Rule, Severity};
use isobench_suspects::{Answer as Suspects, Between, Group, Kind, Live};

use super::Tried;

/// A question for each level, and one for what ended the trial.
pub(super) fn of_commands(tried: &[Tried]) -> Vec<Question> {
    let mut questions = Vec::new();
    for Tried { commands, raced } in tried {
        let pair = commands.join(" | ");
        questions.extend(raced.report.levels.iter().map(|level| of_level(&raced.report, level, &pair)));
        if let Some(problem) = &raced.problem {
            let answer = Answer::Failed(problem.to_string());
            questions.push(Question { name: pair, seconds: 0.0, answer });
        }
    }
    questions
}

fn of_level(report: &Report, level: &LevelReport, pair: &str) -> Question {
    let races = level.findings.iter().filter(|one| one.verdict.is_race() && one.repeated);
    let findings: Vec<Finding> = races.map(|one| race(report, one, pair)).collect();
    let open = |why: &str| Answer::Open(Finding::undecided(pair, why));
    let answer = if !findings.is_empty() {
        Answer::Wrong(findings)
    } else if level.is_doubtful() {
        open("a race was seen once, and not again when its schedule was repeated")
    } else if level.is_inconclusive() || (level.planned > 0 && level.tried == 0) {
        open("no schedule says whether the commands race")
    } else {
        Answer::Nothing(format!(
            "no race in {} of {} schedules, which proves nothing",
            level.tried, level.planned
        ))
    };
    let seconds = level.serial_seconds + level.seconds;
    Question { name: format!("{}: {pair}", level.level), seconds, answer }
}

fn race(report: &Report, raced: &Raced, pair: &str) -> Finding {
    let message = format!("{} in schedule {} {}", raced.verdict.name(), raced.schedule, raced.why);
    let command = |name: &String| report.commands.iter().find(|one| one.name == *name);
    let steps = raced.steps.iter().map(|step| format!("{}: {}", step.command, step.sql));
    let answers =
        raced.answers.iter().map(|one| format!("{} answers {} {}", one.command, one.status, one.output));
    let differences = raced.differences.iter().map(|one| difference(one, &raced.nearest));
    let mut commands: Vec<&String> = raced.answers.iter().map(|one| &one.command).collect();
    commands.dedup();
    let places = commands.into_iter().filter_map(command).map(|one| Place::of(&one.command));
    Finding {
        rule: match raced.verdict {
            Verdict::WrongState => Rule::WRONG_STATE,
            Verdict::Partial => Rule::PARTIAL,
            _ => Rule::WRONG_ANSWER,
        },
        severity: Severity::Error,
        message: message.trim().to_owned(),
        witness: steps.chain(answers).chain(differences).map(|line| line.trim_end().to_owned()).collect(),
        places: std::iter::once(Place::of(pair)).chain(places).collect(),
    }
}

fn difference(one: &Difference, nearest: &str) -> String {
    let name = [one.table.as_str(), &one.row, &one.column].into_iter().filter(|part| !part.is_empty());
    let name = name.collect::<Vec<_>>().join(" ");
    format!("{name}: {}; after {nearest}: {}", one.here, one.serial)
}

/// The questions of a capture: what went wrong while it was recorded, its suspects, and the kinds of transactions that
/// aren't decided.
pub(super) fn of_capture(answer: &Suspects) -> Vec<Question> {
    let question = |name: String, answer| Question { name, seconds: 0.0, answer };
    let mut wrong: BTreeMap<(Kind, &str), Vec<Finding>> = BTreeMap::new();
    for one in &answer.live {
        wrong.entry((one.kind, &one.table)).or_default().push(live(one));
    }
    let of_table = |((kind, table), findings): ((Kind, &str), _)| {
        question(format!("while recorded: {} of {table}", name(kind)), Answer::Wrong(findings))
    };
    let mut questions: Vec<Question> = wrong.into_iter().map(of_table).collect();
    for group in &answer.suspects {
        let levels = group.levels.join(" and ");
        questions.push(question(
            format!("{levels}: {}", group.title),
            Answer::Wrong(vec![suspect(answer, group)]),
        ));
    }
    for one in &answer.between {
        questions.push(question(one.title.clone(), Answer::Wrong(vec![between(one)])));
    }
    for row in answer.templates.iter().filter(|row| row.state != "suspect") {
        let why = || row.why.clone().or_else(|| answer.doubt.clone());
        let answer = if row.state == "excluded" {
            Answer::Nothing("no schedule by theory; the recording, not the code, was looked at".to_owned())
        } else {
            Answer::Open(Finding::undecided(&row.name, why().unwrap_or_else(|| "not decided".to_owned())))
        };
        questions.push(question(format!("{}: {} (kind {})", row.level, row.name, row.number), answer));
    }
    questions
}

/// A fault that happened during the recording: an error, or a warning if it is only probable.
fn live(live: &Live) -> Finding {
    let (rule, severity) = match live.kind {
        Kind::Duplicate => ("A row was inserted twice while this was recorded.", Severity::Error),
        Kind::WriteSkew => ("A limit was probably exceeded while this was recorded.", Severity::Warning),
        _ => ("A change was lost while this was recorded.", Severity::Error),
    };
    let mut places: Vec<Place> =
        live.sides.iter().filter_map(|side| side.route.as_ref()).map(Place::of).collect();
    places.push(Place::of(&live.table));
    places.dedup();
    Finding {
        rule: Rule::of_anomaly(&format!("recorded {}", name(live.kind)), rule.to_owned()),
        severity,
        message: format!("{}; line {} of the capture", live.title(), live.sides[1].write_line),
        witness: live.witness(),
        places,
    }
}

/// A suspect: theory alone names it, so that it is a warning.
fn suspect(answer: &Suspects, group: &Group) -> Finding {
    let needs = group.needed.as_deref().unwrap_or("a lock: no level is enough");
    let named = |number: &usize| answer.templates.iter().find(|row| row.number == *number);
    let rows = group.pairs.iter().take(1).flatten().filter_map(named);
    let schedule = &group.schedule;
    let other = schedule.within.iter().map(|sql| format!("  the other one: {sql}"));
    let steps = schedule.before.iter().cloned().chain(other).chain(schedule.after.iter().cloned());
    let mut places: Vec<Place> = group.routes.iter().map(Place::of).collect();
    places.extend(rows.map(|row| Place::of(&row.name)));
    places.dedup();
    Finding {
        rule: rule(group.kind),
        severity: Severity::Warning,
        message: format!("{}; needs {needs}; line {} of the capture", group.reason, group.line),
        witness: steps.collect(),
        places,
    }
}

fn between(one: &Between) -> Finding {
    let place = one.route.clone().unwrap_or_else(|| one.table.clone());
    Finding {
        rule: Rule::BETWEEN_TRANSACTIONS,
        severity: Severity::Warning,
        message: format!("{}; line {} of the capture", one.reason, one.line),
        witness: one.statements.to_vec(),
        places: vec![Place::of(place)],
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::LostUpdate => "lost update",
        Kind::Duplicate => "duplicate",
        Kind::WriteSkew => "write skew",
        Kind::StaleRead => "stale read",
    }
}

fn rule(kind: Kind) -> Rule {
    let what = match kind {
        Kind::LostUpdate => "a change in between can be lost",
        Kind::Duplicate => "a row can be inserted twice",
        Kind::WriteSkew => "what is written can rest on rows that have changed",
        Kind::StaleRead => "two reads can see data of different moments",
    };
    Rule::of_anomaly(name(kind), format!("By theory, {what}."))
}

#[cfg(test)]
mod tests {
    use isobench_race::{CommandReport, Count, RaceError, Raced as Race};

    use super::*;

    fn level(name: &str) -> LevelReport {
        LevelReport { level: name.to_owned(), planned: 1, tried: 1, ..LevelReport::default() }
    }

    fn wrong(repeated: bool) -> Raced {
        Raced {
            verdict: Verdict::WrongState,
            why: String::new(),
            schedule: "A1,B".to_owned(),
            first: 1,
            times: 1,
            repeated,
            steps: Vec::new(),
            answers: Vec::new(),
            nearest: "A;B".to_owned(),
            differences: Vec::new(),
        }
    }

    #[test]
    fn a_level_is_a_question_that_only_a_repeated_race_answers() {
        let serial = vec![Count { verdict: Verdict::Serial, schedules: 1 }];
        let stuck = vec![Count { verdict: Verdict::NotInterleaved, schedules: 1 }];
        let report = Report {
            commands: vec![CommandReport { name: "A".to_owned(), command: "a".to_owned(), statements: 1 }],
            levels: vec![
                LevelReport { findings: vec![wrong(true)], ..level("read committed") },
                LevelReport {
                    findings: vec![wrong(false)],
                    verdicts: serial.clone(),
                    ..level("repeatable read")
                },
                LevelReport { verdicts: stuck, ..level("serializable") },
                LevelReport { verdicts: serial, ..level("serializable") },
                LevelReport { tried: 0, ..level("serializable") },
            ],
            ..Report::default()
        };
        let commands = vec!["a".to_owned(), "b".to_owned()];
        let tried = Tried { commands, raced: Race { report, problem: Some(RaceError::Interrupted) } };
        let questions = of_commands(&[tried]);
        let answers: Vec<&Answer> = questions.iter().map(|question| &question.answer).collect();
        let Answer::Wrong(found) = answers[0] else { panic!("{answers:?}") };
        assert_eq!(found[0].message, "wrong state in schedule A1,B");
        assert_eq!(questions[0].name, "read committed: a | b");
        assert!(matches!(answers[1], Answer::Open(one) if one.message.contains("seen once")));
        assert!(matches!(answers[2], Answer::Open(_)));
        assert!(matches!(answers[3], Answer::Nothing(text) if text.ends_with("which proves nothing")));
        assert!(matches!(answers[4], Answer::Open(_)));
        assert!(matches!(answers[5], Answer::Failed(why) if why == "interrupted"));
    }
}
