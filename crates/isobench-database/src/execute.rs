//! One administrative command on the server, repeated where a product requires that.

use std::time::Duration;

use isobench_pgwire::{Completed, Connection, Rows, TransactionStatus};

use crate::database::Database;
use crate::error::Error;

/// Runs a command. Outside a transaction block, repeats it after conflicts as often as the product
/// allows.
///
/// # Errors
/// The server refuses it, or the connection is lost.
pub fn execute(conn: &mut Connection, db: &Database, sql: &str) -> Result<Vec<Completed>, Error> {
    let mut retry = Retry::new(db);
    loop {
        let inside = conn.transaction_status() != TransactionStatus::Idle;
        match conn.execute(sql).map_err(|error| Error::of(error, sql)) {
            Ok(completed) => return Ok(completed),
            Err(error) if inside => return Err(error),
            Err(error) => retry.after(error)?,
        }
    }
}

/// Runs a query.
///
/// # Errors
/// The server refuses it, or the connection is lost.
pub fn query(conn: &mut Connection, sql: &str) -> Result<Rows, Error> {
    conn.query(sql).map_err(|error| Error::of(error, sql))
}

/// Counts the tries of a command that fails because of conflicts, and waits between them.
pub(crate) struct Retry<'a> {
    db: &'a Database,
    left: u32,
    pause: Duration,
}

impl<'a> Retry<'a> {
    /// Allows as many tries as the product's facts.
    pub(crate) fn new(db: &'a Database) -> Self {
        Retry { db, left: db.product.dialect.retries, pause: Duration::from_millis(10) }
    }

    /// Waits if the error is a conflict and there is a try left.
    ///
    /// # Errors
    /// Returns the error if it isn't a conflict, or no try is left.
    pub(crate) fn after(&mut self, error: Error) -> Result<(), Error> {
        /// The longest pause. A cluster's schema changes settle within that time.
        const LONGEST_PAUSE: Duration = Duration::from_millis(640);
        // A COMMIT answered with ROLLBACK has done nothing.
        let nothing_done = matches!(error, Error::Answer { .. });
        let conflict = error.refusal().is_some_and(|source| self.db.product.conflict(source).is_some());
        if !(conflict || nothing_done) || self.left == 0 {
            return Err(error);
        }
        self.left -= 1;
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
