//! Messages and phases, on timely dataflow.
//!
//! A message is a record that is exchanged to its rank; a phase is a range of epochs. Source: Murray and others,
//! "Naiad: A Timely Dataflow System", 2013 (a frontier that has passed an epoch says that no message of it
//! is under way any more).

use std::collections::VecDeque;
use std::mem;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use timely::WorkerConfig;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::dataflow::InputHandle;
use timely::dataflow::operators::{Exchange, Input, Inspect, Probe};
use timely::worker::Worker;

use crate::link::Lost;
use crate::meeting::{Credentials, meet};
use crate::{PeersError, Place};

/// The beginning of the names of the engine's threads.
const ENGINE: &str = "timely:";

/// How often somebody who waits looks whether a machine is gone.
const LOOK: Duration = Duration::from_millis(50);

/// How long the engine rests at most, if nobody wakes it.
const REST: Duration = Duration::from_millis(100);

/// What is exchanged: to whom, from whom, and the message.
type Record = (u64, u64, Vec<u8>);

/// What this machine asks of the engine.
enum Command {
    Send(Record),
    /// The phase of this number is over here.
    End(u64),
    Leave,
}

/// What the engine says.
enum Event {
    /// Its thread, which is to be woken for commands.
    Started(Thread),
    /// A message from a rank.
    Arrived(u64, Vec<u8>),
    /// The phase of this number is over everywhere.
    Passed(u64),
}

/// This machine among all, connected.
pub struct Peers {
    place: Place,
    guards: Option<WorkerGuards<()>>,
    engine: Thread,
    commands: Sender<Command>,
    events: Receiver<Event>,
    lost: Lost,
    /// Messages that have arrived, and weren't asked for yet.
    arrived: VecDeque<(usize, Vec<u8>)>,
    /// The last phase that this machine has ended, and the last that all have.
    ended: u64,
    passed: u64,
    began: Instant,
}

impl Peers {
    /// Connects all machines, which has to succeed within `patience`.
    ///
    /// # Errors
    /// One is missing, or differs from the others.
    pub fn join(place: Place, credentials: &Credentials, patience: Duration) -> Result<Peers, PeersError> {
        let lost = Lost::default();
        let links = meet(&place, credentials, patience, &lost)?;
        quiet_engine();
        let failed = |error: String| PeersError::Engine(error);
        let hooks = Hooks::default();
        let allocators = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
        let connected = initialize_networking_from_sockets(allocators, links, place.rank, 1, hooks);
        let (builders, threads) = connected.map_err(|error| failed(error.to_string()))?;
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        let (commands, to_engine) = channel();
        let (from_engine, events) = channel();
        let ends = Mutex::new(Some((to_engine, from_engine)));
        let rank = place.rank as u64;
        let guards = timely::execute::execute_from(
            builders,
            Box::new(threads),
            WorkerConfig::default(),
            move |worker| {
                let ends = ends.lock().ok().and_then(|mut ends| ends.take());
                if let Some((commands, events)) = ends {
                    run(worker, rank, &commands, &events);
                }
            },
        );
        let guards = guards.map_err(failed)?;
        let Ok(Event::Started(engine)) = events.recv() else {
            return Err(failed("the engine didn't start".to_owned()));
        };
        Ok(Peers {
            place,
            guards: Some(guards),
            engine,
            commands,
            events,
            lost,
            arrived: VecDeque::new(),
            ended: 0,
            passed: 0,
            began: Instant::now(),
        })
    }

    /// This machine's place.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// This machine's rank.
    pub fn rank(&self) -> usize {
        self.place.rank
    }

    /// The number of machines.
    pub fn number(&self) -> usize {
        self.place.number()
    }

    /// Time since this machine has joined, on its own clock.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Sends a message to a rank. Messages to one rank arrive in the order in which they were sent.
    pub fn send(&self, to: usize, message: Vec<u8>) {
        self.command(Command::Send((to as u64, self.rank() as u64, message)));
    }

    /// Sends a message to all other ranks.
    pub fn send_all(&self, message: &[u8]) {
        let others = (0..self.number()).filter(|rank| *rank != self.rank());
        others.for_each(|rank| self.send(rank, message.to_vec()));
    }

