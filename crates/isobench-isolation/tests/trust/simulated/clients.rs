//! Clients of the simulated database: random transactions, randomly interleaved, retried, rolled
//! back, or lost.

use std::collections::BTreeSet;

use isobench_isolation::History;
use isobench_isolation::history::{Key, Transaction, TransactionOutcome};

use super::database::{Answer, Database, Level, Shown, Statement};
use super::defect::Defect;

/// The operations of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Registers with counters and values.
    Counters,
    /// Registers of which only the counters are known.
    CountersOnly,
    /// Registers of which only the values are known.
    Values,
    /// Lists.
    Lists,
    /// Inserts and reads of groups.
    Groups,
    /// All of these.
    Mixed,
}

impl Workload {
    pub const ALL: [Workload; 6] = [
        Workload::Counters,
        Workload::CountersOnly,
        Workload::Values,
        Workload::Lists,
        Workload::Groups,
        Workload::Mixed,
    ];
}

/// The parameters of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct SimulationSettings {
    pub level: Level,
    pub workload: Workload,
    pub defect: Option<Defect>,
    pub seed: u64,
}

/// The result of a simulation.
pub struct Run {
    pub history: History,
    pub database: Database,
    /// For each of the database's transactions, its index in the history.
    pub places: Vec<Option<usize>>,
}

/// The state of a client.
enum ClientState {
    Nothing,
    Running {
        tx: usize,
        begin: u64,
        next: usize,
    },
    /// The answer has been sent.
    Answered {
        tx: usize,
        begin: u64,
        outcome: TransactionOutcome,
    },
}

struct Client {
    state: ClientState,
    program: Vec<Statement>,
    left: u32,
}

struct Simulation {
    random: fastrand::Rng,
    workload: Workload,
    /// The number of rows of each kind.
    rows: i64,
    /// The percentage of commits that are rolled back instead, and the percentage that get lost.
    rollbacks: u8,
    losses: u8,
    clock: u64,
    clients: Vec<Client>,
    database: Database,
    history: History,
    places: Vec<Option<usize>>,
    /// The transactions for which each transaction waits.
    waits: Vec<BTreeSet<usize>>,
    /// Undecided transactions that their clients have lost.
    orphans: Vec<usize>,
}

/// Runs a simulation.
pub fn run(settings: SimulationSettings) -> Run {
    let mut random = fastrand::Rng::with_seed(settings.seed);
    let clients = random.usize(2..=5);
    let each = random.u32(2..=6);
    let shown = match settings.workload {
        Workload::CountersOnly => Shown { counters: true, values: false },
        Workload::Values => Shown { counters: false, values: true },
        _ => Shown { counters: true, values: true },
    };
    let nothing = || Client { state: ClientState::Nothing, program: Vec::new(), left: each };
    let mut simulation = Simulation {
        workload: settings.workload,
        rows: random.i64(1..=4),
        rollbacks: if settings.defect == Some(Defect::DirtyRead) { 30 } else { 8 },
        losses: if lossless(&settings, shown) { 0 } else { random.u8(0..20) },
        clock: 1,
        clients: (0..clients).map(|_| nothing()).collect(),
        database: Database::new(settings.level, settings.defect, shown, random.fork()),
        history: History::new(["registers", "lists", "members"].map(str::to_owned).to_vec()),
        places: Vec::new(),
        waits: Vec::new(),
        orphans: Vec::new(),
        random,
    };
    simulation.run();
    let Simulation { history, database, places, .. } = simulation;
    Run { history, database, places }
}

/// True if outcomes must not be unknown: without values, a read could be of a lost transaction's
/// version or the next one's, and at read uncommitted a read doesn't prove that the writer
/// committed.
fn lossless(settings: &SimulationSettings, shown: Shown) -> bool {
    settings.defect.is_some() || !shown.values || settings.level == Level::ReadUncommitted
}

impl Simulation {
    fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    fn run(&mut self) {
        loop {
            let busy: Vec<_> = (0..self.clients.len())
                .filter(|&it| {
                    self.clients[it].left > 0 || !matches!(self.clients[it].state, ClientState::Nothing)
                })
                .collect();
            let Some(client) = self.random.choice(busy) else { break };
            self.clock += self.random.u64(1..=3);
            self.step(client);
            if self.chance(20) {
                self.decide_orphan();
            }
            if self.chance(15) {
                self.database.mend();
            }
        }
        while !self.orphans.is_empty() {
            self.decide_orphan();
        }
    }

    fn decide_orphan(&mut self) {
        if let Some(tx) = self.orphans.pop() {
            if self.random.bool() {
                self.database.commit(tx);
            } else {
                self.database.abort(tx);
            }
        }
    }

