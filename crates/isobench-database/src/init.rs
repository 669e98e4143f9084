//! Creates the TPC-B-like tables: runs the steps listed in `tables`.

use std::time::Instant;

use isobench_pgwire::{Connection, TransactionStatus};

use crate::database::{Database, is_undefined_table};
use crate::error::Error;
use crate::execute::execute;
use crate::fill::fill;
use crate::options::InitOptions;
use crate::progress::{InitProgress, Timings};
use crate::schema::OwnNames;
use crate::steps::Steps;
use crate::tables::{self, TableAction};

/// Creates the tables (pgbench: `-i`).
///
/// # Errors
/// The server refuses a command, or the connection is lost. An open transaction is rolled back.
pub fn init(
    conn: &mut Connection,
    db: &Database,
    opts: &InitOptions,
    progress: &mut dyn FnMut(InitProgress),
) -> Result<Timings, Error> {
    run_steps(conn, db, opts, &opts.effective_steps(), progress)
}

/// Runs these steps instead of those in the options.
pub(crate) fn run_steps(
    conn: &mut Connection,
    db: &Database,
    opts: &InitOptions,
    steps: &Steps,
    progress: &mut dyn FnMut(InitProgress),
) -> Result<Timings, Error> {
    let started = Instant::now();
    let mut timings = Timings::default();
    for step in steps.iter() {
        let step_started = Instant::now();
        let actions = tables::actions(db, opts, step);
        // A step that only reports something isn't timed.
        let happens = actions.iter().any(|action| !matches!(action, TableAction::Report(_)));
        if happens {
            progress(InitProgress::Step(step));
        }
        run_actions(conn, db, &actions, progress)?;
        if happens {
            timings.steps.push((step, step_started.elapsed()));
        }
    }
    timings.total = started.elapsed();
    Ok(timings)
}

/// Runs actions in order. After an error an open transaction is rolled back.
pub(crate) fn run_actions(
    conn: &mut Connection,
    db: &Database,
    actions: &[TableAction],
    progress: &mut dyn FnMut(InitProgress),
) -> Result<(), Error> {
    for action in actions {
        let done = match action {
            TableAction::Run(sql) => execute(conn, db, &db.place(sql, &OwnNames::default())).map(|_| ()),
            TableAction::Load { table, how, rows } => fill(conn, db, *table, *how, *rows, progress),
            TableAction::ReportPartitions(count) => {
                progress(InitProgress::Partitions(*count));
                Ok(())
            }
            TableAction::Report(what) => {
                progress(InitProgress::Note(what.clone()));
                Ok(())
            }
        };
        for notice in conn.take_notices() {
            progress(InitProgress::Notice(Box::new(notice)));
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

/// The scale of the existing tables: the number of branches, as pgbench counts them when a run
/// starts. `None` if there is no such table.
///
/// # Errors
/// Any other error of the server, a lost connection, or a count that can't be a scale.
pub fn scale_of(conn: &mut Connection) -> Result<Option<u32>, Error> {
    /// pgbench's query.
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
