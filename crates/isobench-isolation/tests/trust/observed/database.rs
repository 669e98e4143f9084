//! A multi-version database like PostgreSQL: row versions with the numbers of the subtransactions
//! that wrote and replaced them, snapshots, row locks held to the end.
//!
//! It implements three levels correctly, except for one planted defect, and remembers what it did:
//! `dependencies` makes the true graph from that. It doesn't know clients, nor time except the order
//! of commits.

mod rows;
mod statements;

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::history::Key;
use isobench_isolation::observed::{CommittedChange, CommittedTransaction, CommittedWrite, CommittedWrites};

use super::condition::{Columns, Condition};
use super::defect::Defect;
use super::dependencies::cyclic;

/// The isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A snapshot for each statement; writes wait, and look at the newest version again.
    ReadCommitted,
    /// A snapshot for the transaction; the first updater wins.
    RepeatableRead,
    /// As before, and a commit that would close a cycle of dependencies fails.
    Serializable,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Select {
        table: u16,
        condition: Condition,
        lock: bool,
    },
    Update {
        table: u16,
        condition: Condition,
        column: usize,
        value: i64,
    },
    Delete {
        table: u16,
        condition: Condition,
    },
    Insert {
        table: u16,
        columns: Columns,
    },
    /// `INSERT … ON CONFLICT DO UPDATE`; the inserted value of the column replaces the old one.
    Upsert {
        table: u16,
        columns: Columns,
        column: usize,
    },
    Savepoint,
    Release,
    RollbackTo,
}

impl Statement {
    /// The table and the condition of what is searched.
    pub fn search(&self) -> Option<(u16, &Condition)> {
        match self {
            Statement::Select { table, condition, .. }
            | Statement::Update { table, condition, .. }
            | Statement::Delete { table, condition } => Some((*table, condition)),
            _ => None,
        }
    }

    /// The table that is written.
    pub fn written(&self) -> Option<u16> {
        match self {
            Statement::Update { table, .. }
            | Statement::Delete { table, .. }
            | Statement::Insert { table, .. }
            | Statement::Upsert { table, .. } => Some(*table),
            _ => None,
        }
    }
}

/// A row that a statement's result shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Read {
        key: Key,
        xmin: u32,
        columns: Columns,
    },
    /// `old` is the writer of the version replaced; `None` for an inserted row.
    Wrote {
        key: Key,
        xmin: u32,
        old: Option<u32>,
        columns: Columns,
    },
    Deleted {
        key: Key,
        xmin: u32,
    },
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done(Vec<Shown>),
    /// It waits for this transaction.
    Wait(usize),
    /// The transaction has failed.
    Failed,
}

/// A version of a row.
#[derive(Debug, Clone)]
pub struct Tuple {
    pub key: Key,
    /// The same for all versions from an insertion to the deletion.
    pub incarnation: usize,
    pub columns: Columns,
    /// The subtransaction that wrote it; `None` for an initial row.
    pub writer: Option<usize>,
    pub xmin: u32,
    /// The subtransaction that replaced or deleted it.
    pub ended_by: Option<usize>,
    /// The version that replaced it.
    pub next: Option<usize>,
    /// The subtransaction that locked it.
    pub locker: Option<usize>,
}

/// A transaction or subtransaction that has a number.
#[derive(Debug, Clone, Copy)]
pub struct Sub {
    pub tx: usize,
    pub xid: u32,
    depth: usize,
    pub rolled_back: bool,
}

/// A savepoint: the first subtransaction that can belong to it, and its own once it has written.
#[derive(Debug, Clone, Copy)]
struct Savepoint {
    first: usize,
    sub: Option<usize>,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    /// The position of its commit, from 1.
    Committed(u64),
    Aborted,
}

/// A search as it really was.
#[derive(Debug, Clone)]
pub struct Searched {
    pub statement: u16,
    pub table: u16,
    pub condition: Condition,
    /// The number of commits that it saw.
    pub snapshot: u64,
    /// The number of commits that it saw of each incarnation whose newest version it looked at.
    pub later: BTreeMap<usize, u64>,
    /// The incarnations that its own transaction had written.
    pub own: BTreeSet<usize>,
}

/// A transaction.
#[derive(Debug, Clone)]
pub struct Tx {
    pub state: State,
    snapshot: Option<u64>,
    top: Option<usize>,
    savepoints: Vec<Savepoint>,
    current: Option<Current>,
    /// The versions of others that it read.
    pub reads: Vec<usize>,
    pub searches: Vec<Searched>,
}

/// A statement in execution.
#[derive(Debug, Clone)]
struct Current {
    snapshot: u64,
    targets: Vec<usize>,
    later: BTreeMap<usize, u64>,
    shown: Vec<Shown>,
}

pub struct Database {
    pub level: Level,
    pub defect: Option<Defect>,
    pub tuples: Vec<Tuple>,
    pub subs: Vec<Sub>,
    pub txs: Vec<Tx>,
    /// The transactions in which the defect took effect.
    pub affected: Vec<usize>,
    pub commits: u64,
    /// All writes: the subtransaction, the row, and what was done.
    pub writes: Vec<(usize, Key, CommittedChange)>,
    pub random: fastrand::Rng,
    next_xid: u32,
    incarnations: usize,
}

