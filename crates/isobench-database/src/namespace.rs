//! A schema `isobench` of our own on another user's server, or a database if a product has no
//! schemas (or none that can be marked as ours).
//!
//! It is ours if it has our mark, a comment or an empty table; without it, it is left alone and refused. A marked one
//! that exists already is the leftover of a killed run, unless a run is using it. An advisory lock,
//! held by the connection that this module keeps open, distinguishes the two. It is removed on
//! release and on drop, so also after Ctrl-C or a panic.
//!
//! Workloads that take turns have a room each: further schemas `isobench_1`, `isobench_2` and so on,
//! marked and removed like the first.

use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use isobench_pgwire::{ConnectOptions, Connection, Patience, ServerError, SqlState};

use crate::database::Database;
use crate::error::Error;
use crate::facts::namespace::{Mark, NamespaceFacts};
use crate::pooling::require_sessions;
use crate::settings::SessionSetting;

/// The name of the schema or database.
const NAME: &str = "isobench";
/// The comment that marks it as ours.
pub(crate) const MARK: &str = "made by isobench; safe to drop";
/// The empty table that marks it where schemas take no comments.
const MARK_TABLE: &str = "safe_to_drop";
/// The key of the advisory lock: the letters `isobench`.
const LOCK_KEY: i64 = i64::from_be_bytes(*b"isobench");

impl NamespaceFacts {
    fn kind(&self, db: &Database) -> NamespaceKind {
        let (major, minor) = self.schema_since;
        if (major, minor) == (0, 0) || db.at_least(major, minor) {
            NamespaceKind::Schema
        } else {
            NamespaceKind::Database
        }
    }
}

/// The kind of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceKind {
    Schema,
    Database,
}

impl NamespaceKind {
    const fn word(self) -> &'static str {
        match self {
            NamespaceKind::Schema => "schema",
            NamespaceKind::Database => "database",
        }
    }

    /// The query for the name of the session's current schema or database.
    const fn current(self, facts: &NamespaceFacts) -> &'static str {
        match self {
            NamespaceKind::Schema => facts.current,
            NamespaceKind::Database => "SELECT current_database()",
        }
    }

    /// The query for the mark of the namespace of this name. That for databases is
    /// `CockroachDB`'s, the only product that needs one.
    fn marked(self, facts: &NamespaceFacts, name: &str) -> String {
        match (self, facts.mark) {
            (NamespaceKind::Schema, Mark::Comment { found }) => found.replace(NAME, name),
            (NamespaceKind::Schema, Mark::Table) => format!(
                "SELECT CASE WHEN EXISTS (SELECT 1 FROM information_schema.tables WHERE lower(table_schema) = \
                 '{name}' AND lower(table_name) = '{MARK_TABLE}') THEN '{MARK}' ELSE '' END \
                 FROM information_schema.schemata WHERE lower(schema_name) = '{name}'"
            ),
            (NamespaceKind::Database, _) => format!(
                "SELECT coalesce(comment, '') FROM [SHOW DATABASES WITH COMMENT] WHERE database_name = '{name}'"
            ),
        }
    }

    /// The statement that marks the namespace of this name.
    fn mark(self, facts: &NamespaceFacts, name: &str) -> String {
        match (self, facts.mark) {
            (NamespaceKind::Schema, Mark::Table) => format!("CREATE TABLE {name}.{MARK_TABLE} (made int)"),
            _ => format!("COMMENT ON {} {name} IS '{MARK}'", self.word()),
        }
    }
}

/// Opens sessions in the schema or database of the tables. May be moved to other threads.
#[derive(Debug, Clone)]
pub struct Connector {
    options: ConnectOptions,
    facts: Option<(&'static NamespaceFacts, NamespaceKind)>,
    /// The name of the namespace, or of a schema that isn't one of ours.
    name: String,
    /// What every session is set to.
    settings: Vec<SessionSetting>,
}

impl Connector {
    /// Opens sessions wherever the connection's own settings lead: on a server of our own, or in
    /// the user's tables.
    pub fn direct(options: ConnectOptions) -> Connector {
        Connector { options, facts: None, name: String::new(), settings: Vec::new() }
    }

    /// Opens sessions in a schema, with that alone in the search path: a user's, or one on a server
    /// of our own.
    pub fn in_schema(options: ConnectOptions, schema: &str) -> Connector {
        Connector { name: schema.to_owned(), ..Connector::direct(options) }
    }

