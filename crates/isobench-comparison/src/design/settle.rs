//! The time for further rounds if the planned ones don't settle which level to use.
//!
//! Not here: whether they settle it (`isobench_result::unsettled`).

use std::time::Duration;

use isobench_plan::Plan;

use super::values::{seconds, wrong};
use crate::failure::Outcome;

/// The default of `--settle`, in seconds.
const EXTRA: f64 = 30.0;

/// Without `--settle` no further round ends after this time in all: a comparison by default takes
/// about a minute.
const IN_ALL: Duration = Duration::from_secs(70);

/// Fewer rounds have no interval, so that there is nothing to settle by a few more.
const FEWEST_ROUNDS: u32 = 3;

/// The time for further rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// The time after the planned rounds.
    pub extra: Duration,
    /// The time since the start of the first round; `None`: unlimited.
    in_all: Option<Duration>,
}

impl Settling {
    /// The time that a plan allows; `None` if its number of rounds is fixed.
    ///
    /// It is where something else ends them (a resolution), where something follows (a sweep), where
    /// levels aren't chosen by their cost (faults), where the length isn't a time, and where the design
    /// was published.
    ///
    /// # Errors
    /// The option is out of range, or the plan fixes its rounds.
    pub fn of(plan: &Plan) -> Outcome<Option<Settling>> {
        let asked = plan.settle.filter(|extra| *extra != 0.0);
        let extra = seconds("settle", plan.settle.unwrap_or(EXTRA), 0.0)?;
        let fixed = [
            ("--resolve", plan.resolve.is_some()),
            ("--sweep", plan.sweeps()),
            ("--fault", !plan.faults().is_empty()),
            ("--transactions", plan.transactions.is_some()),
        ];
        let fixed = fixed.into_iter().find(|(_, given)| *given);
        if let (Some(_), Some((option, _))) = (asked, fixed) {
            return Err(wrong(
                "settle",
                format!("excludes {option}, which fixes the rounds; give one of them"),
            ));
        }
        let is_fixed = fixed.is_some() || (plan.experiment.is_some() && asked.is_none());
        if extra.is_zero() || is_fixed || plan.rounds() < FEWEST_ROUNDS {
            return Ok(None);
        }
        Ok(Some(Settling { extra, in_all: asked.is_none().then_some(IN_ALL) }))
    }

    /// True if a round that takes `next` may follow, `extra` after the planned rounds and `in_all` after
    /// the start.
    pub fn allows(&self, extra: Duration, in_all: Duration, next: Duration) -> bool {
        extra + next <= self.extra && self.in_all.is_none_or(|most| in_all + next <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rounds: u32) -> Plan {
        Plan { rounds: Some(rounds), ..Plan::default() }
    }

    #[test]
    fn a_default_run_ends_within_75_seconds() {
        let settling = Settling::of(&plan(8)).unwrap().unwrap();
        let s = Duration::from_secs;
        assert!(settling.allows(s(0), s(50), s(6)));
        assert!(!settling.allows(s(15), s(65), s(6)), "more than 70 s in all");
        assert!(!settling.allows(s(25), s(40), s(6)), "more than 30 s");
        let asked = Settling::of(&Plan { settle: Some(600.0), ..plan(8) }).unwrap().unwrap();
        assert!(asked.allows(s(500), s(900), s(60)), "who asks for it has the time");
    }

    #[test]
    fn rounds_that_are_fixed_stay_as_they_are() {
        for fixed in [
            plan(2),
            Plan { settle: Some(0.0), ..plan(8) },
            Plan { transactions: Some(100), ..plan(8) },
            Plan { sweep: Some(true), ..plan(8) },
            Plan { experiment: Some(isobench_plan::Experiment::default()), ..plan(8) },
        ] {
            assert_eq!(Settling::of(&fixed).unwrap(), None, "{fixed:?}");
        }
        let both = Plan { settle: Some(9.0), transactions: Some(100), ..plan(8) };
        let refused = Settling::of(&both).unwrap_err().to_string();
        assert!(refused.contains("--settle") && refused.contains("--transactions"), "{refused}");
        assert!(Settling::of(&plan(3)).unwrap().is_some());
    }
}
