//! Scripts of one folder or workload by their own names alone, where a screen names them often.

use isobench_isolation::Allocation;
use isobench_report::folder_of;
use isobench_result::Tried;
use isobench_robustness::StatementId;

use crate::advice::{Advice, Candidate, Transaction};
use crate::change_set::ChangeSet;
use crate::reason::Reason;

/// The same advice with short names, and the folder or workload.
pub(crate) fn shortened(advice: &Advice) -> (Advice, Option<String>) {
    let names = advice.transactions.iter().map(|one| one.script.as_str());
    let Some(folder) = folder_of(names).map(str::to_owned) else { return (advice.clone(), None) };
    let mut short = advice.clone();
    let names = Names(&folder);
    short.transactions.iter_mut().for_each(|one| names.transaction(one));
    short.at_any_level.iter_mut().for_each(|reason| names.reason(reason));
    short.changes.iter_mut().for_each(|set| names.change_set(set));
    let texts = [&mut short.carried, &mut short.hints, &mut short.deadlocks];
    for texts in texts {
        names.texts(texts);
    }
    short.unshown.iter_mut().for_each(|one| names.texts(&mut one.theory));
    short.incomplete.iter_mut().for_each(|text| names.text(text));
    if let Some(measured) = &mut short.measured {
        names.text(&mut measured.to);
        names.texts(&mut measured.unmeasured);
        measured.candidates.iter_mut().for_each(|one| names.candidate(one));
        for one in &mut measured.left_out {
            names.text(&mut one.script);
            names.text(&mut one.why);
        }
    }
    (short, Some(folder.trim_end_matches('/').to_owned()))
}

/// Takes a folder out of texts.
struct Names<'f>(&'f str);

impl Names<'_> {
    fn text(&self, text: &mut String) {
        if text.contains(self.0) {
            *text = text.replace(self.0, "");
        }
    }

    fn texts(&self, texts: &mut [String]) {
        for text in texts {
            self.text(text);
        }
    }

    fn allocation(&self, allocation: &mut Allocation) {
        allocation.scripts = std::mem::take(&mut allocation.scripts)
            .into_iter()
            .map(|(mut script, mode)| {
                self.text(&mut script);
                (script, mode)
            })
            .collect();
    }

    fn transaction(&self, one: &mut Transaction) {
        self.text(&mut one.script);
        one.below.iter_mut().chain(&mut one.higher).chain(&mut one.at_every_level).for_each(|reason| {
            self.reason(reason);
        });
        self.texts(&mut one.carries);
        one.not_tried.iter_mut().for_each(|text| self.text(text));
    }

    fn reason(&self, reason: &mut Reason) {
        reason.levels = std::mem::take(&mut reason.levels)
            .into_iter()
            .map(|(mut script, level)| {
                self.text(&mut script);
                (script, level)
            })
            .collect();
        self.texts(&mut reason.theory);
        for one in &mut reason.cycle {
            [&mut one.first, &mut one.then].into_iter().chain(&mut one.at).for_each(|text| self.text(text));
        }
        reason.shown.iter_mut().for_each(|tried| self.tried(tried));
        reason.untried.iter_mut().chain(&mut reason.measured).for_each(|text| self.text(text));
    }

    fn tried(&self, tried: &mut Tried) {
        for wrong in &mut tried.found {
            self.texts(&mut wrong.scripts);
            self.text(&mut wrong.before);
        }
    }

    fn change_set(&self, set: &mut ChangeSet) {
        self.text(&mut set.name);
        for change in &mut set.changes {
            let mut script = std::mem::take(&mut change.at.script);
            self.text(&mut script);
            change.at = StatementId { script, ..change.at.clone() };
        }
        self.allocation(&mut set.allocation);
        self.texts(&mut set.deadlocks);
        set.refuted.iter_mut().for_each(|tried| self.tried(tried));
        set.refused.iter_mut().for_each(|text| self.text(text));
    }

    fn candidate(&self, one: &mut Candidate) {
        self.text(&mut one.name);
        self.allocation(&mut one.allocation);
        one.changes.iter_mut().for_each(|text| self.text(text));
    }
}
