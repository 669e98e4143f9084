//! Messages and phases, on timely dataflow.
//!
//! A message is a record that is exchanged to its rank; a phase is a range of epochs. Source: Murray and others,
//! "Naiad: A Timely Dataflow System", 2013 (a frontier that has passed an epoch says that no message of it
//! is under way any more).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use serde_bytes::ByteBuf;
use timely::WorkerConfig;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::dataflow::InputHandle;
use timely::dataflow::operators::{Exchange, Input, Inspect, Probe};
use timely::worker::Worker;

use crate::hello::Credentials;
use crate::link::{Link, Lost, NOTICED};
use crate::meeting::meet;
use crate::{PeersError, Place};

/// The beginning of the names of the engine's threads.
const ENGINE: &str = "timely:";

/// How often somebody who waits looks whether a machine is gone.
const LOOK: Duration = Duration::from_millis(50);

/// How long the engine rests at most, if nobody wakes it.
const REST: Duration = Duration::from_millis(100);

/// How often rank 0 and each other one tell each other that they live.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// What is exchanged: to whom, from whom, and the message; `None` is a sign of life.
type Record = (u64, u64, Option<ByteBuf>);

/// What this machine asks of the engine.
enum Command {
    Send(u64, Vec<u8>),
    /// The phase of this number is over here.
    End(u64),
    Leave,
}

/// What the engine says.
#[derive(Debug)]
enum Event {
    /// Its thread, which is to be woken for commands.
    Started(Thread),
    /// A message from a rank.
    Arrived(u64, Vec<u8>),
    /// The phase of this number is over everywhere.
    Passed(u64),
    /// Somebody who waits is to look.
    Woken,
}

/// Ends a wait of [`Peers::poll`], from any thread.
#[derive(Debug, Clone)]
pub struct Waker(Sender<Event>);

impl Waker {
    /// Ends the wait.
    pub fn wake(&self) {
        // Nobody waits any more if this fails.
        let _ = self.0.send(Event::Woken);
    }
}

/// What came of a wait for an event.
enum Next {
    /// It has been taken.
    Taken,
    /// Somebody wants the one who waits to look.
    Woken,
    /// None came.
    Nothing,
}

