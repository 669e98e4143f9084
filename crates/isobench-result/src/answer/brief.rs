//! The answer in the few lines that fit on a screen: what to use, what it costs, what goes wrong
//! otherwise, and a phrase for each row.
//!
//! Decides nothing: `rules` did. Not here: the grounds in full (`reasons`), the layout (`text/brief`).

use isobench_isolation::Level;

use super::evidence::{Candidate, Evidence, SafetyEvidence, factors, measured};
use super::rules::{damages, decide};
use super::{reasons, words};
use crate::document::{Cell, Document, Durability, FaultRound};
use crate::durability;
use crate::numbers::{count, counted, of_unit, whole_percent};
use crate::rounds::kept_share;
use crate::seen::{proved, way_out};
use crate::view::{Line, Tables, errored, is_incomplete};
use crate::words::{capital, distinct, enumerated};

/// The answer in few lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brief {
    /// What to do, what it costs, what goes wrong otherwise; a sentence each.
    pub answer: Vec<String>,
    /// How sure that is, a sentence each.
    pub grounds: Vec<String>,
    /// Doubts that withhold a verdict and that the answer doesn't name, a sentence each.
    pub doubts: Vec<String>,
}

/// What a row shows of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// True if it is right, false if it is wrong; `None` if neither is shown.
    pub right: Option<bool>,
    /// The phrase.
    pub phrase: Line,
}

/// The most combinations, and the most sentences of damage, that are named.
const MOST: usize = 4;

/// The answer of a summarised document in few lines.
pub fn brief(document: &Document) -> Brief {
    let groups = measured(document);
    let full = super::answer(document);
    let grounds = || {
        let unproved = groups.iter().any(|group| group.candidates.iter().any(|it| it.verdict().is_none()));
        let way_out = unproved.then(|| capital(&way_out(document)) + ".");
        let standby = reasons::standby(document).map(|line| line.text);
        grounds(document, &groups).into_iter().chain(way_out).chain(standby).collect::<Vec<_>>()
    };
    match groups.as_slice() {
        _ if !document.complete || durability::is_settled(document) => {
            Brief { answer: full.headline, grounds: full.basis.into_iter().collect(), doubts: Vec::new() }
        }
        [] => Brief { answer: full.headline, ..Brief::default() },
        [group] => {
            let answer = of_group(group);
            let doubts = withheld(group, &answer.join(" "));
            Brief { answer, grounds: grounds(), doubts }
        }
        several => {
            let answer = of_several(document, several);
            let said = answer.join(" ");
            let doubts = distinct(several.iter().flat_map(|group| withheld(group, &said)));
            Brief { answer, grounds: grounds(), doubts: doubts.into_iter().take(MOST).collect() }
        }
    }
}

/// Why rows have no verdict, but for the reasons that the answer names.
fn withheld(evidence: &Evidence<'_>, answer: &str) -> Vec<String> {
    let reason = |candidate: &Candidate<'_>| match candidate.safety {
        SafetyEvidence::Withheld(reason) if !answer.contains(reason.trim_end_matches('.')) => {
            let reason = reason.trim_end_matches('.');
            Some(format!("The verdict on {} is withheld: {reason}.", candidate.name))
        }
        _ => None,
    };
    evidence.candidates.iter().filter_map(reason).collect()
}

fn of_group(evidence: &Evidence<'_>) -> Vec<String> {
    let (_, decision) = decide(evidence);
    let damages = damages(evidence);
    let first = usize::from(!decision.lead.is_empty());
    let others = decision.sentences[first..].iter().filter(|sentence| !damages.contains(sentence));
    decision.lead.iter().chain(others).cloned().chain(together(&damages)).collect()
}

