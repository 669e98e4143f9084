//! The faults of a simulation, as values: where, how often, and of which kind.
//!
//! The session implements them (`session.rs`).

use std::time::Duration;

use isobench_pgwire::SqlState;

use super::rng::Rng;
use super::statement::Kind;

/// The faults of a simulation. Of the rules that apply to an occasion, the first that triggers is
/// used.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Vec<(On, When, Fault)>,
}

/// An occasion for a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Any executed statement, except ROLLBACK and ROLLBACK TO.
    Statement,
    /// BEGIN or START TRANSACTION.
    Begin,
    /// COMMIT or END in an open block.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// ROLLBACK TO.
    RollbackTo,
    /// RELEASE.
    Release,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// SELECT.
    Select,
    /// A Parse message of the extended protocol; only [`Fault::Error`] and [`Fault::Lost`] make
    /// sense.
    Parse,
    /// Opening a session explicitly; only [`Fault::Error`] (it is refused), [`Fault::Hang`] (no
    /// reply), [`Fault::LostWhenIdle`] and [`Fault::ParameterStatus`] (a part of which arrives with
    /// the session) make sense.
    Connect,
}

/// The selection of occasions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Each one with this probability, on any connection.
    Chance(f64),
    /// The one with this number, from 0, on this connection.
    Nth(usize, u64),
    /// All before this number, on every connection.
    First(u64),
}

/// The effect of a fault, instead of or in addition to executing the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The statement fails with this code. At COMMIT the work is rolled back.
    Error(SqlState),
    /// COMMIT fails with 40003, whatever its actual outcome.
    Unknown {
        /// True if the work was committed.
        committed: bool,
    },
    /// The statement fails with this code, and the connection closes before `ReadyForQuery`.
    ErrorThenLost(SqlState),
    /// As [`Fault::Unknown`], and the connection closes before `ReadyForQuery`.
    UnknownThenLost {
        /// True if the work was committed.
        committed: bool,
    },
    /// COMMIT rolls back, and reports that only by its tag.
    AnsweredWithRollback,
    /// The statement isn't executed; a FATAL error with this code is sent, and the connection
    /// closes.
    TerminatedBy(SqlState),
    /// The statement's reply is directly followed by FATAL 57P01 and the end of the connection.
    TerminatedAfterReply,
    /// The connection is lost, and the statement isn't executed.
    Lost(Loss),
    /// The statement is executed (COMMIT commits), and the connection is lost without a reply.
    LostAfter(Loss),
    /// The connection is lost this long after the reply.
    LostWhenIdle(Duration, Loss),
    /// The statement never ends by itself; a cancel request ends it with 57014 if the server
    /// honours it.
    Hang {
        /// True if the server honours cancel requests.
        cancellable: bool,
    },
    /// The statement never ends by itself, and sends notices faster than they can be read; a cancel
    /// request ends it with 57014 if the server honours it.
    Flood {
        /// True if the server honours cancel requests.
        cancellable: bool,
    },
    /// A notice precedes the reply.
    Notice,
    /// A `ParameterStatus` message precedes the reply.
    ParameterStatus,
}

/// The end of a connection, as seen by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Orderly: the stream ends, and data sent later vanishes.
    Closed,
    /// Receiving fails with "connection reset", and sending with "broken pipe".
    Reset,
}

impl Faults {
    /// No faults.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// Adds a rule.
    #[must_use]
    pub fn and(mut self, on: On, when: When, fault: Fault) -> Faults {
        self.rules.push((on, when, fault));
        self
    }

    /// The fault of a connection on an occasion accepted by `applies`; `seen` counts, for each
    /// rule, the connection's occasions so far.
    pub(super) fn strike(
        &self,
        connection: usize,
        applies: impl Fn(On) -> bool,
        seen: &mut Vec<u64>,
        rng: &mut Rng,
    ) -> Option<Fault> {
        seen.resize(self.rules.len(), 0);
        let mut struck = None;
        for ((on, when, fault), seen) in self.rules.iter().zip(seen) {
            if !applies(*on) {
                continue;
            }
            let strikes = match *when {
                When::Chance(probability) => rng.chance(probability),
                When::Nth(at, number) => connection == at && *seen == number,
                When::First(count) => *seen < count,
            };
            *seen += 1;
            if strikes {
                struck = struck.or(Some(*fault));
            }
        }
        struck
    }
}

impl Fault {
    /// An administrator ends the session: FATAL 57P01.
    pub const TERMINATED: Fault = Fault::TerminatedBy(SqlState::ADMIN_SHUTDOWN);

    /// True if the statement fails, or never ends, while the connection stays open.
    pub(super) fn is_error(&self) -> bool {
        matches!(
            self,
            Fault::Error(_)
                | Fault::Unknown { .. }
                | Fault::ErrorThenLost(_)
                | Fault::UnknownThenLost { .. }
                | Fault::AnsweredWithRollback
                | Fault::Hang { .. }
                | Fault::Flood { .. }
        )
    }
}

impl On {
    /// True if a statement of this kind is such an occasion; `open` is true if there is a block to
    /// commit.
    pub(super) fn is_statement(self, kind: Kind, open: bool) -> bool {
        match self {
            On::Statement => !matches!(kind, Kind::Rollback | Kind::RollbackTo),
            On::Begin => kind == Kind::Begin,
            On::Commit => kind == Kind::Commit && open,
            On::Rollback => kind == Kind::Rollback,
            On::RollbackTo => kind == Kind::RollbackTo,
            On::Release => kind == Kind::Release,
            On::Insert => kind == Kind::Insert,
            On::Update => kind == Kind::Update,
            On::Select => kind == Kind::Select,
            On::Parse | On::Connect => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_occasion_of_one_connection_is_hit_once() {
        let faults = Faults::none().and(On::Insert, When::Nth(1, 2), Fault::Notice);
        let mut rng = Rng::new(0);
        for (connection, hits) in [(0, [false; 4]), (1, [false, false, true, false])] {
            let mut seen = Vec::new();
            for hit in hits {
                assert_eq!(faults.strike(connection, |on| on == On::Select, &mut seen, &mut rng), None);
                let struck = faults.strike(connection, |on| on == On::Insert, &mut seen, &mut rng);
                assert_eq!(struck.is_some(), hit, "connection {connection}");
            }
        }
    }

    #[test]
    fn an_earlier_rule_wins() {
        let faults = Faults::none().and(On::Statement, When::First(1), Fault::Notice).and(
            On::Statement,
            When::First(2),
            Fault::TERMINATED,
        );
        let (mut seen, mut rng) = (Vec::new(), Rng::new(0));
        let struck: Vec<_> = (0..3).map(|_| faults.strike(0, |_| true, &mut seen, &mut rng)).collect();
        assert_eq!(struck, [Some(Fault::Notice), Some(Fault::TERMINATED), None]);
    }
}
