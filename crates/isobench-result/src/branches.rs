//! The branches of scripts: how often each was taken, and whether one was taken at the beginning and
//! later no more, because what it needs was used up.

use crate::document::{BranchRound, Cell, Document, Flag, FlagKind, Round};
use crate::numbers::count;
use crate::rounds::counted_rounds;

/// A branch that was taken so many times fewer than before, by its earlier share, isn't taken any
/// more: by chance that happens once in half a billion times.
const MISSED: f64 = 20.0;

/// The most conditions in a sentence.
const MOST: usize = 4;

/// The conditions of these rounds, in their order: those of later rounds come after the others.
fn sums<'r>(rounds: impl Iterator<Item = &'r Round>) -> Vec<BranchRound> {
    let mut sums: Vec<BranchRound> = Vec::new();
    for branch in rounds.flat_map(|round| &round.branches) {
        let same = |known: &&mut BranchRound| (&known.script, known.line) == (&branch.script, branch.line);
        let Some(sum) = sums.iter_mut().find(same) else {
            sums.push(branch.clone());
            continue;
        };
        let since = |before: u64, latest: u64, again: bool| if again { latest } else { before + latest };
        sum.since_held = since(sum.since_held, branch.since_held, branch.held > 0);
        sum.since_failed = since(sum.since_failed, branch.since_failed, branch.held < branch.evaluated);
        sum.evaluated = sum.evaluated.saturating_add(branch.evaluated);
        sum.held = sum.held.saturating_add(branch.held);
    }
    sums
}

/// Returns whether an outcome that came so many times, of so many, should have come again in the
/// last ones, if it were as frequent as before.
fn is_used_up(times: u64, evaluated: u64, since: u64) -> bool {
    let before = evaluated.saturating_sub(since);
    times > 0 && before > 0 && times as f64 / before as f64 * since as f64 >= MISSED
}

/// Returns a flag for the first branch that is used up, in a round whose tables were made for it, or
/// over all rounds.
pub fn used_up(rounds: &[&Round]) -> Option<Flag> {
    let each = rounds.iter().map(|round| sums(std::iter::once(*round)));
    let all = std::iter::once(sums(rounds.iter().copied()));
    let text = all.chain(each).flatten().find_map(|branch| {
        let BranchRound { script, line, evaluated, held, since_held, since_failed } = branch;
        let failed = evaluated - held.min(evaluated);
        let (word, times, since) = if is_used_up(held, evaluated, since_held) {
            ("true", held, since_held)
        } else if is_used_up(failed, evaluated, since_failed) {
            ("false", failed, since_failed)
        } else {
            return None;
        };
        Some(format!(
            "the condition at {script}:{line} was {word} in {} of {} attempts, and in none of the last {}: what it \
             needs was used up, and the rate is that of two workloads; put the rows back (--reset, --setup), or make \
             more of them",
            count(times),
            count(evaluated),
            count(since)
        ))
    })?;
    Some(Flag { kind: FlagKind::BranchUsedUp, text })
}

/// Returns a sentence on how often the branches were taken, in all rows together; nothing if the
/// scripts have none.
pub fn sentence(document: &Document) -> Option<String> {
    let cells = document.cells.iter().filter(|cell| !cell.calibration);
    let sums = sums(cells.flat_map(|cell: &Cell| counted_rounds(cell)));
    let taken: Vec<String> = sums
        .iter()
        .take(MOST)
        .map(|branch| {
            let BranchRound { script, line, evaluated, held, .. } = branch;
            format!("{script}:{line} was true in {} of {} attempts", count(*held), count(*evaluated))
        })
        .collect();
    (!taken.is_empty())
        .then(|| format!("Branches, over all rows: the condition at {}.", taken.join(", that at ")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;

    fn round(evaluated: u64, held: u64, since_held: u64, since_failed: u64) -> Round {
        let nothing = (Ledger::default(), LatencyHistogram::new());
        let mut round = Round::from_ledger(1, &nothing.0, &nothing.1, Duration::from_secs(1), Vec::new());
        let script = "pay.sql".to_owned();
        round.branches = vec![BranchRound { script, line: 5, evaluated, held, since_held, since_failed }];
        round
    }

    #[test]
    fn a_branch_that_is_taken_at_the_beginning_only_is_flagged() {
        for (rounds, expected) in [
            (
                vec![round(1300, 100, 1150, 1)],
                Some("was true in 100 of 1,300 attempts, and in none of the last 1,150"),
            ),
            (vec![round(1300, 1200, 0, 1200)], Some("was false in 100 of 1,300 attempts")),
            (vec![round(150, 100, 0, 40), round(1000, 0, 1000, 0)], Some("true in 100 of 1,150")),
            // Tables that are made anew for each round.
            (vec![round(600, 100, 480, 0), round(600, 100, 470, 0)], Some("true in 200 of 1,200")),
            (vec![round(1300, 100, 20, 0)], None),
            (vec![round(1300, 0, 1300, 0)], None),
            (vec![round(1300, 1300, 0, 1300)], None),
            (vec![round(20, 1, 10, 0)], None),
            (Vec::new(), None),
        ] {
            let rounds: Vec<&Round> = rounds.iter().collect();
            let found = used_up(&rounds).map(|flag| flag.text);
            assert_eq!(found.is_some(), expected.is_some(), "{found:?} {expected:?}");
            let text = found.unwrap_or_default();
            assert!(text.contains(expected.unwrap_or_default()), "{text}");
        }
    }
}
