//! One command of isobench's own on the server, tried again where a product asks for that.

use std::time::Duration;

use isobench_pgwire::{Completed, Connection, Rows, TransactionStatus};

use crate::database::Database;
use crate::error::Error;

/// Runs a command; outside a transaction block, tries again after conflicts as often as the product
/// needs.
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

/// Asks a question.
///
/// # Errors
/// The server refuses it, or the connection is lost.
pub fn query(conn: &mut Connection, sql: &str) -> Result<Rows, Error> {
    conn.query(sql).map_err(|error| Error::of(error, sql))
}

/// Counts the tries of a command that failed because of a conflict, and waits between them.
pub(crate) struct Retry<'a> {
    db: &'a Database,
    left: u32,
    pause: Duration,
}

impl<'a> Retry<'a> {
    /// As many tries as the product's row allows.
    pub(crate) fn new(db: &'a Database) -> Self {
        Retry { db, left: db.product.dialect.retries, pause: Duration::from_millis(10) }
    }

    /// Waits if the error is a conflict and a try is left.
    ///
    /// # Errors
    /// Gives the error back if it isn't, or none is.
    pub(crate) fn after(&mut self, error: Error) -> Result<(), Error> {
        /// Schema changes of a cluster settle within that time.
        const LONGEST_PAUSE: Duration = Duration::from_millis(640);
        // COMMIT answered ROLLBACK: nothing was done.
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
