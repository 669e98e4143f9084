//! The questions of `--check`: whether the level of each script is enough.

use isobench_advice::{Executed, Reason, Shown, allocation, carried_values, reason};
use isobench_isolation::Level;
use isobench_program::Templates;
use isobench_report::gate::{Answer, Finding, Place, Question, Rule, Severity, wrong_outcome};
use isobench_result::Tried;

/// The answers for all scripts: those of `wrong` by their names, and for the others this one.
pub(super) struct Checked {
    wrong: Vec<(String, Finding)>,
    others: Others,
}

/// The answer for scripts of which nothing is wrong.
enum Others {
    Proved,
    Undecided,
}

impl Checked {
    /// All levels are enough.
    pub(super) fn proved() -> Checked {
        Checked { wrong: Vec::new(), others: Others::Proved }
    }

    /// A schedule speaks against a level.
    pub(super) fn broken(found: &Templates, shown: &Shown) -> Checked {
        let script = found.programs[shown.program].name.clone();
        let names = found.programs.iter().map(|program| program.name.as_str());
        let levels = allocation(&names.zip(shown.levels.iter().copied()).collect::<Vec<_>>()).to_string();
        let Reason { theory, cycle, untried, .. } = reason(&found.programs, shown);
        let finding = match &shown.executed {
            Executed::Shown(tried) => with_theory(&theory, gravest(tried, &levels)),
            Executed::Unshown(_) | Executed::Untried(_) => None,
        };
        let of_theory = || {
            let places = cycle.iter().flat_map(|one| &one.at).filter(|at| !at.is_empty());
            let mut places: Vec<Place> = places.map(|at| Place::read(at)).collect();
            // Where the script is split comes first.
            places.sort_by_key(|place| place.name != script);
            places.dedup();
            if places.first().is_none_or(|place| place.name != script) {
                places.insert(0, Place::of(&script));
            }
            let untried = untried.map_or_else(String::new, |why| format!("; it couldn't be executed: {why}"));
            Finding {
                rule: Rule::NOT_ENOUGH,
                severity: Severity::Warning,
                message: format!("by theory {levels} isn't enough; trying didn't show it{untried}"),
                witness: theory.clone(),
                places,
            }
        };
        let finding = finding.unwrap_or_else(of_theory);
        Checked { wrong: vec![(script, finding)], others: Others::Undecided }
    }

    /// All scripts together went wrong, each at its level.
    pub(super) fn shown(tried: &Tried, levels: &str) -> Checked {
        let wrong = tried.found.iter().flat_map(|wrong| {
            let finding = wrong_outcome(wrong, levels, &tried.masked);
            wrong.scripts.iter().map(move |script| (script.clone(), finding.clone()))
        });
        Checked { wrong: wrong.collect(), others: Others::Undecided }
    }

    /// Scripts write in one transaction what they read in an earlier one.
    pub(super) fn carried(found: &Templates) -> Checked {
        let all = found.carried.iter().zip(carried_values(found)).map(|(carried, sentence)| {
            let place =
                |name: &str, line| Place { name: name.to_owned(), line: Some(line), text: String::new() };
            let (read, written) = (&carried.read, &carried.written);
            let places = vec![place(&written.file, written.line), place(&read.file, read.line)];
            let finding = Finding {
                rule: Rule::BETWEEN_TRANSACTIONS,
                severity: Severity::Warning,
                message: sentence,
                witness: Vec::new(),
                places,
            };
            (written.file.clone(), finding)
        });
        Checked { wrong: all.collect(), others: Others::Undecided }
    }

    /// A question for each script.
    pub(super) fn questions(&self, names: &[String], levels: &[Level]) -> Vec<Question> {
        let answer = |name: &String| {
            let own = self.wrong.iter().filter(|(script, _)| script == name);
            let own: Vec<Finding> = own.map(|(_, finding)| finding.clone()).collect();
            match (own.is_empty(), &self.others) {
                (false, _) => Answer::Wrong(own),
                (true, Others::Proved) => Answer::Nothing("proved for these scripts".to_owned()),
                (true, Others::Undecided) => Answer::Open(Finding::undecided(
                    name,
                    "not decided, because the level of another script isn't enough",
                )),
            }
        };
        let of_script = |(name, level): (&String, &Level)| Question {
            name: format!("{name} at {level}"),
            seconds: 0.0,
            answer: answer(name),
        };
        names.iter().zip(levels).map(of_script).collect()
    }
}

/// The first wrong outcome of scripts that were tried.
fn gravest(tried: &Tried, levels: &str) -> Option<Finding> {
    tried.found.first().map(|wrong| wrong_outcome(wrong, levels, &tried.masked))
}

/// The finding with the schedule that theory names below what was shown.
fn with_theory(theory: &[String], finding: Option<Finding>) -> Option<Finding> {
    let mut finding = finding?;
    if !theory.is_empty() {
        finding.witness.push("By theory:".to_owned());
        finding.witness.extend(theory.iter().cloned());
    }
    Some(finding)
}
