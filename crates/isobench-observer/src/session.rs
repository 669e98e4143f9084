//! The observer's session: every call has a time limit, and its own transactions are counted,
//! because the server counts them, too.
//!
//! Not here: the queries.

use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use isobench_pgwire::{Connection, Rows, SqlState, cut};

/// The reason why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Permanent: the view, function or column doesn't exist, or the role may not read it.
    Never(String),
    /// Temporary: it took too long, or failed in another way.
    Now(String),
    /// The session is lost.
    Lost,
}

/// A session on the server.
pub struct ObserverSession {
    connection: Option<Connection>,
    /// There has been a connection.
    pub opened: bool,
    /// The reason why there is no connection (any more).
    pub lost: Option<String>,
    /// Transactions of this session that the server counts as committed. Each statement is one.
    pub committed: u64,
    /// Transactions of this session that failed.
    pub rolled_back: u64,
    /// The shortest round trip to the server.
    pub round_trip: Duration,
}

impl ObserverSession {
    /// A session without a connection.
    pub fn none(why: impl Into<String>) -> Self {
        ObserverSession {
            connection: None,
            opened: false,
            lost: Some(why.into()),
            committed: 0,
            rolled_back: 0,
            round_trip: Duration::ZERO,
        }
    }

    /// Takes over a new connection and applies `settings`, statements that keep it from disturbing
    /// the server. Those that the server doesn't know are ignored.
    pub fn new(mut connection: Connection, settings: &[String]) -> Self {
        connection.set_timeout(Some(LIMITS.observation_answer));
        let mut session = ObserverSession {
            connection: Some(connection),
            opened: true,
            lost: None,
            ..ObserverSession::none("")
        };
        for setting in settings {
            // A refused setting doesn't exist there; other errors show at the first query.
            let _ = session.query(setting);
        }
        session.round_trip = (0..3).filter_map(|_| session.ping()).min().unwrap_or_default();
        session
    }

    /// The settings of an observer's session on PostgreSQL and related products: it can't be
    /// blocked, isn't serializable even if that is the role's default, and can be recognised.
    pub fn settings(application_name: &str) -> [String; 4] {
        [
            format!("set application_name = '{}'", application_name.replace('\'', "''")),
            format!("set statement_timeout = {}", LIMITS.observation.as_millis()),
            "set default_transaction_isolation = 'read committed'".to_owned(),
            "set jit = off".to_owned(),
        ]
    }

    /// True if there is a connection.
    pub fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Runs one query in a transaction of its own.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn query(&mut self, sql: &str) -> Result<Rows, Refusal> {
        let Some(connection) = &mut self.connection else { return Err(Refusal::Lost) };
        match connection.query(sql) {
            Ok(rows) => {
                self.committed += 1;
                Ok(rows)
            }
            Err(error) if error.is_connection_lost() => {
                let text = error.to_string();
                self.lost = Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
                self.connection = None;
                Err(Refusal::Lost)
            }
            Err(error) => {
                self.rolled_back += 1;
                let text = error
                    .server()
                    .map_or_else(|| error.to_string(), |error| cut(&error.message).into_owned());
                let never = error.code().is_some_and(is_for_good);
                Err(if never { Refusal::Never(text) } else { Refusal::Now(text) })
            }
        }
    }

    /// The first value of the answer.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        let rows = self.query(sql)?.rows;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }

    /// Closes the session.
    pub fn close(self) {
        if let Some(connection) = self.connection {
            connection.close();
        }
    }

    fn ping(&mut self) -> Option<Duration> {
        let began = Instant::now();
        self.query("select 1").ok()?;
        Some(began.elapsed())
    }
}

/// True if an error is permanent: a missing right, table, column or function, a feature that isn't
/// implemented, a syntax error, or a prepared statement that a connection pooler has lost.
fn is_for_good(code: SqlState) -> bool {
    matches!(
        code.as_str(),
        "42501" | "42P01" | "42703" | "42883" | "0A000" | "42601" | "3F000" | "55000" | "26000"
    )
}
