//! Flags: what to know before trusting the numbers of a cell.
//!
//! Not here: when a flag is raised (`summarise`).

use serde::{Deserialize, Serialize};

/// Something about a cell that makes its numbers less certain than they look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flag {
    /// Its kind.
    pub kind: FlagKind,
    /// The observation, and what to do about it, in a sentence.
    pub text: String,
}

/// The kinds of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FlagKind {
    /// Something happened that is impossible at the level that the row is named after.
    LevelContradicted,
    /// The server counted transactions that it ran at a higher level than the one they asked for.
    LevelUpgraded,
    /// The rate hadn't become steady when the longest warm-up was over.
    NotWarm,
    /// The rate was lower or higher at the start than later: the warm-up was too short.
    Transient,
    /// The rate rose or fell from the start to the end of the rounds.
    Drift,
    /// The rate had two levels.
    Bimodal,
    /// The measuring program was busy nearly all the time, so the number may be its own.
    ClientBound,
    /// The measuring program used a large share of the processors that the server needed, too.
    ClientShare,
    /// The server counted something else than we did.
    CountsDiffer,
    /// The clients of one machine committed much less than those of the others, or started late.
    UnevenMachines,
    /// The rate that was asked for wasn't reached.
    BehindSchedule,
    /// For a while nothing was committed: the server, the network or this machine stood still, or
    /// clients waited in a deadlock.
    StoodStill,
    /// A branch of a script was taken at the beginning and later no more.
    BranchUsedUp,
}

impl FlagKind {
    /// The kind in few words.
    pub const fn name(self) -> &'static str {
        match self {
            FlagKind::LevelContradicted => "level contradicted",
            FlagKind::LevelUpgraded => "level upgraded",
            FlagKind::NotWarm => "never steady",
            FlagKind::Transient => "unsteady start",
            FlagKind::Drift => "drifts",
            FlagKind::Bimodal => "two speeds",
            FlagKind::ClientBound => "client-bound",
            FlagKind::ClientShare => "client's share",
            FlagKind::CountsDiffer => "counts differ",
            FlagKind::UnevenMachines => "uneven machines",
            FlagKind::BehindSchedule => "behind schedule",
            FlagKind::StoodStill => "stood still",
            FlagKind::BranchUsedUp => "branch used up",
        }
    }
}
