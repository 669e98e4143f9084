//! The rules that lead from evidence to a recommendation, in their order: the first that applies
//! decides. Safety comes first, then cost.
//!
//! Not here: the evidence (`evidence`), and the reasons beside the recommendation (`reasons`).

use isobench_isolation::{EffectiveLevel, Level, Model};

use super::evidence::{Candidate, Evidence, Safety};
use super::words::{cost, damage, nothing_found, would_cost};
use crate::document::{Cell, Document, Round};
use crate::numbers::counted;
use crate::summarise::finer;
use crate::words::{capital, enumerated};

/// What a rule says.
#[derive(Debug)]
pub struct Decision<'a> {
    /// The cell that is recommended, if any.
    pub recommended: Option<&'a Cell>,
    /// The sentences of the headline.
    pub sentences: Vec<String>,
}

/// A rule.
pub struct Rule {
    /// Its name, as in the manual (`docs/guide/reading-a-report.md`).
    pub name: &'static str,
    /// Decides, if it applies.
    decide: for<'a> fn(&Evidence<'a>) -> Option<Decision<'a>>,
}

/// The rules in the order in which they are tried. The last one always applies.
pub const RULES: [Rule; 13] = [
    Rule { name: "nothing measured", decide: nothing_measured },
    Rule { name: "mislabelled", decide: mislabelled },
    Rule { name: "contradicted", decide: contradicted },
    Rule { name: "broken promise", decide: broken },
    Rule { name: "withheld", decide: withheld },
    Rule { name: "nothing committed", decide: nothing_committed },
    Rule { name: "alone", decide: alone },
    Rule { name: "one client", decide: one_client },
    Rule { name: "unchecked", decide: unchecked },
    Rule { name: "none safe", decide: none_safe },
    Rule { name: "safe everywhere, costs alike", decide: alike },
    Rule { name: "safe everywhere", decide: safe_everywhere },
    Rule { name: "safe", decide: safe },
];

/// Applies the rules.
pub fn decide<'a>(evidence: &Evidence<'a>) -> (&'static str, Decision<'a>) {
    let decided = |rule: &Rule| Some((rule.name, (rule.decide)(evidence)?));
    let nothing = || ("nothing measured", no("nothing was measured"));
    RULES.iter().find_map(decided).unwrap_or_else(nothing)
}

/// No recommendation, for a reason.
fn no<'a>(reason: &str) -> Decision<'a> {
    let sentence = format!("No level is recommended: {reason}.");
    Decision { recommended: None, sentences: vec![sentence] }
}

fn names<'b, 'a: 'b>(candidates: impl Iterator<Item = &'b Candidate<'a>>) -> String {
    enumerated(&candidates.map(|candidate| candidate.name.clone()).collect::<Vec<_>>())
}

fn nothing_measured<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let measured = |candidate: &Candidate<'_>| candidate.cell.summary.tps.mean.is_some();
    (!evidence.candidates.iter().any(measured)).then(|| no("nothing was measured"))
}

/// What is compared isn't what the rows are named after.
fn mislabelled<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let first = evidence.with(|safety| *safety == Safety::Mislabelled).next()?;
    let all = names(evidence.with(|safety| *safety == Safety::Mislabelled));
    let ran = &first.cell.level.effective;
    Some(no(&match ran {
        EffectiveLevel::Unknown => {
            format!("the server doesn't say which level it ran for {all}")
        }
        ran => {
            format!("the server ran {ran} where {all} was asked for, so the rows aren't the levels they name")
        }
    }))
}

fn contradicted<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let (name, text) = evidence.candidates.iter().find_map(|candidate| match &candidate.safety {
        Safety::Contradicted(text) => Some((&candidate.name, text)),
        _ => None,
    })?;
    Some(no(&format!("{name} can't be what ran: {}", text.trim_end_matches('.'))))
}

/// A database that breaks a promise at one level deserves a look before any of its levels is chosen.
fn broken<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let broken: Vec<_> = evidence.with(|safety| *safety == Safety::Broken).collect();
    let first = broken.first()?;
    let by_history = first.cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false));
    let wrong = |candidate: &&Candidate<'_>| candidate.cell.rounds.iter().any(Round::is_wrong);
    if !by_history && !broken.iter().any(wrong) {
        return Some(no(&format!(
            "a condition of yours didn't hold at {}: a transaction breaks it by itself, or the level isn't what it is \
             called",
            names(broken.iter().copied())
        )));
    }
    let how = if by_history {
        "a recorded history shows what is excluded. Look at the proof before you choose a level here"
    } else {
        "the tables were WRONG afterwards"
    };
    let mut decision = no(&format!("{} BROKE a promise: {how}", names(broken.iter().copied())));
    if by_history && broken.iter().all(|candidate| is_known(evidence.document, candidate.cell)) {
        decision.sentences.push(KNOWN.to_owned());
    }
    Some(decision)
}

