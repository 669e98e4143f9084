//! The actual actions of the simulated server, with which a runner's account is compared.

use isobench_pgwire::SqlState;
use isobench_runner::Nanos;

use super::registers::Written;

/// The actual actions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    /// Committed rows from INSERTs.
    pub committed_rows: u64,
    /// Committed writes to the registers, in the order of the commits.
    pub writes: Vec<Written>,
    /// Transaction blocks opened by BEGIN.
    pub blocks: u64,
    /// Parse messages on each connection, including refused ones.
    pub parses: Vec<u64>,
    /// Sessions on each connection.
    pub sessions: Vec<u64>,
    /// Cancel requests.
    pub cancels: u64,
    /// The statements executed on each connection, in order.
    pub statements: Vec<Vec<Executed>>,
    /// True if the simulation's time limit was reached, so the code under test hung.
    pub ran_out_of_time: bool,
}

/// A statement that the server started to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The statement; parameters of the extended protocol are substituted for `$1`, `$2` ….
    pub sql: String,
    /// The connection's session, from 0.
    pub session: u64,
    /// The start.
    pub began: Nanos,
    /// The end.
    pub ended: Nanos,
    /// The outcome.
    pub end: End,
}

/// The outcome of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Success.
    Done,
    /// An error.
    Failed(SqlState),
    /// The connection was lost.
    Lost,
}

impl Truth {
    /// Makes room for this connection and those before it.
    pub(super) fn know(&mut self, connection: usize) {
        if self.statements.len() <= connection {
            self.parses.resize(connection + 1, 0);
            self.sessions.resize(connection + 1, 0);
            self.statements.resize(connection + 1, Vec::new());
        }
    }

    /// The number of statements, on all connections, that contain `part`.
    pub fn count(&self, part: &str) -> usize {
        self.statements.iter().flatten().filter(|statement| statement.sql.contains(part)).count()
    }

    /// The texts of the statements executed on a connection, in order.
    pub fn texts(&self, connection: usize) -> Vec<&str> {
        let statements = self.statements.get(connection).map_or(&[][..], Vec::as_slice);
        statements.iter().map(|statement| statement.sql.as_str()).collect()
    }

    /// The texts that contain `part`.
    pub fn matching(&self, connection: usize, part: &str) -> Vec<&str> {
        self.texts(connection).into_iter().filter(|sql| sql.contains(part)).collect()
    }
}
