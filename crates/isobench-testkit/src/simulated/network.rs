//! Events in time, and data in transit between clients and the server.
//!
//! News is edge-triggered, as in epoll: each arrival is reported once, however much of it is read.
//! A connection can have several sessions in succession, each on its own wire, so data in transit
//! on an old wire never reaches the new one.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use isobench_pgwire::server;
use isobench_runner::{Nanos, Received};

use super::faults::{Fault, Loss, On};
use super::registers::Registers;
use super::rng::Rng;
use super::session::{NetworkAction, SessionContext, SimulatedSession};
use super::settings::SimulationSettings;
use super::truth::Truth;

/// The time between two pieces of a reply, and from a short write until the connection accepts
/// more.
const HOP: Duration = Duration::from_micros(10);

/// The time for receiving a part of an endless reply.
const FLOOD: Duration = Duration::from_millis(1);

/// The most bytes of one receive.
const MOST_RECEIVED: usize = 64 * 1024;

/// The minimum duration of a wait, because a loop that never waits would stop time.
const SHORTEST_WAIT: Duration = Duration::from_micros(1);

/// After this many waits in one instant, time passes nevertheless, because errors that take no time
/// may recur for ever.
const TURNS_OF_AN_INSTANT: u32 = 10;

/// After this many waits, the waiting side is considered stuck.
const MOST_WAITS: u64 = 2_000_000;

/// An event at an instant, usually on the wire of this number.
enum Event {
    Arrive(usize, Vec<u8>),
    End(usize, Loss),
    Wake(usize, u64),
    Writable(usize),
    Call(Box<dyn FnOnce()>),
}

/// The transport of one session of a connection.
struct Wire {
    connection: usize,
    session: SimulatedSession,
    /// The bytes that have arrived at the client and haven't been received.
    arrived: VecDeque<u8>,
    /// The end of the connection, once it has arrived at the client.
    ended: Option<Loss>,
    /// The arrival of the last piece in transit.
    last_arrival: Nanos,
    /// True if only a part of the last send was accepted.
    full: bool,
    watched: bool,
    closed_by_client: bool,
}

impl Wire {
    fn new(connection: usize, session: u64) -> Wire {
        Wire {
            connection,
            session: SimulatedSession::new(connection, session),
            arrived: VecDeque::new(),
            ended: None,
            last_arrival: Nanos(0),
            full: false,
            watched: false,
            closed_by_client: false,
        }
    }
}

/// The whole simulation.
pub(super) struct Network {
    settings: SimulationSettings,
    rng: Rng,
    now: Nanos,
    truth: Truth,
    registers: Registers,
    /// The events by instant, and then in the order of scheduling.
    events: BTreeMap<(Nanos, u64), Event>,
    planned: u64,
    wires: Vec<Wire>,
    /// Each connection's latest wire; `None` if it never had one.
    latest: Vec<Option<usize>>,
    /// For each connection, the occasions of each rule of faults.
    seen: Vec<Vec<u64>>,
    /// The connections with news.
    news: VecDeque<usize>,
    /// The number of them that may be asked for until the next wait.
    told: usize,
    waits: u64,
    /// The number of waits since time has passed.
    turns: u32,
}

impl Network {
    pub(super) fn new(settings: SimulationSettings) -> Network {
        Network {
            rng: Rng::new(settings.seed),
            settings,
            now: Nanos(0),
            truth: Truth::default(),
            registers: Registers::default(),
            events: BTreeMap::new(),
            planned: 0,
            wires: Vec::new(),
            latest: Vec::new(),
            seen: Vec::new(),
            news: VecDeque::new(),
            told: 0,
            waits: 0,
            turns: 0,
        }
    }

    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    pub(super) fn truth(&self) -> Truth {
        self.truth.clone()
    }

    pub(super) fn call_at(&mut self, when: Nanos, action: Box<dyn FnOnce()>) {
        self.plan(when, Event::Call(action));
    }

