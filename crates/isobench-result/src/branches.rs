//! The branches of scripts: how often each was taken, and whether one was taken at the beginning and
//! later no more, because what it needs was used up.

use crate::document::{BranchRound, Cell, Document, Flag, FlagKind, Round};
use crate::numbers::count;
use crate::rounds::counted_rounds;

/// The least surprise, in natural logarithms, at which an outcome counts as used up, and what each further
/// worker adds. If an outcome that comes k times in n attempts is equally likely at any time, the chance
/// that none of a worker's are in the last s of its attempts is (1 - s/n)^k, so that -k·ln(1 - s/n) is at
/// most exponentially distributed, and the sum over w workers at most a gamma distribution of shape w: with
/// this limit that is exceeded by chance less than once in a thousand million conditions.
const SURPRISE: f64 = 25.0;
const OF_EACH_WORKER: f64 = 1.6;

/// An outcome that came fewer times than this has no rate that could change.
const FEWEST: u64 = 20;

/// The attempts in which it is missing are at least this share: fewer don't change the rate much.
const LAST: f64 = 0.1;

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

/// Returns whether an outcome that came so many times, of so many, is missing at the end, in the last ones
/// of each worker, more than by chance.
fn is_used_up(times: u64, evaluated: u64, since: u64, workers: u32) -> bool {
    let missing = since.min(evaluated) as f64 / evaluated.max(1) as f64;
    let surprise = -(times as f64) * (-missing).ln_1p();
    times >= FEWEST && missing >= LAST && surprise >= SURPRISE + OF_EACH_WORKER * f64::from(workers)
}

/// Returns a flag for the first branch that is used up, in a round whose tables were made for it, or
/// over all rounds, with so many workers on each machine.
pub fn used_up(rounds: &[&Round], workers: u32) -> Option<Flag> {
    let machines = rounds.iter().map(|round| round.machines.len()).max().unwrap_or(0).max(1);
    let workers = workers.max(1).saturating_mul(u32::try_from(machines).unwrap_or(u32::MAX));
    let each = rounds.iter().map(|round| sums(std::iter::once(*round)));
    let all = std::iter::once(sums(rounds.iter().copied()));
    let text = all.chain(each).flatten().find_map(|branch| {
        let BranchRound { script, line, evaluated, held, since_held, since_failed } = branch;
        let failed = evaluated - held.min(evaluated);
        let (word, times, since) = if is_used_up(held, evaluated, since_held, workers) {
            ("true", held, since_held)
        } else if is_used_up(failed, evaluated, since_failed, workers) {
            ("false", failed, since_failed)
        } else {
            return None;
        };
        Some(format!(
            "the condition at {script}:{line} was {word} in {} of {} attempts, and in none of the last {}: what made it \
             {word} was used up, and the rate is that of two workloads; put the rows back (--reset, --setup), or make \
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
            // One event has no rate, and a few are missing for long by chance.
            (vec![round(341, 340, 0, 329)], None),
            (vec![round(1300, 12, 1200, 0)], None),
            (vec![round(1300, 30, 700, 0)], None),
            (Vec::new(), None),
        ] {
            let rounds: Vec<&Round> = rounds.iter().collect();
            let found = used_up(&rounds, 1).map(|flag| flag.text);
            assert_eq!(found.is_some(), expected.is_some(), "{found:?} {expected:?}");
            let text = found.unwrap_or_default();
            assert!(text.contains(expected.unwrap_or_default()), "{text}");
        }
    }

    /// Workers with outcomes at random: none is flagged.
    #[test]
    fn chance_is_not_flagged() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        for run in 0..4000_u32 {
            let (workers, chance) =
                ([1, 2, 8, 32][run as usize % 4], [0.01, 0.1, 0.5, 0.99][run as usize / 4 % 4]);
            let mut sum = round(0, 0, 0, 0);
            for _ in 0..workers {
                let (mut held, mut since_held, mut since_failed) = (0, 0, 0);
                for _ in 0..200 {
                    let holds = random() < chance;
                    held += u64::from(holds);
                    (since_held, since_failed) =
                        if holds { (0, since_failed + 1) } else { (since_held + 1, 0) };
                }
                let branch = &mut sum.branches[0];
                branch.evaluated += 200;
                branch.held += held;
                branch.since_held += since_held;
                branch.since_failed += since_failed;
            }
            assert_eq!(used_up(&[&sum], workers), None, "{workers} workers, {chance}, run {run}");
        }
    }
}
