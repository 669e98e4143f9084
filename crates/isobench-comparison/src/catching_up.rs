//! Readers on a standby that wait, before each of their transactions, until it has replayed what their
//! server had written by then.
//!
//! Source: PostgreSQL 19 manual, "WAIT FOR". It has to come before the transaction, because it refuses
//! to run where there is a snapshot. Never tried on a server: there was no PostgreSQL 19 to be had.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use isobench_database::{Connector, Database};
use isobench_pgwire::Connection;
use isobench_runner::BeforeReading;

use crate::failure::{Failure, Outcome};

/// The interval between two questions how far the server has written.
const EVERY: Duration = Duration::from_millis(10);

/// How far it has. Commits of `synchronous_commit=off` are included, so it isn't what is flushed.
const WRITTEN: &str = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')";

/// Makes sure that standbys of a server can wait.
///
/// # Errors
/// They can't.
pub fn require(database: &Database) -> Outcome {
    match database.product.abilities.waits_for_lsn.missing(database) {
        None => Ok(()),
        Some(why) => Err(Failure::setup(format!(
            "--wait-for-lsn: readers can't wait on {} {}: {why}",
            database.product.name, database.version
        ))),
    }
}

/// What readers send before each attempt. The server is asked how far it has written until this is
/// dropped.
///
/// # Errors
/// The server can't be reached, or doesn't say.
pub fn statements(server: &Connector) -> Outcome<Box<BeforeReading>> {
    let mut connection = server.open().map_err(Failure::setup)?;
    let first = written(&mut connection)
        .ok_or_else(|| Failure::setup("--wait-for-lsn: the server doesn't say how far it has written"))?;
    let position = Arc::new(AtomicU64::new(first));
    let (over, ended) = channel::<()>();
    let shared = Arc::clone(&position);
    thread::Builder::new()
        .name("written".to_owned())
        .spawn(move || follow(connection, &shared, &ended))
        .map_err(|error| Failure::setup(format!("--wait-for-lsn: could not start a thread: {error}")))?;
    Ok(Box::new(move || {
        // It ends the thread when it is dropped.
        let _ = &over;
        Some(statement(position.load(Ordering::Relaxed)))
    }))
}

fn follow(mut connection: Connection, position: &AtomicU64, ended: &Receiver<()>) {
    while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        // A server that is gone is reported by its clients.
        let Some(written) = written(&mut connection) else { break };
        position.store(written, Ordering::Relaxed);
    }
    connection.close();
}

fn written(connection: &mut Connection) -> Option<u64> {
    connection.value(WRITTEN).ok()??.parse().ok()
}

/// Waits, without a limit, for a position of the log.
fn statement(position: u64) -> String {
    format!("WAIT FOR LSN '{:X}/{:08X}'", position >> 32, position & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use isobench_testkit::scripted::ScriptedServer;

    use super::*;

    #[test]
    fn positions_are_written_as_the_server_does() {
        assert_eq!(statement(0x0306_EE20), "WAIT FOR LSN '0/0306EE20'");
        assert_eq!(statement(0x1_0000_002A), "WAIT FOR LSN '1/0000002A'");
    }

    #[test]
    fn standbys_wait_since_version_19() {
        for (text, waits) in [
            ("PostgreSQL 19beta1 on x86_64-pc-linux-gnu, compiled by gcc", true),
            ("PostgreSQL 19.0 on x86_64-pc-linux-gnu, compiled by gcc", true),
            ("PostgreSQL 18.4 on x86_64-pc-linux-gnu, compiled by gcc", false),
            ("CockroachDB CCL v23.2.1 (x86_64-pc-linux-gnu)", false),
        ] {
            let outcome = require(&Database::from_version_text(text));
            assert_eq!(outcome.is_ok(), waits, "{text}");
            if let Err(failure) = outcome {
                assert!(
                    failure.to_string().starts_with("--wait-for-lsn: readers can't wait on "),
                    "{failure}"
                );
            }
        }
    }

    /// A server that says how far it has written, until it is gone.
    #[test]
    fn the_newest_position_is_waited_for() {
        let answers = ["< row 50000", "< row 60000", "< error 57P01 \"gone\""];
        let script = answers.map(|answer| format!("> {WRITTEN}\n{answer}\n")).concat();
        let server = ScriptedServer::start(&format!("== connect\n{script}"));
        let connection = Connector::direct(server.options()).open().unwrap();
        let (position, (over, ended)) = (AtomicU64::new(0), channel());
        follow(connection, &position, &ended);
        assert_eq!(statement(position.into_inner()), "WAIT FOR LSN '0/0000EA60'");
        server.finish();
        drop(over);
    }

    #[test]
    fn nothing_is_asked_after_the_last_reader() {
        let server = ScriptedServer::start("== connect\n");
        let connection = Connector::direct(server.options()).open().unwrap();
        let (position, (over, ended)) = (AtomicU64::new(7), channel());
        drop(over);
        follow(connection, &position, &ended);
        assert_eq!(position.into_inner(), 7);
        server.finish();
    }
}
