//! One measurement of a cell: its ledger, its conflicts, its latencies, its invariants.
//!
//! Not here: conclusions from several rounds.

use std::collections::BTreeMap;
use std::time::Duration;

use isobench_stats::{Attempts, LatencyHistogram, Ledger, LedgerError, TimeLedger, Transactions};
use serde::{Deserialize, Serialize};

use super::{
    BackgroundWork, ClientLoad, FaultRound, Latency, MachineRound, RecordedHistory, Series, ServerSide,
    StandbyLag, Turns, UsedEventLoop, Verdict,
};
use crate::numbers::finite;

/// Attempts that ended with the same conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conflict {
    /// The server's error code: 40001 (serialization failure), 40P01 (deadlock) or the product's
    /// own.
    pub sqlstate: String,
    /// The first line of the script's command that failed, COMMIT included.
    pub command: String,
    /// The name of that script; null in results of versions that didn't keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The line of the script on which the command starts, from 1; null as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The server's reason, without what differs from case to case.
    pub reason: String,
    /// The table, or the table and the row, that the server's message names; null if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The number of attempts that ended this way.
    pub count: u64,
}

/// A statement about the database that must be true after the round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invariant {
    /// The statement that was checked.
    pub name: String,
    /// True if it held; null if it couldn't be checked.
    pub held: Option<bool>,
    /// The numbers found, or why it couldn't be checked.
    #[serde(default)]
    pub detail: String,
    /// The number of things it doesn't hold for: shifts without a doctor on call, reports that
    /// changed. Null where it isn't counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violations: Option<u64>,
    /// The unit of `violations`, in the plural: accounts, units of stock. Null in results of earlier
    /// versions, and where nothing is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// False if the level asked for doesn't promise this, so that a violation shows what the level
    /// permits, and breaks no promise.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub promised: bool,
    /// True for a condition of the user's (`--invariant`). Whether each transaction alone keeps it,
    /// without which no level can, isn't known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
}

/// The warm-up before a round. Nothing of it is in the round's counts, but it is in the tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Warmup {
    /// Duration in seconds.
    pub seconds: f64,
    /// In how many steps it was made: it goes on until the rate is steady, or its longest time is
    /// over.
    pub steps: u32,
    /// False if the rate wasn't steady at its end; null if that wasn't looked at.
    pub steady: Option<bool>,
    /// Attempts started.
    pub attempts: u64,
    /// Transactions committed.
    pub committed: u64,
    /// Transactions with an unknown outcome.
    pub ambiguous: u64,
}

/// The way in which the tables came into the state in which a measurement started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StartingState {
    /// They were made anew.
    #[default]
    Made,
    /// They were loaded before, and their rows put back: what the server keeps of old rows may
    /// still be there.
    PutBack,
    /// They were there, and were left as they are.
    Found,
    /// They are the user's, and the user's own SQL put their rows back.
    Reset,
    /// They are the user's, and were left as the measurement before had left them.
    Kept,
}

impl StartingState {
    /// On which tables that is, as a phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            StartingState::Made => "on fresh tables",
            StartingState::PutBack => "on tables that were loaded once and their rows put back",
            StartingState::Found => "on the tables that were there",
            StartingState::Reset => "on tables that were there, after the user's own SQL (--reset)",
            StartingState::Kept => "on tables that were there, as the measurement before had left them",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_made(&self) -> bool {
        *self == StartingState::Made
    }
}

/// The counts of one of several scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptRound {
    /// The script's name, as in `workload.scripts`.
    pub name: String,
    /// Its transactions by how they ended. The scripts' add up to the round's.
    pub transactions: Transactions,
    /// Its attempts that ended with a conflict.
    pub conflicts: u64,
    /// The latency of those that committed, without the distribution.
    pub latency_ms: Latency,
    /// The levels that its transactions named just before their COMMIT, with the number of answers;
    /// kept where each script has a level of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels_named: BTreeMap<String, u64>,
}

