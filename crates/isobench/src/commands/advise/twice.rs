//! Scripts that are tried with themselves, where they are too many for the schedules that theory names.

use isobench_advice::{AtLevel, ChangeSet, Executed, Promotion, Reason, Twice, locked, locks, writing};
use isobench_comparison::Outcome;
use isobench_comparison::interleavings::tried;
use isobench_isolation::{Allocation, Level};
use isobench_observation::Templates;
use isobench_result::Tried;

use super::changes::texts;
use super::trial::{ELSEWHERE, Trial};

/// Tries each script that writes with itself, at each level; and the locks that mend the lowest one.
pub(super) fn twice(templates: &Templates, trial: &Trial<'_>) -> Outcome<Vec<Twice>> {
    let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    let mut all = Vec::new();
    for program in writing(templates) {
        let name = &trial.names[program];
        let at =
            levels.iter().map(|level| at_once(trial, name, *level)).collect::<Outcome<Vec<AtLevel>>>()?;
        let changes = match at[0].shown.as_ref().and_then(|reason| reason.shown.as_ref()) {
            Some(shown) => mended(templates, program, shown, trial)?,
            None => Vec::new(),
        };
        all.push(Twice { script: name.clone(), levels: at, changes });
    }
    Ok(all)
}

/// Tries a script with itself at a level.
fn at_once(trial: &Trial<'_>, name: &String, level: Level) -> Outcome<AtLevel> {
    let cast = [vec![name.clone(), name.clone()]];
    let mut at =
        AtLevel { level, interleavings: 0, with_failures: 0, failure: None, shown: None, untried: None };
    match trial.found(&trial.work.sources, None, Some(&cast), &Allocation::uniform(level))? {
        Ok(found) => {
            let of = &found.levels[0];
            (at.interleavings, at.with_failures) = (of.trials, of.with_failures + of.inconclusive);
            at.failure.clone_from(&of.failure);
            let wrong = of.gravest().is_some_and(|witness| !witness.no_level_prevents);
            at.shown = wrong.then(|| Reason::tried(level, tried(&found, of)));
            let refused = found.refused.iter().find(|(script, _)| script == name).map(|(_, why)| why.clone());
            let elsewhere = (!wrong && trial.elsewhere.contains(name)).then(|| ELSEWHERE.to_owned());
            at.untried = refused.or(elsewhere);
        }
        Err(not_tried) => at.untried = Some(not_tried.why()),
    }
    Ok(at)
}

/// The fewest locks with which a script isn't shown to be unsafe at the lowest level any more: one, or else
/// all that are needed of all.
fn mended(
    templates: &Templates,
    program: usize,
    shown: &Tried,
    trial: &Trial<'_>,
) -> Outcome<Vec<ChangeSet>> {
    let before = texts(&trial.work.sources);
    let name = &trial.names[program];
    let cast = [vec![name.clone(), name.clone()]];
    let mends = |promotions: &[Promotion]| -> Outcome<Option<ChangeSet>> {
        let Some(set) = locked(templates, &before, promotions.to_vec()) else { return Ok(None) };
        let sources = trial.work.sources.with_texts(set.scripts.iter().map(|script| script.text.clone()))?;
        let executed = trial.execute_changed(&sources, None, Some(&cast), &set.allocation)?;
        Ok(matches!(executed, Ok(Executed::Unshown(_))).then_some(set))
    };
    let mut needed = locks(templates, program, shown);
    for one in &needed {
        if let Some(set) = mends(std::slice::from_ref(one))? {
            return Ok(vec![set]);
        }
    }
    let Some(mut set) = mends(&needed)? else { return Ok(Vec::new()) };
    for one in needed.clone() {
        let rest: Vec<Promotion> = needed.iter().filter(|other| **other != one).cloned().collect();
        if let Some(smaller) = mends(&rest)? {
            (needed, set) = (rest, smaller);
        }
    }
    Ok(vec![set])
}