impl Database {
    /// An empty database whose next transaction number is given.
    pub fn new(level: Level, defect: Option<Defect>, next_xid: u32, random: fastrand::Rng) -> Database {
        Database {
            level,
            defect,
            tuples: Vec::new(),
            subs: Vec::new(),
            txs: Vec::new(),
            affected: Vec::new(),
            commits: 0,
            writes: Vec::new(),
            random,
            next_xid,
            incarnations: 0,
        }
    }

    /// Adds a row that exists before the run.
    pub fn add_initial(&mut self, table: u16, columns: Columns, xmin: u32) {
        self.store(table, columns, None, None, xmin);
    }

    pub fn begin(&mut self) -> usize {
        self.txs.push(Tx {
            state: State::Running,
            snapshot: None,
            top: None,
            savepoints: Vec::new(),
            current: None,
            reads: Vec::new(),
            searches: Vec::new(),
        });
        self.txs.len() - 1
    }

    /// Executes a statement, or goes on with it after a wait.
    pub fn execute(&mut self, tx: usize, number: u16, statement: &Statement) -> Answer {
        match statement {
            Statement::Savepoint => {
                self.txs[tx].savepoints.push(Savepoint { first: self.subs.len(), sub: None });
            }
            Statement::Release => drop(self.txs[tx].savepoints.pop()),
            Statement::RollbackTo => self.rollback_to(tx),
            Statement::Insert { table, columns } => return self.insert(tx, *table, *columns, None),
            Statement::Upsert { table, columns, column } => {
                return self.insert(tx, *table, *columns, Some(*column));
            }
            _ => return self.search(tx, number, statement),
        }
        Answer::Done(Vec::new())
    }

    fn take_snapshot(&mut self, tx: usize) -> u64 {
        let mut now = self.commits;
        if self.level == Level::ReadCommitted {
            return now;
        }
        if let Some(snapshot) = self.txs[tx].snapshot {
            now = snapshot;
        }
        self.txs[tx].snapshot = Some(now);
        now
    }

    fn store(
        &mut self,
        table: u16,
        columns: Columns,
        incarnation: Option<usize>,
        writer: Option<usize>,
        xmin: u32,
    ) -> usize {
        let incarnation = incarnation.unwrap_or(self.incarnations);
        self.incarnations = self.incarnations.max(incarnation + 1);
        self.tuples.push(Tuple {
            key: Key { table, id: columns[0] },
            incarnation,
            columns,
            writer,
            xmin,
            ended_by: None,
            next: None,
            locker: None,
        });
        self.tuples.len() - 1
    }

    /// The subtransaction that writes now; the transactions around it get numbers before it.
    fn sub(&mut self, tx: usize) -> usize {
        let mut sub = match self.txs[tx].top {
            Some(sub) => sub,
            None => self.number(tx, 0),
        };
        self.txs[tx].top = Some(sub);
        for depth in 0..self.txs[tx].savepoints.len() {
            sub = match self.txs[tx].savepoints[depth].sub {
                Some(sub) => sub,
                None => self.number(tx, depth + 1),
            };
            self.txs[tx].savepoints[depth].sub = Some(sub);
        }
        sub
    }

    fn number(&mut self, tx: usize, depth: usize) -> usize {
        let xid = self.next_xid;
        // The numbers below 3 have other meanings.
        self.next_xid = if xid == u32::MAX { 3 } else { xid + 1 };
        self.subs.push(Sub { tx, xid, depth, rolled_back: false });
        self.subs.len() - 1
    }

    fn rollback_to(&mut self, tx: usize) {
        let depth = self.txs[tx].savepoints.len();
        let Some(savepoint) = self.txs[tx].savepoints.last_mut() else { return };
        savepoint.sub = None;
        for sub in &mut self.subs[savepoint.first..] {
            sub.rolled_back |= sub.tx == tx && sub.depth >= depth;
        }
    }

    /// Commits, unless that fails.
    pub fn commit(&mut self, tx: usize) -> bool {
        let at = self.commits + 1;
        self.txs[tx].state = State::Committed(at);
        if self.level == Level::Serializable && cyclic(self) {
            self.txs[tx].state = State::Aborted;
            return false;
        }
        self.commits = at;
        self.swap(tx);
        true
    }

    pub fn abort(&mut self, tx: usize) {
        self.txs[tx].state = State::Aborted;
    }

    /// The committed writes in the order of the commits, as the server's own log has them.
    pub fn committed_writes(&self) -> CommittedWrites {
        let mut transactions: Vec<(u64, CommittedTransaction)> = Vec::new();
        for (index, tx) in self.txs.iter().enumerate() {
            let (State::Committed(at), Some(top)) = (tx.state, tx.top) else { continue };
            let own = self.writes.iter().filter(|(sub, ..)| self.mine(index, *sub));
            let write = |(_, key, what): &(usize, Key, CommittedChange)| CommittedWrite {
                table: key.table,
                key: key.id.to_string(),
                what: *what,
            };
            let writes = own.map(write).collect();
            transactions.push((at, CommittedTransaction { transaction: self.subs[top].xid, writes }));
        }
        transactions.sort_by_key(|(at, _)| *at);
        let transactions = transactions.into_iter().map(|(_, transaction)| transaction).collect();
        CommittedWrites { tables: vec![0, 1], transactions }
    }
}
