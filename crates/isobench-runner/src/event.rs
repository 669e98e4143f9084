//! Reports of clients while a run goes on, as data. Their wording is chosen by the program that
//! shows them.

use isobench_pgwire::ServerError;
use isobench_script::{EvalError, Variables};

/// Reports that are made in addition to notices, the output of `debug()` and the ends of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Every error of an attempt that doesn't end the client, and what follows it (pgbench:
    /// `--verbose-errors`).
    pub errors: bool,
    /// Every step of a client (pgbench: `--debug`).
    pub steps: bool,
    /// The variables at each SQL command.
    pub variables: bool,
}

/// An event in one client that the user may want to see at once.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientEvent {
    /// The client ended early.
    Aborted(CommandPlace, AbortCause),
    /// An error other than a conflict ended the transaction, and the client continues (pgbench:
    /// `--continue-on-error`).
    Abandoned(CommandPlace, FailedStatement),
    /// An attempt met this error. Reported with [`Detail::errors`], before its block is rolled
    /// back.
    Failed(CommandPlace, FailedStatement),
    /// The consequence of a failed attempt. Reported with [`Detail::errors`].
    Follows {
        /// The client.
        client: usize,
        /// The transaction is repeated; otherwise it is given up.
        retry: bool,
        /// Attempts so far.
        tries: u32,
        /// The share of the latency limit that has been used, if there is a limit (1: all of it).
        used: Option<f64>,
    },
    /// A statement couldn't be prepared, and is executed nevertheless ([`crate::Rules::Pgbench`]).
    NotPrepared(FailedStatement),
    /// A client lost its session for this reason, and opens another one
    /// ([`crate::OnLost::Reconnect`]).
    LostSession(CommandPlace, String),
    /// The server sent a notice to a client.
    Notice(Box<ServerError>),
    /// From here on nothing is recorded, for this reason. Reported once.
    Unrecorded(String),
    /// The output of `debug()`.
    Debug(String),
    /// An SQL command is sent, with the variables as they are now. Reported with
    /// [`Detail::variables`].
    Sends(CommandPlace, Box<Variables>),
    /// One step of a client, reported with [`Detail::steps`].
    Trace {
        /// The client.
        client: usize,
        /// The step.
        step: ClientStep,
    },
}

/// A client and the command it has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandPlace {
    /// The client, from 0.
    pub client: usize,
    /// The script, from 0.
    pub script: usize,
    /// The command in the script, from 0; the number of commands if the script is at its end.
    pub command: usize,
}

/// An error of the server and the statement that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStatement {
    /// The error.
    pub error: Box<ServerError>,
    /// Statements of the request that had been answered before (pgbench: "query").
    pub query: u32,
    /// The text that was sent and to which the error's position refers; `None` if only the name of
    /// a prepared statement was sent.
    pub text: Option<String>,
}

/// The reason why a client ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AbortCause {
    /// An error of the server other than a conflict.
    Server(FailedStatement),
    /// An expression can't be evaluated.
    Evaluation(EvalError),
    /// A meta-command can't be executed.
    Execution(String),
    /// The value of `\set` can't be assigned to a variable of that name.
    Assignment(String),
    /// The command isn't allowed here.
    NotAllowed(String),
    /// The result of a query can't be stored.
    Result {
        /// Number of the query in its request, from 0.
        query: u32,
        /// The problem.
        problem: String,
        /// The name that can't be a variable's, if that is the problem.
        name: Option<String>,
    },
    /// A line `--@` doesn't match the result, or is impossible; with file, line and problem.
    Annotation(String),
    /// The script ended inside a block or pipeline.
    Unfinished(Unfinished),
    /// The script has a COPY.
    Copy,
    /// A new connection for a transaction couldn't be opened, for this reason.
    Connect(String),
    /// The connection was lost, for this reason, possibly after a last error of the server.
    Lost(String, Option<Box<ServerError>>),
}

/// The construct that a script left open at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// A transaction block.
    Block,
    /// A pipeline.
    Pipeline,
}

/// One step of a client (pgbench: the lines of `--debug`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientStep {
    /// A transaction starts, with this script.
    Script(usize),
    /// A meta-command is executed: script and command.
    Command(usize, usize),
    /// A statement is prepared under this name.
    Preparing(String),
    /// A request is sent: its text, or the name of a prepared statement.
    Sending(String),
    /// A program has printed the value of a variable: script, command and output.
    ShellValue(usize, usize, String),
    /// The client waits for the server, or has received a reply.
    Receiving,
    /// The end of a pipeline waits for this many synchronisation points.
    EndingPipeline(u32),
}

/// A handler of events, called from any worker thread.
pub type EventHandler<'a> = dyn Fn(ClientEvent) + Sync + 'a;
