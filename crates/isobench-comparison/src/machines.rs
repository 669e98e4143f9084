//! Several machines that measure as one. Rank 0 makes the tables, decides, observes the server and
//! keeps the result; on the others, a share of each measurement's clients works as rank 0 says.
//!
//! A measurement goes through the same steps everywhere: connected, run by run from a common
//! instant to the outcome, and left, with what was recorded. Not here: connections and clocks
//! (`isobench_peers`), what rank 0 does with its own clients and the others' (`crew.rs`), and which
//! clients each machine has (`isobench_runner`).

mod messages;
mod ways;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use isobench_limits::LIMITS;
use isobench_peers::{ClockOffset, Credentials, Peers, PeersError, Place};
use isobench_runner::ClientShare;
use serde::{Deserialize, Serialize};

use crate::design::count;
use crate::failure::{Failure, Outcome};

pub(crate) use messages::{Handling, Left, Opened, Order, Ran, Reply, Urge, unpack};
pub use messages::{Open, RecordedAs};
pub use ways::MachineWays;

/// What a machine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portrait {
    /// The name that its system has.
    pub host: String,
    /// Processors that this program may use there.
    pub cores: u32,
}

impl Portrait {
    /// That of this machine.
    pub fn own() -> Portrait {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Portrait { host, cores: count(cores) }
    }
}

/// This machine among all.
pub struct Machines {
    peers: Mutex<Peers>,
    place: Place,
    /// What all say of themselves; known to rank 0.
    portraits: Vec<Portrait>,
    /// One is gone, or doesn't do what it should.
    lost: OnceLock<String>,
    /// The number of the next measurement.
    next: AtomicU64,
}

/// Compares the clocks, and then takes the time of a phase, in which all wait for all. On all
/// machines.
pub(crate) fn compare_clocks(peers: &mut Peers) -> Result<(Vec<ClockOffset>, Duration), PeersError> {
    let offsets = peers.compare_clocks(LIMITS.step)?;
    let began = peers.now();
    peers.barrier("comparing the clocks", LIMITS.step)?;
    Ok((offsets, peers.now().saturating_sub(began)))
}

impl Machines {
    /// Connects all machines, within `patience`. The place says which this one is, and the
    /// credentials everything that must be the same on all.
    ///
    /// # Errors
    /// One is missing, or differs from the others.
    pub fn join(place: Place, credentials: &Credentials, patience: Duration) -> Outcome<Machines> {
        let mut peers = Peers::join(place.clone(), credentials, patience).map_err(Failure::setup)?;
        let own = messages::json(&Portrait::own());
        let names = peers.gather(own, "names", patience).map_err(Failure::setup)?;
        let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).unwrap_or_default();
        let portraits = names.iter().map(read).collect();
        Ok(Machines {
            peers: Mutex::new(peers),
            place,
            portraits,
            lost: OnceLock::new(),
            next: AtomicU64::new(0),
        })
    }

    /// This machine's rank, from 0.
    pub fn rank(&self) -> usize {
        self.place.rank
    }

    /// The number of machines.
    pub fn number(&self) -> usize {
        self.place.number()
    }

    /// The clients of this machine, of so many on all.
    pub fn share(&self, clients: usize) -> ClientShare {
        ClientShare::of(clients, self.rank(), self.number())
    }

    /// A rank with its address, for messages.
    pub fn name(&self, rank: usize) -> String {
        format!("rank {rank} ({})", self.place.addresses.get(rank).map_or("", String::as_str))
    }

    /// The address of a rank.
    pub fn address(&self, rank: usize) -> &str {
        self.place.addresses.get(rank).map_or("", String::as_str)
    }

    /// What a machine says of itself; known to rank 0.
    pub fn portrait(&self, rank: usize) -> Portrait {
        self.portraits.get(rank).cloned().unwrap_or_default()
    }

    /// Why the machines can't go on together, if so.
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Ends the work of all: the others learn of it, with the reason if it ends early. Called by
    /// rank 0.
    pub fn end(&self, why: Option<&str>) {
        if self.lost.get().is_some() {
            return;
        }
        let mut peers = self.peers();
        peers.send_all(&Order::End { why: why.map(str::to_owned) }.pack(&[]));
        // Whoever doesn't hear it notices that this machine is gone.
        let _ = peers.barrier("the end", LIMITS.end);
    }

    /// Waits for all others before this one ends, so that each has what was said to it.
    pub fn leave(&self) {
        // Whoever doesn't come is missed by nobody any more.
        let _ = self.peers().barrier("the end", LIMITS.end);
    }

    pub(crate) fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps why a machine is gone, and returns the failure.
    pub(crate) fn failed(&self, error: &PeersError) -> Failure {
        Failure::Incomplete(self.lost.get_or_init(|| error.to_string()).clone())
    }

    /// Notes that a machine did something else than it should.
    pub(crate) fn astray(&self, rank: usize, why: &str) -> Failure {
        let text = format!("{} {why}", self.name(rank));
        Failure::Incomplete(self.lost.get_or_init(|| text).clone())
    }

    /// The number of a new measurement.
    pub(crate) fn number_next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Compares all clocks with rank 0's, and measures the time in which an order reaches all.
    /// Called by rank 0.
    pub(crate) fn compare_clocks(&self) -> Outcome<(Vec<ClockOffset>, Duration)> {
        let mut peers = self.peers();
        peers.send_all(&Order::Clocks.pack(&[]));
        compare_clocks(&mut peers).map_err(|error| self.failed(&error))
    }
}
