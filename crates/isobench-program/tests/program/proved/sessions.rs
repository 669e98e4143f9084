//! Sessions of a server that may wait for each other.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection, TransactionStatus};

/// How long a statement may run until the server is asked whether it waits.
const PATIENCE: Duration = Duration::from_millis(3);

/// What a statement gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
    /// The number of rows that it changed, if that is known.
    pub changed: Option<u64>,
}

type Answered = Result<Reply, String>;

/// A session in a thread of its own.
pub struct Session {
    commands: Option<Sender<String>>,
    replies: Receiver<Answered>,
    thread: Option<JoinHandle<()>>,
    pid: String,
    /// A statement was sent whose reply hasn't come.
    pub pending: bool,
}

impl Session {
    pub fn open(options: &ConnectOptions) -> Session {
        let mut connection = Connection::open(options).expect("a connection");
        let pid = connection.value("SELECT pg_backend_pid()").expect("its number").expect("its number");
        connection
            .execute("SET enable_seqscan = off; SET jit = off; SET deadlock_timeout = '15ms'")
            .expect("settings");
        let (commands, received) = channel::<String>();
        let (sender, replies) = channel();
        let thread = std::thread::spawn(move || {
            while let Ok(sql) = received.recv() {
                if sender.send(run(&mut connection, &sql)).is_err() {
                    break;
                }
            }
            connection.close();
        });
        Session { commands: Some(commands), replies, thread: Some(thread), pid, pending: false }
    }

    pub fn send(&mut self, sql: &str) {
        self.commands.as_ref().expect("a thread").send(sql.to_owned()).expect("a thread");
        self.pending = true;
    }

    /// The reply; `None` if the statement waits for another session.
    pub fn reply(&mut self, monitor: &mut Connection) -> Option<Answered> {
        loop {
            match self.replies.recv_timeout(PATIENCE) {
                Ok(reply) => {
                    self.pending = false;
                    return Some(reply);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let asked = format!("SELECT cardinality(pg_blocking_pids({})) > 0", self.pid);
                    let waits = monitor.value(&asked).expect("whether it waits");
                    if waits.as_deref() == Some("t") {
                        return None;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => panic!("a session ended"),
            }
        }
    }

    /// Executes something that waits for nobody.
    pub fn execute(&mut self, sql: &str) -> Answered {
        self.send(sql);
        let reply = self.replies.recv().expect("a thread");
        self.pending = false;
        reply
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(connection: &mut Connection, sql: &str) -> Answered {
    let first = sql.split_whitespace().next().unwrap_or_default();
    let writes = ["INSERT", "UPDATE", "DELETE"].contains(&first);
    let returns = sql.contains(" RETURNING ") || !writes;
    let done = if returns {
        connection.query(sql).map(|result| {
            let changed = writes.then_some(result.rows.len() as u64);
            Reply { columns: result.columns, rows: result.rows, changed }
        })
    } else {
        connection.execute(sql).map(|done| {
            let changed = done.first().and_then(isobench_pgwire::Completed::rows);
            Reply { changed, ..Reply::default() }
        })
    };
    if done.is_err() && connection.transaction_status() != TransactionStatus::Idle {
        let _ = connection.execute("ROLLBACK");
    }
    done.map_err(|error| error.to_string())
}