/// Beside a broken promise that [may be](is_known) one of PostgreSQL's known limitations.
const KNOWN: &str = "PostgreSQL itself is known to permit such cycles at serializable, if rarely: see isobench help \
                     anomalies.";

/// Whether what broke a promise of a cell may be one of PostgreSQL's known limitations
/// (`docs/concept/anomalies.md`): a cycle at serializable that snapshot isolation permits.
fn is_known(document: &Document, cell: &Cell) -> bool {
    document.server_of(cell).product == "PostgreSQL"
        && cell.level.effective == EffectiveLevel::Standard(Level::Serializable)
        && cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.allows(Model::SnapshotIsolation))
}

fn withheld<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let reason = evidence.candidates.iter().find_map(|candidate| match candidate.safety {
        Safety::Withheld(reason) => Some(format!("the verdict on {} is withheld: {reason}", candidate.name)),
        _ => None,
    })?;
    Some(no(reason.trim_end_matches('.')))
}

fn nothing_committed<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let any = evidence.candidates.iter().any(|candidate| candidate.rate() > 0.0);
    (!any).then(|| no("nothing was committed"))
}

/// There is nothing to choose from.
fn alone<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let [only] = evidence.candidates.as_slice() else { return None };
    let found = match only.safety {
        Safety::Safe(_) => capital(&nothing_found(only)) + ".",
        Safety::Unsafe => damage(only),
        _ => "Nothing was checked.".to_owned(),
    };
    let mut decision = no(&format!("{} alone was measured", only.name));
    decision.sentences.push(found);
    Some(decision)
}

/// Without concurrency there is nothing that a level could prevent.
fn one_client<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let one = evidence.candidates.iter().all(|candidate| candidate.cell.clients == 1);
    let unsafe_ = evidence.candidates.iter().any(|candidate| candidate.safety == Safety::Unsafe);
    let reason =
        "a single client runs one transaction after the other, so that nothing can go wrong at any level";
    (one && !unsafe_).then(|| no(&format!("{reason}; measure with more (--clients)")))
}

/// Nothing was checked, or only conditions that held everywhere.
fn unchecked<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let known = |candidate: &Candidate<'_>| !matches!(candidate.safety, Safety::Unchecked | Safety::LostWork);
    if evidence.candidates.iter().any(known) {
        return None;
    }
    let mut decision = no("what the levels buy wasn't checked, since no history was recorded");
    decision.sentences.extend(costs(evidence, &evidence.candidates[0]));
    Some(decision)
}

/// What the other levels cost against the first one, in a sentence.
fn costs<'a>(evidence: &Evidence<'a>, first: &Candidate<'a>) -> Option<String> {
    let others = evidence.candidates.iter().filter(|candidate| {
        candidate.cell.strategy() == first.cell.strategy() && !std::ptr::eq(candidate.cell, first.cell)
    });
    let said: Vec<String> = others
        .filter_map(|other| {
            Some(format!("{} {}", other.name, cost(&evidence.ratio(other, first)?, &first.name)))
        })
        .collect();
    (!said.is_empty()).then(|| capital(&said.join("; ")) + ".")
}

fn none_safe<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    if !evidence.safe().is_empty() {
        return None;
    }
    if evidence.with(|safety| *safety == Safety::Unchecked).next().is_some() {
        let unchecked = names(evidence.with(|safety| *safety == Safety::Unchecked));
        let mut decision =
            no(&format!("none of them was found safe here, and {unchecked} couldn't be checked"));
        decision.sentences.extend(damages(evidence));
        return Some(decision);
    }
    let mut decision = no("none of them was safe here");
    let serializable = Level::Serializable;
    if !evidence.candidates.iter().any(|candidate| candidate.cell.level.requested == Some(serializable)) {
        decision = no("none of them was safe here; add serializable");
    }
    decision.sentences.extend(damages(evidence));
    Some(decision)
}

/// The damage that unsafe candidates did, a sentence each; of many the first three.
fn damages(evidence: &Evidence<'_>) -> Vec<String> {
    const MOST: usize = 3;
    let all: Vec<_> = evidence.with(|safety| *safety == Safety::Unsafe).collect();
    let mut said: Vec<String> = all.iter().take(MOST).map(|candidate| damage(candidate)).collect();
    if all.len() > MOST {
        said.push(format!("So did {}.", counted((all.len() - MOST) as u64, "more row")));
    }
    said
}

