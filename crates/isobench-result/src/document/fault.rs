//! What happened to the server during a round, and what the data then told of its attempts.
//!
//! Not here: how a cell's rounds are summed up (`summary`), and its words (`view`, `text`).

use serde::{Deserialize, Serialize};

/// A fault, and how long the clients felt it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FaultEvent {
    /// What happened, and when it was to happen, as in the plan: crash@1.5.
    pub fault: String,
    /// When it happened, in seconds from the start of the measured part; null if the clients had
    /// finished before.
    pub at_s: Option<f64>,
    /// Seconds from then until the server accepted connections again, or went on; null if it didn't.
    pub back_s: Option<f64>,
    /// The longest time without an acknowledged commit, in seconds, of those that overlap the time from
    /// the fault until the server was back: from the commit before it to the one after it.
    pub silent_s: Option<f64>,
    /// Seconds from the fault to the commit that ended this time; null if none did.
    pub first_commit_s: Option<f64>,
    /// Why the server didn't come back, or what else went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The attempts of a round by what the clients were told and what is in the data: each transaction
/// leaves a row with its attempt's number. Counts attempts of the measured part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Settlement {
    /// Attempts whose commit was acknowledged.
    pub acknowledged: u64,
    /// Those of them whose row is there.
    pub found: u64,
    /// Those of them whose row isn't there.
    pub lost: u64,
    /// How long before the fault the first of these was acknowledged, in seconds; null without any.
    pub lost_before_s: Option<f64>,
    /// Attempts that may have been committed, but weren't acknowledged.
    pub unacknowledged: u64,
    /// Those of them whose row is there.
    pub kept: u64,
    /// Attempts that weren't committed: the server said so, or no commit was sent.
    pub failed: u64,
    /// Those of them whose row is there although they failed, which nothing permits.
    pub failed_kept: u64,
    /// Attempts with several rows, which nothing permits.
    pub repeated: u64,
    /// Rows of no attempt of the run.
    pub strangers: u64,
    /// True if the settings promise that acknowledged commits survive what happened (PostgreSQL
    /// manual, "Asynchronous Commit" and `synchronous_commit`); null if that isn't known.
    pub promised: Option<bool>,
    /// The settings that decide it.
    pub settings: String,
    /// Why nothing can be said; null if the rows were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// The faults of a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FaultRound {
    /// What happened, in the order of time.
    pub faults: Vec<FaultEvent>,
    /// Sessions that were lost and given up for others.
    pub lost_sessions: u64,
    /// Clients that had no session at the end.
    pub away: u32,
    /// The attempts by what the data tell.
    pub settlement: Settlement,
}

/// How far the standby on which clients read was behind its server, in samples of the measured part, ten
/// per second (PostgreSQL manual, view `pg_stat_replication`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StandbyLag {
    /// Number of samples.
    pub samples: u32,
    /// Bytes of the log that the standby hadn't replayed, on average.
    pub bytes_mean: f64,
    /// The most of them.
    pub bytes_max: f64,
    /// Milliseconds from a flush on the server until the standby had replayed it, on average over the
    /// samples that have it.
    pub replay_ms_mean: Option<f64>,
    /// The most of them.
    pub replay_ms_max: Option<f64>,
}

/// What another session did on the server during the measured part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BackgroundWork {
    /// What it was to do, as in the plan: vacuum.
    pub kind: String,
    /// How often it finished that; 1 for a transaction that stayed open. What the end of the measured
    /// part cut off isn't counted.
    pub times: u64,
    /// Seconds from its beginning to its end, on average; null if it never finished.
    pub mean_s: Option<f64>,
    /// Why it ended before the clients did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What the data say about the commits that clients were told of, in the order in which one round's
/// stands for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// All acknowledged commits are there.
    Kept,
    /// Nothing can be said.
    Withheld,
    /// Some are lost, which the settings permit.
    Lost,
    /// Some are lost although the settings promise to keep them, or failed ones are there.
    Broken,
}

impl Settlement {
    /// What the data say.
    pub fn durability(&self) -> Durability {
        if self.withheld.is_some() {
            return Durability::Withheld;
        }
        match (self.failed_kept + self.repeated, self.lost, self.promised) {
            (1.., _, _) | (0, 1.., Some(true)) => Durability::Broken,
            (0, 0, _) => Durability::Kept,
            (0, _, Some(false)) => Durability::Lost,
            (0, _, None) => Durability::Withheld,
        }
    }
}

impl FaultRound {
    /// The longest time of this kind among its faults; `None` if none has one.
    pub fn longest(&self, of: impl Fn(&FaultEvent) -> Option<f64>) -> Option<f64> {
        self.faults.iter().filter_map(of).filter(|time| time.is_finite()).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_promised_is_held_against_the_server() {
        let of = |lost, failed_kept, promised| {
            Settlement { lost, failed_kept, promised, ..Settlement::default() }.durability()
        };
        assert_eq!(of(0, 0, Some(true)), Durability::Kept);
        assert_eq!(of(3, 0, Some(false)), Durability::Lost);
        assert_eq!(of(3, 0, Some(true)), Durability::Broken);
        assert_eq!(of(3, 0, None), Durability::Withheld);
        assert_eq!(of(0, 1, Some(false)), Durability::Broken);
        let unread = Settlement { withheld: Some("gone".to_owned()), lost: 3, ..Settlement::default() };
        assert_eq!(unread.durability(), Durability::Withheld);
        let repeated = Settlement { repeated: 1, promised: Some(false), ..Settlement::default() };
        assert_eq!(repeated.durability(), Durability::Broken);
    }

    #[test]
    fn of_several_rounds_a_doubt_is_worse_than_nothing_lost() {
        use Durability::{Broken, Kept, Lost, Withheld};
        assert_eq!([Kept, Withheld, Kept].into_iter().max(), Some(Withheld));
        assert_eq!([Withheld, Lost].into_iter().max(), Some(Lost));
        assert_eq!([Broken, Withheld, Lost].into_iter().max(), Some(Broken));
    }
}
