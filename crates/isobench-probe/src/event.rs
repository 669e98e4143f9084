//! Events of running a specification, in the order in which they are reported.

use std::time::Duration;

use isobench_pgwire::ServerError;

/// The rows returned by a statement, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// An event. The results of a step follow its [`Event::Step`] or [`Event::Completed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The run starts, with this many sessions.
    Begin(usize),
    /// A permutation starts; the names of its steps.
    Permutation(Vec<String>),
    /// A step completed immediately.
    Step {
        /// Its name.
        name: String,
        /// Its SQL.
        sql: String,
    },
    /// A step was launched and waits, or a marker delays it.
    Waiting {
        /// Its name.
        name: String,
        /// Its SQL.
        sql: String,
    },
    /// A step that was reported as waiting has completed.
    Completed {
        /// Its name.
        name: String,
    },
    /// A step exceeds its time limit and is cancelled.
    Cancelling {
        /// Its name.
        name: String,
        /// The limit.
        limit: Duration,
    },
    /// All steps have completed; the following events come from teardowns.
    End,
    /// A statement returned rows.
    Rows(Table),
    /// A statement returned no rows; the command tag, such as `UPDATE 1`.
    Command(String),
    /// A statement failed.
    Error(ServerError),
    /// The session's connection was lost; the reason.
    Lost(String),
    /// The server requests or sends COPY data, which steps don't support; libpq's name of that
    /// state.
    Unexpected(&'static str),
    /// A session received a notice.
    Notice {
        /// The session's name.
        session: String,
        /// The notice.
        notice: ServerError,
    },
    /// A session received a notification.
    Notification {
        /// The session's name.
        session: String,
        /// The channel.
        channel: String,
        /// The payload, possibly empty.
        payload: String,
        /// The sending session's name, or its process id.
        from: String,
    },
    /// A message for standard error, which isn't part of the output.
    Warning(String),
}
