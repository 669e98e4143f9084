//! The rounds of a case: every contender once per round, in the same order, and their results.

use std::time::Duration;

use isobench_script::Prng;

use crate::case::Case;
use crate::client::{ClientError, Sample, run};
use crate::contender::{Address, Contender};
use crate::ratio::{Ratio, median};

/// The time allowed for a client beyond its run time, to connect and to finish its last
/// transactions.
const GRACE: Duration = Duration::from_secs(90);

/// The samples of a case, one per round and contender, in the order of the contenders.
#[derive(Clone, Debug)]
pub struct Rounds {
    samples: Vec<Vec<Sample>>,
}

/// A contender's medians, and its ratios to the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContenderSummary {
    /// Client CPU per transaction, in microseconds: user and system.
    pub cpu: f64,
    /// The user part.
    pub user: f64,
    /// The system part.
    pub system: f64,
    /// The reference's CPU per transaction divided by this one's.
    pub less_cpu: Option<Ratio>,
    /// The tps divided by the reference's tps.
    pub tps: Option<Ratio>,
}

impl Rounds {
    /// Runs a case.
    ///
    /// # Errors
    /// If a client fails; the results of earlier rounds are lost.
    pub fn run(
        contenders: &[Contender],
        case: Case,
        address: &Address,
        rounds: u32,
        time: Duration,
    ) -> Result<Rounds, ClientError> {
        Rounds::arranged(contenders, case, address, (rounds, time), |_| {})
    }

    /// Runs a case, each round in a different order.
    ///
    /// # Errors
    /// If a client fails; the results of earlier rounds are lost.
    pub fn shuffled(
        contenders: &[Contender],
        case: Case,
        address: &Address,
        rounds: u32,
        time: Duration,
    ) -> Result<Rounds, ClientError> {
        let mut rng = Prng::seed(u64::from(rounds));
        Rounds::arranged(contenders, case, address, (rounds, time), |order| rng.shuffle(order))
    }

    /// Runs a case; `arrange` changes the order of the contenders before each round.
    fn arranged(
        contenders: &[Contender],
        case: Case,
        address: &Address,
        (rounds, time): (u32, Duration),
        mut arrange: impl FnMut(&mut [usize]),
    ) -> Result<Rounds, ClientError> {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        let mut samples = Vec::new();
        for _ in 0..rounds {
            arrange(&mut order);
            let mut round = Vec::new();
            for &place in &order {
                let command = &mut contenders[place].command(case, address, time);
                round.push((place, run(command, time + GRACE)?));
            }
            round.sort_by_key(|(place, _)| *place);
            samples.push(round.into_iter().map(|(_, sample)| sample).collect());
        }
        Ok(Rounds { samples })
    }

    /// The results of a contender compared with a reference; both are indices of contenders.
    pub fn summary(&self, contender: usize, reference: usize) -> Option<ContenderSummary> {
        let pairs: Vec<(&Sample, &Sample)> = self
            .samples
            .iter()
            .map(|round| Some((round.get(contender)?, round.get(reference)?)))
            .collect::<Option<_>>()?;
        let middle = |value: fn(&Sample) -> f64| median(pairs.iter().map(|(own, _)| value(own)));
        Some(ContenderSummary {
            cpu: middle(Sample::cpu),
            user: middle(Sample::user_cpu),
            system: middle(Sample::system_cpu),
            less_cpu: Ratio::of(pairs.iter().map(|(own, reference)| (reference.cpu(), own.cpu()))),
            tps: Ratio::of(pairs.iter().map(|(own, reference)| (own.tps, reference.tps))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(micros: u64, tps: f64) -> Sample {
        let user = Duration::from_micros(micros);
        Sample { transactions: 1, tps, memory: 0, connecting: Duration::ZERO, user, system: user }
    }

    #[test]
    fn ratios_pair_the_rounds() {
        // The second round is slow for both, so the ratio stays the same.
        let samples = vec![vec![sample(1, 20.0), sample(2, 10.0)], vec![sample(10, 2.0), sample(20, 1.0)]];
        let summary = Rounds { samples }.summary(0, 1).unwrap();
        assert_eq!(summary.less_cpu.unwrap().to_string(), "2.00 (2.00..2.00)");
        assert_eq!(summary.tps.unwrap().to_string(), "2.00 (2.00..2.00)");
        let medians = [summary.user, summary.system, summary.cpu];
        assert_eq!(medians.map(|median| format!("{median:.2}")), ["5.50", "5.50", "11.00"]);
    }

    #[test]
    fn who_did_not_run_has_no_standing() {
        let samples = vec![vec![sample(1, 1.0)]];
        assert_eq!(Rounds { samples }.summary(1, 0), None);
    }
}