    /// Waits for the next message, and says from whom it is.
    ///
    /// # Errors
    /// A machine is gone, or nothing came within `limit`; `what` was waited for.
    pub fn receive(&mut self, what: &'static str, limit: Duration) -> Result<(usize, Vec<u8>), PeersError> {
        self.wait(what, limit, |peers| peers.arrived.pop_front())
    }

    /// Waits for the next message of a rank; those of others stay.
    ///
    /// # Errors
    /// As [`Peers::receive`].
    pub fn receive_from(
        &mut self,
        rank: usize,
        what: &'static str,
        limit: Duration,
    ) -> Result<Vec<u8>, PeersError> {
        self.wait(what, limit, |peers| {
            let place = peers.arrived.iter().position(|(from, _)| *from == rank)?;
            peers.arrived.remove(place).map(|(_, message)| message)
        })
    }

    /// Ends the phase, and waits until all have ended it and have all that was sent to them.
    ///
    /// # Errors
    /// A machine is gone, or some haven't ended it within `limit`.
    pub fn barrier(&mut self, what: &'static str, limit: Duration) -> Result<(), PeersError> {
        self.ended += 1;
        let ended = self.ended;
        self.command(Command::End(ended));
        self.wait(what, limit, |peers| (peers.passed >= ended).then_some(()))
    }

    /// Collects a message of each rank at rank 0, in the order of the ranks; nothing elsewhere. Ends the
    /// phase.
    ///
    /// # Errors
    /// As [`Peers::barrier`].
    pub fn gather(
        &mut self,
        message: Vec<u8>,
        what: &'static str,
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, PeersError> {
        if self.rank() > 0 {
            self.send(0, message);
            self.barrier(what, limit)?;
            return Ok(Vec::new());
        }
        self.barrier(what, limit)?;
        let mut all = vec![message];
        for rank in 1..self.number() {
            all.push(self.receive_from(rank, what, limit)?);
        }
        Ok(all)
    }

    /// Leaves, together with all others.
    ///
    /// # Errors
    /// As [`Peers::barrier`].
    pub fn leave(mut self, limit: Duration) -> Result<(), PeersError> {
        self.barrier("leaving", limit)?;
        self.command(Command::Leave);
        if let Some(guards) = self.guards.take() {
            // All have everything, so a connection that another one ends rudely is no loss any more.
            let ending =
                thread::Builder::new().name(format!("{ENGINE}end")).spawn(move || drop(guards.join()));
            let _ = ending.map(thread::JoinHandle::join);
        }
        Ok(())
    }

    fn command(&self, command: Command) {
        // An engine that has ended is noticed by whoever waits.
        let _ = self.commands.send(command);
        self.engine.unpark();
    }

    fn wait<T>(
        &mut self,
        what: &'static str,
        limit: Duration,
        mut found: impl FnMut(&mut Peers) -> Option<T>,
    ) -> Result<T, PeersError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(found) = found(self) {
                return Ok(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left.min(LOOK)) {
                Ok(Event::Arrived(from, message)) => {
                    self.arrived.push_back((usize::try_from(from).unwrap_or(usize::MAX), message));
                }
                Ok(Event::Passed(phase)) => self.passed = self.passed.max(phase),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if self.lost.first().is_some() => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(PeersError::Late { what, seconds: limit.as_secs() });
                }
                Ok(Event::Started(_)) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn gone(&self) -> PeersError {
        // The connection's thread may note the reason a moment after the engine has ended.
        for _ in 0..10 {
            if let Some((rank, why)) = self.lost.first() {
                return PeersError::Lost { rank, address: self.place.addresses[rank].clone(), why };
            }
            thread::sleep(LOOK / 10);
        }
        PeersError::Engine("the engine has ended".to_owned())
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Waiting for threads that wait for a machine that is gone would never end.
        if let Some(guards) = self.guards.take() {
            mem::forget(guards);
        }
    }
}

/// The first instant of a phase. A phase has as many instants as there are times at which something was
/// sent.
fn begin(phase: u64) -> u64 {
    phase << 32
}

/// Carries out commands until this machine leaves.
fn run(worker: &mut Worker, rank: u64, commands: &Receiver<Command>, events: &Sender<Event>) {
    let mut input = InputHandle::<u64, _>::new();
    let arrived = events.clone();
    let probe = worker.dataflow(|scope| {
        scope
            .input_from(&mut input)
            .container::<Vec<Record>>()
            .exchange(|record: &Record| record.0)
            .inspect(move |(_, from, message): &Record| {
                let _ = arrived.send(Event::Arrived(*from, message.clone()));
            })
            .probe()
            .0
    });
    let _ = events.send(Event::Started(thread::current()));
    let (mut ended, mut tick) = (None, 0);
    loop {
        let mut busy = false;
        loop {
            match commands.try_recv() {
                Ok(Command::Send(record)) => {
                    debug_assert_eq!(record.1, rank);
                    input.send(record);
                }
                Ok(Command::End(phase)) => {
                    tick = begin(phase);
                    input.advance_to(tick);
                    ended = Some(phase);
                }
                Err(TryRecvError::Empty) => break,
                // Or the rest of the program has gone on without it.
                Ok(Command::Leave) | Err(TryRecvError::Disconnected) => return,
            }
            busy = true;
        }
        if busy {
            // Only the end of an instant sends on its way what there is.
            tick += 1;
            input.advance_to(tick);
        }
        worker.step_or_park(Some(REST));
        if let Some(phase) = ended.filter(|phase| !probe.less_than(&begin(*phase))) {
            ended = None;
            let _ = events.send(Event::Passed(phase));
        }
    }
}

/// Keeps the engine's threads quiet: they end by a panic if a connection is lost, which is reported
/// otherwise.
fn quiet_engine() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let engine = thread::current().name().is_some_and(|name| name.starts_with(ENGINE));
            if !engine {
                others(panic);
            }
        }));
    });
}

