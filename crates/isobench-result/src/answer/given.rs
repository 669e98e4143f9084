//! The answer as it is saved with a result.
//!
//! Not here: its fields (`document/answer`), its sentences (`rules`, `words`).

use super::evidence::{Candidate, Evidence, SafetyEvidence, factors, measured};
use super::{answer, words};
use crate::answer::rules::{Decision, decide};
use crate::document::{
    AnomalyFound, Cell, CombinationAnswer, Document, GivenAnswer, LevelAnswer, LevelSafety,
};
use crate::durability;
use crate::factor::strategies_vary;
use crate::words::{capital, distinct};

/// The answer of a summarised document.
pub fn given(document: &Document) -> GivenAnswer {
    let said = answer(document);
    let groups = measured(document);
    let several = groups.len() > 1;
    let chosen = document.complete && !durability::is_settled(document);
    let combinations: Vec<CombinationAnswer> = groups
        .iter()
        .map(|group| {
            let (rule, decision) = decide(group);
            combination(document, group, rule, &if chosen { decision } else { nothing(decision) })
        })
        .collect();
    let everywhere = |level: &String| combinations.iter().all(|one| one.recommended.contains(level));
    let first = combinations.first().map(|one| one.recommended.clone()).unwrap_or_default();
    let levels = groups.iter().flat_map(|group| {
        let of = |candidate| level(document, group, candidate, several);
        group.candidates.iter().map(of).collect::<Vec<_>>()
    });
    GivenAnswer {
        recommended: first.into_iter().filter(everywhere).collect(),
        rule: said.rule.to_owned(),
        headline: said.text(),
        levels: levels.collect(),
        combinations: if several { combinations } else { Vec::new() },
    }
}

/// A decision of which nothing is recommended, because not everything was measured.
fn nothing(decision: Decision<'_>) -> Decision<'_> {
    Decision { recommended: Vec::new(), ..decision }
}

fn combination(
    document: &Document,
    group: &Evidence<'_>,
    rule: &str,
    decision: &Decision<'_>,
) -> CombinationAnswer {
    let strategy = |cell: &&Cell| cell.strategy().to_owned();
    CombinationAnswer {
        combination: factors(document, group.candidates[0].cell),
        recommended: distinct(decision.recommended.iter().map(|cell| cell.level.name())),
        strategies: if strategies_vary(document) {
            decision.recommended.iter().map(strategy).collect()
        } else {
            Vec::new()
        },
        rule: rule.to_owned(),
        headline: decision.sentences.join(" "),
    }
}

fn level(document: &Document, group: &Evidence<'_>, candidate: &Candidate<'_>, several: bool) -> LevelAnswer {
    let (safety, reason) = judged(group, candidate);
    let kinds = candidate.kinds();
    let example = kinds.first().and_then(|kind| candidate.example(kind));
    let example = example.or_else(|| candidate.lost_between());
    LevelAnswer {
        level: candidate.cell.level.name(),
        strategy: strategies_vary(document).then(|| candidate.cell.strategy().to_owned()),
        combination: several.then(|| factors(document, candidate.cell)),
        safety,
        reason,
        place: example.and_then(AnomalyFound::place),
        witness: example.map(|example| example.witness.clone()).unwrap_or_default(),
    }
}

/// Whether a candidate was safe, and why, in a sentence.
fn judged(evidence: &Evidence<'_>, candidate: &Candidate<'_>) -> (LevelSafety, String) {
    let carried = candidate.verdict().map_or(&[][..], |verdict| &verdict.carried);
    let found = || capital(&words::nothing_found(candidate, evidence));
    let clean = matches!(
        candidate.safety,
        SafetyEvidence::Safe(_) | SafetyEvidence::Unseen(_) | SafetyEvidence::Tried(_)
    );
    if clean && !carried.is_empty() {
        let lost = words::lost_between(candidate).map_or_else(String::new, |lost| format!(" {lost}"));
        return (LevelSafety::Unsafe, format!("{}, which no level protects.{lost}", carried.join("; ")));
    }
    if let Some(worse) = evidence.worse(candidate).filter(|_| clean) {
        let reason = format!("No anomaly was found, but {}, which is stronger, had some.", worse.name);
        return (LevelSafety::Unjudged, reason);
    }
    match &candidate.safety {
        SafetyEvidence::Mislabelled => (LevelSafety::Unjudged, "The server ran another level.".to_owned()),
        SafetyEvidence::Contradicted(text) => (LevelSafety::Unjudged, capital(text)),
        SafetyEvidence::Broken => (LevelSafety::Unsafe, "What the level promises didn't hold.".to_owned()),
        SafetyEvidence::Withheld(reason) => {
            (LevelSafety::Unjudged, format!("The verdict is withheld: {reason}."))
        }
        SafetyEvidence::LostWork => {
            (LevelSafety::Unsafe, "The server acknowledged work that it hadn't done.".to_owned())
        }
        SafetyEvidence::Unsafe => (LevelSafety::Unsafe, words::damage(candidate)),
        SafetyEvidence::Unchecked if candidate.held() && evidence.by_conditions() => {
            (LevelSafety::Safe, "Every condition on the tables held; no history was recorded.".to_owned())
        }
        SafetyEvidence::Unchecked => (LevelSafety::Unjudged, "No history was recorded.".to_owned()),
        SafetyEvidence::Tried(_) if candidate.held() && evidence.has_violations() => {
            (LevelSafety::Safe, "Every condition on the tables held; no history was recorded.".to_owned())
        }
        SafetyEvidence::Tried(_) => (
            LevelSafety::Unjudged,
            format!("No history was recorded; {}.", words::nothing_found(candidate, evidence)),
        ),
        SafetyEvidence::Unseen(_) => {
            (LevelSafety::Unjudged, format!("{}, but {}.", found(), words::unseen(candidate)))
        }
        SafetyEvidence::Safe(_) => (LevelSafety::Safe, format!("{}.", found())),
    }
}
