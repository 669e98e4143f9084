//! What happens while a specification is run, in the order in which it is to be told.

use std::time::Duration;

use isobench_pgwire::ServerError;

/// The rows that a statement returned, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Something that happened. What a step returned follows its [`Event::Step`] or
/// [`Event::Completed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The run begins, with so many sessions.
    Begin(usize),
    /// A permutation begins: the names of its steps.
    Permutation(Vec<String>),
    /// A step completed at once.
    Step {
        /// Its name.
        name: String,
        /// Its SQL.
        sql: String,
    },
    /// A step was launched and waits, or is held back by a marker.
    Waiting {
        /// Its name.
        name: String,
        /// Its SQL.
        sql: String,
    },
    /// A step that was told to be waiting has completed.
    Completed {
        /// Its name.
        name: String,
    },
    /// A step takes longer than its limit and is cancelled.
    Cancelling {
        /// Its name.
        name: String,
        /// The limit.
        limit: Duration,
    },
    /// All steps have completed; what follows comes from teardowns.
    End,
    /// A statement returned rows.
    Rows(Table),
    /// A statement returned none: the server's tag, such as `UPDATE 1`.
    Command(String),
    /// A statement failed.
    Error(ServerError),
    /// The session's connection was lost: why.
    Lost(String),
    /// The server wants or sends COPY data, which no step can have: libpq's name of that state.
    Unexpected(&'static str),
    /// A session was sent a notice.
    Notice {
        /// The session's name.
        session: String,
        /// The notice.
        notice: ServerError,
    },
    /// A session was sent a notification.
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
    /// Something that isn't part of the output, for standard error.
    Warning(String),
}
