//! The settings of a run as values: when it stops, how it is paced, how it treats failures.
//!
//! One loop holds them all. A new policy is a new variant here and a simulation test, never another
//! loop.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::Detail;
use crate::event_loop::EventLoop;
use crate::retry::{Backoff, RetryPolicy};
use crate::rules::Rules;

/// The condition from which clients start no further transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopCondition {
    /// After this many transactions of each client, skipped ones included (pgbench: `-t`).
    Transactions(u64),
    /// After this time since the measuring clock started, which is when all clients are connected
    /// (pgbench: `-T`, which includes connecting). Transactions under way are finished, but not
    /// retried.
    Time(Duration),
    /// After this time, as a part of a longer run, whose clock then stops: attempts under way are
    /// finished, and everything else, such as a retry, goes on in the next run where it stopped. So no
    /// attempt is in two parts.
    Turn(Duration),
}

/// The time at which a client starts its next transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// As soon as the last one has ended (a closed loop).
    Unpaced,
    /// This long after the last one has ended.
    ThinkTime(Duration),
    /// By a schedule with exponentially distributed gaps, this many per second on average over all
    /// clients (pgbench: `-R`). Latency is then measured from the scheduled start.
    Rate(f64),
}

/// The protocol that transfers statements to the server (pgbench: `-M`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Query messages, with the variables' values in the text.
    #[default]
    Simple,
    /// Parse, Bind and Execute every time, with the variables as parameters.
    Extended,
    /// Parse once per session, then Bind and Execute.
    Prepared,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

    /// The value of `-M`.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        }
    }
}

/// The reaction of a client to an error other than a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It ends (pgbench's default).
    #[default]
    Abort,
    /// It abandons the transaction and continues (pgbench 19: `--continue-on-error`).
    Continue,
    /// It ends, and with it the run (pgbench: `--exit-on-abort`).
    EndRun,
}

/// The reaction of a client to the loss of its session, or to a refused one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum OnLost {
    /// It ends (as in pgbench).
    #[default]
    End,
    /// It opens another session, by [`crate::Job::reconnecting`]: at once, and after each that is
    /// refused with this delay. It goes on with the next transaction. The transaction under way is
    /// abandoned, or ambiguous if it may have been committed.
    Reconnect(Backoff),
}

/// The settings of a run, without the workload, the connections and the stop condition.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// Number of clients, at least 1.
    pub clients: usize,
    /// The clients of them that run here, if others run on other machines. A client's transactions depend on
    /// the seed and its number alone, so this doesn't change any.
    pub share: Option<ClientShare>,
    /// Number of worker threads, at least 1; more than there are clients have no effect.
    pub workers: usize,
    /// When the next transaction starts.
    pub pacing: Pacing,
    /// A transaction slower than this is counted as late; one that can't start within it after its
    /// scheduled start is skipped; one that has exceeded it isn't retried (pgbench: `-L`).
    pub latency_limit: Option<Duration>,
    /// The retries after conflicts.
    pub retry: RetryPolicy,
    /// The protocol for statements.
    pub protocol: Protocol,
    /// The reaction to an error other than a conflict.
    pub on_error: OnError,
    /// The reaction to a lost session.
    pub on_lost: OnLost,
    /// Seed of every random stream (pgbench: `--random-seed`).
    pub seed: u64,
    /// Added to the numbers of attempts (the variable `attempt_id`), so that they are greater than
    /// those that earlier runs have left in rows.
    pub attempts_from: u64,
    /// Open a connection for each transaction (pgbench: `-C`), by [`crate::Job::reconnecting`].
    pub connect_each: bool,
    /// How workers wait for their connections; `None`: the way that costs less.
    pub event_loop: Option<EventLoop>,
    /// The rules to follow where pgbench's differ.
    pub rules: Rules,
    /// Additional reports while the run goes on.
    pub detail: Detail,
    /// Collect latency, failures and retries for each command (pgbench: `-r`).
    pub per_command: bool,
    /// Count over time, in bins of this length ([`crate::Series`]).
    pub series: Option<Duration>,
    /// Keep the number and the end of every attempt ([`crate::RunOutcome::ended`]), 24 bytes each.
    pub keeps_attempts: bool,
    /// Time that transactions under way may take after the end of the run, or after an interrupt,
    /// before the server is asked to cancel them; after an interrupt no more than
    /// [`isobench_limits::Limits::hurried`]. They are then counted as cut off, or as ambiguous if their
    /// COMMIT had been sent.
    pub grace: Duration,
}

/// A part of the clients of a run, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientShare {
    /// The number of the first, from 0.
    pub first: usize,
    /// How many there are.
    pub clients: usize,
}

impl ClientShare {
    /// The share of one of so many machines, by its rank: the first ones have one more if the clients can't be
    /// split evenly.
    pub fn of(clients: usize, rank: usize, machines: usize) -> ClientShare {
        let (least, more) = (clients / machines.max(1), clients % machines.max(1));
        ClientShare { first: rank * least + rank.min(more), clients: least + usize::from(rank < more) }
    }
}

impl RunSpec {
    /// The delays between attempts to open another session, if that is what a client does.
    pub(crate) fn reconnects(&self) -> Option<Backoff> {
        match self.on_lost {
            OnLost::End => None,
            OnLost::Reconnect(backoff) => Some(backoff),
        }
    }
}

impl Default for RunSpec {
    /// pgbench's defaults: one client, one worker, no pacing, no retries; seed 0 and no grace.
    fn default() -> RunSpec {
        RunSpec {
            clients: 1,
            share: None,
            workers: 1,
            pacing: Pacing::Unpaced,
            latency_limit: None,
            retry: RetryPolicy::NEVER,
            protocol: Protocol::default(),
            on_error: OnError::default(),
            on_lost: OnLost::default(),
            seed: 0,
            attempts_from: 0,
            connect_each: false,
            event_loop: None,
            rules: Rules::default(),
            detail: Detail::default(),
            per_command: false,
            series: None,
            keeps_attempts: false,
            grace: Duration::ZERO,
        }
    }
}