/// The outcomes of a condition of a script (`\if`, `\elif`), in all attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BranchRound {
    /// The script's name, as in `workload.scripts`.
    pub script: String,
    /// The line of the script, from 1.
    pub line: u32,
    /// Number of times it was evaluated.
    pub evaluated: u64,
    /// Those in which it was true.
    pub held: u64,
    /// Those since it was last true, of each worker, added up.
    pub since_held: u64,
    /// Those since it was last false, likewise.
    pub since_failed: u64,
}

/// One measurement of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Round {
    /// Number of the round, from 1. Cells of the same round are compared with one another.
    #[serde(default)]
    pub round: u32,
    /// Position of this measurement within the round, from 1; cells are shuffled in every round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// False if the measurement ended before its time or number of transactions was reached.
    #[serde(default = "yes")]
    pub complete: bool,
    /// The way in which the tables came into their starting state; missing if they were made anew.
    #[serde(default, skip_serializing_if = "StartingState::is_made")]
    pub starting_state: StartingState,
    /// Duration in seconds, from the moment when all clients are connected and warmed up to the end
    /// of the last one's work.
    pub seconds: f64,
    /// The attempts by how they ended.
    pub attempts: Attempts,
    /// The transactions by how they ended.
    pub transactions: Transactions,
    /// The same by script, in the order of the mix; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptRound>,
    /// The conditions of the scripts, in their order; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchRound>,
    /// Attempts ended by a conflict, by error code, command and reason.
    #[serde(default)]
    pub conflicts: Vec<Conflict>,
    /// Attempts ended by an error that is no conflict but was retried as one, because the plan
    /// names its code (`retry-sqlstate`), likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_errors: Vec<Conflict>,
    /// The clients' time by use.
    pub time_s: TimeLedger,
    /// Latency of the committed transactions.
    #[serde(deserialize_with = "Latency::of_round")]
    pub latency_ms: Latency,
    /// The invariants checked in the database afterwards.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
    /// The verdict on the recorded history; null if the workload's scripts don't say what they read
    /// and write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The file with the history; null unless it was written (`--history`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<RecordedHistory>,
    /// Committed transactions ÷ seconds; null if no time passed.
    pub tps: Option<f64>,
    /// Transactions above the latency limit; null without one. pgbench: "number of transactions
    /// above the … latency limit".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// The levels that the scripts' own transactions named, sampled, when they were asked just
    /// before COMMIT, with the number of transactions that named each, warm-up included. Empty
    /// where statements are outside of transaction blocks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels_named: BTreeMap<String, u64>,
    /// The contradictions to the level of the row: other answers of transactions, errors and locks
    /// that are impossible at that level, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// The errors that ended clients or the measurement before their time, a text each; of errors
    /// after which the clients went on (`continue-on-error`) the first of each code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// User and system time of the measuring process during the measurement, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_s: Option<f64>,
    /// Time from the first connection's start to the last one's readiness, in seconds. Not part of
    /// `seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_s: Option<f64>,
    /// The slices in which it was measured; null if in one piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// The warm-up before the clock started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
    /// The time series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// What happened to the server, and what became of the attempts; null if nothing was to happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultRound>,
    /// How far the standby was behind on which clients read; null if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_lag: Option<StandbyLag>,
    /// What another session did on the server meanwhile; null if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundWork>,
    /// The load of the measuring program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientLoad>,
    /// The machines that measured together, by rank; empty if there was one. The round's figures
    /// are those of all, and `client` has the worst of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineRound>,
    /// How the measuring program waited for its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_loop: Option<UsedEventLoop>,
    /// The server's own statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSide>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A round whose counts contradict one another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("round {round}: {cause}")]
pub struct RoundError {
    /// The number of the round.
    pub round: u32,
    /// The identity that doesn't hold.
    pub cause: LedgerError,
}