    /// Lets the server finish what it has started, when no client is waiting.
    pub(super) fn settle(&mut self) {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = self.now.max(at);
            if matches!(event, Event::Wake(..)) {
                self.happen(event);
            }
        }
        for wire in &mut self.wires {
            wire.session.vanish();
        }
    }

    pub(super) fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        let most = self.settings.short_writes;
        let number = self.wire(connection);
        let wire = &self.wires[number];
        if wire.closed_by_client {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match wire.ended {
            Some(Loss::Reset) => return Err(io::ErrorKind::BrokenPipe.into()),
            Some(Loss::Closed) => return Ok(bytes.len()),
            None => {}
        }
        if wire.full {
            return Ok(0);
        }
        let count = most.map_or(bytes.len(), |most| self.draw(&(0..=most as u64)).min(bytes.len()));
        if count < bytes.len() {
            self.wires[number].full = true;
            self.plan(self.now.after(HOP), Event::Writable(number));
        }
        self.with_session(number, |session, context| {
            if !session.is_gone() {
                session.on_bytes(context, &bytes[..count]);
            }
        });
        Ok(count)
    }

    /// The next connection with news since the last wait.
    pub(super) fn next(&mut self) -> Option<usize> {
        self.told = self.told.checked_sub(1)?;
        self.news.pop_front()
    }

    /// Moves bytes that have arrived to the buffer.
    pub(super) fn receive<'a>(
        &mut self,
        connection: usize,
        buffer: &'a mut Vec<u8>,
    ) -> io::Result<Received<'a>> {
        let number = self.wire(connection);
        self.flood(number)?;
        if !self.wires[number].arrived.is_empty() {
            self.pass_to(self.now.after(self.settings.receiving));
        }
        let wire = &mut self.wires[number];
        if wire.closed_by_client {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let count = wire.arrived.len().min(MOST_RECEIVED);
        if count > 0 {
            buffer.clear();
            buffer.extend(wire.arrived.drain(..count));
            // An end that came with the last bytes is news again.
            let ends = wire.ended.is_some() && !self.news.contains(&connection);
            if !wire.arrived.is_empty() || ends {
                self.tell(number);
            }
            return Ok(Received::Bytes(buffer));
        }
        match wire.ended {
            Some(Loss::Closed) => Ok(Received::Closed),
            Some(Loss::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            None => Ok(Received::Nothing),
        }
    }

    /// Endless notices arrive as fast as they are read.
    fn flood(&mut self, number: usize) -> io::Result<()> {
        let Some(notice) = self.wires[number].session.flood() else { return Ok(()) };
        let arrived = &mut self.wires[number].arrived;
        while arrived.len() < 2 * MOST_RECEIVED {
            arrived.extend(&notice);
        }
        self.pass_to(self.now.after(FLOOD));
        self.check_time()
    }

    /// Fails when the time limit of the simulation is reached.
    fn check_time(&mut self) -> io::Result<()> {
        if self.now > Nanos(0).after(self.settings.time_limit) || self.waits > MOST_WAITS {
            self.truth.ran_out_of_time = true;
            return Err(io::Error::other("the simulation's time is over"));
        }
        Ok(())
    }

    pub(super) fn watch_writable(&mut self, connection: usize, on: bool) {
        let number = self.wire(connection);
        let wire = &mut self.wires[number];
        wire.watched = on;
        if on && !wire.full {
            self.tell(number);
        }
    }

    pub(super) fn cancel(&mut self, connection: usize) {
        self.truth.cancels += 1;
        let number = self.wire(connection);
        self.with_session(number, SimulatedSession::on_cancel);
    }

    /// The client disconnects; the server still processes what it has received.
    pub(super) fn close(&mut self, connection: usize) {
        if let Some(number) = self.latest.get(connection).copied().flatten() {
            self.wires[number].closed_by_client = true;
            let told = self.news.iter().take(self.told).filter(|told| **told == connection).count();
            self.told -= told;
            self.news.retain(|told| *told != connection);
        }
    }

    /// Opens a new session, which takes the time of connecting. Returns the bytes that arrive with
    /// it.
    pub(super) fn open(&mut self, connection: usize, limit: Option<Duration>) -> Result<Vec<u8>, String> {
        self.pass_to(self.now.after(self.settings.connecting));
        self.know(connection);
        let seen = &mut self.seen[connection];
        let fault = self.settings.faults.strike(connection, |on| on == On::Connect, seen, &mut self.rng);
        if let Some(Fault::Error(code)) = fault {
            return Err(format!("the simulated server refuses a session ({code})"));
        }
        if let Some(Fault::Hang { .. }) = fault {
            self.pass_to(self.now.after(limit.unwrap_or(self.settings.time_limit)));
            return Err("timeout expired".to_owned());
        }
        self.close(connection);
        let number = self.connect(connection);
        match fault {
            Some(Fault::LostWhenIdle(after, loss)) => {
                self.plan(self.now.after(after), Event::End(number, loss));
                Ok(Vec::new())
            }
            Some(Fault::ParameterStatus) => {
                let mut head = Vec::new();
                server::parameter_status(&mut head, "application_name", "x");
                let rest = head.split_off(3);
                self.deliver(number, rest);
                Ok(head)
            }
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn wait(&mut self, until: Nanos) -> io::Result<()> {
        self.waits += 1;
        let limit = Nanos(0).after(self.settings.time_limit);
        self.check_time()?;
        let before = self.now;
        if self.turns > TURNS_OF_AN_INSTANT {
            self.pass_to(self.now.after(HOP));
        }
        let until = until.max(self.now.after(SHORTEST_WAIT));
        while self.news.is_empty() {
            match self.events.first_key_value() {
                Some((&(at, _), _)) if at <= until => self.pass_to(at),
                // No event can happen any more: the run hangs, which the limit reports.
                _ if until == Nanos::NEVER => self.now = limit.after(SHORTEST_WAIT),
                _ => self.now = until,
            }
            if self.now >= until || self.now > limit {
                break;
            }
        }
        self.turns = if self.now > before { 0 } else { self.turns + 1 };
        self.told = self.news.len();
        Ok(())
    }

    /// Moves the clock to an instant and triggers all events due by then.
    fn pass_to(&mut self, instant: Nanos) {
        self.now = self.now.max(instant);
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let event = entry.remove();
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(number, bytes) => {
                self.wires[number].arrived.extend(bytes);
                if !self.news.contains(&self.wires[number].connection) {
                    self.tell(number);
                }
            }
            Event::End(number, loss) => {
                self.wires[number].ended = Some(loss);
                self.wires[number].session.vanish();
                self.tell(number);
            }
            Event::Wake(number, wake) => {
                self.with_session(number, |session, context| session.on_wake(context, wake));
            }
            Event::Writable(number) => {
                self.wires[number].full = false;
                if self.wires[number].watched {
                    self.tell(number);
                }
            }
            Event::Call(action) => action(),
        }
    }

    /// Reports news of a wire, unless the client has closed it.
    fn tell(&mut self, number: usize) {
        let wire = &self.wires[number];
        if !wire.closed_by_client {
            self.news.push_back(wire.connection);
        }
    }

    /// Runs a session and performs its actions.
    fn with_session(
        &mut self,
        number: usize,
        work: impl FnOnce(&mut SimulatedSession, &mut SessionContext<'_>),
    ) {
        let Wire { session, connection, .. } = &mut self.wires[number];
        let mut context = SessionContext {
            now: self.now,
            rng: &mut self.rng,
            settings: &self.settings,
            truth: &mut self.truth,
            registers: &mut self.registers,
            seen: &mut self.seen[*connection],
            next_fault: None,
        };
        work(session, &mut context);
        let flood = session.flood();
        let actions = session.take_actions();
        if let Some(notice) = flood {
            self.deliver(number, notice);
        }
        for order in actions {
            match order {
                NetworkAction::Send(bytes) => self.deliver(number, bytes),
                NetworkAction::Wake(at, wake) => self.plan(at, Event::Wake(number, wake)),
                NetworkAction::Lose(after, loss) => {
                    let at = self.now.after(after).max(self.wires[number].last_arrival);
                    self.plan(at, Event::End(number, loss));
                }
            }
        }
    }

    /// Sends bytes to the client, in pieces if the settings require it.
    fn deliver(&mut self, number: usize, mut bytes: Vec<u8>) {
        let mut at = self.now.max(self.wires[number].last_arrival);
        if let Some(longest) = self.settings.pieces {
            while !bytes.is_empty() {
                let count = self.draw(&(1..=longest.max(1) as u64)).min(bytes.len());
                let rest = bytes.split_off(count);
                at = at.after(HOP);
                self.plan(at, Event::Arrive(number, bytes));
                bytes = rest;
            }
        } else {
            self.plan(at, Event::Arrive(number, bytes));
        }
        self.wires[number].last_arrival = at;
    }

    fn plan(&mut self, at: Nanos, event: Event) {
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    fn draw(&mut self, range: &RangeInclusive<u64>) -> usize {
        usize::try_from(self.rng.between(range)).unwrap_or(usize::MAX)
    }

    /// The number of the connection's latest wire, which is created for a new connection.
    fn wire(&mut self, connection: usize) -> usize {
        self.know(connection);
        self.latest[connection].unwrap_or_else(|| self.connect(connection))
    }

    /// Allocates the state of a connection.
    fn know(&mut self, connection: usize) {
        if self.latest.len() <= connection {
            let count = connection + 1;
            self.latest.resize(count, None);
            self.seen.resize(count, Vec::new());
            self.truth.know(connection);
        }
    }

    /// Starts a session on a wire of its own, and returns the wire's number.
    fn connect(&mut self, connection: usize) -> usize {
        let sessions = &mut self.truth.sessions[connection];
        self.wires.push(Wire::new(connection, *sessions));
        *sessions += 1;
        let number = self.wires.len() - 1;
        self.latest[connection] = Some(number);
        number
    }
}
