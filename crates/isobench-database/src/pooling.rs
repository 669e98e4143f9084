//! Whether a session of ours is a session of the server's, or a pooler hands each transaction to whichever session is free.
//!
//! An isolation level, a search path, a prepared statement and an advisory lock belong to a session of the server. Behind a
//! pooler in transaction mode, setting one of them changes somebody else's transactions and not ours. So it is recognised
//! first, by questions that change nothing.
//!
//! Sources: PgBouncer, "Features", table "SQL feature map for pooling modes"; PostgreSQL: Protocol, Message Formats, `BackendKeyData`.

use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection};

use crate::error::Error;
use crate::product::Product;

/// What stands between us and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Nothing that changes sessions: the process that the server named at start-up is the one that answers.
    None,
    /// A pooler, perhaps, which keeps a session of the server's for each of ours as long as it lasts.
    Sessions,
    /// A pooler that gives each transaction, or each statement, to whichever session of the server's is free.
    Transactions,
    /// The product doesn't name its sessions, so it can't be asked.
    Unknown,
}

/// How often two sessions are told apart. One comparison tells, unless other users of the pool come between.
const ROUNDS: usize = 3;

/// How long the second session may wait for its turn. A pool with a single session of the server's, which the first one of ours keeps,
/// never gives it one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Recognises it, with up to two sessions and without changing anything in them.
///
/// # Errors
/// A connection can't be made or is lost.
pub fn pooling(options: &ConnectOptions, product: &Product) -> Result<Pooling, Error> {
    let Some(question) = product.session_name else { return Ok(Pooling::Unknown) };
    let mut first = Connection::open(options)?;
    let Some(name) = name(&mut first, question)? else { return Ok(Pooling::Unknown) };
    if name == first.cancel_token().pid().to_string() {
        first.close();
        return Ok(Pooling::None);
    }
    let mut second = Connection::open(options)?;
    second.set_timeout(Some(PATIENCE));
    let found = compare(&mut first, &mut second, question, &name);
    first.close();
    second.close();
    found
}

/// Makes sure that what is set in a session stays there.
///
/// # Errors
/// [`Error::Pooled`]; a connection can't be made or is lost.
pub fn require_sessions(options: &ConnectOptions, product: &Product) -> Result<(), Error> {
    if pooling(options, product)? == Pooling::Transactions { Err(Error::Pooled) } else { Ok(()) }
}

/// Lets a second session hold a transaction, and asks both who they are.
fn compare(
    first: &mut Connection,
    second: &mut Connection,
    question: &str,
    known: &str,
) -> Result<Pooling, Error> {
    for _ in 0..ROUNDS {
        match second.execute("BEGIN") {
            Ok(_) => {}
            // PgBouncer refuses blocks where it gives each statement away.
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

/// What the server calls the session that answers; `None` if it doesn't say.
fn name(conn: &mut Connection, question: &str) -> Result<Option<String>, Error> {
    match conn.value(question) {
        Ok(name) => Ok(name),
        Err(isobench_pgwire::Error::Server(error)) if !error.is_fatal() => Ok(None),
        Err(error) => Err(Error::of(error, question)),
    }
}