impl Round {
    /// A complete measurement from what the recorders hold. Set the optional fields afterwards.
    ///
    /// `conflicts` must account for every one of `ledger.conflicts`; [`Round::check`] checks that.
    /// Documents keep no `ledger.retries` and `ledger.late` is kept only if the caller sets
    /// [`Round::late`].
    pub fn from_ledger(
        round: u32,
        ledger: &Ledger,
        latency: &LatencyHistogram,
        duration: Duration,
        conflicts: Vec<Conflict>,
    ) -> Self {
        let seconds = duration.as_secs_f64();
        Round {
            round,
            order: None,
            complete: true,
            starting_state: StartingState::Made,
            seconds,
            attempts: ledger.attempts,
            transactions: ledger.transactions,
            scripts: Vec::new(),
            branches: Vec::new(),
            conflicts,
            further_errors: Vec::new(),
            time_s: ledger.time,
            latency_ms: Latency::measured(latency),
            invariants: Vec::new(),
            verdict: None,
            history: None,
            tps: finite(ledger.transactions.committed as f64 / seconds),
            late: None,
            levels_named: BTreeMap::new(),
            contradictions: Vec::new(),
            errors: Vec::new(),
            client_cpu_s: None,
            connect_s: None,
            turns: None,
            warmup: None,
            series: None,
            faults: None,
            standby_lag: None,
            background: None,
            client: None,
            machines: Vec::new(),
            event_loop: None,
            server: None,
        }
    }

    /// The account of the round, as the recorders had it. Conflicts are the sum of the itemised
    /// ones; retries follow from the identities.
    pub fn ledger(&self) -> Ledger {
        let ran = self.transactions.total.saturating_sub(self.transactions.skipped);
        let sum = |errors: &[Conflict]| errors.iter().fold(0_u64, |sum, one| sum.saturating_add(one.count));
        Ledger {
            attempts: self.attempts,
            transactions: self.transactions,
            time: self.time_s,
            conflicts: sum(&self.conflicts),
            further_errors: sum(&self.further_errors),
            retries: self.attempts.started.saturating_sub(ran),
            late: self.late.unwrap_or(0),
        }
    }

    /// The errors after which attempts may be retried: conflicts, and those that the plan names.
    pub fn retryable(&self) -> impl Iterator<Item = &Conflict> {
        self.conflicts.iter().chain(&self.further_errors)
    }

    /// Checks the accounting rules on what the document holds.
    ///
    /// # Errors
    /// [`RoundError`] with the first identity that doesn't hold.
    pub fn check(&self) -> Result<(), RoundError> {
        self.ledger().check().map_err(|cause| RoundError { round: self.round, cause })
    }

    /// True if an invariant was found broken that the level promises.
    pub fn is_violated(&self) -> bool {
        self.invariants.iter().any(|invariant| invariant.held == Some(false) && invariant.promised)
    }

    /// True if one of these is of isobench's own, and so every transaction alone keeps it.
    pub fn is_wrong(&self) -> bool {
        let wrong = |it: &Invariant| it.held == Some(false) && it.promised && !it.own;
        self.invariants.iter().any(wrong)
    }

    /// The first invariant with violations. (Not a sum of all: the same thing may break several, and
    /// their units differ.)
    pub fn violated(&self) -> Option<&Invariant> {
        self.invariants.iter().find(|invariant| invariant.violations.is_some_and(|count| count > 0))
    }

    /// Violations of that invariant; 0 if there is none.
    pub fn violations(&self) -> u64 {
        self.violated().and_then(|invariant| invariant.violations).unwrap_or(0)
    }

    /// True if the history contradicts what the level promises.
    pub fn breaks_promise(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false))
    }
}

impl Invariant {
    /// An invariant that was checked.
    pub fn checked(name: impl Into<String>, held: bool, detail: impl Into<String>) -> Self {
        Invariant {
            name: name.into(),
            held: Some(held),
            detail: detail.into(),
            violations: None,
            unit: None,
            promised: true,
            own: false,
        }
    }

    /// An invariant that couldn't be checked, and why.
    pub fn unchecked(name: impl Into<String>, why: impl Into<String>) -> Self {
        Invariant { held: None, ..Invariant::checked(name, false, why) }
    }
}