    /// Opens sessions in a namespace of ours that another process has made and holds, a schema of
    /// this name as [`Namespace::schema`] or [`Namespace::room`] returned it there.
    pub fn in_namespace_of_another(mut options: ConnectOptions, db: &Database, schema: &str) -> Connector {
        let facts = &db.product.namespace;
        let kind = facts.kind(db);
        let name = match kind {
            NamespaceKind::Schema => schema,
            NamespaceKind::Database => {
                NAME.clone_into(&mut options.dbname);
                NAME
            }
        };
        Connector { facts: Some((facts, kind)), ..Connector::in_schema(options, name) }
    }

    /// A connector for the same place on another server, such as a standby.
    #[must_use]
    pub fn at(&self, mut options: ConnectOptions) -> Connector {
        if self.facts.is_some_and(|(_, kind)| kind == NamespaceKind::Database) {
            options.dbname.clone_from(&self.options.dbname);
        }
        Connector { options, ..self.clone() }
    }

    /// The options of its sessions.
    pub fn options(&self) -> &ConnectOptions {
        &self.options
    }

    /// A connector whose sessions have these settings.
    #[must_use]
    pub fn with_settings(&self, settings: &[SessionSetting]) -> Connector {
        Connector { settings: settings.to_vec(), ..self.clone() }
    }

    /// The name of the schema or database that its sessions are led to; `None` if they stay where
    /// the connection's own settings lead.
    pub fn place(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(self.name.as_str())
    }

    /// The patience of its sessions with the server.
    pub fn patience(&self) -> &Patience {
        &self.options.patience
    }

    /// A connector whose sessions must be opened, and used by blocking calls, within this time
    /// (`None`: without a limit).
    #[must_use]
    pub fn within(&self, limit: Option<Duration>) -> Connector {
        let mut within = self.clone();
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        within.options.patience = self.options.patience.until(end);
        within
    }

    /// Opens a session. In a namespace of our own, or a schema of the user's, the session is asked
    /// where it is before any other statement is sent. Then its settings are set, and read back.
    ///
    /// # Errors
    /// The connection can't be opened, [`Error::Astray`], [`Error::NoSchema`], or
    /// [`Error::Setting`].
    pub fn open(&self) -> Result<Connection, Error> {
        let mut conn = Connection::open(&self.options)?;
        match self.facts {
            Some((facts, kind)) => {
                if kind == NamespaceKind::Schema {
                    let enter = facts.enter.replace(NAME, &self.name);
                    conn.execute(&enter).map_err(|error| Error::of(error, &enter))?;
                }
                verify(&mut conn, facts, kind, &self.name)?;
            }
            None if !self.name.is_empty() => enter(&mut conn, &self.name)?,
            None => {}
        }
        self.settings.iter().try_for_each(|setting| setting.apply(&mut conn))?;
        Ok(conn)
    }
}

/// Makes a session work in a schema, and checks that it does.
fn enter(conn: &mut Connection, schema: &str) -> Result<(), Error> {
    let path = format!("SET search_path = \"{}\"", schema.replace('"', "\"\""));
    conn.execute(&path).map_err(|error| Error::of(error, &path))?;
    let query = NamespaceFacts::SCHEMA.current;
    let found = conn.value(query).map_err(|error| Error::of(error, query))?;
    if found.as_deref() == Some(schema) { Ok(()) } else { Err(Error::NoSchema { name: schema.to_owned() }) }
}

/// Checks that a session is in our namespace, and that this has our mark.
fn verify(
    conn: &mut Connection,
    facts: &NamespaceFacts,
    kind: NamespaceKind,
    name: &str,
) -> Result<(), Error> {
    let mut ask = |query: &str| conn.value(query).map_err(|error| Error::of(error, query));
    let found = ask(kind.current(facts))?.unwrap_or_else(|| "nowhere".to_owned());
    let marked = found == name && ask(&kind.marked(facts, name))?.as_deref() == Some(MARK);
    if marked { Ok(()) } else { Err(Error::Astray { what: kind.word(), name: name.to_owned(), found }) }
}

/// True if the server doesn't know the statement.
fn is_missing(code: SqlState) -> bool {
    matches!(code.as_str(), "42601" | "0A000")
}

/// A schema or database of our own, held until it is released, kept or dropped.
#[derive(Debug)]
pub struct Namespace {
    admin: Option<Connection>,
    options: ConnectOptions,
    facts: &'static NamespaceFacts,
    kind: NamespaceKind,
    leftover: bool,
    locked: bool,
    /// The names of all that was made and isn't removed, the namespace itself first.
    made: Vec<String>,
}

impl Namespace {
    /// Creates the schema or database, after removing the leftover of a killed run.
    ///
    /// # Errors
    /// [`Error::Pooled`], [`Error::NotOurs`], [`Error::InUse`], [`Error::MayNotCreate`],
    /// [`Error::CannotCreate`], or an error of the server or the connection.
    pub fn claim(admin: &ConnectOptions, db: &Database) -> Result<Namespace, Error> {
        require_sessions(admin, db.product)?;
        let facts = &db.product.namespace;
        let kind = facts.kind(db);
        let (what, name) = (kind.word(), NAME);
        let mut conn = Connection::open(admin)?;
        let locked = facts.advisory_lock && lock(&mut conn, what)?;
        let query = kind.marked(facts, name);
        let mark = conn.value(&query).map_err(|error| Error::of(error, &query))?;
        let leftover = match mark.as_deref() {
            None => false,
            Some(MARK) => true,
            Some(_) => return Err(Error::NotOurs { what, name: name.to_owned() }),
        };
        let mut namespace = Namespace {
            admin: Some(conn),
            options: admin.clone(),
            facts,
            kind,
            leftover,
            locked,
            made: Vec::new(),
        };
        if leftover {
            namespace.made.push(name.to_owned());
            let rooms = 1..if kind == NamespaceKind::Schema { usize::MAX } else { 1 };
            for number in rooms {
                match namespace.mark_of(&room_name(number))?.as_deref() {
                    None => break,
                    Some(MARK) => namespace.made.push(room_name(number)),
                    // A user's own.
                    Some(_) => {}
                }
            }
            namespace.remove()?;
        }
        let product = || match db.version_text.as_str() {
            "" => db.product.name.to_owned(),
            text => text.to_owned(),
        };
        namespace.make(name).map_err(|error| match error {
            Error::Query { source, .. } if is_missing(source.code) => {
                Error::CannotCreate { product: product(), what, name: name.to_owned(), source }
            }
            other => other,
        })?;
        Ok(namespace)
    }

