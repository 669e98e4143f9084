//! One combination of the plan's factors (workload, strategy, level, clients, retry policy …), with
//! its rounds.
//!
//! Not here: which cell is compared with which.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, EffectiveLevel, Level};
use isobench_plan::DEFAULT_STRATEGY;
use serde::{Deserialize, Serialize};

use super::{Durability, FaultRound, Round, Summary, Tried, Verdict, WrongOutcome};

/// The isolation level of a cell: asked for, and what the server says it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellLevel {
    /// The level asked for; null if the server's default was left in place, or each script has a
    /// level of its own.
    pub requested: Option<Level>,
    /// The level that the server names inside a transaction of every session, read before
    /// measuring; "unknown" if it doesn't say. This is the server's word, not a proof. With a level
    /// for each script, their name, or "other levels" if the server ran others.
    pub effective: EffectiveLevel,
    /// The levels of each script, as `--allocation` gives them; null if all have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// The level of each script, if they have their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptLevel>,
}

/// The modes of one script's transactions: asked for, and what the server says it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptLevel {
    /// The script's name, as in `workload.scripts`.
    pub script: String,
    /// The level that each of its transactions asks for.
    pub requested: Level,
    /// True if they ask for READ ONLY.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// True if they ask for DEFERRABLE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferrable: bool,
    /// The level that the server names in a transaction that asks in the same way, read before
    /// measuring.
    pub effective: EffectiveLevel,
}

impl ScriptLevel {
    /// The modes of a script, and what the server answers.
    pub fn new(script: String, mode: Mode, effective: EffectiveLevel) -> ScriptLevel {
        let Mode { level, read_only, deferrable } = mode;
        ScriptLevel { script, requested: level, read_only, deferrable, effective }
    }

    /// The modes asked for.
    pub fn mode(&self) -> Mode {
        Mode { level: self.requested, read_only: self.read_only, deferrable: self.deferrable }
    }
}

impl CellLevel {
    /// A level asked for, and what the server answers.
    pub fn new(requested: Option<Level>, effective: EffectiveLevel) -> Self {
        CellLevel { requested, effective, allocation: None, scripts: Vec::new() }
    }

    /// A level for each script, and what the server answers. All scripts of the workload are given.
    pub fn mixed(allocation: Allocation, scripts: Vec<ScriptLevel>) -> Self {
        let effective = EffectiveLevel::Other(allocation.to_string());
        CellLevel { requested: None, effective, allocation: Some(allocation), scripts }
    }

    /// What was asked for: a level for all scripts, or one for each; `None` if nothing was.
    pub fn asked(&self) -> Option<Allocation> {
        self.allocation.clone().or(self.requested.map(Allocation::uniform))
    }

    /// True if both asked for the same.
    pub fn is_as_asked(&self, other: &CellLevel) -> bool {
        self.requested == other.requested && self.allocation == other.allocation
    }

    /// True if every script has at least the level that it has in the other cell, of the same scripts,
    /// and one a stronger one.
    pub fn is_stronger_than(&self, other: &CellLevel) -> bool {
        let (Some(own), Some(its)) = (self.asked(), other.asked()) else { return false };
        let mut scripts: Vec<&str> =
            self.scripts.iter().chain(&other.scripts).map(|script| script.script.as_str()).collect();
        if scripts.is_empty() {
            // Both have one level for all.
            scripts.push("");
        }
        let orders = || scripts.iter().map(|script| own.of(script).level.cmp(&its.of(script).level));
        orders().all(Ordering::is_ge) && orders().any(Ordering::is_gt)
    }

    /// The weakest and the strongest level of any script, by which cells are put in order; `None` if
    /// no level was asked for.
    pub fn range(&self) -> Option<(Level, Level)> {
        let levels = || self.scripts.iter().map(|script| script.requested);
        levels().min().zip(levels().max()).or_else(|| self.asked().map(|asked| asked.range()))
    }

    /// True if the server runs another level than the one asked for, or doesn't say which.
    pub fn differs(&self) -> bool {
        let name = self.allocation.as_ref().map(Allocation::to_string);
        let other = name.is_some_and(|name| self.effective.to_string() != name);
        let of_script = |script: &ScriptLevel| script.effective.differs_from(script.requested);
        self.requested.is_some_and(|level| self.effective.differs_from(level))
            || other
            || self.scripts.iter().any(of_script)
    }

    /// The name in a sentence.
    pub fn said(&self) -> String {
        self.allocation.as_ref().map_or_else(|| self.name(), Allocation::said)
    }

    /// The name to call the cell by: what was asked for, else the level in effect.
    pub fn name(&self) -> String {
        match (&self.allocation, self.requested) {
            (Some(allocation), _) => allocation.to_string(),
            (None, Some(level)) => level.name().to_owned(),
            (None, None) => self.effective.to_string(),
        }
    }
}

