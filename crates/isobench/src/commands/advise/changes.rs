//! Changes of scripts and tables, each tried.

use std::collections::BTreeSet;

use isobench_advice::{ChangeSet, Decision, Executed, Question, ScriptText};
use isobench_comparison::{Outcome, Sources};
use isobench_observation::Templates;
use isobench_script::CommandKind;

use super::trial::{Trial, named};

/// The most sets of changes that are tried.
const MOST_TRIED: usize = 6;

/// The sets of changes, each tried against what was shown without it.
pub(super) fn changes(
    question: &Question<'_>,
    decision: &Decision,
    trial: &Trial<'_>,
    read_again: impl FnMut(&[ScriptText]) -> Option<Templates>,
) -> Outcome<Vec<ChangeSet>> {
    let before = texts(&trial.work.sources);
    let rewrites = question.rewrites(decision, &before, read_again);
    let promoted = question.changes(&decision.struck);
    let promoted = promoted.iter().filter_map(|one| ChangeSet::of(question.templates, &before, one));
    let indexes = question.indexes(decision, &before);
    let within = question.locks_within(decision, &before);
    let sets = rewrites.into_iter().chain(indexes).chain(promoted).chain(within);
    let shown: BTreeSet<Vec<String>> = decision
        .reasons
        .iter()
        .filter(|reason| matches!(reason.executed, Executed::Shown(_)))
        .flat_map(|reason| named(trial.names, &reason.casts()))
        .collect();
    let shown: Vec<Vec<String>> = shown.into_iter().collect();
    // What theory doesn't know is tried with all scripts.
    let meeting = (decision.refuted.is_none() && !shown.is_empty()).then_some(shown.as_slice());
    let mut all = Vec::new();
    for mut set in sets.take(MOST_TRIED) {
        let sources = trial.work.sources.with_texts(set.scripts.iter().map(|script| script.text.clone()))?;
        // Theory doesn't know it.
        let only_tried = set.unproved.is_some();
        let meeting = meeting.filter(|_| !only_tried);
        let executed = trial.execute_changed(&sources, set.setup.as_deref(), meeting, &set.allocation)?;
        let Some(executed) = executed else { continue };
        match executed {
            Executed::Shown(tried) => set.refuted = Some(*tried),
            Executed::Untried(_) if only_tried => continue,
            Executed::Unshown(count) if meeting.is_none() => set.unproved = Some(count),
            Executed::Untried(_) | Executed::Unshown(_) => {}
        }
        all.push(set);
    }
    Ok(all)
}

/// The texts of scripts, with those of their statements.
pub(super) fn texts(sources: &Sources) -> Vec<ScriptText> {
    let scripts = sources.mix().scripts().iter().zip(sources.texts());
    let text = |(weighted, text): (&isobench_script::Weighted, &str)| ScriptText {
        name: weighted.script.name.clone(),
        text: text.to_owned(),
        commands: weighted
            .script
            .commands
            .iter()
            .map(|command| match &command.kind {
                CommandKind::Sql(sql) => sql.as_written(),
                _ => String::new(),
            })
            .collect(),
    };
    scripts.map(text).collect()
}
