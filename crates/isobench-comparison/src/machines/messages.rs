//! What rank 0 and the other machines say to each other: a head in JSON, with its length before it,
//! and bytes.

use std::time::Duration;

use isobench_isolation::EffectiveLevel;
use isobench_runner::{RecordingHead, RunProgress, StopCondition, Urgency};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::observed::Recorded;

/// What rank 0 wants of the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Order {
    /// Prepare a measurement.
    Prepare(Open),
    /// Connect its clients.
    Connect {
        /// The measurement.
        measurement: u64,
    },
    /// Compare the clocks.
    Clocks,
    /// Run the clients of a measurement.
    Run {
        /// The measurement.
        measurement: u64,
        /// Until then.
        stop: StopCondition,
        /// From this instant of rank 0's clock.
        at: Duration,
        /// What the clients' clock shows then, in nanoseconds.
        clock: u64,
        /// Progress is to have latencies.
        latencies: bool,
    },
    /// End the current run.
    Stop(Urge),
    /// Close the sessions of a measurement.
    Leave {
        /// The measurement.
        measurement: u64,
        /// What is to be done with what was recorded.
        recorded: Handling,
    },
    /// Check what was recorded and kept, together with all others.
    Check {
        /// The measurement.
        measurement: u64,
    },
    /// Forget a measurement, which came to nothing.
    Abandon {
        /// The measurement.
        measurement: u64,
    },
    /// There is nothing more to be done.
    End {
        /// The reason, if it ends early.
        why: Option<String>,
    },
}

/// What is to be measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Open {
    /// The number by which the measurement is known from now on.
    pub measurement: u64,
    /// The cell, an index into the plan's.
    pub cell: usize,
    /// Its name, by which a machine with other cells is noticed.
    pub name: String,
    /// Transactions per second of all clients, if the plan doesn't say it but a search does.
    pub rate: Option<f64>,
    /// The schema of the tables, if rank 0 has made it.
    pub schema: Option<String>,
    /// What distinguishes it from those of the same name in other databases.
    pub identity: String,
    /// How transactions are recorded.
    pub recorded: RecordedAs,
    /// The texts of statements that could show rows, and are sent as written.
    pub as_written: Vec<String>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// What is added to the numbers of attempts.
    pub attempts_from: u64,
}

/// What is done with a recording at the end of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handling {
    /// It is forgotten: no verdict is wanted.
    Forgotten,
    /// It is sent to rank 0.
    Sent,
    /// It is kept, and checked together with those of the others.
    Kept {
        /// Nanoseconds by which its times may be wrong.
        within: u64,
    },
}

/// How transactions are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedAs {
    /// By the rows that statements show.
    Rows,
    /// By the lines `--@`.
    Annotations,
    /// Not at all.
    Nothing,
}

impl RecordedAs {
    /// How a job's transactions are recorded.
    pub(crate) fn of(recorded: &Recorded) -> RecordedAs {
        match recorded {
            Recorded::Rows(_) => RecordedAs::Rows,
            Recorded::Annotations => RecordedAs::Annotations,
            Recorded::Nothing => RecordedAs::Nothing,
        }
    }
}

/// How urgently a run is to end ([`Urgency`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Urge {
    /// At once.
    pub now: bool,
    /// The user wants it, so nothing more is to be measured.
    pub user: bool,
}

impl Urge {
    pub(crate) fn new(urgency: Urgency, user: bool) -> Urge {
        Urge { now: urgency == Urgency::Now, user }
    }

    pub(crate) fn urgency(self) -> Urgency {
        if self.now { Urgency::Now } else { Urgency::Soon }
    }
}

/// What another machine says to rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// The measurement is prepared.
    Prepared,
    /// The clients are connected.
    Opened(Opened),
    /// The clients are at work.
    Progress(Box<RunProgress>),
    /// A run is to end.
    Stopping(Urge),
    /// A run is over. The outcome follows as bytes.
    Ran(Ran),
    /// The sessions are closed. Chunks of the recording follow, as messages of their own.
    Left(Left),
    /// A chunk of a recording.
    Chunk,
    /// It couldn't be done, for this reason.
    Failed(String),
}

/// Connected clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Opened {
    /// The level of their sessions.
    pub effective: EffectiveLevel,
    /// Transactions that setting up the sessions took.
    pub transactions: u64,
    /// The time that it took.
    pub connecting: Duration,
}

/// A run that is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ran {
    /// CPU time of the process in the run, seconds.
    pub cpu_s: f64,
    /// How long after the common instant the clients started, ns.
    pub late: u64,
    /// What the clients' clock shows, ns.
    pub clock: u64,
}

/// Closed sessions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Left {
    /// The levels that they say they ran at.
    pub levels: Vec<EffectiveLevel>,
    /// Transactions that closing them took.
    pub transactions: u64,
    /// Why clients ended early.
    pub errors: Vec<String>,
    /// A client has lost its connection.
    pub lost: bool,
    /// What belongs to all chunks of the recording, if one is wanted. They follow, and after the
    /// last an empty one.
    pub recording: Option<RecordingHead>,
}

impl Order {
    pub(crate) fn pack(&self, body: &[u8]) -> Vec<u8> {
        pack(self, body)
    }
}

impl Reply {
    pub(crate) fn pack(&self, body: &[u8]) -> Vec<u8> {
        pack(self, body)
    }
}

/// A value in JSON; empty if it can't be, which these never are.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn pack(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    let head = json(head);
    let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(body);
    bytes
}

/// Takes a message apart; `None` if it isn't one.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (head, body) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(head).ok()?, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let order = Order::Stop(Urge { now: true, user: false });
        let bytes = order.pack(b"more");
        let (read, body) = unpack::<Order>(&bytes).expect("a message");
        assert!(matches!(read, Order::Stop(Urge { now: true, user: false })));
        assert_eq!(body, b"more");
        assert!(unpack::<Order>(&bytes[..20]).is_none());
        assert!(unpack::<Reply>(&bytes).is_none());
    }
}