/// One combination of the plan's factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The name of the workload: its script or scripts.
    pub workload: String,
    /// Scale of the tables.
    pub scale: u32,
    /// Number of simulated users, all of which stay alive through conflicts.
    pub clients: u32,
    /// Number of worker threads.
    pub jobs: u32,
    /// The query protocol: simple, extended or prepared.
    pub protocol: String,
    /// The retry policy: how long a client waits before it tries again.
    pub backoff: String,
    /// Transactions per second that were to start, over all clients; null: as many as possible.
    /// pgbench: -R.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// True for an A/A cell: the first level measured again, to learn how much equal cells differ
    /// on this machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calibration: bool,
    /// The strategy against conflicts, by its name ("retry", "for-update" …); null if the plan
    /// doesn't vary it, and then a conflict makes the client try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The other parameters that the plan varies: those of the workload or its tables, settings
    /// ("setting:" and the name), "server-version" and "server-bin", each with its value in this cell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, String>,
    /// The settings that the plan varies, by name, as the server or every session shows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The server that it was measured on: 0 is the document's `server`, others are those of
    /// `other_servers`, from 1.
    #[serde(default, skip_serializing_if = "is_first")]
    pub server: usize,
    /// The isolation level.
    pub level: CellLevel,
    /// What trying the scripts against each other showed at this level; null if they weren't tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
    /// The measurements, in the order in which they were made.
    pub rounds: Vec<Round>,
    /// The conclusions from the rounds. Computed, so they can be computed again.
    #[serde(default)]
    pub summary: Summary,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(server: &usize) -> bool {
    *server == 0
}

impl Cell {
    /// True if the histories of its rounds contradict what the level promises. A history that
    /// contradicts itself leaves that unknown for all of them, as they are of the same scripts.
    pub fn breaks_promise(&self) -> bool {
        let doubtful = |round: &Round| round.verdict.as_ref().is_some_and(Verdict::is_doubtful);
        self.rounds.iter().any(Round::breaks_promise) && !self.rounds.iter().any(doubtful)
    }

    /// A cell without rounds: one client, one worker, scale 1, simple protocol, no backoff. Set
    /// what differs.
    pub fn new(workload: impl Into<String>, level: CellLevel) -> Self {
        Cell {
            workload: workload.into(),
            scale: 1,
            clients: 1,
            jobs: 1,
            protocol: "simple".to_owned(),
            backoff: "none".to_owned(),
            rate: None,
            calibration: false,
            strategy: None,
            varied: BTreeMap::new(),
            settings: BTreeMap::new(),
            server: 0,
            level,
            tried: None,
            rounds: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// The name of the strategy; "retry" if the plan doesn't say any.
    pub fn strategy(&self) -> &str {
        self.strategy.as_deref().unwrap_or(DEFAULT_STRATEGY)
    }

    /// The outcomes that no serial order gives, found by trying the scripts at this level.
    pub fn wrong_outcomes(&self) -> &[WrongOutcome] {
        self.tried.as_ref().map_or(&[], |tried| &tried.found)
    }

    /// Transactions of all rounds that their own script rolled back.
    pub fn rolled_back(&self) -> u64 {
        self.rounds.iter().fold(0, |sum, round| sum.saturating_add(round.transactions.rolled_back))
    }

    /// Transactions of all rounds whose work was lost in an error that their own SQL caught.
    pub fn swallowed(&self) -> u64 {
        self.rounds.iter().fold(0, |sum, round| sum.saturating_add(round.transactions.swallowed))
    }

    /// The faults of all rounds.
    pub fn fault_rounds(&self) -> impl Iterator<Item = &FaultRound> {
        self.rounds.iter().filter_map(|round| round.faults.as_ref())
    }

    /// The worst that the data of its rounds say about durability; `None` if nothing happened.
    pub fn durability(&self) -> Option<Durability> {
        self.fault_rounds().map(|round| round.settlement.durability()).max()
    }

    /// The sum of a count over the rounds; `None` if nothing happened.
    pub fn settled(&self, count: impl Fn(&FaultRound) -> u64) -> Option<u64> {
        self.fault_rounds().map(count).reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell of two scripts, "pay" and "report".
    fn level(text: &str) -> CellLevel {
        let allocation: Allocation = text.parse().expect(text);
        if let Some(level) = allocation.level() {
            return CellLevel::new(Some(level), EffectiveLevel::Standard(level));
        }
        let script = |name: &str| {
            let mode = allocation.of(name);
            ScriptLevel::new(name.to_owned(), mode, EffectiveLevel::Standard(mode.level))
        };
        let scripts = ["pay", "report"].map(script).into();
        CellLevel::mixed(allocation, scripts)
    }

    #[test]
    fn a_cell_is_stronger_if_no_script_is_weaker() {
        for (one, other, stronger) in [
            ("rr", "rc", true),
            ("rc", "rc", false),
            ("pay=ser,*=rc", "rc", true),
            ("ser", "pay=ser,*=rc", true),
            ("pay=ser,*=rc", "rr", false),
            ("rr", "pay=ser,*=rc", false),
            ("pay=ser,report=rr,*=rc", "pay=ser,*=rc", true),
            // No script is left for the rest.
            ("pay=ser,report=rr,*=rc", "rr", true),
            ("report=rr ro,*=rr", "rr", false),
        ] {
            assert_eq!(level(one).is_stronger_than(&level(other)), stronger, "{one}, {other}");
        }
        let unknown = CellLevel::new(None, EffectiveLevel::Standard(Level::ReadCommitted));
        assert!(!level("ser").is_stronger_than(&unknown));
    }

    #[test]
    fn a_mixture_differs_if_any_script_does() {
        let mut mixed = level("pay=ser,*=rc");
        assert!(!mixed.differs());
        assert_eq!(mixed.range(), Some((Level::ReadCommitted, Level::Serializable)));
        mixed.scripts[0].effective = EffectiveLevel::Unknown;
        assert!(mixed.differs());
    }
}