/// Nothing tells the levels apart: neither damage nor cost.
fn alike<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let (safe, best) = everywhere(evidence)?;
    let others = || safe.iter().filter(|other| !std::ptr::eq(other.cell, best.cell));
    if !others().any(|other| other.cell.level != best.cell.level && evidence.alike(other, best)) {
        return None;
    }
    let finer = finer(evidence.document).map_or_else(String::new, |finer| format!("; {}", finer.option()));
    let mut decision = no(&format!(
        "{} at any of them, and the difference in cost is within noise{finer}",
        nothing_found_in_all(&safe)
    ));
    decision.sentences.extend(costs(evidence, &evidence.candidates[0]));
    Some(decision)
}

/// The safe candidates, if that is all of those that were checked, and the fastest of them.
fn everywhere<'b, 'a>(evidence: &'b Evidence<'a>) -> Option<(Vec<&'b Candidate<'a>>, &'b Candidate<'a>)> {
    let safe = evidence.safe();
    if evidence.candidates.iter().any(|candidate| candidate.safety == Safety::Unsafe) {
        return None;
    }
    let best = evidence.fastest(&safe)?;
    Some((safe, best))
}

fn nothing_found_in_all(safe: &[&Candidate<'_>]) -> String {
    let committed = |candidate: &&Candidate<'_>| match candidate.safety {
        Safety::Safe(committed) => committed,
        _ => 0,
    };
    let all = safe.iter().map(committed).fold(0, u64::saturating_add);
    format!("nothing wrong was found in {}", counted(all, "transaction"))
}

/// The cheapest level is as safe as any, as far as this run shows.
fn safe_everywhere<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let (safe, best) = everywhere(evidence)?;
    let strongest = safe.iter().copied().max_by_key(|candidate| candidate.cell.level.requested)?;
    let mut sentence = match best.safety {
        Safety::Safe(committed) => format!(
            "This workload is safe at {}: 0 anomalies in {}",
            best.name,
            counted(committed, "transaction")
        ),
        _ => format!("This workload is safe at {}: {}", best.name, nothing_found(best)),
    };
    let dearer = || evidence.ratio(strongest, best);
    if let Some(ratio) = dearer().filter(|_| strongest.cell.level != best.cell.level) {
        sentence = format!("{sentence}; {}", would_cost(&ratio, &strongest.name, &best.name));
    }
    if let Some(other) = usual(evidence, best)
        && let Some(ratio) = evidence.ratio(best, other)
    {
        sentence = format!("{sentence}, and {} {}", best.name, cost(&ratio, &other.name));
    }
    Some(Decision { recommended: Some(best.cell), sentences: vec![sentence + "."] })
}

/// Some are safe and some aren't: the cheapest of the safe, and the strongest of those that cost
/// the same.
fn safe<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let safe = evidence.safe();
    let fastest = evidence.fastest(&safe)?;
    let as_cheap = safe.iter().copied().filter(|other| {
        std::ptr::eq(other.cell, fastest.cell)
            || other.cell.strategy() == fastest.cell.strategy() && evidence.alike(other, fastest)
    });
    let best = as_cheap.max_by_key(|candidate| candidate.cell.level.requested).unwrap_or(fastest);
    let mut sentence = format!("Use {}: {}", best.name, nothing_found(best));
    if let Some(other) = usual(evidence, best).or_else(|| weaker(evidence, best))
        && let Some(ratio) = evidence.ratio(best, other)
    {
        sentence = format!("{sentence}, and it {}", cost(&ratio, &other.name));
    }
    let sentences = std::iter::once(sentence + ".").chain(damages(evidence)).collect();
    Some(Decision { recommended: Some(best.cell), sentences })
}

/// The first of the weaker levels with the same strategy.
fn weaker<'b, 'a>(evidence: &'b Evidence<'a>, best: &Candidate<'a>) -> Option<&'b Candidate<'a>> {
    evidence.candidates.iter().find(|other| {
        other.cell.strategy() == best.cell.strategy()
            && other.cell.level.requested < best.cell.level.requested
    })
}

/// What an application does without the recommended strategy: the first strategy, at the cheapest
/// level at which that is safe.
fn usual<'b, 'a>(evidence: &'b Evidence<'a>, best: &Candidate<'a>) -> Option<&'b Candidate<'a>> {
    let first = evidence.candidates.first()?.cell.strategy();
    let usual: Vec<_> =
        evidence.safe().into_iter().filter(|candidate| candidate.cell.strategy() == first).collect();
    evidence.fastest(&usual).filter(|_| best.cell.strategy() != first)
}
