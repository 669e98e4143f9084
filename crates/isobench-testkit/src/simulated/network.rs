//! Events in time, and what is on its way between clients and the server.
//!
//! News are edge-triggered, as epoll tells them: each arrival is told once, however much of it is
//! read. A connection may have one session after the other, each on a wire of its own: what is on
//! its way on an old wire never reaches the new one.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use isobench_pgwire::server;
use isobench_runner::{Nanos, Received};

use super::dice::Dice;
use super::faults::{Fault, Loss, On};
use super::registers::Registers;
use super::session::{Order, Scene, Session};
use super::settings::Settings;
use super::truth::Truth;

/// Between two pieces of a reply, and from a short write until the connection takes more.
const HOP: Duration = Duration::from_micros(10);

/// Receiving a part of what comes without end.
const FLOOD: Duration = Duration::from_millis(1);

/// A wait takes at least this long, or a loop that never waits for anything would stop the time.
const SHORTEST_WAIT: Duration = Duration::from_micros(1);

/// After so many waits in one instant, time passes nevertheless: errors may come in no time, and so
/// fast for ever.
const TURNS_OF_AN_INSTANT: u32 = 10;

/// So many waits mean that whoever waits makes no headway.
const MOST_WAITS: u64 = 2_000_000;

/// Something that happens at an instant, most of it to the wire of this number.
enum Event {
    Arrive(usize, Vec<u8>),
    End(usize, Loss),
    Wake(usize, u64),
    Writable(usize),
    Call(Box<dyn FnOnce()>),
}

/// What one session of a connection travels on.
struct Wire {
    connection: usize,
    session: Session,
    /// What has arrived at the client and wasn't received.
    arrived: VecDeque<u8>,
    /// The end has arrived at the client.
    ended: Option<Loss>,
    /// The last piece that is on its way arrives then.
    last_arrival: Nanos,
    /// It took only a part of the last send.
    full: bool,
    watched: bool,
    closed_by_client: bool,
}

