//! The rules that lead from evidence to a recommendation, in their order: the first that applies
//! decides. Safety comes first, then cost.
//!
//! Not here: the evidence (`evidence`), and the reasons beside the recommendation (`reasons`).

use isobench_isolation::{EffectiveLevel, Level, Model};

use super::brief::{enough_here, to_use};
use super::choice::{By, Choice, choose};
use super::evidence::{Candidate, Evidence, SafetyEvidence};
use super::words::{cost, damage, lost_between, nothing_found, range, retried, signed, unseen};
use crate::document::{Cell, Document, Round, are_alike};
use crate::numbers::{counted, short};
use crate::summarise::finer;
use crate::words::{capital, enumerated};

/// What a rule says.
#[derive(Debug)]
pub struct Decision<'a> {
    /// The cells that are recommended: more than one if their costs can't be told apart.
    pub recommended: Vec<&'a Cell>,
    /// The sentences of the headline.
    pub sentences: Vec<String>,
    /// Shorter sentences in place of the first one, without the grounds; empty if there are none.
    pub lead: Vec<String>,
    /// True if more rounds could change what is recommended.
    pub open: bool,
}

/// A rule.
pub struct Rule {
    /// Its name, as in the manual (`docs/guide/reading-a-report.md`).
    pub name: &'static str,
    /// Decides, if it applies.
    decide: for<'a> fn(&Evidence<'a>) -> Option<Decision<'a>>,
}

/// The rules in the order in which they are tried. The last one always applies.
pub const RULES: [Rule; 17] = [
    Rule { name: "nothing measured", decide: nothing_measured },
    Rule { name: "mislabelled", decide: mislabelled },
    Rule { name: "contradicted", decide: contradicted },
    Rule { name: "broken promise", decide: broken },
    Rule { name: "carried", decide: carried },
    Rule { name: "condition", decide: condition },
    Rule { name: "withheld", decide: withheld },
    Rule { name: "nothing committed", decide: nothing_committed },
    Rule { name: "alone", decide: alone },
    Rule { name: "one client", decide: one_client },
    Rule { name: "unchecked", decide: unchecked },
    Rule { name: "not seen", decide: not_seen },
    Rule { name: "none safe", decide: none_safe },
    Rule { name: "enough", decide: enough },
    Rule { name: "stronger for nothing", decide: free },
    Rule { name: "not settled", decide: unsettled },
    Rule { name: "cheapest", decide: cheapest },
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
    Decision { recommended: Vec::new(), sentences: vec![sentence], lead: Vec::new(), open: false }
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
    let first = evidence.with(|safety| *safety == SafetyEvidence::Mislabelled).next()?;
    let all = names(evidence.with(|safety| *safety == SafetyEvidence::Mislabelled));
    let ran = &first.cell.level.effective;
    Some(no(&match ran {
        EffectiveLevel::Unknown => {
            format!("the server doesn't say which level it ran for {all}")
        }
        ran => {
            format!("the server ran {ran} instead of {all}")
        }
    }))
}

fn contradicted<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let (name, text) = evidence.candidates.iter().find_map(|candidate| match &candidate.safety {
        SafetyEvidence::Contradicted(text) => Some((&candidate.name, text)),
        _ => None,
    })?;
    Some(no(&format!("{name} can't be what ran: {}", text.trim_end_matches('.'))))
}

/// A database that breaks a promise at one level deserves a look before any of its levels is chosen.
fn broken<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let broken: Vec<_> = evidence.with(|safety| *safety == SafetyEvidence::Broken).collect();
    let first = broken.first()?;
    let by_history = first.cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false));
    let wrong = |candidate: &&Candidate<'_>| candidate.cell.rounds.iter().any(Round::is_wrong);
    if !by_history && !broken.iter().any(wrong) {
        return None;
    }
    let how = if by_history {
        "the recorded history has an anomaly that the level forbids. Look at the proof before choosing a level"
    } else {
        "the tables were WRONG afterwards"
    };
    let mut decision = no(&format!("{} BROKE a promise: {how}", names(broken.iter().copied())));
    if by_history && broken.iter().all(|candidate| is_known(evidence.document, candidate.cell)) {
        decision.sentences.push(KNOWN.to_owned());
    }
    Some(decision)
}