/// This machine among all, connected.
pub struct Peers {
    place: Place,
    guards: Option<WorkerGuards<()>>,
    engine: Thread,
    commands: Sender<Command>,
    events: Receiver<Event>,
    waker: Waker,
    lost: Lost,
    /// The connections, so that they end with this and not with the engine.
    held: Vec<TcpStream>,
    /// The engine has ended.
    over: Arc<AtomicBool>,
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
        let held = links.iter().flatten().map(Link::hold).collect::<Result<_, _>>();
        let held = held.map_err(|error| PeersError::Engine(error.to_string()))?;
        quiet_engine();
        let failed = |error: String| PeersError::Engine(error);
        let hooks = Hooks::default();
        let allocators = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
        let connected = initialize_networking_from_sockets(allocators, links, place.rank, 1, hooks);
        let (builders, threads) = connected.map_err(|error| failed(error.to_string()))?;
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        let (commands, to_engine) = channel();
        let (from_engine, events) = channel();
        let waker = Waker(from_engine.clone());
        let ends = Mutex::new(Some((to_engine, from_engine)));
        let over = Arc::new(AtomicBool::new(false));
        let ended = Over(Arc::clone(&over));
        let (rank, number, noted) = (place.rank as u64, place.number() as u64, lost.clone());
        let guards = timely::execute::execute_from(
            builders,
            Box::new(threads),
            WorkerConfig::default(),
            move |worker| {
                let _ended = ended.clone();
                let ends = ends.lock().ok().and_then(|mut ends| ends.take());
                if let Some((commands, events)) = ends {
                    run(worker, Life::new(rank, number, noted.clone()), &commands, &events);
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
            waker,
            lost,
            held,
            over,
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
        self.command(Command::Send(to as u64, message));
    }

    /// Sends a message to all other ranks.
    pub fn send_all(&self, message: &[u8]) {
        let others = (0..self.number()).filter(|rank| *rank != self.rank());
        others.for_each(|rank| self.send(rank, message.to_vec()));
    }

    /// The next message, if one comes within `limit` and nobody wakes this thread, and from whom it
    /// is.
    ///
    /// # Errors
    /// A machine is gone.
    pub fn poll(&mut self, limit: Duration) -> Result<Option<(usize, Vec<u8>)>, PeersError> {
        let end = Instant::now() + limit;
        while self.arrived.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            match self.next(left)? {
                Next::Woken => break,
                Next::Nothing if left.is_zero() => break,
                Next::Taken | Next::Nothing => {}
            }
        }
        Ok(self.arrived.pop_front())
    }

    /// Ends waits from other threads.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The instant at which this machine's clock ([`Peers::now`]) shows this.
    pub fn instant(&self, own: Duration) -> Instant {
        self.began + own
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

    /// Stays for a while after another machine was lost, so that rank 0 notices that by itself, and
    /// doesn't take this one for the first that was gone.
    pub fn linger(&self) {
        let end = Instant::now() + NOTICED + SIGN_OF_LIFE;
        while self.rank() > 0 && !self.lost.has(0) && Instant::now() < end {
            thread::sleep(LOOK);
        }
    }

    /// Leaves, together with all others.
    ///
    /// # Errors
    /// As [`Peers::barrier`].
    pub fn leave(mut self, limit: Duration) -> Result<(), PeersError> {
        self.barrier("leaving", limit)?;
        self.lost.leave();
        self.held.clear();
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
            if matches!(self.next(left)?, Next::Nothing) && left.is_zero() {
                return Err(PeersError::Late { what, seconds: limit.as_secs() });
            }
        }
    }

    /// Takes the engine's next event, if one comes within this time, or sooner.
    fn next(&mut self, left: Duration) -> Result<Next, PeersError> {
        match self.events.recv_timeout(left.min(LOOK)) {
            Ok(Event::Arrived(from, message)) => {
                self.arrived.push_back((usize::try_from(from).unwrap_or(usize::MAX), message));
                Ok(Next::Taken)
            }
            Ok(Event::Passed(phase)) => {
                self.passed = self.passed.max(phase);
                Ok(Next::Taken)
            }
            Ok(Event::Woken) => Ok(Next::Woken),
            Ok(Event::Started(_)) => Ok(Next::Taken),
            // The waker keeps the channel open after the engine has ended.
            Err(_) if self.lost.first().is_some() || self.has_ended() => Err(self.gone()),
            Err(_) => Ok(Next::Nothing),
        }
    }

    fn has_ended(&self) -> bool {
        self.over.load(Ordering::Acquire)
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

/// Says that the engine has ended, when its thread ends in whatever way.
#[derive(Clone)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The first instant of a phase. A phase has as many instants as there are times at which something was
/// sent.
fn begin(phase: u64) -> u64 {
    phase << 32
}

/// The signs of life that this machine gives and gets: rank 0's of all, the others' of rank 0.
struct Life {
    rank: u64,
    number: u64,
    lost: Lost,
    given: Instant,
    /// When each rank was heard last.
    heard: Vec<Instant>,
}

impl Life {
    fn new(rank: u64, number: u64, lost: Lost) -> Life {
        let heard = (0..number).map(|_| Instant::now()).collect();
        Life { rank, number, lost, given: Instant::now(), heard }
    }

    /// Those with whom signs are exchanged.
    fn others(&self) -> std::ops::Range<u64> {
        if self.rank == 0 { 1..self.number } else { 0..1 }
    }

    fn hear(&mut self, from: u64) {
        let heard = usize::try_from(from).ok().and_then(|from| self.heard.get_mut(from));
        if let Some(heard) = heard {
            *heard = Instant::now();
        }
    }

    /// True if it is time for a sign. Notes who is silent.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if now.saturating_duration_since(self.given) < SIGN_OF_LIFE {
            return false;
        }
        // A machine that was asleep itself has heard nobody.
        let awake = now.saturating_duration_since(self.given) < LIMITS.silence / 2;
        self.given = now;
        for rank in self.others() {
            let rank = usize::try_from(rank).unwrap_or(0);
            if !awake {
                self.heard[rank] = now;
            } else if now.saturating_duration_since(self.heard[rank]) > LIMITS.silence {
                self.lost.note(rank, format!("it has been silent for {} s", LIMITS.silence.as_secs()));
            }
        }
        true
    }
}

/// Carries out commands until this machine leaves.
fn run(worker: &mut Worker, life: Life, commands: &Receiver<Command>, events: &Sender<Event>) {
    let mut input = InputHandle::<u64, _>::new();
    let (arrived, rank) = (events.clone(), life.rank);
    let life = Rc::new(RefCell::new(life));
    let heard = Rc::clone(&life);
    let probe = worker.dataflow(|scope| {
        scope
            .input_from(&mut input)
            .container::<Vec<Record>>()
            .exchange(|record: &Record| record.0)
            .inspect(move |(_, from, message): &Record| {
                heard.borrow_mut().hear(*from);
                if let Some(message) = message {
                    let _ = arrived.send(Event::Arrived(*from, message.to_vec()));
                }
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
                Ok(Command::Send(to, message)) => input.send((to, rank, Some(ByteBuf::from(message)))),
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
        let mut life = life.borrow_mut();
        if life.is_due() {
            life.others().for_each(|other| input.send((other, rank, None)));
            busy = true;
        }
        drop(life);
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