    /// The mark of a schema or database; `None` if there is none of this name.
    fn mark_of(&mut self, name: &str) -> Result<Option<String>, Error> {
        let query = self.kind.marked(self.facts, name);
        self.admin()?.value(&query).map_err(|error| Error::of(error, &query))
    }

    fn make(&mut self, name: &str) -> Result<(), Error> {
        let what = self.kind.word();
        let create = format!("CREATE {what} {name}");
        let mark = self.kind.mark(self.facts, name);
        self.run(&create).map_err(|error| match error {
            Error::Query { source, .. } if source.code == SqlState::INSUFFICIENT_PRIVILEGE => {
                Error::MayNotCreate { what, name: name.to_owned(), source }
            }
            other => other,
        })?;
        if let Err(error) = self.run(&mark) {
            // Without the mark no later run would dare to remove it; it is still empty.
            let _ = self.run(&format!("DROP {what} {name}"));
            return Err(error);
        }
        if matches!(self.facts.mark, Mark::Table) {
            self.require_visible(name)?;
        }
        self.made.push(name.to_owned());
        Ok(())
    }

    /// Checks that an unknown product shows the mark that was just made. Otherwise nobody would remove
    /// the schema later, so it is removed at once.
    fn require_visible(&mut self, name: &str) -> Result<(), Error> {
        let found = self.mark_of(name);
        if matches!(&found, Ok(Some(mark)) if mark == MARK) {
            return Ok(());
        }
        // Both are still empty.
        let _ = self.run(&format!("DROP TABLE {name}.{MARK_TABLE}"));
        let _ = self.run(&format!("DROP {} {name}", self.kind.word()));
        found?;
        let got = format!("it doesn't show {} \"{name}\", which isobench has just made", self.kind.word());
        Err(Error::Answer { statement: self.kind.marked(self.facts, name), got })
    }

    /// Creates a further schema, and returns its name with a connector for it; `None` if this
    /// product's namespace is a database. It is removed with the namespace.
    ///
    /// # Errors
    /// As for [`Namespace::claim`].
    pub fn room(&mut self) -> Result<Option<(String, Connector)>, Error> {
        if self.kind == NamespaceKind::Database {
            return Ok(None);
        }
        let mut number = self.made.len();
        // One of that name which isn't ours is left alone.
        while self.mark_of(&room_name(number))?.is_some() {
            number += 1;
        }
        let name = room_name(number);
        self.make(&name)?;
        let facts = Some((self.facts, self.kind));
        Ok(Some((name.clone(), Connector { facts, name, ..Connector::direct(self.options.clone()) })))
    }

