//! One combination of the plan's factors (workload, strategy, level, clients, retry policy …), with
//! its rounds.
//!
//! Not here: which cell is compared with which.

use std::collections::BTreeMap;

use isobench_isolation::{EffectiveLevel, Level};
use isobench_plan::DEFAULT_STRATEGY;
use serde::{Deserialize, Serialize};

use super::{Round, Summary, Tried, Verdict, WrongOutcome};

/// The isolation level of a cell: asked for, and what the server says it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellLevel {
    /// The level asked for; null if the server's default was left in place.
    pub requested: Option<Level>,
    /// The level that the server names inside a transaction of every session, read before
    /// measuring; "unknown" if it doesn't say. This is the server's word, not a proof.
    pub effective: EffectiveLevel,
}

impl CellLevel {
    /// A level asked for, and what the server answers.
    pub fn new(requested: Option<Level>, effective: EffectiveLevel) -> Self {
        CellLevel { requested, effective }
    }

    /// True if the server runs another level than the one asked for, or doesn't say which.
    pub fn differs(&self) -> bool {
        self.requested.is_some_and(|level| self.effective.differs_from(level))
    }

    /// The name to call the cell by: the level asked for, else the one in effect.
    pub fn name(&self) -> String {
        self.requested.map_or_else(|| self.effective.to_string(), |level| level.name().to_owned())
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
}
