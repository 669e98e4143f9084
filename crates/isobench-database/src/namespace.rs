//! A place of our own on a server that is somebody else's: a schema `isobench`, or a database where a product has no
//! schemas (or none that can be marked as ours).
//!
//! Ours is what bears our mark, a comment; an unmarked one is left alone and refused. A marked one that exists already is
//! the leftover of a killed run, unless a run is at work there now; an advisory lock, held by the connection that this
//! module keeps open, tells the two apart. What was made is removed on release and on drop, so also on the way
//! out after Ctrl-C or a panic.

use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection, SqlState};

use crate::error::Error;
use crate::product::Database;

/// The name of schema or database.
const NAME: &str = "isobench";
/// The comment that marks it as ours.
const MARK: &str = "made by isobench; safe to drop";
/// The key of the advisory lock: the letters `isobench`.
const LOCK_KEY: i64 = i64::from_be_bytes(*b"isobench");
/// How long removing may take: sessions of an interrupted run may hold locks a little longer.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// Where isobench works on somebody else's server, as facts of a product.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    /// The first version in which a schema can be made and marked; older ones get a database. (0, 0): any version,
    /// even an unknown one.
    pub schema_since: (u32, u32),
    /// The query for the comment on schema `isobench`: no row if there is no such schema, an empty text if there is no
    /// comment.
    pub marked: &'static str,
    /// What a session sends to land in the schema, where start-up options can't say it.
    pub session_sql: Option<&'static str>,
    /// Whether `pg_try_advisory_lock` works.
    pub advisory_lock: bool,
}

impl Home {
    /// PostgreSQL's ways.
    pub const SCHEMA: Home = Home {
        schema_since: (0, 0),
        marked: "SELECT coalesce(pg_catalog.obj_description(oid, 'pg_namespace'), '') \
                 FROM pg_catalog.pg_namespace WHERE nspname = 'isobench'",
        session_sql: None,
        advisory_lock: true,
    };

    /// A database in every version.
    pub const DATABASE: Home = Home { schema_since: (u32::MAX, 0), advisory_lock: false, ..Home::SCHEMA };

    fn kind(&self, db: &Database) -> Kind {
        let (major, minor) = self.schema_since;
        if (major, minor) == (0, 0) || db.at_least(major, minor) { Kind::Schema } else { Kind::Database }
    }
}

/// What the place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Schema,
    Database,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Kind::Schema => "schema",
            Kind::Database => "database",
        }
    }

    /// The query for the mark. `CockroachDB`'s way for databases: the only product that needs one.
    const fn marked(self, home: &Home) -> &'static str {
        match self {
            Kind::Schema => home.marked,
            Kind::Database => {
                "SELECT coalesce(comment, '') FROM [SHOW DATABASES WITH COMMENT] \
                 WHERE database_name = 'isobench'"
            }
        }
    }
}

/// A place of our own, held until it is released, kept or dropped.
#[derive(Debug)]
pub struct Namespace {
    admin: Option<Connection>,
    options: ConnectOptions,
    home: &'static Home,
    kind: Kind,
    leftover: bool,
    locked: bool,
    made: bool,
}