/// What is read in one transaction and written in another isn't isolated at all.
fn carried<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let carried: Vec<String> = evidence.carried().into_iter().map(str::to_owned).collect();
    if carried.is_empty() {
        return None;
    }
    let sentence = format!(
        "No level can be called safe here: {}, which no level protects. Put both into one transaction block, or let \
         the UPDATE check that the row is still as it was read (AND version = :version, and look at the number of \
         rows).",
        abridged(&carried, "; ", "value is carried like that", "values are carried like that")
    );
    let lost = evidence.candidates.iter().filter_map(lost_between);
    let sentences = std::iter::once(sentence).chain(lost).chain(damages(evidence)).collect();
    Some(Decision { recommended: Vec::new(), sentences, lead: Vec::new(), open: false })
}

/// A condition of the user's that didn't hold even where a level promises everything.
fn condition<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    evidence.with(|safety| *safety == SafetyEvidence::Broken).next()?;
    Some(no(&format!(
        "a condition of yours didn't hold at {}: {OWN_CONDITION}",
        names(evidence.with(|safety| *safety == SafetyEvidence::Broken))
    )))
}

/// What it means that a condition of the user's doesn't hold at serializable.
pub const OWN_CONDITION: &str = "a transaction breaks it by itself, or the level isn't what it is called, or the \
                                 condition rests on what no level isolates: values kept between transactions, \
                                 sequences, locks released early";

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
        SafetyEvidence::Withheld(reason) => {
            Some(format!("the verdict on {} is withheld: {reason}", candidate.name))
        }
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
        SafetyEvidence::Safe(_) => capital(&nothing_found(only, evidence)) + ".",
        SafetyEvidence::Unseen(_) => {
            format!("{}, but {}.", capital(&nothing_found(only, evidence)), unseen(only))
        }
        SafetyEvidence::Unsafe => damage(only),
        _ => "Nothing was checked.".to_owned(),
    };
    let mut decision = no(&format!("only {} was measured", only.name));
    decision.sentences.push(found);
    Some(decision)
}

/// Without concurrency there is nothing that a level could prevent.
fn one_client<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let one = evidence.candidates.iter().all(|candidate| candidate.cell.clients == 1);
    let unsafe_ = evidence.candidates.iter().any(|candidate| candidate.safety == SafetyEvidence::Unsafe);
    let reason =
        "a single client runs one transaction after the other, so there are no anomalies at any level";
    (one && !unsafe_).then(|| no(&format!("{reason}; measure with more (--clients)")))
}

/// Nothing was checked, or only conditions that held everywhere.
fn unchecked<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let known = |candidate: &Candidate<'_>| {
        !matches!(
            candidate.safety,
            SafetyEvidence::Unchecked | SafetyEvidence::LostWork | SafetyEvidence::Tried(_)
        )
    };
    if evidence.candidates.iter().any(known) || !evidence.eligible().is_empty() {
        return None;
    }
    let mut decision = no("anomalies weren't checked");
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

/// Nothing tells the levels apart, and what could have wasn't seen.
fn not_seen<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let first = evidence.with(|safety| matches!(safety, SafetyEvidence::Unseen(_))).next()?;
    if evidence.has_damage() || !evidence.eligible().is_empty() {
        return None;
    }
    let mut sentences = vec![format!(
        "No level can be called safe here: {}. Otherwise no anomaly was found at any of them.",
        unseen(first)
    )];
    let serializable = evidence.candidates.iter().find(|candidate| {
        candidate.cell.level.effective == EffectiveLevel::Standard(Level::Serializable)
            && matches!(candidate.safety, SafetyEvidence::Unseen(_))
    });
    sentences.extend(serializable.map(|candidate| {
        let name = capital(&candidate.name);
        if candidate.held() {
            return format!("{name} forbids every anomaly, which couldn't be checked here; the conditions held.");
        }
        format!(
            "{name} forbids every anomaly, which couldn't be checked here; a condition on the tables (--invariant) can be."
        )
    }));
    sentences.extend(costs(evidence, &evidence.candidates[0]));
    Some(Decision { recommended: Vec::new(), sentences, lead: Vec::new(), open: false })
}

