//! Whether a session of ours is a session of the server's, or a pooler hands each transaction to
//! whichever session is free.
//!
//! An isolation level, a search path, a prepared statement and an advisory lock belong to a session
//! of the server. Behind a pooler in transaction mode, setting one of them changes somebody else's
//! transactions and not ours. So it is recognised first, by questions that change nothing.
//!
//! Sources: `PgBouncer`, "Features", table "SQL feature map for pooling modes"; PostgreSQL:
//! Protocol, Message Formats, `BackendKeyData`.

use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection};

use crate::error::Error;
use crate::product::Product;

/// What stands between us and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Nothing that changes sessions: two sessions are two processes, those that the server named
    /// at start-up.
    None,
    /// A pooler, perhaps, which keeps a session of the server's for each of ours as long as it
    /// lasts.
    Sessions,
    /// The same, but what is set in a session stays behind for whoever gets it next.
    Leaky,
    /// A pooler that gives each transaction, or each statement, to whichever session of the
    /// server's is free.
    Transactions,
    /// The product doesn't name its sessions, so it can't be asked.
    Unknown,
}

/// How often two sessions are told apart. One comparison tells, unless other users of the pool come
/// between.
const ROUNDS: usize = 3;

/// How long the second session may wait for its turn. A pool with a single session of the server's,
/// which the first one of ours keeps, never gives it one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Recognises it, with two sessions at once. Whether transactions are shared out is asked without
/// changing anything; only where they aren't, a setting that nobody else knows is set and taken
/// back.
///
/// # Errors
/// [`Error::Alone`]; a connection can't be made or is lost.
pub fn pooling(options: &ConnectOptions, product: &Product) -> Result<Pooling, Error> {
    let Some(question) = product.session_name else { return Ok(Pooling::Unknown) };
    let mut first = Connection::open(options)?;
    let Some(known) = name(&mut first, question)? else { return Ok(Pooling::Unknown) };
    let mut second = Connection::open(options).map_err(|source| Error::Alone { source })?;
    second.set_timeout(Some(PATIENCE));
    let found = match name(&mut second, question) {
        // A proxy may lead everybody into the same session of the server's, and say so in its keys.
        Ok(Some(other)) if other == known => Ok(Pooling::Transactions),
        Ok(Some(other)) if is_key(&first, &known) && is_key(&second, &other) => Ok(Pooling::None),
        Ok(_) => compare(&mut first, &mut second, question, &known),
        Err(Error::Connection(isobench_pgwire::Error::Timeout(_))) => Ok(Pooling::Sessions),
        Err(error) => Err(error),
    };
    // Without a key there is no pooler of the usual kind, but a product that has none.
    let has_key = first.cancel_token().pid() != 0;
    first.close();
    second.close();
    match found? {
        Pooling::Sessions if has_key && leaks(options, question)? => Ok(Pooling::Leaky),
        found => Ok(found),
    }
}

/// True if the server named this process at start-up, too.
fn is_key(session: &Connection, name: &str) -> bool {
    name == session.cancel_token().pid().to_string()
}

/// Makes sure that what is set in a session stays there.
///
/// # Errors
/// [`Error::Pooled`], [`Error::Leaky`]; a connection can't be made or is lost.
pub fn require_sessions(options: &ConnectOptions, product: &Product) -> Result<(), Error> {
    match pooling(options, product)? {
        Pooling::Transactions => Err(Error::Pooled),
        Pooling::Leaky => Err(Error::Leaky),
        Pooling::None | Pooling::Sessions | Pooling::Unknown => Ok(()),
    }
}

/// Leaves a setting of no meaning in a session, and looks whether the next one to get the same
/// session of the server's finds it.
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