impl Wire {
    fn new(connection: usize, session: u64) -> Wire {
        Wire {
            connection,
            session: Session::new(connection, session),
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
    settings: Settings,
    dice: Dice,
    now: Nanos,
    truth: Truth,
    registers: Registers,
    /// By instant, and then in the order in which they were planned.
    events: BTreeMap<(Nanos, u64), Event>,
    planned: u64,
    wires: Vec<Wire>,
    /// Each connection's latest wire; `None` if it never had one.
    latest: Vec<Option<usize>>,
    /// For each connection, the occasions of each rule of faults.
    seen: Vec<Vec<u64>>,
    /// Connections.
    news: Vec<usize>,
    waits: u64,
    /// Waits since time has passed.
    turns: u32,
}

impl Network {
    pub(super) fn new(settings: Settings) -> Network {
        Network {
            dice: Dice::new(settings.seed),
            settings,
            now: Nanos(0),
            truth: Truth::default(),
            registers: Registers::default(),
            events: BTreeMap::new(),
            planned: 0,
            wires: Vec::new(),
            latest: Vec::new(),
            seen: Vec::new(),
            news: Vec::new(),
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

    /// Lets the server finish what it has begun, when nobody listens any more.
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
        self.with_session(number, |session, scene| {
            if !session.is_gone() {
                session.on_bytes(scene, &bytes[..count]);
            }
        });
        Ok(count)
    }

    pub(super) fn receive(&mut self, connection: usize, buffer: &mut [u8]) -> io::Result<Received> {
        let number = self.wire(connection);
        self.flood(number, buffer.len())?;
        if !self.wires[number].arrived.is_empty() {
            self.pass_to(self.now.after(self.settings.receiving));
        }
        let wire = &mut self.wires[number];
        if wire.closed_by_client {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let count = wire.arrived.len().min(buffer.len());
        if count > 0 {
            for (place, byte) in buffer.iter_mut().zip(wire.arrived.drain(..count)) {
                *place = byte;
            }
            return Ok(Received::Bytes(count));
        }
        match wire.ended {
            Some(Loss::Closed) => Ok(Received::Closed),
            Some(Loss::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            None => Ok(Received::Nothing),
        }
    }

    /// Notices without end come as fast as they are read.
    fn flood(&mut self, number: usize, size: usize) -> io::Result<()> {
        let Some(notice) = self.wires[number].session.flood() else { return Ok(()) };
        let arrived = &mut self.wires[number].arrived;
        while arrived.len() < 2 * size {
            arrived.extend(&notice);
        }
        self.pass_to(self.now.after(FLOOD));
        self.check_time()
    }

    /// Fails when the time of the simulation is over.
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
        self.with_session(number, Session::on_cancel);
    }

    /// The client goes; the server still works on what it has got.
    pub(super) fn close(&mut self, connection: usize) {
        if let Some(number) = self.latest.get(connection).copied().flatten() {
            self.wires[number].closed_by_client = true;
            self.news.retain(|told| *told != connection);
        }
    }

    /// A new session, after the time that connecting takes. Returns what arrives with it.
    pub(super) fn open(&mut self, connection: usize, limit: Option<Duration>) -> Result<Vec<u8>, String> {
        self.pass_to(self.now.after(self.settings.connecting));
        self.know(connection);
        let seen = &mut self.seen[connection];
        let fault = self.settings.faults.strike(connection, |on| on == On::Connect, seen, &mut self.dice);
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

    pub(super) fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<()> {
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
                // Nothing can happen any more: the run hangs, which the limit tells.
                _ if until == Nanos::NEVER => self.now = limit.after(SHORTEST_WAIT),
                _ => self.now = until,
            }
            if self.now >= until || self.now > limit {
                break;
            }
        }
        self.turns = if self.now > before { 0 } else { self.turns + 1 };
        ready.append(&mut self.news);
        Ok(())
    }

    /// Moves the clock to an instant and lets happen everything that is due then.
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
                self.with_session(number, |session, scene| session.on_wake(scene, wake));
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

    /// There is news of a wire; nobody hears of one that the client has closed.
    fn tell(&mut self, number: usize) {
        let wire = &self.wires[number];
        if !wire.closed_by_client {
            self.news.push(wire.connection);
        }
    }

    /// Lets a session work and does what it orders.
    fn with_session(&mut self, number: usize, work: impl FnOnce(&mut Session, &mut Scene<'_>)) {
        let Wire { session, connection, .. } = &mut self.wires[number];
        let mut scene = Scene {
            now: self.now,
            dice: &mut self.dice,
            settings: &self.settings,
            truth: &mut self.truth,
            registers: &mut self.registers,
            seen: &mut self.seen[*connection],
        };
        work(session, &mut scene);
        let flood = session.flood();
        let orders = session.take_orders();
        if let Some(notice) = flood {
            self.deliver(number, notice);
        }
        for order in orders {
            match order {
                Order::Send(bytes) => self.deliver(number, bytes),
                Order::Wake(at, wake) => self.plan(at, Event::Wake(number, wake)),
                Order::Lose(after, loss) => {
                    let at = self.now.after(after).max(self.wires[number].last_arrival);
                    self.plan(at, Event::End(number, loss));
                }
            }
        }
    }

    /// Puts bytes on their way to the client, in pieces if the settings want it.
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
        usize::try_from(self.dice.between(range)).unwrap_or(usize::MAX)
    }

    /// The number of the connection's latest wire; a connection that never had one has it made.
    fn wire(&mut self, connection: usize) -> usize {
        self.know(connection);
        self.latest[connection].unwrap_or_else(|| self.connect(connection))
    }

    /// Makes room for what is kept of a connection.
    fn know(&mut self, connection: usize) {
        if self.latest.len() <= connection {
            let count = connection + 1;
            self.latest.resize(count, None);
            self.seen.resize(count, Vec::new());
            self.truth.parses.resize(count, 0);
            self.truth.sessions.resize(count, 0);
            self.truth.statements.resize(count, Vec::new());
        }
    }

    /// Begins a session on a wire of its own, and returns the wire's number.
    fn connect(&mut self, connection: usize) -> usize {
        let sessions = &mut self.truth.sessions[connection];
        self.wires.push(Wire::new(connection, *sessions));
        *sessions += 1;
        let number = self.wires.len() - 1;
        self.latest[connection] = Some(number);
        number
    }
}