fn none_safe<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    if !evidence.eligible().is_empty() {
        return None;
    }
    if evidence.with(|safety| *safety == SafetyEvidence::Unchecked).next().is_some() {
        let unchecked = names(evidence.with(|safety| *safety == SafetyEvidence::Unchecked));
        let mut decision =
            no(&format!("none of those checked was safe here, and {unchecked} couldn't be checked"));
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
pub fn damages(evidence: &Evidence<'_>) -> Vec<String> {
    let all: Vec<_> = evidence.with(|safety| *safety == SafetyEvidence::Unsafe).collect();
    let mut said: Vec<String> = all.iter().take(MOST_NAMED).map(|candidate| damage(candidate)).collect();
    if all.len() > MOST_NAMED {
        said.push(format!("So did {}.", counted((all.len() - MOST_NAMED) as u64, "more row")));
    }
    said
}

/// The most of many that a headline names.
const MOST_NAMED: usize = 3;

/// The first clauses of many, and the number of the others.
fn abridged(clauses: &[String], separator: &str, one: &str, many: &str) -> String {
    let named = clauses[..clauses.len().min(MOST_NAMED)].join(separator);
    match clauses.len().saturating_sub(MOST_NAMED) {
        0 => named,
        1 => format!("{named}{separator}1 more {one}"),
        more => format!("{named}{separator}{more} more {many}"),
    }
}

/// Nothing went wrong at the weakest level, and no other one is shown to be cheaper.
fn enough<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let choice = choose(evidence).filter(|choice| choice.by == By::Enough && !evidence.has_damage())?;
    let best = choice.best[0];
    let is = if evidence.proves(best) { "is enough here" } else { "was right in all tests here" };
    let mut sentences = vec![format!("{} {is}: {}.", capital(&best.name), nothing_found(best, evidence))];
    let lead = vec![enough_here(best, evidence)];
    let stronger: Vec<_> = stronger(evidence, best).collect();
    let said: Vec<String> = stronger
        .iter()
        .filter_map(|other| {
            let cost = cost(&evidence.ratio(other, best)?, &best.name);
            let retried = retried(other).map_or_else(String::new, |retried| format!(" and {retried}"));
            Some(format!("{} {cost}{retried}", other.name))
        })
        .collect();
    if !said.is_empty() {
        let who = if said.len() == 1 { "The stronger level" } else { "The stronger levels" };
        sentences.push(format!("{who} prevented nothing more here: {}.", said.join("; ")));
    }
    if choice.open {
        sentences.push(format!("More rounds are needed to settle the cost{}.", finer_option(evidence)));
    }
    sentences.extend(against_usual(evidence, best));
    sentences.extend(as_far_as_seen(&choice));
    Some(Decision { recommended: vec![best.cell], sentences, lead, open: choice.open })
}

/// A stronger level costs the same as the cheapest.
fn free<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let choice = choose(evidence).filter(|choice| choice.by == By::Free)?;
    let best = choice.best[0];
    let cheapest = &choice.cheapest.name;
    let ratio = evidence.ratio(best, choice.cheapest);
    let ends = ratio.as_ref().and_then(|ratio| ratio.low.zip(ratio.high));
    let little = match (ratio, ends) {
        (Some(ratio), Some(_)) if ratio.significant => {
            format!("it {}, too small to matter", cost(&ratio, cheapest))
        }
        (Some(ratio), Some(ends)) if !are_alike(ends) => {
            let (change, range) = (signed(ratio.mean - 1.0), range(ends));
            format!("its cost against {cheapest} is too small to matter ({change}; {range})")
        }
        (_, ends) => {
            let range = ends.map_or_else(String::new, |ends| format!(": {}", range(ends)));
            format!("it costs no more than {cheapest} (within 5 %{range})")
        }
    };
    let found = nothing_found(best, evidence);
    let mut sentences = vec![format!("Use {}: {found}, and {little}.", best.name)];
    let lead = vec![to_use(&choice.best), capital(&little) + "."];
    sentences.extend(against_weaker(evidence, &choice));
    sentences.extend(damages(evidence));
    sentences.extend(not_higher(evidence, &choice));
    sentences.extend(as_far_as_seen(&choice));
    Some(Decision { recommended: vec![best.cell], sentences, lead, open: false })
}

