//! What levels and changes cost: rows that are measured in turns, and what their histories contradict.

use std::collections::BTreeMap;

use isobench_advice::{Advice, Candidate as Row, LeftOut, Measured, allocation, best};
use isobench_comparison::{
    Candidate, Design, Failure, Followers, Judging, Outcome, Surroundings, Target, Work, compare as measure,
};
use isobench_isolation::{Allocation, Level};
use isobench_pgwire::SqlState;
use isobench_program::Templates;
use isobench_result::numbers::counted;
use isobench_result::words::distinct;
use isobench_result::{Cell, Document, between, summarise};
use isobench_runner::Control;

use super::script_names;
use crate::display::Display;
use crate::options::{AdviseOptions, command};
use crate::output::say;

/// The most rows that are measured, without those of `--controls`.
const MOST_MEASURED: usize = 4;

/// The most rows in which one transaction has a lower level than it needs.
const MOST_CONTROLS: usize = 3;

/// What is measured, and where.
pub(super) struct Prices<'a> {
    pub(super) options: &'a AdviseOptions,
    pub(super) found: &'a Templates,
    pub(super) work: &'a Work,
    pub(super) targets: &'a [Target],
    pub(super) control: &'a Control,
}

/// The scripts that are measured together.
struct Mixed {
    /// Their names.
    scripts: Vec<String>,
    /// The others: they fail, so that a mix with them ends.
    left_out: Vec<LeftOut>,
}

impl Mixed {
    /// The same levels, of these scripts only.
    fn among(&self, all: Allocation) -> Allocation {
        if self.left_out.is_empty() {
            return all;
        }
        let levels: Vec<(&str, Level)> =
            self.scripts.iter().map(|script| (script.as_str(), all.of(script).level)).collect();
        allocation(&levels)
    }

    /// Leaves out the script that a message blames: it names a script with a line. False if it blames none, or
    /// no other script would be left.
    fn leave_out(&mut self, message: &str) -> bool {
        let names = |script: &str| {
            message.match_indices(&format!("{script}:")).any(|(at, found)| {
                let before = message[..at].chars().next_back();
                let after = message[at + found.len()..].chars().next();
                before.is_none_or(char::is_whitespace) && after.is_some_and(|after| after.is_ascii_digit())
            })
        };
        let place = self.scripts.iter().position(|script| names(script)).filter(|_| self.scripts.len() > 1);
        // Without an error of a statement the session was lost, and no script is to blame.
        let Some((place, error)) = place.zip(message.find("ERROR:")) else { return false };
        let script = self.scripts.remove(place);
        let why = message[error..].lines().next().unwrap_or_default();
        self.left_out.push(LeftOut { script, why: why.split_whitespace().collect::<Vec<_>>().join(" ") });
        true
    }
}

impl Prices<'_> {
    /// Measures rows of levels and the best change in turns, and notes their prices. Scripts that fail each time,
    /// or whose data are used up, are left out by name.
    ///
    /// # Errors
    /// The measurement is incomplete.
    pub(super) fn measure(
        &self,
        advice: &mut Advice,
        design: &mut Design,
        failing: &BTreeMap<String, String>,
    ) -> Outcome {
        let scripts = script_names(&self.work.sources);
        let mut mix = Mixed { scripts: Vec::new(), left_out: Vec::new() };
        for script in scripts {
            match failing.get(&script) {
                Some(why) => mix.left_out.push(LeftOut { script, why: why.clone() }),
                None => mix.scripts.push(script),
            }
        }
        if mix.scripts.is_empty() {
            return Err(Failure::Incomplete(
                "nothing was measured: each script fails when it runs alone".to_owned(),
            ));
        }
        let judged = design.is_recorded(&self.targets[0].database);
        let controls = if self.options.controls { advice.controls(MOST_CONTROLS) } else { Vec::new() };
        loop {
            let controls: Vec<Allocation> = controls.iter().map(|one| mix.among(one.clone())).collect();
            design.measure_scripts(&mix.scripts)?;
            design.measure(self.candidates(advice, &mix, judged.then_some(&controls))?)?;
            let mut document = self.document(design, judged)?;
            // What was measured is reported.
            let measured = document.cells.iter().flat_map(|cell| &cell.rounds).any(|round| round.complete);
            let reason = document.incomplete_reason.as_deref().filter(|_| !measured);
            if reason.is_some_and(|reason| mix.leave_out(reason)) {
                let last = mix.left_out.last();
                say(&format!("measured again without {}", last.map_or("", |one| one.script.as_str())));
                continue;
            }
            summarise(&mut document);
            note(advice, self.found, &mix, &controls, &document);
            return match &document.incomplete_reason {
                Some(reason) => Err(Failure::Incomplete(format!("the measurement is incomplete: {reason}"))),
                None => Ok(()),
            };
        }
    }

    /// The rows: today's level, the proposal, all serializable, the best change; and what is lowered to see
    /// whether that goes wrong.
    fn candidates(
        &self,
        advice: &Advice,
        mix: &Mixed,
        controls: Option<&Vec<Allocation>>,
    ) -> Outcome<Vec<Candidate>> {
        let plain = |allocation: Allocation| Candidate { allocation, changed: None };
        let mut rows = vec![Allocation::uniform(Level::ReadCommitted), advice.allocation()];
        rows.push(Allocation::uniform(Level::Serializable));
        rows.extend(advice.passed());
        // All rows are measured on the same tables.
        let held = advice.changes.iter().filter(|set| set.is_proposed() && set.setup.is_none());
        let mut candidates = Vec::new();
        if let Some(set) = best(&held.collect::<Vec<_>>()) {
            let texts = set.scripts.iter().map(|script| script.text.clone());
            let sources = self.work.sources.with_texts(texts)?.among(&mix.scripts)?;
            candidates.push(Candidate {
                allocation: mix.among(set.allocation.clone()),
                changed: Some((set.name.clone(), sources)),
            });
        }
        let rows = distinct(rows.into_iter().map(|row| mix.among(row)));
        candidates.extend(rows.into_iter().take(MOST_MEASURED - candidates.len()).map(plain));
        // Only histories show what goes wrong at lowered levels.
        candidates.extend(controls.into_iter().flatten().cloned().map(plain));
        Ok(candidates)
    }

    fn document(&self, design: &Design, judged: bool) -> Outcome<Document> {
        let judging = judged.then_some(Judging { between: true, ..Judging::default() });
        let around = Surroundings {
            targets: self.targets,
            judging: judging.as_ref(),
            machines: None,
            control: self.control,
            say: &say,
            save: &|_| Ok(()),
            command: command(),
        };
        let mut display = Display::new(false);
        let outcome = measure(design, around, &mut Followers(vec![&mut display]));
        drop(display);
        outcome.map(|(document, _)| document)
    }
}