/// Sentences that say the same of several levels as one: "Read committed and repeatable read are …".
fn together(damages: &[String]) -> Vec<String> {
    const IS: &str = " is unsafe, as trying ";
    let mut merged: Vec<(Vec<String>, &str)> = Vec::new();
    let mut sentences = Vec::new();
    for sentence in damages {
        let Some((name, how)) = sentence.split_once(IS) else {
            sentences.push(sentence.clone());
            continue;
        };
        match merged.iter_mut().find(|(_, known)| *known == how) {
            Some((names, _)) => names.push(name.to_lowercase()),
            None => merged.push((vec![name.to_owned()], how)),
        }
    }
    sentences.extend(merged.into_iter().map(|(names, how)| {
        let are = if names.len() == 1 { IS } else { " are unsafe, as trying " };
        format!("{}{are}{how}", enumerated(&names))
    }));
    sentences
}

/// What to use in each combination; those of which the same holds together.
fn of_several(document: &Document, groups: &[Evidence<'_>]) -> Vec<String> {
    let mut answers: Vec<(String, Vec<String>)> = Vec::new();
    for group in groups {
        let (_, decision) = decide(group);
        let said = decision.lead.first().or(decision.sentences.first()).cloned().unwrap_or_default();
        let place = factors(document, group.candidates[0].cell);
        match answers.iter_mut().find(|(known, _)| *known == said) {
            Some((_, places)) => places.push(place),
            None => answers.push((said, vec![place])),
        }
    }
    if let [(said, places)] = answers.as_slice() {
        return vec![format!("{} This holds in all {} combinations.", said, places.len())];
    }
    let shown = answers.iter().take(MOST).map(|(said, places)| {
        let more = places.len().saturating_sub(MOST);
        let mut named: Vec<String> = places.iter().take(MOST).cloned().collect();
        if more > 0 {
            named.push(format!("in {}", counted(more as u64, "more combination")));
        }
        format!("{}: {said}", capital(&named.join("; ")))
    });
    let more = answers.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("{} are in the table.", counted(more as u64, "more answer")));
    shown.chain(more).collect()
}

