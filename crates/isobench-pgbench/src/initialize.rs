//! `-i`: creates the tables, and reports progress in pgbench's words.
//!
//! Not here: creating them (`isobench_database`).

mod cancel;
mod lines;

use std::time::Duration;

use isobench_database::Table;
use isobench_database::{Error, InitOptions, InitProgress, detect, init};
use isobench_pgwire::{Connection, process_environment};

use self::cancel::Cancelling;
pub use self::lines::Lines;
use crate::console::{Console, Message};
use crate::options::Common;
use crate::setup::{self, Login};

/// Creates the tables and returns the exit status.
pub fn initialize(common: &Common, tables: &InitOptions, console: Console) -> u8 {
    let login = Login::new(&common.connection, &process_environment);
    let mut connection = match login.and_then(|mut login| login.first()) {
        Ok(connection) => connection,
        Err(why) => {
            console.say(&setup::no_session(why, "initialization"));
            return 1;
        }
    };
    let tables = InitOptions { variant: common.version.init_variant(), ..tables.clone() };
    let mut lines = Lines::new(common.version, tables.quiet);
    match make(&mut connection, &tables, &mut lines, console) {
        Ok(()) => {
            connection.close();
            0
        }
        Err(message) => {
            console.say(&message);
            1
        }
    }
}

fn make(
    connection: &mut Connection,
    tables: &InitOptions,
    lines: &mut Lines,
    console: Console,
) -> Result<(), Message> {
    let cancelling = Cancelling::watch(connection.cancel_token(), console).map_err(Message::error)?;
    let database = detect(connection).map_err(|error| refusal(&error))?;
    let mut sent = None;
    let mut show = |progress: InitProgress| {
        if let InitProgress::Rows { table, done, elapsed, .. } = progress {
            // After an interrupt pgbench sends no further rows.
            if cancelling.requested() {
                return;
            }
            sent = Some((table, done, elapsed));
        }
        console.write(lines.of(&progress));
    };
    let outcome = init(connection, &database, tables, &mut show);
    if let Err(Error::CopyFailed { table, .. }) = &outcome
        && !cancelling.requested()
    {
        // pgbench sends all rows before it notices that the server refused one.
        for progress in unsent(*table, table.rows(tables.scale), sent) {
            console.write(lines.of(&progress));
        }
    }
    let timings = outcome.map_err(|error| refusal(&error))?;
    console.write(Lines::summary(&timings));
    Ok(())
}

/// Reports for the rows of a table after those that were sent last.
fn unsent(
    table: Table,
    total: u64,
    sent: Option<(Table, u64, Duration)>,
) -> impl Iterator<Item = InitProgress> {
    let (done, elapsed) = match sent {
        Some((last, done, elapsed)) if last == table => (done, elapsed),
        _ => (0, Duration::ZERO),
    };
    (done / 100 + 1..=total / 100).map(move |hundreds| InitProgress::Rows {
        table,
        done: hundreds * 100,
        total,
        elapsed,
    })
}

/// The message for an error while the tables are created.
fn refusal(error: &Error) -> Message {
    match error {
        Error::Query { statement, source } => {
            Message::error(format_args!("query failed: {}", source.report(Some(statement))))
                .detail(format_args!("Query was: {statement}"))
        }
        Error::CopyRefused { source, .. } => {
            Message::error(format_args!("unexpected copy in result: {}", source.report(None)))
        }
        Error::CopyFailed { source, .. } => {
            Message::plain(source.report(None)).then_error("PQendcopy failed")
        }
        other => Message::error(other),
    }
}
