//! Regressions: where B is worse than A, so that a job in continuous integration fails.
//!
//! Only throughput, what levels cost, and promises count. Latency doesn't: a percentile of a few
//! rounds has no interval that a job could rely on.

use serde::Serialize;

use super::{LevelRatio, Pair, PairRatio, PairedCell};
use crate::numbers::{optional, percent, short};

/// Something in which B is worse than A.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Regression {
    /// The name of the cell, or of the two levels.
    pub cell: String,
    /// The reason, in words.
    pub reason: String,
}

impl Pair {
    /// The cells and the ratios between levels in which B is worse than A.
    ///
    /// | it is worse if | precisely |
    /// |---|---|
    /// | it is slower by more than `limit` (0.05: 5 %) | `ratio.mean` < 1 − `limit`, and `ratio.significant` |
    /// | its level costs more by more than `limit` | the same of the ratio to the first level, of B to A |
    /// | it breaks a promise that A doesn't break | `promise_kept` is false in B, and isn't in A |
    /// | it lacks the cell | it isn't in B; or B has no complete round of it, and A has one |
    pub fn regressions(&self, limit: f64) -> Vec<Regression> {
        let lacking = self
            .only_in_a
            .iter()
            .map(|name| Regression { cell: name.clone(), reason: "B doesn't have it".to_owned() });
        let worse = self.cells.iter().flat_map(|cell| {
            let reasons = [broken(cell), unmeasured(cell), slower(cell, limit)];
            reasons.into_iter().flatten().map(|reason| Regression { cell: cell.name.clone(), reason })
        });
        let dearer = self.levels.iter().filter_map(|level| dearer(level, limit));
        worse.chain(dearer).chain(lacking).collect()
    }

    /// The cells whose throughputs can't be distinguished by any difference, because a side has
    /// less than two complete rounds.
    pub fn undecidable(&self) -> Vec<&str> {
        let decidable = |cell: &&PairedCell| cell.ratio.is_some_and(|ratio| ratio.high.is_some());
        let rest = self.cells.iter().filter(|cell| !decidable(cell));
        rest.map(|cell| cell.name.as_str()).collect()
    }
}

fn broken(cell: &PairedCell) -> Option<String> {
    let is_new = cell.b.promise_kept == Some(false) && cell.a.promise_kept != Some(false);
    is_new.then(|| "B breaks a promise that A doesn't break".to_owned())
}

fn unmeasured(cell: &PairedCell) -> Option<String> {
    (cell.b.rounds == 0 && cell.a.rounds > 0).then(|| "B has no complete round of it".to_owned())
}

fn slower(cell: &PairedCell, limit: f64) -> Option<String> {
    let ratio = less(cell.ratio, limit)?;
    Some(format!("B commits {} less per second than A: {}", percent(1.0 - ratio.mean), times(&ratio)))
}

fn dearer(level: &LevelRatio, limit: f64) -> Option<Regression> {
    let ratio = less(level.ratio, limit)?;
    let [a, b] = [level.a, level.b].map(optional);
    let reason = format!(
        "the ratio is {} less in B than in A, {b} instead of {a}: {}",
        percent(1.0 - ratio.mean),
        times(&ratio)
    );
    Some(Regression { cell: level.name.clone(), reason })
}

/// The ratio, if it is significantly below 1, by more than `limit`.
fn less(ratio: Option<PairRatio>, limit: f64) -> Option<PairRatio> {
    ratio.filter(|ratio| ratio.significant && ratio.mean < 1.0 - limit)
}

/// "0.80 times (0.75 to 0.85)".
fn times(ratio: &PairRatio) -> String {
    let interval = ratio.low.zip(ratio.high);
    let interval =
        interval.map_or_else(String::new, |(low, high)| format!(" ({} to {})", short(low), short(high)));
    format!("{} times{interval}", short(ratio.mean))
}
