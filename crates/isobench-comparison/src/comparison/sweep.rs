//! The search, after the rounds, for the highest rate at which each level keeps the latency limit.
//!
//! All levels take one step of their search in turn, in the shuffled order of a round, so that no
//! level gets a quieter period. Not here: the search itself (`isobench_stats::Sweep`).

use isobench_result::{Round, SweepResult, SweepStep, summarise};
use isobench_stats::Sweep;

use super::{Comparison, Goes};
use crate::design::{CellPlan, Design, count};

/// A rate is kept if this share of the transactions due commits within the limit.
const SHARE: f64 = 0.99;

/// Relative precision of the highest rate.
const PRECISION: f64 = 0.05;

/// The search for one combination of factors.
struct Search {
    cell: CellPlan,
    sweep: Sweep,
    found: SweepResult,
}

impl Comparison<'_> {
    /// Searches, if the plan asks for it and all rounds are complete. A failure makes the
    /// comparison incomplete, but loses none of its measurements.
    pub(super) fn sweep(&mut self) {
        let design = self.measurer.design;
        let limit = design.latency_limit.filter(|_| design.plan.sweeps());
        let Some(limit) = limit.filter(|_| self.document.incomplete_reason.is_none()) else { return };
        summarise(&mut self.document);
        let mut searches: Vec<Search> = self
            .cells
            .iter()
            .zip(&self.document.cells)
            .filter(|(cell, _)| !cell.calibration)
            .map(|(cell, entry)| {
                let capacity = entry.summary.tps.mean.unwrap_or(0.0);
                Search::new(design, *cell, capacity, limit.as_secs_f64() * 1e3)
            })
            .collect();
        let mut number = design.plan.rounds();
        loop {
            number += 1;
            let rates: Vec<Option<f64>> = searches.iter().map(|search| search.sweep.next_rate()).collect();
            if rates.iter().all(Option::is_none) {
                break;
            }
            for index in design.shuffled(number, searches.len()) {
                let Some(rate) = rates[index] else { continue };
                if self.try_rate(&mut searches[index], rate, number) == Goes::NoFurther {
                    self.document.sweeps = searches.into_iter().map(Search::result).collect();
                    return;
                }
            }
        }
        self.document.sweeps = searches.into_iter().map(Search::result).collect();
        self.save_result();
    }

    /// Measures one rate of one search.
    fn try_rate(&mut self, search: &mut Search, rate: f64, number: u32) -> Goes {
        if self.interrupted() {
            return Goes::NoFurther;
        }
        let cell = CellPlan { rate: Some(rate), ..search.cell };
        let measured = match self.measure(&cell, number) {
            Ok(measured) => measured,
            Err(failure) => {
                self.document.incomplete_reason = Some(failure.to_string());
                return Goes::NoFurther;
            }
        };
        let round = measured.round;
        for note in measured.notes {
            self.warn(&note);
        }
        if !round.complete {
            let why = round.errors.first().cloned();
            let why = why.unwrap_or_else(|| "clients ended before their time".to_owned());
            self.document.incomplete_reason.get_or_insert(why);
            return Goes::NoFurther;
        }
        let step = step(rate, &round);
        self.listener.say(&format!(
            "sweep: {}: {:.1} % within the limit",
            cell.name(self.measurer.design),
            step.within_limit * 100.0
        ));
        search.sweep.answer(rate, step.kept);
        search.found.tried.push(step);
        Goes::On
    }
}

impl Search {
    fn new(design: &Design, cell: CellPlan, capacity: f64, limit_ms: f64) -> Search {
        let found = SweepResult {
            level: Some(cell.level),
            clients: count(cell.clients),
            backoff: cell.backoff.to_string(),
            workload: design.workload_among_several(&cell).unwrap_or_default(),
            strategy: design.works[cell.work].strategy.clone(),
            varied: design.varied(&cell),
            limit_ms,
            capacity,
            highest_kept: None,
            lowest_missed: None,
            tried: Vec::new(),
        };
        Search { cell, sweep: Sweep::new(capacity, PRECISION), found }
    }

    fn result(mut self) -> SweepResult {
        self.found.highest_kept = self.sweep.highest_kept();
        self.found.lowest_missed = self.sweep.lowest_broken();
        self.found
    }
}

/// Returns the outcome of a rate: the share of the transactions due that committed in time. A rate
/// with a broken invariant or promise isn't kept.
fn step(rate: f64, round: &Round) -> SweepStep {
    let due = round.transactions.total;
    let in_time = round.transactions.committed.saturating_sub(round.late.unwrap_or(0));
    let within_limit = if due > 0 { in_time as f64 / due as f64 } else { 0.0 };
    let broken = round.is_violated() || round.breaks_promise();
    SweepStep {
        rate,
        within_limit,
        p99_ms: round.latency_ms.p99,
        kept: within_limit >= SHARE && !broken,
        broken,
    }
}
