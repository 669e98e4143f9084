//! Clients that send random scripts to the simulated database, in simulated time, and keep a log of
//! what its answers show.
//!
//! Messages take their time in both directions, so the instants in the log are those that a client
//! sees.

mod server;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use isobench_isolation::history::{Transaction, TransactionOutcome};
use isobench_isolation::observed::Replaced;

use super::database::{Database, Level, Shown, Statement, Tx};
use super::defect::Defect;
use super::log::{Entry, Log, Logged};
use super::scripts::{Generator, Script, Sent, Style};

/// The most transactions of a run.
const MOST: usize = 62;

#[derive(Debug, Clone, Copy)]
pub struct RunSettings {
    pub level: Level,
    pub defect: Option<Defect>,
    pub seed: u64,
    /// True if all scripts are blocks of separate statements, and every COMMIT is answered.
    pub blocks: bool,
    /// What the scripts do; `None`: anything, at random.
    pub style: Option<Style>,
}

/// A run, and what really happened.
pub struct Run {
    pub style: Style,
    pub log: Log,
    pub database: Database,
    /// True if the log has the versions that writes replaced.
    pub shows_replaced: bool,
}

/// An attempt of a client.
#[derive(Debug)]
struct Attempt {
    client: usize,
    tx: usize,
    begin: u64,
    script: Script,
    /// The next statement to be sent.
    next: usize,
    entries: Vec<(u16, Entry)>,
    /// The number of entries at each savepoint.
    savepoints: Vec<usize>,
    /// True if its client has lost its connection.
    lost: bool,
    /// The number of the retry.
    again: usize,
    request: Request,
}

