//! A place of our own on a server that is somebody else's: a schema `isobench`, or a database where
//! a product has no schemas (or none that can be marked as ours).
//!
//! Ours is what bears our mark, a comment; an unmarked one is left alone and refused. A marked one
//! that exists already is the leftover of a killed run, unless a run is at work there now; an
//! advisory lock, held by the connection that this module keeps open, tells the two apart. What was
//! made is removed on release and on drop, so also on the way out after Ctrl-C or a panic.

use std::time::{Duration, Instant};

use isobench_pgwire::{ConnectOptions, Connection, Patience, ServerError, SqlState};

use crate::database::Database;
use crate::error::Error;
use crate::facts::home::Home;
use crate::pooling::require_sessions;

/// The name of schema or database.
const NAME: &str = "isobench";
/// The comment that marks it as ours.
const MARK: &str = "made by isobench; safe to drop";
/// The key of the advisory lock: the letters `isobench`.
const LOCK_KEY: i64 = i64::from_be_bytes(*b"isobench");
/// How long removing may take: sessions of an interrupted run may hold locks a little longer.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

impl Home {
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

    /// The query for the name of the place where a session is.
    const fn current(self, home: &Home) -> &'static str {
        match self {
            Kind::Schema => home.current,
            Kind::Database => "SELECT current_database()",
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

/// How sessions get into the place where the tables are; may be moved to other threads.
#[derive(Debug, Clone)]
pub struct Connector {
    options: ConnectOptions,
    home: Option<(&'static Home, Kind)>,
}

impl Connector {
    /// Into whatever place the connection's own settings lead: on a server of our own, or in the
    /// user's tables.
    pub fn wherever(options: ConnectOptions) -> Connector {
        Connector { options, home: None }
    }

    /// What its sessions are opened with.
    pub fn options(&self) -> &ConnectOptions {
        &self.options
    }

    /// How long its sessions wait for the server.
    pub fn patience(&self) -> &Patience {
        &self.options.patience
    }

    /// The same for sessions that are opened, and used by blocking calls, within this time; `None`:
    /// as long as it takes.
    #[must_use]
    pub fn within(&self, limit: Option<Duration>) -> Connector {
        let mut within = self.clone();
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        within.options.patience = self.options.patience.until(end);
        within
    }

    /// Opens a session in the place. Where the place is one of our own, the session itself has said
    /// so before anything else is sent.
    ///
    /// # Errors
    /// The connection can't be made, or [`Error::Astray`].
    pub fn open(&self) -> Result<Connection, Error> {
        let mut conn = Connection::open(&self.options)?;
        if let Some((home, kind)) = self.home {
            if kind == Kind::Schema {
                conn.execute(home.enter).map_err(|error| Error::of(error, home.enter))?;
            }
            verify(&mut conn, home, kind)?;
        }
        Ok(conn)
    }
}

/// Asks a session where it is, and whether that place is ours.
fn verify(conn: &mut Connection, home: &Home, kind: Kind) -> Result<(), Error> {
    let mut ask = |query| conn.value(query).map_err(|error| Error::of(error, query));
    let found = ask(kind.current(home))?.unwrap_or_else(|| "nowhere".to_owned());
    let marked = found == NAME && ask(kind.marked(home))?.as_deref() == Some(MARK);
    if marked { Ok(()) } else { Err(Error::Astray { what: kind.word(), name: NAME, found }) }
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
    /// [`Error::Pooled`], [`Error::NotOurs`], [`Error::InUse`], [`Error::MayNotCreate`], or what
    /// the server or the connection reports.
    pub fn claim(admin: &ConnectOptions, db: &Database) -> Result<Namespace, Error> {
        require_sessions(admin, db.product)?;
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
        if let Err(error) = self.run(&comment) {
            // Without the mark nobody would dare to remove it; it is still empty.
            let _ = self.run(&format!("DROP {what} {NAME}"));
            return Err(error);
        }
        self.made = true;
        Ok(())
    }

    /// The connection that makes and removes; a new one if the old one was lost.
    fn admin(&mut self) -> Result<&mut Connection, Error> {
        match &mut self.admin {
            Some(conn) => Ok(conn),
            none => Ok(none.insert(Connection::open(&self.options)?)),
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.admin()?.execute(sql).map_err(|error| Error::of(error, sql))?;
        Ok(())
    }

    /// How sessions get into the place.
    pub fn connector(&self) -> Connector {
        let mut options = self.options.clone();
        if self.kind == Kind::Database {
            NAME.clone_into(&mut options.dbname);
        }
        Connector { options, home: Some((self.home, self.kind)) }
    }

    /// What stands before the names of tables there, as [`Database::schema`](crate::Database) has
    /// it.
    pub fn schema(&self) -> String {
        match self.kind {
            Kind::Schema => NAME.to_owned(),
            // CockroachDB's databases have a schema of this name from the start.
            Kind::Database => format!("{NAME}.public"),
        }
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

    /// Removes what bears our mark, and nothing that depends on it from outside.
    fn remove(&mut self) -> Result<(), Error> {
        let (home, kind) = (self.home, self.kind);
        let conn = self.admin()?;
        conn.set_timeout(Some(REMOVAL_LIMIT));
        let removed = remove(conn, home, kind);
        conn.set_timeout(None);
        // "drop cascades to table …" is no news.
        conn.take_notices();
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

/// Removes the place over this connection, if it is there and bears our mark.
fn remove(conn: &mut Connection, home: &Home, kind: Kind) -> Result<(), Error> {
    let (what, marked) = (kind.word(), kind.marked(home));
    match conn.value(marked).map_err(|error| Error::of(error, marked))?.as_deref() {
        None => return Ok(()),
        Some(MARK) => {}
        Some(_) => return Err(Error::NotOurs { what, name: NAME }),
    }
    let drop = format!("DROP {what} IF EXISTS {NAME} CASCADE");
    let mut run =
        |sql: &str| conn.execute(sql).map_err(|error| Error::of(error, sql)).map(|_| conn.take_notices());
    if !home.tells_cascade {
        return run(&drop).map(|_| ());
    }
    // With an empty search path, each object that goes along is told with its schema.
    for sql in ["BEGIN", "SET LOCAL search_path = ''"] {
        run(sql)?;
    }
    let notices = run(&drop)?;
    if let Some(object) = notices.iter().find_map(outsider) {
        run("ROLLBACK")?;
        return Err(Error::Depends { what, name: NAME, object });
    }
    run("COMMIT").map(|_| ())
}

/// What a DROP takes along that doesn't lie in the place, as the server calls it. Its words may be
/// in any language, names aren't.
fn outsider(notice: &ServerError) -> Option<String> {
    let told = notice.detail.as_deref().unwrap_or(&notice.message);
    let ours = |line: &&str| line.contains(&format!(" {NAME}."));
    told.lines().find(|line| !ours(line)).map(str::to_owned)
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
