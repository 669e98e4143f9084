//! Several machines that measure as one: who is who, their connections, phases and clocks.
//!
//! All run the same command. Each has a rank, from 0; rank 0 decides. Between them is an engine, timely
//! dataflow: a message goes to its rank, and a phase has passed when all ranks have ended it and all
//! messages of it have arrived. A machine that is gone is noticed by its connection, or, if the way to
//! it is cut, by the kernel's probes within [`NOTICED`]; whoever waits has a deadline besides.
//!
//! | module | concept |
//! |---|---|
//! | `place` | the ranks and addresses, from options or from what a launcher says |
//! | `meeting` | connections between all |
//! | `hello` | the first exchange on each, which keeps strangers out |
//! | `refusal` | what a machine that can't take part says to those that wait for it |
//! | `link` | a connection that remembers how it was lost |
//! | `engine` | messages and phases |
//! | `clock` | by how much the clocks differ |
//!
//! Not here: what the machines do together.

mod clock;
mod engine;
mod hello;
mod link;
mod meeting;
mod place;
mod refusal;

pub use clock::ClockOffset;
pub use engine::{Peers, Waker};
pub use hello::{Credentials, Secret, digest};
pub use link::NOTICED;
pub use place::{Place, PlaceError};
pub use refusal::refuse;

/// The machines can't work together, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeersError {
    /// This machine can't be reached under its address.
    #[error("--peers: {address}, rank {rank}'s address, can't be listened on here: {why}")]
    Listen {
        /// Its rank.
        rank: usize,
        /// The address.
        address: String,
        /// The reason.
        why: String,
    },
    /// Some didn't come in time.
    #[error("rank {missing} ({address}) didn't come within {seconds} s{refused}")]
    Missing {
        /// The first of them.
        missing: usize,
        /// Its address.
        address: String,
        /// How long it was waited for.
        seconds: u64,
        /// Whom this machine has refused meanwhile, and why; empty if nobody.
        refused: String,
    },
    /// One doesn't belong to the others.
    #[error("rank {rank} ({address}) {why}")]
    Differs {
        /// Its rank.
        rank: usize,
        /// Its address.
        address: String,
        /// What is different there.
        why: String,
    },
    /// One is gone.
    #[error("rank {rank} ({address}) is gone: {why}")]
    Lost {
        /// Its rank.
        rank: usize,
        /// Its address.
        address: String,
        /// How that was noticed.
        why: String,
    },
    /// One didn't say anything in time.
    #[error("the other machines didn't finish {what} within {seconds} s")]
    Late {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        seconds: u64,
    },
    /// The engine ended.
    #[error("the connections between the machines ended: {0}")]
    Engine(String),
}
