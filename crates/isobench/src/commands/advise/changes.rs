//! Changes of scripts and tables, each tried.

use std::collections::{BTreeSet, VecDeque};

use isobench_advice::{ChangeSet, Decision, Executed, Question, ScriptText};
use isobench_comparison::{Outcome, Sources};
use isobench_observation::Templates;
use isobench_script::CommandKind;

use super::trial::{NotChanged, Trial, named};

/// The most sets of changes that are tried.
const MOST_TRIED: usize = 6;

/// The sets of changes, each tried against what was shown without it.
pub(super) fn changes(
    question: &Question<'_>,
    decision: &Decision,
    trial: &Trial<'_>,
    mut read_again: impl FnMut(&[ScriptText]) -> Option<Templates>,
) -> Outcome<Vec<ChangeSet>> {
    let before = texts(&trial.work.sources);
    let rewrites = question.rewrites(decision, &before, &mut read_again);
    let promoted = question.changes().into_iter();
    let promoted =
        promoted.filter_map(|one| Some((ChangeSet::of(question.templates, &before, &one)?, one.levels)));
    let (promoted, known): (Vec<_>, Vec<_>) = promoted.unzip();
    let first = question.locks_first(decision, &before, &known, read_again);
    let indexes = question.indexes(decision, &before);
    let within = question.locks_within(decision, &before);
    let before_unknown = question.locks_before_unknown(decision, &before);
    let alone = |set: ChangeSet| (set, None);
    let sets = rewrites.into_iter().map(alone).chain(indexes);
    let later = before_unknown.into_iter().chain(first).chain(within);
    let mut sets: VecDeque<_> = sets.chain(promoted.into_iter().chain(later).map(alone)).collect();
    let shown: BTreeSet<Vec<String>> = decision
        .reasons
        .iter()
        .filter(|reason| matches!(reason.executed, Executed::Shown(_)))
        .flat_map(|reason| named(trial.names, &reason.casts()))
        .collect();
    let shown: Vec<Vec<String>> = shown.into_iter().collect();
    let mut all: Vec<ChangeSet> = Vec::new();
    while let Some((mut set, otherwise)) = sets.pop_front() {
        if all.len() == MOST_TRIED {
            break;
        }
        if all.iter().any(|known| (&known.scripts, &known.setup) == (&set.scripts, &set.setup)) {
            continue;
        }
        let sources = trial.work.sources.with_texts(set.scripts.iter().map(|script| script.text.clone()))?;
        let setup = set.setup.as_deref();
        let meet =
            |casts: Option<&[Vec<String>]>| trial.execute_changed(&sources, setup, casts, &set.allocation);
        // First those who meet in what was shown.
        let executed = if shown.is_empty() { Ok(Executed::Unshown(0)) } else { meet(Some(&shown))? };
        // What theory doesn't know is tried with all scripts.
        let only_tried = set.unproved.is_some();
        let with_all = only_tried || decision.refuted.is_some() || shown.is_empty();
        let executed = match executed {
            Ok(Executed::Unshown(before)) if with_all => meet(None)?.map(|executed| match executed {
                Executed::Unshown(more) => Executed::Unshown(before + more),
                other => other,
            }),
            executed => executed,
        };
        match executed {
            Err(not_changed) => {
                if let Some(set) = otherwise {
                    sets.push_front((set, None));
                }
                match not_changed {
                    NotChanged::Mistake => continue,
                    NotChanged::Refused(why) => set.refused = Some(why),
                }
            }
            Ok(Executed::Shown(tried)) => set.refuted = Some(*tried),
            Ok(Executed::Untried(_)) if only_tried => continue,
            Ok(Executed::Unshown(count)) if with_all => set.unproved = Some(count),
            Ok(Executed::Untried(_) | Executed::Unshown(_)) => {}
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
