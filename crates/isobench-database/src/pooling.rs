//! Recognises poolers that assign each transaction to any session of the server.
//!
//! An isolation level, a search path, a prepared statement and an advisory lock belong to a session
//! of the server. Behind a pooler in transaction mode, setting one of them affects other users'
//! transactions instead of ours. So such a pooler is recognised first, by queries that change
//! nothing.
//!
//! Sources: `PgBouncer`, "Features", table "SQL feature map for pooling modes"; PostgreSQL:
//! Protocol, Message Formats, `BackendKeyData`.

use isobench_limits::LIMITS;
use isobench_pgwire::{ConnectOptions, Connection, TransactionStatus};

use crate::error::Error;
use crate::product::Product;

/// The kind of pooler between isobench and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// None that changes sessions: two sessions are two processes, those that the server named at
    /// start-up.
    None,
    /// Possibly a pooler, which assigns a session of the server to each of ours as long as it
    /// lasts.
    Sessions,
    /// Likewise, but a session's settings remain for its next user.
    Leaky,
    /// A pooler that assigns each transaction, or each statement, to any free session of the
    /// server.
    Transactions,
    /// The product doesn't identify its sessions, so this can't be found out.
    Unknown,
}

/// Number of comparisons of two sessions. One is enough unless other users of the pool interfere.
const ROUNDS: usize = 3;

/// Recognises a pooler with two simultaneous sessions. Queries that change nothing show whether
/// transactions are shared out; only if they aren't, a setting without a meaning is set and reset.
///
/// # Errors
/// [`Error::Alone`]; a connection can't be opened or is lost.
pub fn pooling(options: &ConnectOptions, product: &Product) -> Result<Pooling, Error> {
    let Some(question) = product.session_name else { return Ok(Pooling::Unknown) };
    let mut first = Connection::open(options)?;
    let Some(known) = name(&mut first, question)? else { return one_transaction(&mut first, options) };
    let mut second = Connection::open(options).map_err(|source| Error::Alone { source })?;
    second.set_timeout(Some(LIMITS.second_session));
    let found = match name(&mut second, question) {
        // A proxy may put all clients into one session of the server, and name that in their keys.
        Ok(Some(other)) if other == known => Ok(Pooling::Transactions),
        Ok(Some(other)) if is_key(&first, &known) && is_key(&second, &other) => Ok(Pooling::None),
        Ok(_) => compare(&mut first, &mut second, question, &known),
        Err(Error::Connection(isobench_pgwire::Error::Timeout(_))) => Ok(Pooling::Sessions),
        Err(error) => Err(error),
    };
    // A product without keys isn't a pooler of the usual kind.
    let has_key = first.cancel_token().pid() != 0;
    first.close();
    second.close();
    match found? {
        Pooling::Sessions if has_key && leaks(options, question)? => Ok(Pooling::Leaky),
        found => Ok(found),
    }
}

/// Checks a product whose sessions have no names: a session that is in the transaction of another one
/// shares that one's session of the server.
///
/// # Errors
/// [`Error::Alone`]; a connection is lost.
fn one_transaction(first: &mut Connection, options: &ConnectOptions) -> Result<Pooling, Error> {
    if first.execute("BEGIN").is_err() {
        return Ok(Pooling::Unknown);
    }
    let mut second = Connection::open(options).map_err(|source| Error::Alone { source })?;
    second.set_timeout(Some(LIMITS.second_session));
    let shared = second.execute("SELECT 1").is_ok() && second.transaction_status() != TransactionStatus::Idle;
    second.close();
    first.execute("ROLLBACK")?;
    Ok(if shared { Pooling::Transactions } else { Pooling::Unknown })
}

/// True if the server named this process at start-up, too.
fn is_key(session: &Connection, name: &str) -> bool {
    name == session.cancel_token().pid().to_string()
}

/// Checks that a session's settings stay in that session.
///
/// # Errors
/// [`Error::Pooled`], [`Error::Leaky`]; a connection can't be opened or is lost.
pub fn require_sessions(options: &ConnectOptions, product: &Product) -> Result<(), Error> {
    match pooling(options, product)? {
        Pooling::Transactions => Err(Error::Pooled),
        Pooling::Leaky => Err(Error::Leaky),
        Pooling::None | Pooling::Sessions | Pooling::Unknown => Ok(()),
    }
}

/// Leaves a setting without a meaning in a session, and checks whether the next session finds it.
fn leaks(options: &ConnectOptions, question: &str) -> Result<bool, Error> {
    for _ in 0..ROUNDS {
        let mut leaving = Connection::open(options)?;
        let before = name(&mut leaving, question)?;
        if leaving.execute("SET isobench.passed_on = 'yes'").is_err() {
            return Ok(false);
        }
        leaving.close();
        let mut coming = Connection::open(options)?;
        let found = coming.value("SELECT current_setting('isobench.passed_on', true)");
        let left = found.ok().flatten().is_some_and(|found| found == "yes");
        if left {
            coming.execute("RESET isobench.passed_on")?;
        }
        let same = name(&mut coming, question)? == before;
        coming.close();
        if same || left {
            return Ok(left);
        }
    }
    Ok(false)
}

/// Compares the identifiers of two sessions while the second one holds a transaction open.
fn compare(
    first: &mut Connection,
    second: &mut Connection,
    question: &str,
    known: &str,
) -> Result<Pooling, Error> {
    for _ in 0..ROUNDS {
        match second.execute("BEGIN") {
            Ok(_) => {}
            // PgBouncer refuses transaction blocks in statement mode.
            Err(isobench_pgwire::Error::Server(_)) => return Ok(Pooling::Transactions),
            Err(isobench_pgwire::Error::Timeout(_)) => return Ok(Pooling::Sessions),
            Err(error) => return Err(error.into()),
        }
        if name(second, question)?.as_deref() == Some(known) {
            second.execute("ROLLBACK")?;
            return Ok(Pooling::Transactions);
        }
        let still = name(first, question)?;
        second.execute("ROLLBACK")?;
        if still.as_deref() != Some(known) {
            return Ok(Pooling::Transactions);
        }
    }
    Ok(Pooling::Sessions)
}

/// The server's identifier of the session; `None` if it has none.
fn name(conn: &mut Connection, question: &str) -> Result<Option<String>, Error> {
    match conn.value(question) {
        Ok(name) => Ok(name),
        Err(isobench_pgwire::Error::Server(error)) if !error.is_fatal() => Ok(None),
        Err(error) => Err(Error::of(error, question)),
    }
}
