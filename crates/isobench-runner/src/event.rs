//! What clients tell while a run goes on, as data: the words are chosen by whoever shows them.

use isobench_pgwire::ServerError;
use isobench_script::EvalError;

/// What the clients of a run tell besides what ends a client, notices, and the output of `debug()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Every error that an attempt meets and that doesn't end the client, and what follows it
    /// (pgbench: `--verbose-errors`).
    pub errors: bool,
    /// Every step of a client (pgbench: `--debug`).
    pub steps: bool,
}

/// Something that happened to one client and that a user may want to hear of at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The client ended before its time.
    Aborted(CommandPlace, Cause),
    /// An error that isn't a conflict ended the transaction, and the client goes on (pgbench:
    /// `--continue-on-error`).
    Abandoned(CommandPlace, FailedStatement),
    /// An attempt met this error. Told with [`Detail::errors`], before its block is rolled back.
    Failed(CommandPlace, FailedStatement),
    /// What follows the failed attempt, of which there were so many. Told with [`Detail::errors`].
    Follows {
        /// The client.
        client: usize,
        /// The transaction is repeated; otherwise it is given up.
        retry: bool,
        /// Attempts so far.
        tries: u32,
        /// The share of the latency limit that has been used, if there is one (1: all of it).
        used: Option<f64>,
    },
    /// A statement couldn't be prepared, and is executed all the same ([`crate::Rules::Pgbench`]).
    NotPrepared(FailedStatement),
    /// The server sent a notice to a client.
    Notice(Box<ServerError>),
    /// From here on nothing is recorded, for this reason. Told once.
    Unrecorded(String),
    /// The output of `debug()`.
    Debug(String),
    /// One step of a client, told with [`Detail::steps`].
    Trace {
        /// The client.
        client: usize,
        /// What it does.
        step: ClientStep,
    },
}

/// Which client is at which command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandPlace {
    /// The client, from 0.
    pub client: usize,
    /// The script, from 0.
    pub script: usize,
    /// The command in the script, from 0; the number of commands if the script is at its end.
    pub command: usize,
}

/// An error of the server and the statement that met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStatement {
    /// What the server said.
    pub error: Box<ServerError>,
    /// Statements of the request that had been answered before (pgbench: "query").
    pub query: u32,
    /// The text that was sent and to which the error's position refers; `None` if only the name of
    /// a prepared statement was sent.
    pub text: Option<String>,
}

/// Why a client ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// An error of the server that is no conflict.
    Server(FailedStatement),
    /// An expression can't be evaluated.
    Evaluation(EvalError),
    /// A meta-command can't be executed.
    Execution(String),
    /// The value of `\set` can't be given to a variable of that name.
    Assignment(String),
    /// The command isn't allowed here.
    NotAllowed(String),
    /// The result of a query (number in its request, from 0) can't be stored. What is wrong, and
    /// what was wrong with a variable's name.
    Result {
        /// Number of the query in its request, from 0.
        query: u32,
        /// What is wrong.
        problem: String,
        /// The name that makes no variable.
        name: Option<String>,
    },
    /// What a line `--@` says can't be found in the result, or is impossible; with file, line and
    /// what is wrong.
    Observation(String),
    /// The script ended where no script may end.
    Unfinished(Unfinished),
    /// The script has a COPY.
    Copy,
    /// A new connection for a transaction couldn't be made; with the reason.
    Connect(String),
    /// The connection was lost, for this reason, maybe after a last error of the server.
    Lost(String, Option<Box<ServerError>>),
}

/// What a script left open at its end.
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
    /// A transaction begins, with this script.
    Script(usize),
    /// A meta-command is executed: script and command.
    Command(usize, usize),
    /// A statement is prepared under this name.
    Preparing(String),
    /// A request is sent: its text, or the name of a prepared statement.
    Sending(String),
    /// A program has printed the value of a variable: script, command, and the text.
    ShellValue(usize, usize, String),
    /// It waits for the server, or has heard of it.
    Receiving,
    /// The end of a pipeline waits for so many synchronisation points.
    EndingPipeline(u32),
}

/// Receives events, from any worker thread.
pub type Report<'a> = dyn Fn(Event) + Sync + 'a;