    /// Removes the schema or database of this name, made here, with all that is in it, and makes it
    /// anew.
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::Depends`] if something outside depends on what is in it, or an
    /// error of the server or the connection.
    pub fn make_anew(&mut self, name: &str) -> Result<(), Error> {
        let (facts, kind) = (self.facts, self.kind);
        let conn = self.admin()?;
        remove(conn, facts, kind, name)?;
        conn.take_notices();
        self.made.retain(|made| made != name);
        self.make(name)?;
        // What is removed last, the first, is what a later run looks for.
        if name == NAME {
            self.made.rotate_right(1);
        }
        Ok(())
    }

    /// The administrative connection; a new one if the old one was lost.
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

    /// A connector for sessions in the namespace.
    pub fn connector(&self) -> Connector {
        let mut options = self.options.clone();
        if self.kind == NamespaceKind::Database {
            NAME.clone_into(&mut options.dbname);
        }
        let facts = Some((self.facts, self.kind));
        Connector { facts, name: NAME.to_owned(), ..Connector::direct(options) }
    }

    /// The schema as [`Database::schema`](crate::Database) has it before table names.
    pub fn schema(&self) -> String {
        match self.kind {
            NamespaceKind::Schema => NAME.to_owned(),
            // CockroachDB's databases have a schema of this name from the start.
            NamespaceKind::Database => format!("{NAME}.public"),
        }
    }

    /// A line for the user before work starts.
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

    /// Removes the schema or database.
    ///
    /// # Errors
    /// The server refuses, or can't be reached; the message says what is left.
    pub fn release(mut self) -> Result<(), Error> {
        self.remove_again()?;
        if let Some(conn) = self.admin.take() {
            conn.close();
        }
        Ok(())
    }

    /// Leaves everything in place for inspection. The next run removes it.
    pub fn keep(mut self) {
        self.made.clear();
        if let Some(conn) = self.admin.take() {
            conn.close();
        }
    }

    /// Removes all that was made, the last first, but nothing outside that depends on it.
    fn remove(&mut self) -> Result<(), Error> {
        let (facts, kind) = (self.facts, self.kind);
        while let Some(name) = self.made.last().cloned() {
            let conn = self.admin()?;
            conn.set_timeout(Some(LIMITS.removal));
            let removed = remove(conn, facts, kind, &name);
            conn.set_timeout(None);
            // "drop cascades to table …" is expected.
            conn.take_notices();
            removed?;
            self.made.pop();
        }
        Ok(())
    }

    /// Removes the namespace, over a new connection if the old one was lost.
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
        if !self.made.is_empty() {
            // An error can't be reported any more. The next run finds the mark and removes the
            // namespace.
            let _ = self.remove_again();
        }
    }
}

/// The name of a room.
fn room_name(number: usize) -> String {
    format!("{NAME}_{number}")
}

/// Removes a schema or database over this connection, if it exists and has our mark.
fn remove(
    conn: &mut Connection,
    facts: &NamespaceFacts,
    kind: NamespaceKind,
    name: &str,
) -> Result<(), Error> {
    let (what, marked) = (kind.word(), kind.marked(facts, name));
    match conn.value(&marked).map_err(|error| Error::of(error, &marked))?.as_deref() {
        None => return Ok(()),
        Some(MARK) => {}
        Some(_) => return Err(Error::NotOurs { what, name: name.to_owned() }),
    }
    let drop = format!("DROP {what} IF EXISTS {name} CASCADE");
    let mut run =
        |sql: &str| conn.execute(sql).map_err(|error| Error::of(error, sql)).map(|_| conn.take_notices());
    if !facts.reports_cascade {
        return run(&drop).map(|_| ());
    }
    // With an empty search path, notices name dependent objects with their schemas.
    for sql in ["BEGIN", "SET LOCAL search_path = ''"] {
        run(sql)?;
    }
    let notices = run(&drop)?;
    if let Some(object) = notices.iter().find_map(|notice| outsider(notice, name)) {
        run("ROLLBACK")?;
        return Err(Error::Depends { what, name: name.to_owned(), object });
    }
    run("COMMIT").map(|_| ())
}

/// A dependent object outside the namespace, as a DROP's notice names it. The notice may be in any
/// language; names aren't translated.
fn outsider(notice: &ServerError, name: &str) -> Option<String> {
    let text = notice.detail.as_deref().unwrap_or(&notice.message);
    let ours = |line: &&str| line.contains(&format!(" {name}."));
    text.lines().find(|line| !ours(line)).map(str::to_owned)
}

/// Takes the lock. Returns false if this server has no advisory locks.
fn lock(conn: &mut Connection, what: &'static str) -> Result<bool, Error> {
    let query = format!("SELECT pg_try_advisory_lock({LOCK_KEY})");
    match conn.value(&query) {
        Ok(Some(answer)) if answer == "t" || answer == "true" => Ok(true),
        Ok(_) => Err(Error::InUse { what, name: NAME.to_owned() }),
        // YugabyteDB before 2.25 knows the function, but reports that it isn't supported.
        Err(error) if error.code().is_some_and(|code| matches!(code.class(), "0A" | "42" | "XX")) => {
            Ok(false)
        }
        Err(error) => Err(Error::of(error, &query)),
    }
}