impl Namespace {
    /// Makes the place, after removing what a killed run left of it.
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::InUse`], [`Error::MayNotCreate`], or what the server or the connection reports.
    pub fn claim(admin: &ConnectOptions, db: &Database) -> Result<Namespace, Error> {
        let home = &db.product.home;
        let kind = home.kind(db);
        let (what, name) = (kind.word(), NAME);
        let mut conn = Connection::open(admin)?;
        let locked = home.advisory_lock && lock(&mut conn, what)?;
        let query = kind.marked(home);
        let mark = conn.value(query).map_err(|error| Error::of(error, query))?;
        let leftover = match mark.as_deref() {
            None => false,
            Some(MARK) => true,
            Some(_) => return Err(Error::NotOurs { what, name }),
        };
        let mut namespace = Namespace {
            admin: Some(conn),
            options: admin.clone(),
            home,
            kind,
            leftover,
            locked,
            made: false,
        };
        if leftover {
            namespace.remove()?;
        }
        namespace.make()?;
        Ok(namespace)
    }

    fn make(&mut self) -> Result<(), Error> {
        let what = self.kind.word();
        let create = format!("CREATE {what} {NAME}");
        let comment = format!("COMMENT ON {what} {NAME} IS '{MARK}'");
        self.run(&create).map_err(|error| match error {
            Error::Query { source, .. } if source.code == SqlState::INSUFFICIENT_PRIVILEGE => {
                Error::MayNotCreate { what, name: NAME, source }
            }
            other => other,
        })?;
        // From here on it has to be removed, even if marking fails.
        self.made = true;
        self.run(&comment)
    }

    fn run(&mut self, sql: &str) -> Result<(), Error> {
        let conn = match &mut self.admin {
            Some(conn) => conn,
            none => none.insert(Connection::open(&self.options)?),
        };
        conn.execute(sql).map_err(|error| Error::of(error, sql))?;
        Ok(())
    }

    /// The options with which a session lands in the place, made from those for the server.
    #[must_use]
    pub fn connect_options(&self, server: &ConnectOptions) -> ConnectOptions {
        let mut options = server.clone();
        match self.kind {
            Kind::Database => NAME.clone_into(&mut options.dbname),
            Kind::Schema if self.home.session_sql.is_none() => {
                let mut text = options.options.take().unwrap_or_default();
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str("-csearch_path=");
                text.push_str(NAME);
                options.options = Some(text);
            }
            Kind::Schema => {}
        }
        options
    }

    /// What each session sends after it has connected, if options alone don't land it in the place.
    pub fn session_sql(&self) -> Option<String> {
        match self.kind {
            Kind::Database => None,
            Kind::Schema => self.home.session_sql.map(str::to_owned),
        }
    }

    /// Opens a session in the place.
    ///
    /// # Errors
    /// The connection can't be made, or the server refuses [`Namespace::session_sql`].
    pub fn open(&self, server: &ConnectOptions) -> Result<Connection, Error> {
        let mut conn = Connection::open(&self.connect_options(server))?;
        if let Some(sql) = self.session_sql() {
            conn.execute(&sql).map_err(|error| Error::of(error, &sql))?;
        }
        Ok(conn)
    }

    /// One line to say before work starts.
    pub fn describe(&self) -> String {
        let (what, server) = (self.kind.word(), self.options.describe());
        let instead = if self.leftover { ", in place of one that an earlier run left behind" } else { "" };
        let alone = if self.locked {
            ""
        } else {
            " (this product has no lock to notice another isobench at work there: run one at a time)"
        };
        format!(
            "working in {what} \"{NAME}\" on {server}, made for this run{instead}; no other table is touched, and it \
             is removed at the end{alone}"
        )
    }

    /// Removes what was made.
    ///
    /// # Errors
    /// The server refuses, or can't be reached; the message says what is left.
    pub fn release(mut self) -> Result<(), Error> {
        self.made = false;
        self.remove_again()?;
        if let Some(conn) = self.admin.take() {
            conn.close();
        }
        Ok(())
    }

    /// Leaves everything in place, for somebody to look at; the next run removes it.
    pub fn keep(mut self) {
        self.made = false;
        if let Some(conn) = self.admin.take() {
            conn.close();
        }
    }

    fn remove(&mut self) -> Result<(), Error> {
        let limit = REMOVAL_LIMIT;
        if let Some(conn) = &mut self.admin {
            conn.set_timeout(Some(limit));
        }
        let drop = format!("DROP {} IF EXISTS {NAME} CASCADE", self.kind.word());
        let removed = self.run(&drop);
        if let Some(conn) = &mut self.admin {
            conn.set_timeout(None);
            // "drop cascades to table …" is no news.
            conn.take_notices();
        }
        removed
    }

    /// Removes, over a new connection if the old one was lost meanwhile.
    fn remove_again(&mut self) -> Result<(), Error> {
        match self.remove() {
            Err(error) if error.is_connection_lost() => {
                self.admin = None;
                self.remove()
            }
            other => other,
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.made {
            // Nobody is left to be told; the next run finds the mark and removes it.
            let _ = self.remove_again();
        }
    }
}

/// Takes the lock: true if we have it, false if this server has none.
fn lock(conn: &mut Connection, what: &'static str) -> Result<bool, Error> {
    let query = format!("SELECT pg_try_advisory_lock({LOCK_KEY})");
    match conn.value(&query) {
        Ok(Some(answer)) if answer == "t" || answer == "true" => Ok(true),
        Ok(_) => Err(Error::InUse { what, name: NAME }),
        // YugabyteDB before 2.25 knows the function and says that it isn't supported.
        Err(error) if error.code().is_some_and(|code| matches!(code.class(), "0A" | "42" | "XX")) => {
            Ok(false)
        }
        Err(error) => Err(Error::of(error, &query)),
    }
}
