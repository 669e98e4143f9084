//! Makes the TPC-B-like tables: runs the steps that `tables` lists, tries again where a product asks for that.

use std::time::{Duration, Instant};

use isobench_pgwire::{Completed, Connection, Rows, TransactionStatus};

use crate::error::Error;
use crate::load::load;
use crate::options::InitOptions;
use crate::product::{Database, is_undefined_table};
use crate::progress::{Progress, Timings};
use crate::schema::Names;
use crate::steps::Steps;
use crate::tables::{self, Action};

/// Makes the tables (pgbench: `-i`).
///
/// # Errors
/// The server refuses a command, or the connection is lost. A transaction that was open is rolled back.
pub fn init(
    conn: &mut Connection,
    db: &Database,
    opts: &InitOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Timings, Error> {
    run_steps(conn, db, opts, &opts.effective_steps(), progress)
}

/// Runs these steps instead of those in the options.
pub(crate) fn run_steps(
    conn: &mut Connection,
    db: &Database,
    opts: &InitOptions,
    steps: &Steps,
    progress: &mut dyn FnMut(Progress),
) -> Result<Timings, Error> {
    let started = Instant::now();
    let mut timings = Timings::default();
    for step in steps.iter() {
        let step_started = Instant::now();
        let actions = tables::actions(db, opts, step);
        // A step that only has something to say didn't happen.
        let happens = actions.iter().any(|action| !matches!(action, Action::Tell(_)));
        if happens {
            progress(Progress::Step(step));
        }
        run_actions(conn, db, &actions, progress)?;
        if happens {
            timings.steps.push((step, step_started.elapsed()));
        }
    }
    timings.total = started.elapsed();
    Ok(timings)
}

/// Runs actions in order; after an error an open transaction is rolled back.
pub(crate) fn run_actions(
    conn: &mut Connection,
    db: &Database,
    actions: &[Action],
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    for action in actions {
        let done = match action {
            Action::Run(sql) => execute(conn, db, &db.place(sql, &Names::default())).map(|_| ()),
            Action::Load { table, how, rows } => load(conn, db, *table, *how, *rows, progress),
            Action::TellPartitions(count) => {
                progress(Progress::Partitions(*count));
                Ok(())
            }
            Action::Tell(what) => {
                progress(Progress::Note(what.clone()));
                Ok(())
            }
        };
        for notice in conn.take_notices() {
            progress(Progress::Notice(Box::new(notice)));
        }
        if let Err(error) = done {
            if conn.transaction_status() != TransactionStatus::Idle {
                // The first error is the one to report.
                let _ = conn.execute("rollback");
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Runs a command; outside a transaction block, tries again after conflicts as often as the product needs.
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

/// The scale of the tables that are there: the number of branches, as pgbench counts them when a run starts.
/// `None` if there is no such table.
///
/// # Errors
/// Any other error of the server, a lost connection, or a count that is no scale.
pub fn scale_of(conn: &mut Connection) -> Result<Option<u32>, Error> {
    /// pgbench's question.
    const QUESTION: &str = "select count(*) from pgbench_branches";
    match conn.value(QUESTION) {
        Ok(answer) => {
            let answer = answer.unwrap_or_default();
            match answer.parse() {
                Ok(scale) => Ok(Some(scale)),
                Err(_) => Err(Error::Answer { statement: QUESTION.to_owned(), got: answer }),
            }
        }
        Err(error) if error.code().is_some_and(is_undefined_table) => Ok(None),
        Err(error) => Err(Error::of(error, QUESTION)),
    }
}
