//! What the simulated server really did: the measure for what a runner says about it.

use isobench_pgwire::SqlState;
use isobench_runner::Nanos;

use super::registers::Written;

/// What really happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    /// Rows that INSERTs brought and that are committed.
    pub committed_rows: u64,
    /// What was written to the registers and is committed, in the order of the commits.
    pub writes: Vec<Written>,
    /// Transaction blocks that were opened by BEGIN.
    pub blocks: u64,
    /// Parse messages, refused ones included, for each connection.
    pub parses: Vec<u64>,
    /// Sessions that each connection has had.
    pub sessions: Vec<u64>,
    /// Cancel requests.
    pub cancels: u64,
    /// What every connection executed, in order.
    pub statements: Vec<Vec<Executed>>,
    /// The time limit of the simulation was reached: whatever ran on it hung.
    pub ran_out_of_time: bool,
}

/// One statement that the server began to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The statement; parameters of the extended protocol are put in the places of `$1`, `$2` ….
    pub sql: String,
    /// In which of the connection's sessions, from 0.
    pub session: u64,
    /// When it began.
    pub began: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// How.
    pub end: End,
}

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Well.
    Done,
    /// With an error.
    Failed(SqlState),
    /// With the connection.
    Lost,
}

impl Truth {
    /// The texts of the statements that a connection executed, in order.
    pub fn texts(&self, connection: usize) -> Vec<&str> {
        let statements = self.statements.get(connection).map_or(&[][..], Vec::as_slice);
        statements.iter().map(|statement| statement.sql.as_str()).collect()
    }

    /// The texts that contain `part`.
    pub fn matching(&self, connection: usize, part: &str) -> Vec<&str> {
        self.texts(connection).into_iter().filter(|sql| sql.contains(part)).collect()
    }
}