/// The attempts of a cell that ended in a deadlock.
fn deadlocks(cell: &Cell) -> u64 {
    let conflicts = cell.rounds.iter().flat_map(|round| &round.conflicts);
    let deadlock = SqlState::DEADLOCK_DETECTED;
    conflicts.filter(|conflict| conflict.sqlstate == deadlock.as_str()).map(|conflict| conflict.count).sum()
}

/// Notes the prices, and takes back what the histories contradict.
fn note(advice: &mut Advice, found: &Templates, mix: &Mixed, controls: &[Allocation], document: &Document) {
    let Some(first) = document.cells.first() else { return };
    let others = document.cells.len() - 1;
    let row = |cell: &Cell| {
        let ratio = between(document, cell, first, others);
        let changes = cell.strategy.clone().filter(|name| advice.changes.iter().any(|set| set.name == *name));
        let allocation = cell.level.allocation.clone();
        let allocation =
            allocation.unwrap_or(Allocation::uniform(cell.level.requested.unwrap_or(Level::ReadCommitted)));
        Row {
            name: changes.iter().cloned().chain([cell.level.name()]).collect::<Vec<_>>().join(", "),
            control: changes.is_none() && allocation.level().is_none() && controls.contains(&allocation),
            allocation,
            changes,
            tps: cell.summary.tps.mean,
            ratio: ratio.as_ref().map(|ratio| ratio.mean),
            low: ratio.as_ref().and_then(|ratio| ratio.low),
            high: ratio.as_ref().and_then(|ratio| ratio.high),
            conflicts: cell.summary.conflict_ratio,
            deadlocks: deadlocks(cell),
            anomalies: cell.summary.verdict.as_ref().map(|verdict| verdict.anomalies),
        }
    };
    let mut candidates: Vec<Row> = document.cells.iter().map(row).collect();
    let own = mix.among(advice.allocation());
    let wrong_at = |allocation: &Allocation| {
        let of = |(_, row): &(&Cell, &Row)| row.changes.is_none() && row.allocation == *allocation;
        let (cell, row) = document.cells.iter().zip(&candidates).find(of)?;
        let wrong = row.anomalies.filter(|count| *count > 0 && allocation.range().1 < Level::Serializable)?;
        let committed = cell.summary.verdict.as_ref().map_or(0, |verdict| verdict.committed);
        Some(format!("{wrong} of {} had an anomaly", counted(committed, "transaction")))
    };
    if let Some(passed) = advice.passed().map(|passed| mix.among(passed)) {
        let of = |(_, row): &(&Cell, &Row)| row.changes.is_none() && row.allocation == passed;
        let verdict = document.cells.iter().zip(&candidates).find(of).and_then(|(cell, row)| {
            row.anomalies?;
            cell.summary.verdict.as_ref()
        });
        match (wrong_at(&passed), verdict) {
            (Some(seen), _) => advice.note_passed(Err(&seen)),
            // Scripts that were left out weren't measured with the others.
            (None, Some(verdict)) if mix.left_out.is_empty() => {
                advice.note_passed(Ok(verdict.committed));
            }
            (None, _) => {}
        }
    }
    // A change with which something went wrong is none.
    let harmed = candidates.iter().filter(|row| row.anomalies.is_some_and(|count| count > 0));
    let harmed: Vec<String> = harmed.filter_map(|row| row.changes.clone()).collect();
    advice.changes.retain(|set| !harmed.contains(&set.name));
    if let Some(seen) = wrong_at(&own) {
        advice.contradict(&seen);
    }
    // The other rows' scripts aren't those that were read.
    let unchanged = document.cells.iter().zip(&candidates).filter(|(_, row)| row.changes.is_none());
    let verdicts = unchanged.flat_map(|(cell, _)| &cell.rounds).filter_map(|round| round.verdict.as_ref());
    let dependencies = advice.compare_with(found, verdicts.flat_map(|verdict| &verdict.between));
    let mut rounds = document.cells.iter().map(|cell| cell.summary.rounds);
    let mut unmeasured = Vec::new();
    candidates.retain(|row| {
        let measured = rounds.next().is_some_and(|rounds| rounds > 0) || row.anomalies > Some(0);
        if !measured {
            unmeasured.push(row.name.clone());
        }
        measured
    });
    let any = dependencies > 0 || !candidates.is_empty();
    let left_out = mix.left_out.clone();
    advice.measured =
        any.then(|| Measured { to: first.level.name(), dependencies, candidates, unmeasured, left_out });
}
