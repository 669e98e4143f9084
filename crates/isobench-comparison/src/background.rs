//! What another session does on the server while the clients are measured.
//!
//! Not here: what there is to choose from (`isobench_plan`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use isobench_database::tables;
use isobench_isolation::Level;
use isobench_pgwire::{CancelToken, Connection};
use isobench_plan as plan;
use isobench_result as report;

use crate::failure::{Failure, Outcome};
use crate::site::Site;

/// The pause between two of the same, so that one of nothing isn't a busy loop.
const PAUSE: Duration = Duration::from_millis(10);

/// The pause between two requests to end a statement that still runs after the clients have
/// finished.
const AGAIN: Duration = Duration::from_millis(100);

/// Rows fetched at once.
const BATCH: usize = 2_000;

/// A session that has something to do, and has shown that it may.
pub struct Background {
    kind: plan::Background,
    level: Level,
    connection: Connection,
    cancel: CancelToken,
    /// Names of the tables, as identifiers.
    tables: Vec<String>,
}

/// Something failed, with the reason.
type Failed = String;

impl Background {
    /// Opens the session, and does once what is to be done again and again. `level` is the cell's.
    /// `None` if nothing is to go on.
    ///
    /// # Errors
    /// The server refuses or is gone; the message names the option.
    pub fn open(kind: plan::Background, level: Level, site: &Site) -> Outcome<Option<Background>> {
        if kind == plan::Background::None {
            return Ok(None);
        }
        let failed = |why: String| Failure::setup(format!("--background {kind}: {why}"));
        let mut connection = site.open().map_err(|error| failed(error.to_string()))?;
        let reads_tables = matches!(kind, plan::Background::Vacuum | plan::Background::Dump);
        let tables = if reads_tables { tables(&mut connection, &site.database) } else { Ok(Vec::new()) };
        let tables = tables.map_err(|error| failed(error.to_string()))?;
        if reads_tables && tables.is_empty() {
            return Err(failed("the workload has no tables".to_owned()));
        }
        let cancel = connection.cancel_token();
        // Below repeatable read a transaction keeps no snapshot.
        let level = level.max(Level::RepeatableRead);
        let mut background = Background { kind, level, connection, cancel, tables };
        let (_running, over) = channel();
        if !background.stays_open() {
            background.once(&over).map_err(failed)?;
        }
        Ok(Some(background))
    }

    /// Works while `work` is done, and then ends what is under way.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> (T, report::BackgroundWork) {
        let cancel = self.cancel.clone();
        let (running, over) = channel::<()>();
        thread::scope(|scope| {
            let thread = scope.spawn(move || self.work(&over));
            let done = work();
            drop(running);
            while !thread.is_finished() {
                // A server that can't be reached ends the statement, too.
                let _ = cancel.cancel();
                thread::park_timeout(AGAIN);
            }
            (done, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn stays_open(&self) -> bool {
        matches!(self.kind, plan::Background::OldSnapshot | plan::Background::LongWriter)
    }

    fn work(mut self, over: &Receiver<()>) -> report::BackgroundWork {
        let (mut times, mut seconds, mut problem) = (0_u64, 0.0, None);
        loop {
            let began = Instant::now();
            let outcome = if self.stays_open() { self.hold(over) } else { self.once(over) };
            let ended = is_over(over, Duration::ZERO);
            match outcome {
                Ok(()) if self.stays_open() || !ended => {
                    times += 1;
                    seconds += began.elapsed().as_secs_f64();
                }
                Err(why) if !ended => problem = Some(why),
                // What was cut off by the end isn't counted.
                Ok(()) | Err(_) => {}
            }
            if ended || problem.is_some() || is_over(over, PAUSE) {
                break;
            }
        }
        self.connection.close();
        report::BackgroundWork {
            kind: self.kind.to_string(),
            times,
            mean_s: (times > 0).then(|| seconds / times as f64),
            problem,
        }
    }

    /// Does it once; ends early, without an error, if `over` is closed.
    fn once(&mut self, over: &Receiver<()>) -> Result<(), Failed> {
        match self.kind {
            plan::Background::None | plan::Background::OldSnapshot | plan::Background::LongWriter => Ok(()),
            plan::Background::Checkpoint => execute(&mut self.connection, "CHECKPOINT"),
            plan::Background::Vacuum => {
                for table in &self.tables {
                    execute(&mut self.connection, &format!("VACUUM (ANALYZE) {table}"))?;
                    if is_over(over, Duration::ZERO) {
                        break;
                    }
                }
                Ok(())
            }
            plan::Background::Dump => {
                execute(
                    &mut self.connection,
                    "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
                )?;
                let read =
                    self.tables.iter().try_for_each(|table| read_all(&mut self.connection, table, over));
                read.and_then(|()| execute(&mut self.connection, "COMMIT"))
            }
        }
    }

    /// Keeps a transaction open until `over` is closed.
    fn hold(&mut self, over: &Receiver<()>) -> Result<(), Failed> {
        let begin = format!("BEGIN TRANSACTION ISOLATION LEVEL {}", self.level.name().to_uppercase());
        execute(&mut self.connection, &begin)?;
        let first = if self.kind == plan::Background::LongWriter {
            "SELECT pg_catalog.pg_current_xact_id()"
        } else {
            "SELECT pg_catalog.pg_current_snapshot()"
        };
        execute(&mut self.connection, first)?;
        while !is_over(over, Duration::from_mins(1)) {}
        // The request to cancel may have come in between.
        let _ = self.connection.execute("SELECT 1");
        execute(&mut self.connection, "ROLLBACK")
    }
}

/// Waits so long, or until the channel is closed; returns whether it is.
fn is_over(over: &Receiver<()>, wait: Duration) -> bool {
    over.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected)
}

fn execute(connection: &mut Connection, sql: &str) -> Result<(), Failed> {
    connection.execute(sql).map(|_| ()).map_err(|error| format!("{sql}: {error}"))
}

/// Reads all rows of a table; ends early if `over` is closed.
fn read_all(connection: &mut Connection, table: &str, over: &Receiver<()>) -> Result<(), Failed> {
    execute(connection, &format!("DECLARE isobench_dump NO SCROLL CURSOR FOR SELECT * FROM {table}"))?;
    loop {
        let fetched = connection.query(&format!("FETCH {BATCH} FROM isobench_dump"));
        let rows = fetched.map_err(|error| format!("{table}: {error}"))?.rows;
        if rows.is_empty() || is_over(over, Duration::ZERO) {
            return execute(connection, "CLOSE isobench_dump");
        }
    }
}
