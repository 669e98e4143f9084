//! What goes wrong in a simulation, as values: where, how often, and in which way.
//!
//! Not here: how the session plays a fault out (`session.rs`).

use std::time::Duration;

use isobench_pgwire::SqlState;

use super::dice::Dice;
use super::statement::Kind;

/// The faults of a simulation: of the rules that apply to an occasion, the first that strikes wins.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Vec<(On, When, Fault)>,
}

/// The occasion on which a fault may strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Any statement that is executed, but for ROLLBACK and ROLLBACK TO.
    Statement,
    /// BEGIN or START TRANSACTION.
    Begin,
    /// COMMIT or END, of an open block.
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
    /// The opening of a session that is asked for; only [`Fault::Error`] (it is refused),
    /// [`Fault::Hang`] (nobody answers), [`Fault::LostWhenIdle`] and [`Fault::ParameterStatus`] (a
    /// part of which arrives with the session) make sense.
    Connect,
}

/// Which of the occasions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Each with this probability, on any connection.
    Chance(f64),
    /// The one with this number, from 0, on this connection.
    Nth(usize, u64),
    /// All up to but not including this number, on every connection.
    First(u64),
}

/// What happens instead of, or besides, the execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The statement fails with this code. At COMMIT the work is undone.
    Error(SqlState),
    /// COMMIT fails with 40003; `committed` says what has really happened.
    Unknown {
        /// True if the work was committed all the same.
        committed: bool,
    },
    /// The statement fails with this code, and the connection closes before `ReadyForQuery`.
    ErrorThenLost(SqlState),
    /// As [`Fault::Unknown`], and the connection closes before `ReadyForQuery`.
    UnknownThenLost {
        /// True if the work was committed all the same.
        committed: bool,
    },
    /// COMMIT undoes the work and says so by its tag only.
    AnsweredWithRollback,
    /// A FATAL error of this code instead of the execution, then the connection closes.
    TerminatedBy(SqlState),
    /// The statement's reply, with FATAL 57P01 and the end of the connection right behind it.
    TerminatedAfterReply,
    /// The connection is lost, and the statement isn't executed.
    Lost(Loss),
    /// The statement is executed (COMMIT commits), and the connection is lost without a reply.
    LostAfter(Loss),
    /// The connection is lost this long after the reply.
    LostWhenIdle(Duration, Loss),
    /// The statement never ends by itself; a cancel request ends it with 57014 if it is obeyed.
    Hang {
        /// True if the server obeys.
        cancellable: bool,
    },
    /// The statement never ends by itself, and sends notices faster than anybody can read; a cancel
    /// request ends it with 57014 if it is obeyed.
    Flood {
        /// True if the server obeys.
        cancellable: bool,
    },
    /// A notice comes before the reply.
    Notice,
    /// A `ParameterStatus` message comes before the reply.
    ParameterStatus,
}

/// How the end of a connection looks to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Orderly: the stream ends. What is sent later vanishes.
    Closed,
    /// Receiving fails with "connection reset", and sending with "broken pipe".
    Reset,
}

impl Faults {
    /// No faults.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// The same faults and one more rule.
    #[must_use]
    pub fn and(mut self, on: On, when: When, fault: Fault) -> Faults {
        self.rules.push((on, when, fault));
        self
    }

    /// What strikes one connection on an occasion that `applies` tells; `seen` counts, for each
    /// rule, the occasions that the connection has had.
    pub(super) fn strike(
        &self,
        connection: usize,
        applies: impl Fn(On) -> bool,
        seen: &mut Vec<u64>,
        dice: &mut Dice,
    ) -> Option<Fault> {
        seen.resize(self.rules.len(), 0);
        let mut struck = None;
        for ((on, when, fault), seen) in self.rules.iter().zip(seen) {
            if !applies(*on) {
                continue;
            }
            let strikes = match *when {
                When::Chance(probability) => dice.chance(probability),
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

    /// True if the statement fails, or never ends, without an end of the connection.
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
    /// True if a statement of this kind is such an occasion; `open` says whether there is a block
    /// to commit.
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
        let mut dice = Dice::new(0);
        for (connection, hits) in [(0, [false; 4]), (1, [false, false, true, false])] {
            let mut seen = Vec::new();
            for hit in hits {
                assert_eq!(faults.strike(connection, |on| on == On::Select, &mut seen, &mut dice), None);
                let struck = faults.strike(connection, |on| on == On::Insert, &mut seen, &mut dice);
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
        let (mut seen, mut dice) = (Vec::new(), Dice::new(0));
        let struck: Vec<_> = (0..3).map(|_| faults.strike(0, |_| true, &mut seen, &mut dice)).collect();
        assert_eq!(struck, [Some(Fault::Notice), Some(Fault::TERMINATED), None]);
    }
}