/// The cheapest can't be told from others.
fn unsettled<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let choice = choose(evidence).filter(|choice| choice.by == By::Unsettled)?;
    let names: Vec<String> = choice.best.iter().map(|candidate| candidate.name.clone()).collect();
    let found = nothing_found(choice.cheapest, evidence);
    let where_ = if names.len() == 2 { "either" } else { "any of them" };
    let mut sentences = vec![format!("Use {}: {found} at {where_}.", names.join(" or "))];
    let lead = vec![to_use(&choice.best)];
    if let Some(numbers) = numbers(evidence, &choice) {
        let reason = if choice.open {
            format!("but more rounds are needed to be sure{}", finer_option(evidence))
        } else {
            "from too few rounds to be sure".to_owned()
        };
        let close = choice.best.iter().all(|other| is_close(evidence, other, choice.cheapest));
        let how = if close {
            "They seem to cost the same".to_owned()
        } else {
            format!("{} seems cheaper", capital(&choice.cheapest.name))
        };
        sentences.push(format!("{how} ({numbers}), {reason}."));
    }
    sentences.extend(against_weaker(evidence, &choice));
    sentences.extend(damages(evidence));
    sentences.extend(not_higher(evidence, &choice));
    sentences.extend(as_far_as_seen(&choice));
    let recommended = choice.best.iter().map(|candidate| candidate.cell).collect();
    Some(Decision { recommended, sentences, lead, open: choice.open })
}

/// True if the estimate of one is that of the other, as nearly as anybody cares.
fn is_close(evidence: &Evidence<'_>, one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    std::ptr::eq(one.cell, other.cell)
        || evidence.ratio(one, other).is_some_and(|ratio| are_alike((ratio.mean, ratio.mean)))
}

/// The numbers of those that can't be told apart: "repeatable read 0.87 × read committed, serializable
/// 0.46 ×".
fn numbers(evidence: &Evidence<'_>, choice: &Choice<'_, '_>) -> Option<String> {
    let strategy = choice.cheapest.cell.strategy();
    let first = evidence.candidates.iter().find(|first| first.cell.strategy() == strategy)?;
    let said = choice.best.iter().enumerate().map(|(index, candidate)| {
        let itself = std::ptr::eq(candidate.cell, first.cell);
        let times = if itself { 1.0 } else { evidence.ratio(candidate, first)?.mean };
        let of = if index == 0 { format!(" {}", first.name) } else { String::new() };
        Some(format!("{} {} ×{of}", candidate.name, short(times)))
    });
    Some(said.collect::<Option<Vec<_>>>()?.join(", "))
}

/// One is cheaper than the others without damage.
fn cheapest<'a>(evidence: &Evidence<'a>) -> Option<Decision<'a>> {
    let choice = choose(evidence)?;
    let best = choice.best[0];
    let mut sentence = format!("Use {}: {}", best.name, nothing_found(best, evidence));
    let beside = usual(evidence, best).or_else(|| weaker(evidence, best));
    let ratio = beside.and_then(|other| Some((evidence.ratio(best, other)?, &other.name)));
    let mut lead = vec![to_use(&choice.best)];
    if let Some((ratio, name)) = &ratio {
        let cost = cost(ratio, name);
        sentence = format!("{sentence}, and it {cost}");
        lead.push(format!("It {cost}."));
    }
    let mut sentences = vec![sentence + "."];
    let dearer = stronger(evidence, best).filter(|other| {
        matches!(other.safety, SafetyEvidence::Safe(_) | SafetyEvidence::Unseen(_) | SafetyEvidence::Tried(_))
    });
    sentences.extend(dearer.filter_map(|other| {
        Some(format!("{} {}.", capital(&other.name), cost(&evidence.ratio(other, best)?, &best.name)))
    }));
    sentences.extend(damages(evidence));
    sentences.extend(not_higher(evidence, &choice));
    sentences.extend(as_far_as_seen(&choice));
    Some(Decision { recommended: vec![best.cell], sentences, lead, open: choice.open })
}