/// "Use REPEATABLE READ or SERIALIZABLE, and retry on SQLSTATE 40001."
pub fn to_use(best: &[&Candidate<'_>]) -> String {
    let names: Vec<String> = best.iter().map(|candidate| named(candidate)).collect();
    format!("Use {}{}.", names.join(" or "), retrying(best))
}

/// "READ COMMITTED is enough here.", if that is proved.
pub fn enough_here(best: &Candidate<'_>, evidence: &Evidence<'_>) -> String {
    let retrying = retrying(&[best]);
    let retry = retrying.strip_prefix(", and retry").map_or_else(String::new, |on| format!(" Retry{on}."));
    if evidence.proves(best) {
        return format!("{} is enough here.{retry}", named(best));
    }
    format!("{} was right in all tests here; isobench advise proves levels.{retry}", named(best))
}

/// The name of a candidate, a level as SQL writes it.
fn named(candidate: &Candidate<'_>) -> String {
    let level = candidate.cell.level.said();
    match candidate.name.strip_prefix(&level) {
        Some(rest) if level.parse::<Level>().is_ok() => format!("{}{rest}", level.to_uppercase()),
        _ => candidate.name.clone(),
    }
}

/// That transactions have to be retried, if a level refuses some of them.
fn retrying(best: &[&Candidate<'_>]) -> &'static str {
    let refuses = |candidate: &&Candidate<'_>| {
        let level = candidate.cell.level.requested;
        level.is_none_or(|level| level > Level::ReadCommitted)
    };
    if best.iter().any(refuses) { ", and retry on SQLSTATE 40001" } else { "" }
}

/// What the answer rests on.
fn grounds(document: &Document, groups: &[Evidence<'_>]) -> Vec<String> {
    let proof = proved(document).map_or("That is no proof.".to_owned(), |proved| capital(&proved) + ".");
    let [group] = groups else { return super::answer(document).basis.into_iter().collect() };
    let (_, decision) = decide(group);
    let best = group.candidates.iter().filter(|candidate| {
        decision.recommended.iter().any(|recommended| std::ptr::eq(*recommended, candidate.cell))
    });
    let found: Vec<(String, &str)> =
        best.map(|candidate| (words::nothing_found(candidate, group), candidate.name.as_str())).collect();
    if found.is_empty() {
        return super::answer(document).basis.into_iter().collect();
    }
    vec![format!("{}. {proof}", capital(&of_levels(&found)))]
}

/// What was found of candidates, with their names if it differs; what all begin with alike stands once.
fn of_levels(found: &[(String, &str)]) -> String {
    let first = found.first().map_or("", |(said, _)| said.as_str());
    if found.iter().all(|(said, _)| said == first) {
        return first.to_owned();
    }
    let begin = first.find(" in ").map_or("", |end| &first[..=end]);
    let each = found.iter().enumerate().map(|(number, (said, name))| {
        let said = if number == 0 { said.as_str() } else { said.strip_prefix(begin).unwrap_or(said) };
        format!("{said} at {name}")
    });
    each.collect::<Vec<_>>().join(", and ")
}

/// What the rows of a cell show of its data, in a phrase.
pub fn finding(document: &Document, cell: &Cell) -> Finding {
    let group = measured(document).into_iter().find_map(|group| {
        let place = group.candidates.iter().position(|candidate| std::ptr::eq(candidate.cell, cell))?;
        Some((group, place))
    });
    let mut finding = match &group {
        Some((group, place)) => of_candidate(group, &group.candidates[*place]),
        None => of_none(cell),
    };
    if let Some(settled) = of_durability(cell) {
        return settled;
    }
    let errored = errored(cell);
    if errored > 0 {
        finding.right = finding.right.filter(|right| !right);
        finding.phrase = Line::grave(format!("{}, ERRORED {}", finding.phrase.text, count(errored)));
    }
    if is_incomplete(document, cell) {
        finding.right = finding.right.filter(|right| !right);
        let planned = document.plan.rounds().max(u32::try_from(cell.rounds.len()).unwrap_or(u32::MAX));
        let rounds = cell.summary.rounds;
        finding.phrase = Line::grave(format!("{}, INCOMPLETE {rounds}/{planned}", finding.phrase.text));
    }
    finding
}

/// What became of the commits of a cell to whose server something happened.
fn of_durability(cell: &Cell) -> Option<Finding> {
    let sum = |of: fn(&FaultRound) -> u64| cell.settled(of).unwrap_or(0);
    let acknowledged = counted(sum(|it| it.settlement.acknowledged), "commit");
    let lost = format!("{} of {acknowledged} lost", count(sum(|it| it.settlement.lost)));
    let (right, phrase) = match cell.durability()? {
        Durability::Kept => (Some(true), Line::plain("no commit lost")),
        Durability::Lost => (Some(false), Line::plain(format!("{lost}, not promised"))),
        Durability::Broken => (Some(false), Line::grave("DURABILITY BROKEN")),
        Durability::Withheld => (None, Line::caution("unknown")),
    };
    Some(Finding { right, phrase })
}

/// Of a cell that isn't among those that levels are chosen from.
fn of_none(cell: &Cell) -> Finding {
    let phrase = if cell.calibration { "again (A/A)" } else { "not measured" };
    Finding { right: None, phrase: Line::plain(phrase) }
}

fn of_candidate(evidence: &Evidence<'_>, candidate: &Candidate<'_>) -> Finding {
    let cell = candidate.cell;
    let wrong = |text: String| Finding { right: Some(false), phrase: Line::grave(text) };
    let doubtful = |text: String| Finding { right: None, phrase: Line::caution(text) };
    let eligible = evidence.eligible().iter().any(|other| std::ptr::eq(other.cell, cell));
    let fine = |text: String| match (eligible, evidence.worse(candidate)) {
        _ if cell.clients == 1 => Finding { right: None, phrase: Line::plain("one client: no test") },
        (true, _) => Finding { right: Some(true), phrase: Line::plain(text) },
        (false, Some(_)) => doubtful("a stronger level went wrong".to_owned()),
        (false, None) => Finding { right: None, phrase: Line::plain(text) },
    };
    let condition = cell.rounds.iter().flat_map(|round| &round.invariants).count() > 0;
    let held = candidate.held() && condition;
    match candidate.safety {
        SafetyEvidence::Mislabelled => doubtful(format!("→ {}", cell.level.effective)),
        SafetyEvidence::Contradicted(_) => wrong("level contradicted".to_owned()),
        SafetyEvidence::Broken => wrong(match Tables::of(cell) {
            Some(Tables::Violated(number, unit)) => {
                format!("VIOLATED{}", violations(number, unit.as_deref()))
            }
            _ => "PROMISE BROKEN".to_owned(),
        }),
        SafetyEvidence::Withheld(_) => doubtful("verdict withheld".to_owned()),
        SafetyEvidence::LostWork => {
            let lost = 1.0 - kept_share(cell).unwrap_or(1.0);
            wrong(format!("LOST WORK {} %", whole_percent(lost)))
        }
        SafetyEvidence::Unsafe => wrong(damage(candidate)),
        SafetyEvidence::Unchecked if held => fine("conditions held".to_owned()),
        SafetyEvidence::Unchecked => doubtful(match Tables::of(cell) {
            Some(Tables::Unchecked) => "conditions unchecked".to_owned(),
            _ => "not checked".to_owned(),
        }),
        SafetyEvidence::Tried(_) => fine("tested: nothing found".to_owned()),
        SafetyEvidence::Unseen(_) => doubtful(unseen(candidate, held)),
        SafetyEvidence::Safe(_) if candidate.verdict().is_some_and(|verdict| !verdict.carried.is_empty()) => {
            doubtful("unprotected".to_owned())
        }
        SafetyEvidence::Safe(_) if candidate.verdict().is_some_and(|verdict| verdict.nothing_shared) => {
            Finding { right: None, phrase: Line::plain("no two met") }
        }
        SafetyEvidence::Safe(_) if held => fine("right".to_owned()),
        SafetyEvidence::Safe(_) => fine("no anomaly found".to_owned()),
    }
}

/// ": 17 accounts below zero"; nothing if they weren't counted.
fn violations(number: u64, unit: Option<&str>) -> String {
    match (number, unit) {
        (0, _) => String::new(),
        (number, Some(unit)) => format!(": {}", of_unit(number, unit)),
        (number, None) => format!(": {}", counted(number, "violation")),
    }
}

/// What went wrong: the tables first, then the anomalies, then what trying showed.
fn damage(candidate: &Candidate<'_>) -> String {
    if let Some(Tables::Permitted(number, unit)) = Tables::of(candidate.cell) {
        return format!("wrong{}", violations(number, unit.as_deref()));
    }
    let kinds = candidate.kinds();
    let verdict = candidate.verdict().filter(|verdict| verdict.anomalies > 0);
    match (kinds.first(), verdict) {
        (Some(kind), Some(verdict)) => {
            let share = verdict.anomalies as f64 / verdict.committed.max(1) as f64;
            format!("{} ({} %)", kind.known_as, whole_percent(share.min(1.0)))
        }
        (None, Some(_)) => "anomalies".to_owned(),
        _ if !candidate.cell.wrong_outcomes().is_empty() => "shown wrong".to_owned(),
        _ => "wrong".to_owned(),
    }
}

/// What wasn't seen, by the place of the first statement.
fn unseen(candidate: &Candidate<'_>, held: bool) -> String {
    let first = candidate.unseen().first().and_then(|clause| clause.split(' ').next()).unwrap_or_default();
    let held = if held { "conditions held, " } else { "" };
    format!("{held}not seen wholly: {first}")
}

#[cfg(test)]
mod tests {
    use super::of_levels;

    #[test]
    fn what_was_found_of_two_levels_names_them() {
        let found = |numbers: [&str; 2]| {
            let said = numbers.map(|number| format!("no anomaly found in {number} transactions"));
            let [one, other] = said;
            of_levels(&[(one, "repeatable read"), (other, "serializable")])
        };
        assert_eq!(found(["7", "7"]), "no anomaly found in 7 transactions");
        assert_eq!(
            found(["7", "9"]),
            "no anomaly found in 7 transactions at repeatable read, and in 9 transactions at serializable"
        );
    }
}
