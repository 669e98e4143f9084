//! The reasons why races can't be tried.

/// The reason why races couldn't be tried, as a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RaceError {
    /// The server can't be reached, or refused a statement of isobench's own.
    #[error("{0}")]
    Server(String),
    /// Others use the database.
    #[error(
        "database \"{database}\" is in use by {who}; isobench changes its rows and puts them back, so stop the \
         others, or let isobench make a copy (--copy-from)"
    )]
    InUse {
        /// Its name.
        database: String,
        /// The other sessions.
        who: String,
    },
    /// A session that doesn't lead through the relay.
    #[error(
        "{who} connected to the database directly, so its statements can't be held; let it connect by PGHOST and \
         PGPORT, or DATABASE_URL, of its environment"
    )]
    Direct {
        /// The session.
        who: String,
    },
    /// The contents are too large to be kept.
    #[error(
        "the tables have {megabytes} MB, more than --size-limit {limit}; raise it, use a smaller copy, or leave out \
         large tables that no command writes (--ignore TABLE)"
    )]
    TooLarge {
        /// What they have.
        megabytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The role may not put rows back without triggers.
    #[error(
        "{why}: rows are put back without triggers and foreign keys, which takes a superuser, or from PostgreSQL 15 \
         on GRANT SET ON PARAMETER session_replication_role"
    )]
    NoRights {
        /// The server's error.
        why: String,
    },
    /// Something between isobench and the server shares sessions.
    #[error(
        "a pooler, such as PgBouncer, is between isobench and the server, so settings of isobench's own session would \
         reach others; name the server itself: the application reaches it through isobench"
    )]
    Pooled,
    /// A trigger that can't be avoided.
    #[error(
        "trigger {trigger} of {table} is enabled always, so it would fire when rows are put back: ALTER TABLE {table} \
         ENABLE TRIGGER {trigger} in the copy"
    )]
    Trigger {
        /// The table.
        table: String,
        /// The trigger.
        trigger: String,
    },
    /// A table to ignore that isn't there.
    #[error("--ignore: there is no table or column \"{0}\"")]
    Unknown(String),
    /// Two runs of the same order differ.
    #[error(
        "{what} differs between two runs of {order}, so no order can be compared with; if it doesn't matter, add \
         --ignore {what}; if a command works on after its answer, that work has to be finished first"
    )]
    Unstable {
        /// The order.
        order: String,
        /// The column, or the table.
        what: String,
    },
    /// Two runs of the same order end differently.
    #[error("{order}, run alone, ends differently each time: {one}, then {other}")]
    Restless {
        /// The order.
        order: String,
        /// How it ended first.
        one: String,
        /// How it ended then.
        other: String,
    },
    /// No statement came through the relay.
    #[error(
        "the commands sent no statement through isobench ({answers}); they have to connect by PGHOST and PGPORT, or \
         DATABASE_URL, of their environment, or by an application that --serve starts"
    )]
    Untouched {
        /// How they ended.
        answers: String,
    },
    /// The contents could not be put back.
    #[error("the rows of {table} could not be put back: {why}")]
    NotRestored {
        /// The table.
        table: String,
        /// The reason.
        why: String,
    },
    /// A command can't be started.
    #[error("could not run \"{command}\": {why}")]
    Start {
        /// Its text.
        command: String,
        /// The reason.
        why: String,
    },
    /// The application isn't ready.
    #[error("--serve: {0}")]
    Application(String),
    /// A schedule that can't be read.
    #[error("--schedule \"{text}\": {why}; write commands with numbers of statements, such as A3,B")]
    Schedule {
        /// Its text.
        text: String,
        /// The reason.
        why: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl RaceError {
    /// True if the options are right and the commands can't be tried against each other nevertheless.
    pub fn is_untried(&self) -> bool {
        matches!(
            self,
            Self::Unstable { .. }
                | Self::Restless { .. }
                | Self::Untouched { .. }
                | Self::Direct { .. }
                | Self::Interrupted
        )
    }
}

impl From<isobench_pgwire::Error> for RaceError {
    fn from(error: isobench_pgwire::Error) -> Self {
        Self::Server(error.to_string())
    }
}