/// What was not seen of what is recommended, in a sentence; `None` if everything that matters was.
fn as_far_as_seen(choice: &Choice<'_, '_>) -> Option<String> {
    let best = choice.best.iter().find(|candidate| matches!(candidate.safety, SafetyEvidence::Unseen(_)))?;
    Some(format!("Not covered by this: {}.", unseen(best)))
}

/// That a stronger level would be worse than one that is recommended.
fn not_higher(evidence: &Evidence<'_>, choice: &Choice<'_, '_>) -> Option<String> {
    let best = choice.best.iter().find(|best| evidence.too_early(best).is_some())?;
    let worse = capital(&evidence.too_early(best)?.name);
    Some(format!(
        "{worse} is worse than {} here: after it has waited for a lock, a transaction still reads its old snapshot.",
        best.name
    ))
}

/// ", and how long a finer precision takes".
fn finer_option(evidence: &Evidence<'_>) -> String {
    finer(evidence.document).map_or_else(String::new, |finer| format!("; {}", finer.option()))
}

/// The stronger levels with the same strategy.
fn stronger<'b, 'a>(
    evidence: &'b Evidence<'a>,
    than: &'b Candidate<'a>,
) -> impl Iterator<Item = &'b Candidate<'a>> {
    evidence.candidates.iter().filter(|other| {
        other.cell.strategy() == than.cell.strategy() && other.cell.level.is_stronger_than(&than.cell.level)
    })
}

/// What is recommended costs against the first weaker level at which something went wrong.
fn against_weaker(evidence: &Evidence<'_>, choice: &Choice<'_, '_>) -> Option<String> {
    let all: Vec<String> = choice
        .best
        .iter()
        .filter_map(|best| {
            let other = weaker(evidence, best)?;
            let named = choice.best.iter().any(|one| std::ptr::eq(one.cell, other.cell));
            let is_cheapest = std::ptr::eq(other.cell, choice.cheapest.cell);
            let ratio = evidence.ratio(best, other).filter(|_| !named && !is_cheapest)?;
            Some(format!("{} {}", best.name, cost(&ratio, &other.name)))
        })
        .collect();
    (!all.is_empty()).then(|| capital(&all.join("; ")) + ".")
}

/// What the recommended strategy gains over the first one.
fn against_usual(evidence: &Evidence<'_>, best: &Candidate<'_>) -> Option<String> {
    let other = usual(evidence, best)?;
    Some(format!("{} {}.", capital(&best.name), cost(&evidence.ratio(best, other)?, &other.name)))
}

/// The first of the weaker levels with the same strategy.
fn weaker<'b, 'a>(evidence: &'b Evidence<'a>, best: &Candidate<'_>) -> Option<&'b Candidate<'a>> {
    evidence.candidates.iter().find(|other| {
        other.cell.strategy() == best.cell.strategy() && best.cell.level.is_stronger_than(&other.cell.level)
    })
}

/// What an application does without the recommended strategy: the first strategy, at the cheapest
/// level at which that is safe.
fn usual<'b, 'a>(evidence: &'b Evidence<'a>, best: &Candidate<'_>) -> Option<&'b Candidate<'a>> {
    let first = evidence.candidates.first()?.cell.strategy();
    let usual: Vec<_> =
        evidence.eligible().into_iter().filter(|candidate| candidate.cell.strategy() == first).collect();
    evidence.fastest(&usual).filter(|_| best.cell.strategy() != first)
}