    fn step(&mut self, client: usize) {
        let state = std::mem::replace(&mut self.clients[client].state, ClientState::Nothing);
        self.clients[client].state = match state {
            ClientState::Nothing => {
                if self.clients[client].program.is_empty() {
                    self.clients[client].program = self.program();
                }
                self.clients[client].left -= 1;
                self.places.push(None);
                self.waits.push(BTreeSet::new());
                ClientState::Running { tx: self.database.begin(), begin: self.clock, next: 0 }
            }
            ClientState::Running { tx, begin, next } => self.statement(client, tx, begin, next),
            ClientState::Answered { tx, begin, outcome } => {
                let unseen = outcome == TransactionOutcome::Unknown && self.random.bool();
                let end = if unseen { u64::MAX } else { self.clock };
                let transaction = Transaction {
                    id: tx as u64 + 1,
                    client: client_number(client),
                    begin,
                    end,
                    outcome,
                    mode: None,
                };
                self.places[tx] = Some(self.history.transactions().len());
                self.history.push(transaction, &self.database.txs[tx].draft);
                // A failed transaction is usually retried.
                if outcome == TransactionOutcome::Committed || self.random.u8(0..4) == 0 {
                    self.clients[client].program.clear();
                }
                ClientState::Nothing
            }
        };
    }

    fn statement(&mut self, client: usize, tx: usize, begin: u64, next: usize) -> ClientState {
        let Some(&statement) = self.clients[client].program.get(next) else {
            let outcome = self.end(tx);
            return ClientState::Answered { tx, begin, outcome };
        };
        match self.database.execute(tx, statement) {
            Answer::Done => {
                self.waits[tx].clear();
                ClientState::Running { tx, begin, next: next + 1 }
            }
            Answer::Wait(holders) => {
                self.waits[tx] = holders;
                if self.is_deadlocked(tx) {
                    self.fail(tx);
                    return ClientState::Answered { tx, begin, outcome: TransactionOutcome::Aborted };
                }
                ClientState::Running { tx, begin, next }
            }
            Answer::Failed => {
                self.fail(tx);
                ClientState::Answered { tx, begin, outcome: TransactionOutcome::Aborted }
            }
        }
    }

    fn fail(&mut self, tx: usize) {
        self.waits[tx].clear();
        self.database.abort(tx);
    }

    fn is_deadlocked(&self, tx: usize) -> bool {
        let mut reached: Vec<usize> = self.waits[tx].iter().copied().collect();
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            if at == tx {
                return true;
            }
            let more: Vec<_> = self.waits[at].iter().copied().filter(|it| !reached.contains(it)).collect();
            reached.extend(more);
            next += 1;
        }
        false
    }

    /// Ends a transaction; returns the outcome known to its client.
    fn end(&mut self, tx: usize) -> TransactionOutcome {
        if self.chance(self.rollbacks) {
            self.database.abort(tx);
            return TransactionOutcome::Aborted;
        }
        if self.chance(self.losses) {
            match self.random.u8(0..3) {
                0 => drop(self.database.commit(tx)),
                1 => self.database.abort(tx),
                _ => self.orphans.push(tx),
            }
            return TransactionOutcome::Unknown;
        }
        if self.database.errs(Defect::CommittedThatFailed) {
            self.database.abort(tx);
            return TransactionOutcome::Committed;
        }
        if !self.database.commit(tx) || self.database.errs(Defect::FailedThatCommitted) {
            return TransactionOutcome::Aborted;
        }
        TransactionOutcome::Committed
    }

    fn program(&mut self) -> Vec<Statement> {
        let length = self.random.usize(1..=4);
        let mut program: Vec<Statement> = Vec::new();
        while program.len() < length {
            let kind = match self.workload {
                Workload::Mixed => self
                    .random
                    .choice([Workload::Counters, Workload::Lists, Workload::Groups])
                    .unwrap_or(Workload::Lists),
                kind => kind,
            };
            let id = self.random.i64(0..self.rows);
            let reads = self.random.bool();
            let statement = match kind {
                Workload::Lists if reads => Statement::ReadList(Key { table: 1, id }),
                Workload::Lists => Statement::Append(Key { table: 1, id }),
                Workload::Groups if reads => Statement::ReadGroup { table: 2, group: id },
                Workload::Groups => Statement::Insert { table: 2, group: id },
                _ if reads => Statement::Read(Key { table: 0, id }),
                _ => Statement::Write(Key { table: 0, id }),
            };
            program.push(statement);
        }
        program
    }
}

fn client_number(client: usize) -> u32 {
    u32::try_from(client).unwrap_or(u32::MAX)
}
