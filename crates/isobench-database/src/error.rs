//! Errors while the server under test is prepared or checked.

use isobench_pgwire::{ServerError, SqlState};

use crate::table::Table;

/// A failure of administrative work on the server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused a statement. pgbench prints `query failed: …` and `Query was: …`.
    #[error("query failed: {}\nQuery was: {statement}", source.report(Some(statement)))]
    Query {
        /// The statement, as sent; long ones are cut.
        statement: String,
        /// The error.
        source: Box<ServerError>,
    },
    /// The server refused to start a COPY. pgbench prints `unexpected copy in result: …`.
    #[error("could not copy rows into {}: {}", table.name(), source.report(None))]
    CopyRefused {
        /// The table to be filled.
        table: Table,
        /// The error.
        source: Box<ServerError>,
    },
    /// The server refused the rows of a COPY. pgbench prints the server's error, and `PQendcopy
    /// failed`.
    #[error("copying rows into {} failed: {}", table.name(), source.report(None))]
    CopyFailed {
        /// The table to be filled.
        table: Table,
        /// The error.
        source: Box<ServerError>,
    },
    /// The connection could not be made, was lost, or the server broke the protocol.
    #[error(transparent)]
    Connection(#[from] isobench_pgwire::Error),
    /// The server's answer wasn't the one expected.
    #[error("unexpected answer to \"{statement}\": {got}")]
    Answer {
        /// The statement.
        statement: String,
        /// The answer.
        got: String,
    },
    /// A session can't work in a schema of the user's.
    #[error(
        "there is no schema \"{name}\" in this database that this role may use; schemas are listed by \
         \\dn in psql (upper and lower case differ)"
    )]
    NoSchema {
        /// The schema's name, as given.
        name: String,
    },
    /// A schema or database of our name exists without our mark.
    #[error(
        "{what} \"{name}\" exists already and was not made by isobench; it is left alone. Rename or \
         drop it, or use a database of your own for the benchmark (-d)"
    )]
    NotOurs {
        /// `schema` or `database`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An object with the name of one of a workload's exists without our mark.
    #[error(
        "{kind} \"{name}\" exists already and was not made by \"isobench init\" (its comment would \
         say so); nothing was touched. Use another database (-d), or rename or drop it yourself"
    )]
    ForeignObject {
        /// `table`, `sequence`, `view` or `routine`.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A table of a workload isn't there.
    #[error("table \"{table}\" isn't there; \"isobench init --workload {workload}\" makes it")]
    MissingTable {
        /// Its name.
        table: &'static str,
        /// The text that selects the workload.
        workload: String,
    },
    /// Our sessions aren't sessions of the server.
    #[error(
        "the server is reached through a pooler or proxy that shares its sessions out, so that one of \
         ours isn't one of the server's (transaction pooling). An isolation level, a schema and the \
         tables' safety belong to a session, so nothing is done there. Connect to the server itself, \
         or to a pool that keeps sessions (PgBouncer: pool_mode = session, and a pool_size above the \
         number of clients)"
    )]
    Pooled,
    /// The server refused a second session beside the first one.
    #[error(
        "a second session was refused, and isobench needs one for each client \
         and two of its own: {source}"
    )]
    Alone {
        /// The reason.
        source: isobench_pgwire::Error,
    },
    /// A pooler passes sessions on without cleaning them.
    #[error(
        "the server is reached through a pooler that doesn't clean a session before another client \
         gets it (PgBouncer: server_reset_query is empty), so isolation levels and schemas set by \
         isobench would stay in other users' sessions; nothing is done there. Connect to the server \
         itself, or to a pool with server_reset_query = DISCARD ALL"
    )]
    Leaky,
    /// Another user's object depends on something that is to be removed.
    #[error(
        "{what} \"{name}\" isn't removed, because something outside of it depends on it and would go \
         along: {object}. Drop that, or the {what}, yourself"
    )]
    Depends {
        /// `schema` or `database`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The object, as the server names it.
        object: String,
    },
    /// A session isn't in our own schema or database: its statements would hit other users' tables.
    #[error(
        "a session that was to work in {what} \"{name}\" is in \"{found}\", or the {what} doesn't \
         bear isobench's mark; nothing was touched. A pooler or proxy may have led it to another \
         session of the server: connect to the server itself"
    )]
    Astray {
        /// `schema` or `database`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The place where the session is.
        found: String,
    },
    /// A server that was asked to read its configuration again hasn't.
    #[error(
        "the server hasn't read its configuration again within {seconds} s, though it was asked to; its log may say why"
    )]
    NotReloaded {
        /// The time it had.
        seconds: u64,
    },
    /// A session has another setting than the one that was set in it.
    #[error(
        "{name} was set to {wanted} in a session, which shows it as {shown}; so its cell can't be measured"
    )]
    Setting {
        /// The setting's name.
        name: String,
        /// The value, as the server showed it before.
        wanted: String,
        /// The value in this session.
        shown: String,
    },
    /// Another run of isobench is using this database.
    #[error(
        "another run of isobench uses {what} \"{name}\" at this moment; wait until it ends, or use \
         another database (-d)"
    )]
    InUse {
        /// `schema` or `database`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The role may not create the schema or database.
    #[error(
        "this role may not create {what} \"{name}\": {source}. Ask for the right (GRANT CREATE ON \
         DATABASE … for a schema, CREATEDB for a database), or use a database of your own (-d)"
    )]
    MayNotCreate {
        /// `schema` or `database`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The error.
        source: Box<ServerError>,
    },
    /// The server can't create a schema or database.
    #[error(
        "{product} refuses CREATE {what} {name}, and isobench makes its tables only in a {what} of its own: {source}"
    )]
    CannotCreate {
        /// The product.
        product: String,
        /// `schema` or `database`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The error.
        source: Box<ServerError>,
    },
}

impl Error {
    /// The server's error code, if the server reported an error.
    pub fn code(&self) -> Option<SqlState> {
        match self {
            Error::MayNotCreate { source, .. } | Error::CannotCreate { source, .. } => Some(source.code),
            Error::Alone { source } => source.code(),
            Error::Connection(error) => error.code(),
            other => other.refusal().map(|source| source.code),
        }
    }

    /// The server's error, if it refused a statement or its rows.
    pub(crate) fn refusal(&self) -> Option<&ServerError> {
        match self {
            Error::Query { source, .. }
            | Error::CopyRefused { source, .. }
            | Error::CopyFailed { source, .. } => Some(source),
            _ => None,
        }
    }

    /// True if the session is lost, so that anything further needs a new one.
    pub fn is_connection_lost(&self) -> bool {
        match self {
            Error::Connection(error) => error.is_connection_lost(),
            other => other.refusal().is_some_and(ServerError::is_fatal),
        }
    }

    /// Adds the statement to an error of the connection.
    pub(crate) fn of(error: isobench_pgwire::Error, statement: &str) -> Self {
        /// The most characters of a statement that are shown. A batch may have a thousand rows.
        const SHOWN: usize = 500;
        match error {
            isobench_pgwire::Error::Server(source) => {
                let mut shown: String = statement.chars().take(SHOWN).collect();
                if shown.len() < statement.len() {
                    shown.push('…');
                }
                Error::Query { statement: shown, source }
            }
            other => Error::Connection(other),
        }
    }
}