#[cfg(test)]
pub(crate) mod tests {
    use isobench_testkit::ports::free_addresses;

    use super::*;
    use crate::meeting::tests::credentials;

    pub(crate) const LIMIT: Duration = Duration::from_secs(20);

    /// Lets each of so many ranks do something, in threads, and returns what they return.
    pub(crate) fn all<T: Send>(number: usize, work: impl Fn(Peers) -> T + Sync) -> Vec<T> {
        let addresses = free_addresses(number);
        thread::scope(|scope| {
            let start = |rank| {
                let place = Place { rank, addresses: addresses.clone() };
                let work = &work;
                scope.spawn(move || {
                    work(Peers::join(place, &credentials("s", "1", "plan"), LIMIT).expect("all meet"))
                })
            };
            let threads: Vec<_> = (0..number).map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn messages_arrive_in_order_and_phases_end_together() {
        let sums = all(3, |mut peers| {
            let mut gathered = Vec::new();
            for phase in 0..50_u8 {
                let rank = u8::try_from(peers.rank()).expect("a small number");
                let of_all = peers.gather(vec![phase, rank], "a phase", LIMIT).expect("nobody is gone");
                gathered.extend(of_all);
            }
            peers.leave(LIMIT).expect("all leave");
            gathered
        });
        let expected: Vec<Vec<u8>> =
            (0..50).flat_map(|phase| (0..3).map(move |rank| vec![phase, rank])).collect();
        assert_eq!(sums, vec![expected, Vec::new(), Vec::new()]);
    }

    #[test]
    fn large_messages_arrive_whole() {
        let found = all(2, |mut peers| {
            let outcome = if peers.rank() == 0 {
                let large: Vec<u8> = (0..3_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
                peers.send_all(&large);
                peers.send(1, vec![7]);
                None
            } else {
                let large = peers.receive("the large one", LIMIT).expect("it comes").1;
                Some((large.len(), large[299_999], peers.receive_from(0, "the small one", LIMIT)))
            };
            peers.leave(LIMIT).expect("all leave");
            outcome
        });
        assert_eq!(found[1], Some((3_000_000, 299_999_u32.to_le_bytes()[1], Ok(vec![7]))));
    }

    #[test]
    fn who_never_ends_a_phase_is_waited_for_only_so_long() {
        let outcomes = all(2, |mut peers| {
            let late = if peers.rank() == 0 {
                peers.barrier("the others", Duration::from_millis(200)).err()
            } else {
                thread::sleep(Duration::from_millis(500));
                None
            };
            // Afterwards nobody waits for anybody.
            drop(peers);
            late
        });
        assert_eq!(outcomes[0], Some(PeersError::Late { what: "the others", seconds: 0 }));
    }
}