/// What the server is asked to do: statements, and the end of the transaction.
#[derive(Debug, Clone, Default)]
struct Request {
    from: usize,
    to: usize,
    ends: bool,
    /// True if the connection breaks before it arrives.
    cut: bool,
    shown: Vec<(usize, Vec<Shown>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client sends the next request of an attempt.
    Send(usize),
    Arrive(usize),
    /// The reply arrives; false if the transaction failed.
    Reply(usize, bool),
    /// The client notices that the connection is lost.
    Lost(usize),
    /// A foreign transaction that began before the run ends.
    Foreign(usize),
}

struct Simulation {
    database: Database,
    random: fastrand::Rng,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    now: u64,
    attempts: Vec<Attempt>,
    scripts: Vec<Vec<Script>>,
    waiting: Vec<usize>,
    waits: BTreeMap<usize, usize>,
    log: Log,
    shows_replaced: bool,
    search_first: bool,
    loses: bool,
}

/// Runs a random workload.
pub fn run(settings: RunSettings) -> Run {
    let mut random = fastrand::Rng::with_seed(settings.seed);
    let any = Style::ALL[random.usize(0..Style::ALL.len())];
    let style = settings.style.unwrap_or(any);
    // Often just before the numbers start again.
    let first = if random.bool() { u32::MAX - random.u32(0..40) } else { random.u32(100..1_000_000) };
    let mut database = Database::new(settings.level, settings.defect, first, random.fork());
    let mut generator = Generator { random: &mut random, style, keys: 0, blocks: settings.blocks };
    generator.keys = generator.random.i64(2..7);
    for table in 0..2 {
        for key in 1..=generator.keys {
            if generator.random.u8(0..3) > 0 {
                let xmin = [2, first - generator.random.u32(1..90)][generator.random.usize(0..2)];
                database.add_initial(table, [key, generator.value(), generator.value()], xmin);
            }
        }
    }
    let clients = generator.random.usize(2..5);
    let scripts = (0..clients)
        .map(|_| (0..generator.random.usize(1..4)).map(|_| generator.script()).collect())
        .collect();
    let log = Log {
        attempts: Vec::new(),
        predicates: Vec::new(),
        horizon: first,
        closed: [true; 2],
        dropped: 0,
        committed: None,
    };
    let mut simulation = Simulation {
        database,
        events: BinaryHeap::new(),
        sequence: 0,
        now: 1000,
        attempts: Vec::new(),
        scripts,
        waiting: Vec::new(),
        waits: BTreeMap::new(),
        log,
        shows_replaced: random.bool(),
        search_first: random.bool(),
        loses: !settings.blocks,
        random,
    };
    if simulation.loses && simulation.random.u8(0..8) == 0 {
        simulation.foreign();
    }
    for client in 0..clients {
        simulation.next_script(client);
    }
    while let Some(Reverse((at, _, event))) = simulation.events.pop() {
        simulation.now = at;
        simulation.happen(event);
    }
    let second_source = simulation.random.u8(0..4) == 0;
    let Simulation { mut log, database, shows_replaced, .. } = simulation;
    log.committed = second_source.then(|| database.committed_writes());
    Run { style, log, database, shows_replaced }
}

impl Simulation {
    fn after(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now + delay, self.sequence, event)));
    }

    /// The time that a message takes.
    fn delay(&mut self) -> u64 {
        self.random.u64(1..=20)
    }

    /// Begins a transaction of somebody else, with a number below those of the run, that writes a
    /// row and ends in the middle of the run.
    fn foreign(&mut self) {
        let tx = self.database.begin();
        let statement = Statement::Update {
            table: 0,
            condition: super::condition::Condition::key(1),
            column: 1,
            value: 2,
        };
        self.database.execute(tx, 0, &statement);
        self.log.closed[0] = false;
        let delay = self.random.u64(1..300);
        self.after(delay, Event::Foreign(tx));
    }

    fn next_script(&mut self, client: usize) {
        if let Some(script) = self.scripts[client].pop() {
            self.attempt(client, script, 0);
        }
    }

    fn attempt(&mut self, client: usize, script: Script, again: usize) {
        if self.database.txs.len() >= MOST {
            return;
        }
        let tx = self.database.begin();
        self.attempts.push(Attempt {
            client,
            tx,
            begin: 0,
            script,
            next: 0,
            entries: Vec::new(),
            savepoints: Vec::new(),
            lost: false,
            again,
            request: Request::default(),
        });
        let delay = self.random.u64(0..30);
        self.after(delay, Event::Send(self.attempts.len() - 1));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Send(attempt) => self.send(attempt),
            Event::Arrive(attempt) => self.arrive(attempt),
            Event::Reply(attempt, _) | Event::Lost(attempt) if self.attempts[attempt].lost => {
                if event == Event::Lost(attempt) {
                    self.lose(attempt);
                }
            }
            Event::Reply(attempt, done) => self.reply(attempt, done),
            Event::Lost(_) => {}
            Event::Foreign(tx) => {
                if self.random.bool() {
                    self.database.commit(tx);
                } else {
                    self.database.abort(tx);
                }
                self.wake();
            }
        }
    }

    fn send(&mut self, attempt: usize) {
        let (now, lost) = (self.now, self.loses && self.random.u8(0..25) == 0);
        let cut = lost && self.random.bool();
        let this = &mut self.attempts[attempt];
        if this.next == 0 {
            this.begin = now;
        }
        let count = this.script.statements.len();
        let from = this.next;
        let to = if this.script.sent == Sent::AtOnce { count } else { (from + 1).min(count) };
        let ends = this.script.sent == Sent::AtOnce || from == count;
        this.next = to.max(from);
        this.lost = ends && lost;
        this.request = Request { from, to, ends, cut: ends && cut, shown: Vec::new() };
        if self.attempts[attempt].lost {
            let patience = self.random.u64(1..100);
            self.after(patience, Event::Lost(attempt));
        }
        let delay = self.delay();
        self.after(delay, Event::Arrive(attempt));
    }

    fn reply(&mut self, attempt: usize, done: bool) {
        let request = std::mem::take(&mut self.attempts[attempt].request);
        if done {
            for (number, shown) in &request.shown {
                self.note(attempt, *number, shown);
            }
        }
        let this = &mut self.attempts[attempt];
        let rolled_back = this.script.rolls_back;
        if done && !request.ends {
            this.entries.push((0, Entry::Answered(self.now)));
            let think = self.random.u64(0..10);
            return self.after(think, Event::Send(attempt));
        }
        let committed = done && !rolled_back;
        let outcome = if committed { TransactionOutcome::Committed } else { TransactionOutcome::Aborted };
        self.finish(attempt, outcome, self.now);
        let Attempt { client, again, ref script, .. } = self.attempts[attempt];
        if !done && again < 2 {
            let script = script.clone();
            self.attempt(client, script, again + 1);
        } else {
            self.next_script(client);
        }
    }

    /// Ends an attempt whose outcome its client will never know.
    fn lose(&mut self, attempt: usize) {
        let Attempt { client, ref script, .. } = self.attempts[attempt];
        if script.sent == Sent::AtOnce {
            let tables: Vec<u16> = script.statements.iter().filter_map(Statement::written).collect();
            let unseen = tables.into_iter().map(|table| (0, Entry::Unseen(table)));
            self.attempts[attempt].entries.extend(unseen);
        }
        let rolls_back = self.attempts[attempt].script.rolls_back;
        let outcome = if rolls_back { TransactionOutcome::Aborted } else { TransactionOutcome::Unknown };
        self.finish(attempt, outcome, u64::MAX);
        self.next_script(client);
    }

    fn finish(&mut self, attempt: usize, outcome: TransactionOutcome, end: u64) {
        let Attempt { client, tx, begin, ref mut entries, .. } = self.attempts[attempt];
        let entries = std::mem::take(entries);
        self.keep(client, Some(tx), (begin, end), outcome, entries);
    }

    fn keep(
        &mut self,
        client: usize,
        tx: Option<usize>,
        (begin, end): (u64, u64),
        outcome: TransactionOutcome,
        entries: Vec<(u16, Entry)>,
    ) {
        let id = self.log.attempts.len() as u64;
        let client = u32::try_from(client).expect("few clients");
        let transaction = Transaction { id, client, begin, end, outcome, mode: None };
        let thread = usize::from(client % 2 == 1);
        self.log.attempts.push(Logged { transaction, tx, thread, entries });
    }

    /// Logs the result of a statement.
    fn note(&mut self, attempt: usize, number: usize, shown: &[Shown]) {
        let Attempt { ref script, ref mut savepoints, ref mut entries, client, begin, .. } =
            self.attempts[attempt];
        let statement = script.statements[number].clone();
        match statement {
            Statement::Savepoint => savepoints.push(entries.len()),
            Statement::Release => drop(savepoints.pop()),
            Statement::RollbackTo => {
                // What was undone is an attempt of its own, which was aborted.
                let from = savepoints.last().copied().unwrap_or(0);
                let undone: Vec<_> = entries.split_off(from);
                let instants =
                    undone.iter().filter(|(_, entry)| matches!(entry, Entry::Answered(_))).cloned();
                entries.extend(instants);
                let end = self.now;
                self.keep(client, None, (begin, end), TransactionOutcome::Aborted, undone);
            }
            _ => {
                let noted = self.entries(&statement, shown);
                let number = u16::try_from(number).expect("few statements");
                let noted = noted.into_iter().map(|entry| (number, entry));
                self.attempts[attempt].entries.extend(noted);
            }
        }
    }

    fn entries(&mut self, statement: &Statement, shown: &[Shown]) -> Vec<Entry> {
        let replaced = |old: Option<u32>| match old {
            None => Replaced::Nothing,
            Some(old) if self.shows_replaced => Replaced::By(old),
            Some(_) => Replaced::Unknown,
        };
        let mut entries: Vec<Entry> = shown
            .iter()
            .map(|shown| match *shown {
                Shown::Read { key, xmin, columns } => {
                    Entry::Read { key, writer: xmin, columns: columns.to_vec() }
                }
                Shown::Wrote { key, xmin, old, columns } => {
                    let columns = columns.to_vec();
                    Entry::Write { key, writer: xmin, replaced: replaced(old), columns }
                }
                Shown::Deleted { key, xmin } => Entry::Delete { key, deleted: xmin },
            })
            .collect();
        if let Some((table, condition)) = statement.search() {
            let mut operands = Vec::new();
            let test = condition.test.predicate(&mut operands);
            self.log.predicates.push(test);
            let predicate = u16::try_from(self.log.predicates.len() - 1).expect("few statements");
            let id = |shown: &Shown| match *shown {
                Shown::Read { key, .. } | Shown::Wrote { key, .. } | Shown::Deleted { key, .. } => key.id,
            };
            let found = shown.iter().map(id).collect();
            let search = Entry::Search { table, predicate, key: condition.key, operands, found };
            entries.insert(if self.search_first { 0 } else { entries.len() }, search);
        }
        entries
    }

    fn tx(&self, attempt: usize) -> &Tx {
        &self.database.txs[self.attempts[attempt].tx]
    }
}
