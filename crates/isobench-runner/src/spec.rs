//! What a run is asked to do, as values: when it stops, how it is paced, how it treats failures.
//!
//! One loop holds them all; a new policy is a new variant here and a simulation test, never another
//! loop.

use std::time::Duration;

use crate::event::Detail;
use crate::retry::RetryPolicy;
use crate::rules::Rules;

/// When clients begin no further transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After this many transactions of each client, skipped ones included (pgbench: `-t`).
    Transactions(u64),
    /// After this time since the measuring clock started, which is when all clients are connected
    /// (pgbench: `-T`, which counts connecting). What is under way then is finished, but not
    /// retried.
    Time(Duration),
}

/// When a client begins its next transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// As soon as the last one ended (a closed loop).
    Unpaced,
    /// This long after the last one ended.
    ThinkTime(Duration),
    /// By a schedule with exponentially distributed gaps of this mean number per second over all
    /// clients (pgbench: `-R`). Latency then counts from the scheduled start.
    Rate(f64),
}

/// How statements reach the server (pgbench: `-M`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Query messages, variables put into the text.
    #[default]
    Simple,
    /// Parse, Bind and Execute every time, variables as parameters.
    Extended,
    /// Parse once in a session, then Bind and Execute.
    Prepared,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

    /// The name that `-M` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        }
    }
}

/// What a client does after an error that is no conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It ends (pgbench's default).
    #[default]
    Abort,
    /// It abandons the transaction and goes on (pgbench 19: `--continue-on-error`).
    Continue,
    /// It ends, and with it the run (pgbench: `--exit-on-abort`).
    EndRun,
}

/// One run's settings, without the workload, the connections and the stop condition.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// Number of clients, at least 1.
    pub clients: usize,
    /// Number of worker threads, at least 1; more than clients are not used.
    pub workers: usize,
    /// When the next transaction begins.
    pub pacing: Pacing,
    /// A transaction slower than this is counted as late; one that can't begin within it of its
    /// scheduled start is skipped; one that has exceeded it is not retried (pgbench: `-L`).
    pub latency_limit: Option<Duration>,
    /// How conflicts are retried.
    pub retry: RetryPolicy,
    /// How statements are sent.
    pub protocol: Protocol,
    /// What follows an error that is no conflict.
    pub on_error: OnError,
    /// Seed of every random stream (pgbench: `--random-seed`).
    pub seed: u64,
    /// What is added to the numbers of attempts (the variable `attempt_id`): more than any number
    /// that rows have from runs before.
    pub attempts_from: u64,
    /// A connection of its own for each transaction (pgbench: `-C`); [`crate::Job::reconnecting`]
    /// says how it is made.
    pub connect_each: bool,
    /// Whose rules hold where pgbench's differ.
    pub rules: Rules,
    /// What is told while the run goes on.
    pub detail: Detail,
    /// Collect latency, failures and retries for each command (pgbench: `-r`).
    pub per_command: bool,
    /// Count what happens over time, in bins of this length ([`crate::Series`]).
    pub series: Option<Duration>,
    /// How long transactions that are under way may take after the end of the run, or after an
    /// interrupt, before the server is asked to cancel them. They then count as cut off, or as
    /// ambiguous if their commit was on its way.
    pub grace: Duration,
}

impl Default for RunSpec {
    /// pgbench's defaults: one client, one worker, no pacing, no retries; seed 0 and no grace.
    fn default() -> RunSpec {
        RunSpec {
            clients: 1,
            workers: 1,
            pacing: Pacing::Unpaced,
            latency_limit: None,
            retry: RetryPolicy::NEVER,
            protocol: Protocol::default(),
            on_error: OnError::default(),
            seed: 0,
            attempts_from: 0,
            connect_each: false,
            rules: Rules::default(),
            detail: Detail::default(),
            per_command: false,
            series: None,
            grace: Duration::ZERO,
        }
    }
}
