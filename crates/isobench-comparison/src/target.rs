//! The server under test: the one that the options name or an embedded PostgreSQL, and the schema
//! in it that isobench uses.
//!
//! Prints nothing: the caller receives notes for the user, one line each, as they arise. Not here:
//! the choice of the server by options (`servers.rs`), and the measurements.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use isobench_database::{
    AlteredSettings, Connector, Database, Namespace, SettingScope, detect, environment, is_standby,
    setting_names, setting_scope, settings, try_setting,
};
use isobench_observer::LocalServer;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{Address, ConnectOptions, Connection, Host, Patience, TargetSessionAttrs};
use isobench_result as report;
use isobench_result::factor::SETTING;
use isobench_suggest::did_you_mean;

use crate::confined::{self, CONFINED};
use crate::design::KnownSettings;
use crate::endpoint::{DIRECT, Endpoint};
use crate::failure::{Failure, Outcome};
use crate::fault::Victim;
use crate::site::Site;

/// A server under test, and the way to the schema of the tables. Anything started or created is
/// stopped and removed on drop.
pub struct Target {
    // Dropped in this order: first the objects on the server, then the server.
    namespace: Option<RefCell<Namespace>>,
    options: ConnectOptions,
    /// Leads to sessions that execute nothing of the scripts and tables: on an embedded server with recorded
    /// SQL a superuser's, otherwise the same as the others.
    control: ConnectOptions,
    embedded: Option<Arc<Server>>,
    /// Something has happened to it, so that it is made anew before the next cell.
    spent: Cell<bool>,
    /// The chosen one of several hosts.
    host: Option<String>,
    /// The schema of the user's in which to work.
    schema: Option<String>,
    /// What is changed on a named server.
    altered: RefCell<AlteredSettings>,
    /// Leads to the standby of a named server on which clients are to read.
    reads_from: Option<ConnectOptions>,
    /// The ways by which clients reach a named server, in the order of the plan; `None`: directly.
    endpoints: Vec<Option<Endpoint>>,
    /// Number of rooms on the embedded server.
    rooms: Cell<u32>,
    /// True for a hot standby, which is read-only.
    pub standby: bool,
    /// The product and its version.
    pub database: Database,
    /// Settings given to the embedded server.
    pub server_settings: Vec<(String, String)>,
}

impl Target {
    /// Connects to the server that the options name. `say` receives notes for the user.
    ///
    /// # Errors
    /// The server is missing, or refuses.
    pub fn connect(options: ConnectOptions, say: &dyn Fn(&str)) -> Outcome<Target> {
        let mut connection = Connection::open(&options).map_err(Failure::setup)?;
        let (options, host) = settled(options, &connection, say);
        Target::new(None, options, host, Vec::new(), &mut connection)
    }

    /// The same for a server that may fail over to another one of those that the options name: sessions
    /// are opened at the one that accepts writes.
    ///
    /// # Errors
    /// As [`Target::connect`].
    pub fn follow(mut options: ConnectOptions) -> Outcome<Target> {
        if options.hosts.len() > 1 && options.target_session_attrs == TargetSessionAttrs::Any {
            options.target_session_attrs = TargetSessionAttrs::ReadWrite;
        }
        let mut connection = Connection::open(&options).map_err(Failure::setup)?;
        Target::new(None, options, None, Vec::new(), &mut connection)
    }

    /// Starts an embedded server. `confined`: what is executed there was recorded or copied, so it runs
    /// without a superuser's rights. `say` receives notes for the user.
    ///
    /// # Errors
    /// The server doesn't start.
    pub fn start(
        embedded: &ServerOptions,
        confined: bool,
        patience: &Patience,
        say: &dyn Fn(&str),
    ) -> Outcome<Target> {
        let server = Server::start(embedded, &mut |note| say(note)).map_err(Failure::setup)?;
        say(&format!(
            "no server is named, so this uses an embedded PostgreSQL {} ({}), {}; fsync is {}",
            server.version(),
            server.origin(),
            if embedded.settings.is_empty() { "default settings" } else { "settings as given" },
            setting_of(embedded, "fsync").unwrap_or("on"),
        ));
        let mut options = embedded_options(&server, &server.client_socket_dir(0));
        options.patience = patience.clone();
        start_standbys(&server, &options)?;
        for number in 1..=server.standbys() {
            options.hosts.extend(embedded_options(&server, &server.client_socket_dir(number)).hosts);
            // Whichever of them is the primary.
            options.target_session_attrs = TargetSessionAttrs::ReadWrite;
        }
        let mut connection = Connection::open(&options).map_err(Failure::setup)?;
        // Sessions follow its primary.
        let mut target =
            Target::new(Some(server), options, None, embedded.settings.clone(), &mut connection)?;
        if confined {
            confined::make_role(&mut connection).map_err(Failure::setup)?;
            target.control = confined::in_catalogs(&target.options);
            target.options = confined::as_role(&target.options);
        }
        connection.close();
        Ok(target)
    }

    /// The server as one to which faults may happen, of which `command` is a program of the user's.
    pub(crate) fn victim(&self, command: Option<String>) -> Victim {
        let Some(server) = &self.embedded else {
            return Victim::new(None, vec![self.options.clone()], command);
        };
        let node = |socket: &Path| {
            let options = embedded_options(server, socket);
            let options = if self.is_confined() { confined::in_catalogs(&options) } else { options };
            ConnectOptions { patience: self.options.patience.clone(), ..options }
        };
        let standbys = (1..=server.standbys()).map(|number| node(&server.standby_socket_dir(number)));
        let nodes = std::iter::once(node(server.socket_dir())).chain(standbys).collect();
        Victim::new(Some(Arc::clone(server)), nodes, command)
    }

    /// Something is about to happen to the embedded server.
    pub(crate) fn spend(&self) {
        self.spent.set(true);
    }

    /// Makes the embedded server anew if something has happened to it. Returns true if it was.
    ///
    /// # Errors
    /// It doesn't start.
    pub(crate) fn renew(&self, say: &dyn Fn(&str)) -> Outcome<bool> {
        let Some(server) = self.embedded.as_ref().filter(|_| self.spent.take()) else { return Ok(false) };
        server.renew(&mut |note| say(note)).map_err(Failure::setup)?;
        let mut primary = embedded_options(server, server.socket_dir());
        primary.patience = self.options.patience.clone();
        start_standbys(server, &primary)?;
        if self.is_confined() {
            let mut connection = Connection::open(&primary).map_err(Failure::setup)?;
            confined::make_role(&mut connection).map_err(Failure::setup)?;
            connection.close();
        }
        self.rooms.set(0);
        Ok(true)
    }

    fn new(
        embedded: Option<Server>,
        options: ConnectOptions,
        host: Option<String>,
        server_settings: Vec<(String, String)>,
        connection: &mut Connection,
    ) -> Outcome<Target> {
        let database = detect(connection).map_err(Failure::setup)?;
        let standby = is_standby(connection, &database).map_err(Failure::setup)?;
        Ok(Target {
            namespace: None,
            altered: RefCell::new(AlteredSettings::new(options.clone())),
            control: options.clone(),
            options,
            embedded: embedded.map(Arc::new),
            spent: Cell::new(false),
            host,
            schema: None,
            reads_from: None,
            endpoints: Vec::new(),
            rooms: Cell::new(0),
            standby,
            database,
            server_settings,
        })
    }

    /// Alters settings of a named server, for all its sessions from now on, until it is closed.
    ///
    /// # Errors
    /// The server refuses, or is gone.
    pub(crate) fn alter(&self, settings: &BTreeMap<String, String>, say: &dyn Fn(&str)) -> Outcome {
        let mut altered = self.altered.borrow_mut();
        let known = altered.by_hand().len();
        let set = altered.set(settings);
        // What to do if this program is killed, before that can happen to a longer measurement.
        if altered.by_hand().len() > known {
            say(&format!(
                "--alter-system: settings of {} are changed for this run and put back at its end; if isobench is \
                 killed, this does it: {}; SELECT pg_reload_conf()",
                self.place(),
                altered.by_hand().join("; ")
            ));
        }
        set.map_err(|error| Failure::setup(format!("--alter-system: {error}")))
    }

    /// Lets clients read on this standby of the named server.
    ///
    /// # Errors
    /// It can't be reached, or isn't a standby of this server.
    pub fn read_from(&mut self, mut standby: ConnectOptions) -> Outcome {
        const IDENTIFIER: &str = "SELECT system_identifier FROM pg_catalog.pg_control_system()";
        let wrong = |why: &dyn std::fmt::Display| Failure::setup(format!("--standby-server: {why}"));
        standby.patience = self.options.patience.clone();
        let place = standby.describe();
        let mut there = Connection::open(&standby).map_err(|error| wrong(&error))?;
        let is_standby = is_standby(&mut there, &self.database).map_err(|error| wrong(&error))?;
        if !is_standby {
            return Err(wrong(&format!("{place} is no standby: it accepts writes")));
        }
        let mut here = Connection::open(&self.options).map_err(Failure::setup)?;
        let (this, other) = (here.value(IDENTIFIER), there.value(IDENTIFIER));
        if this.map_err(|error| wrong(&error))? != other.map_err(|error| wrong(&error))? {
            return Err(wrong(&format!(
                "{place} is a standby of another server than {}: their system identifiers differ",
                self.place()
            )));
        }
        here.close();
        there.close();
        self.reads_from = Some(standby);
        Ok(())
    }

    /// Lets clients reach the named server by these ways. Returns true if one of them shares sessions out.
    ///
    /// # Errors
    /// One of them leads elsewhere, or to a pooler behind which levels can't be right.
    pub fn reach_by(&mut self, endpoints: &[String]) -> Outcome<bool> {
        let direct = Connector::direct(self.options.clone());
        let find = |text: &String| {
            let further = (text != DIRECT).then(|| Endpoint::find(text, &direct, self.database.product));
            further.transpose()
        };
        self.endpoints = endpoints.iter().map(find).collect::<Outcome<_>>()?;
        Ok(self.endpoints.iter().flatten().any(|endpoint| endpoint.shares_sessions))
    }

    /// The way by which clients come, by its number in the plan; `None`: directly.
    pub(crate) fn endpoint(&self, number: usize) -> Option<Endpoint> {
        self.endpoints.get(number).cloned().flatten()
    }

    /// Returns a description of its address.
    pub fn place(&self) -> String {
        self.options.describe()
    }

    /// Creates a schema to work in, and passes its description to `say`. Does nothing on the
    /// embedded server, which isobench doesn't share.
    ///
    /// # Errors
    /// The schema exists and isn't isobench's, or can't be created.
    pub fn claim_namespace(&mut self, say: &dyn Fn(&str)) -> Outcome {
        if self.embedded.is_none() {
            let namespace = Namespace::claim(&self.options, &self.database).map_err(Failure::setup)?;
            say(&namespace.describe());
            self.database.schema = Some(namespace.schema());
            self.namespace = Some(RefCell::new(namespace));
        }
        Ok(())
    }

    /// Works in a schema of the user's from now on. Nothing is made there, or written.
    ///
    /// # Errors
    /// There is no such schema, or a pooler shares sessions.
    pub fn use_schema(&mut self, name: &str) -> Outcome {
        self.require_sessions()?;
        self.schema = Some(name.to_owned());
        self.open().map_err(|error| match error {
            error @ isobench_database::Error::NoSchema { .. } => Failure::setup(format!("--schema: {error}")),
            error => Failure::setup(error),
        })?;
        Ok(())
    }

    /// Verifies that a level set in a session applies to its transactions, even behind a pooler.
    ///
    /// # Errors
    /// A pooler shares sessions between clients, or keeps their settings for the next client.
    pub fn require_sessions(&self) -> Outcome {
        if self.is_embedded() {
            return Ok(());
        }
        isobench_database::require_sessions(&self.options, self.database.product).map_err(Failure::setup)
    }

    /// Returns whether the server is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// True if what is executed there has no superuser's rights, while isobench's own sessions have them.
    fn is_confined(&self) -> bool {
        self.control.user != self.options.user
    }

    /// The options of a session of the scripts' on a node of the embedded server.
    fn for_scripts(&self, server: &Server, socket: &Path) -> ConnectOptions {
        let options = embedded_options(server, socket);
        let options = if self.is_confined() { confined::as_role(&options) } else { options };
        ConnectOptions { patience: self.options.patience.clone(), ..options }
    }

    /// Returns a connector for sessions of isobench's own, which execute nothing of the scripts' and tables'
    /// SQL.
    pub fn controller(&self) -> Connector {
        if self.is_confined() { Connector::direct(self.control.clone()) } else { self.connector() }
    }

    /// The name of the database that sessions are opened in.
    pub fn database_name(&self) -> &str {
        &self.options.dbname
    }

    /// Returns a way to find the server's processes on this machine; `None` if the server is
    /// elsewhere. A Unix socket or a loopback address may lead out of a container or through a
    /// tunnel, which is detected later.
    pub fn local(&self) -> Option<LocalServer> {
        let mut hosts = self.options.hosts.iter().map(LocalServer::of_host);
        hosts.all(|local| local.is_some()).then_some(LocalServer::Maybe)
    }

    /// Opens a session in the schema of the tables.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn open(&self) -> Result<Connection, isobench_database::Error> {
        self.connector().open()
    }

    /// Returns a connector for further sessions, also from other threads.
    pub fn connector(&self) -> Connector {
        match (&self.namespace, &self.schema) {
            (Some(namespace), _) => namespace.borrow().connector(),
            (None, Some(schema)) => Connector::in_schema(self.options.clone(), schema),
            (None, None) => Connector::direct(self.options.clone()),
        }
    }

    /// Returns the place in which isobench works unless cells take turns.
    pub fn site(&self) -> Site {
        let named = self.reads_from.as_ref().map(|standby| self.connector().at(standby.clone()));
        let own = self.embedded.as_ref().filter(|server| server.standbys() > 0).map(|server| {
            // The last one, for which no commit waits if there are several.
            Connector::direct(self.for_scripts(server, &server.client_socket_dir(server.standbys())))
        });
        let controller = self.is_confined().then(|| self.controller());
        Site::new(self.database.clone(), self.connector(), self.is_embedded())
            .with_standby(named.or(own))
            .with_controller(controller)
    }

    /// Makes a further place, a schema of its own, for tables next to those of other cells; `None`
    /// where there can't be one: in a schema of the user's, on a standby, or if the product has no
    /// schemas that can be marked. It is removed with everything else.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn room(&self) -> Outcome<Option<Site>> {
        if self.schema.is_some() || self.standby {
            return Ok(None);
        }
        let room = match &self.namespace {
            Some(namespace) => namespace.borrow_mut().room().map_err(Failure::setup)?,
            None if self.is_embedded() => {
                let name = self.create_room("SCHEMA")?;
                let connector = Connector::in_schema(self.options.clone(), &name);
                Some((name, connector))
            }
            None => None,
        };
        Ok(room.map(|(schema, connector)| self.site().room(schema, connector)))
    }

    /// Makes a place in which scripts are tried: on an embedded server a database, in which a setup may name
    /// schemas and create extensions as in its own; elsewhere a room, `None` where there can't be one.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn apart(&self) -> Outcome<Option<Site>> {
        if !self.is_embedded() {
            return self.room();
        }
        let name = self.create_room("DATABASE")?;
        let connector = Connector::direct(ConnectOptions { dbname: name, ..self.options.clone() });
        Ok(Some(Site::new(self.database.clone(), connector, true)))
    }

    /// Creates a schema or a database on the embedded server, and returns its name.
    fn create_room(&self, kind: &str) -> Outcome<String> {
        self.rooms.set(self.rooms.get() + 1);
        let name = format!("isobench_{}", self.rooms.get());
        // Whoever executes recorded SQL owns what it is executed in, and may create no database.
        let owner = match kind {
            "DATABASE" if self.is_confined() => format!(" OWNER {CONFINED}"),
            _ => String::new(),
        };
        let opened = if owner.is_empty() { self.open() } else { self.controller().open() };
        let mut connection = opened.map_err(Failure::setup)?;
        connection.execute(&format!("CREATE {kind} {name}{owner}")).map_err(Failure::setup)?;
        connection.close();
        Ok(name)
    }

    /// Makes one of its places anew, without anything that was made there: the schema, or what an
    /// embedded server's database has in all schemas but those of other places.
    ///
    /// # Errors
    /// The server refuses or is gone, or something outside depends on what is in the schema.
    pub fn make_anew(&self, site: &Site) -> Outcome {
        let connector = site.connector();
        match (&self.namespace, connector.place()) {
            (Some(namespace), Some(name)) => namespace.borrow_mut().make_anew(name).map_err(Failure::setup),
            (None, place) if self.is_embedded() => {
                // Interleavings are tried in a database of their own.
                let dbname = connector.options().dbname.clone();
                let options = ConnectOptions { dbname, ..self.control.clone() };
                let mut connection = Connection::open(&options).map_err(Failure::setup)?;
                let done = self.empty_database(&mut connection, place);
                connection.close();
                done
            }
            _ => Ok(()),
        }
    }

    /// Makes a schema of an embedded server anew; `None`: all except those of rooms.
    fn empty_database(&self, connection: &mut Connection, place: Option<&str>) -> Outcome {
        let names: Vec<String> = if let Some(name) = place {
            vec![name.to_owned()]
        } else {
            let found = connection.query(SCHEMAS).map_err(Failure::setup)?;
            found.rows.into_iter().flatten().flatten().collect()
        };
        let others =
            if place.is_some() { Vec::new() } else { connection.query(OTHERS).map_err(Failure::setup)?.rows };
        let mut run = |sql: &str| connection.execute(sql).map(drop).map_err(Failure::setup);
        for sql in others.into_iter().flatten().flatten() {
            run(&sql)?;
        }
        for name in names {
            run(&format!("DROP SCHEMA {} CASCADE", quoted(&name)))?;
        }
        match place {
            Some(name) => run(&format!("CREATE SCHEMA {}", quoted(name)))?,
            // PostgreSQL manual, "Schemas and Privileges".
            None if self.database.at_least(15, 0) => {
                run("CREATE SCHEMA public AUTHORIZATION pg_database_owner")?;
                run("GRANT USAGE ON SCHEMA public TO PUBLIC")?;
            }
            None => {
                run("CREATE SCHEMA public")?;
                run("GRANT ALL ON SCHEMA public TO PUBLIC")?;
            }
        }
        if self.is_confined() {
            run(&format!("ALTER SCHEMA {} OWNER TO {CONFINED}", quoted(place.unwrap_or("public"))))?;
        }
        // "drop cascades to table …" is expected.
        connection.take_notices();
        Ok(())
    }

    /// Returns a place on a named server that another machine's isobench has made, by the name of
    /// its schema; `None`: where this one works by itself.
    pub(crate) fn site_of_another(&self, schema: Option<&str>) -> Site {
        let Some(schema) = schema else { return self.site() };
        let connector = Connector::in_namespace_of_another(self.options.clone(), &self.database, schema);
        let standby = self.reads_from.as_ref().map(|standby| connector.at(standby.clone()));
        let database = Database { schema: Some(schema.to_owned()), ..self.database.clone() };
        Site::new(database, connector, false).with_standby(standby)
    }

    /// Returns the scale of the existing tables.
    ///
    /// # Errors
    /// There are no tables, or the server refuses.
    pub fn scale(&self) -> Outcome<u32> {
        let mut connection = self.open().map_err(Failure::setup)?;
        isobench_database::scale_of(&mut connection).map_err(Failure::setup)?.ok_or_else(|| {
            Failure::setup(
                "relation \"pgbench_branches\" does not exist; create the tables with \"isobench init\", with the same \
                 connection options",
            )
        })
    }

    /// Returns the result document's description of the server. `say` receives notes for the user.
    ///
    /// # Errors
    /// The server is gone.
    pub fn describe(&self, say: &dyn Fn(&str)) -> Outcome<report::Server> {
        let mut connection = self.controller().open().map_err(Failure::setup)?;
        let settings = settings(&mut connection, &self.database).map_err(Failure::setup)?;
        let environment = environment(&mut connection, &self.database);
        connection.close();
        if let Some(note) = settings.note {
            say(&format!("note: {note}"));
        }
        let description = match &self.embedded {
            Some(server) => format!("embedded PostgreSQL {}, {}", server.version(), server.origin()),
            None => self.options.describe(),
        };
        Ok(report::Server {
            product: self.database.product.name.to_owned(),
            version: self.database.version.clone(),
            settings: settings.values,
            embedded: self.is_embedded(),
            description,
            host: self.host.clone(),
            hot_standby: self.standby,
            version_text: environment.version_text,
            extensions: environment.extensions,
            role_settings: environment.role_settings,
            relations: Vec::new(),
            notes: environment.notes,
        })
    }

    /// Returns the end of the embedded server's log, which may explain a failure.
    pub fn log_tail(&self) -> Option<String> {
        self.embedded.as_ref().map(|server| server.log_tail())
    }

    /// Removes anything created, unless it is to be kept, and stops a server that was started.
    ///
    /// # Errors
    /// Something remains; the message names it.
    pub fn close(mut self, keep: bool) -> Outcome {
        let restored = self.altered.get_mut().restore().map_err(|error| {
            let by_hand = self.altered.get_mut().by_hand().join("; ");
            Failure::setup(format!(
                "--alter-system: the settings couldn't be put back ({error}); do it by hand: {by_hand}; SELECT \
                 pg_reload_conf()"
            ))
        });
        match self.namespace.take().map(RefCell::into_inner) {
            Some(namespace) if keep => namespace.keep(),
            Some(namespace) => namespace.release().map_err(Failure::setup)?,
            None => {}
        }
        // Faults, which share it, are over.
        let stopped = match self.embedded.take().and_then(Arc::into_inner) {
            Some(server) => server.stop().map_err(Failure::setup),
            None => Ok(()),
        };
        restored.and(stopped)
    }
}

/// The schemas of an embedded server's database that tables of a user's may be in.
const SCHEMAS: &str = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_' \
     AND nspname <> 'information_schema' AND nspname !~ '^isobench_[0-9]+$'";

/// Statements that drop what else a setup may have made in such a database.
const OTHERS: &str = "SELECT pg_catalog.format('DROP PUBLICATION %I', pubname) FROM pg_catalog.pg_publication UNION ALL \
     SELECT pg_catalog.format('DROP EVENT TRIGGER IF EXISTS %I', evtname) FROM pg_catalog.pg_event_trigger UNION ALL \
     SELECT pg_catalog.format('DROP EXTENSION IF EXISTS %I CASCADE', extname) FROM pg_catalog.pg_extension \
     WHERE extname <> 'plpgsql'";

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl KnownSettings for Target {
    fn scope(&self, name: &str) -> Outcome<SettingScope> {
        let mut connection = self.open().map_err(Failure::setup)?;
        let scope = setting_scope(&mut connection, name).map_err(Failure::setup)?;
        let outcome = match scope {
            Some(scope) => Ok(scope),
            // An extension that isn't loaded yet may define it.
            None if name.contains('.') => Ok(SettingScope::Session),
            None => {
                let names = setting_names(&mut connection).map_err(Failure::setup)?;
                let meant = did_you_mean(name, names.iter().map(String::as_str));
                Err(Failure::setup(format!(
                    "--vary: {SETTING}{name}: the server has no setting \"{name}\"{meant}"
                )))
            }
        };
        connection.close();
        outcome
    }

    fn shown(&self, name: &str, value: &str) -> Outcome<String> {
        let mut connection = self.open().map_err(Failure::setup)?;
        let refused = |error| Failure::setup(format!("--vary: {SETTING}{name}={value}: {error}"));
        let shown = try_setting(&mut connection, name, value).map_err(refused)?;
        connection.close();
        Ok(shown)
    }
}

/// Fixes the host of the first session, out of several, for all further sessions, so that a
/// comparison measures one server. Also returns its name.
fn settled(
    options: ConnectOptions,
    first: &Connection,
    say: &dyn Fn(&str),
) -> (ConnectOptions, Option<String>) {
    if options.hosts.len() < 2 {
        return (options, None);
    }
    let host = first.host();
    say(&format!(
        "connected to {}, and so are all sessions to come; named were {}",
        host.describe(),
        options.describe()
    ));
    (options.at(host.clone()), Some(host.describe()))
}

/// Starts the standbys of an embedded server, each with its replication slot. `primary` leads to the
/// server itself.
fn start_standbys(server: &Server, primary: &ConnectOptions) -> Outcome {
    if server.standbys() == 0 {
        return Ok(());
    }
    let mut connection = Connection::open(primary).map_err(Failure::setup)?;
    for number in 1..=server.standbys() {
        let slot = server.slot(number);
        connection
            .execute(&format!("SELECT pg_catalog.pg_create_physical_replication_slot('{slot}', true)"))
            .map_err(Failure::setup)?;
    }
    connection.close();
    server.start_standbys().map_err(Failure::setup)
}

fn embedded_options(server: &Server, socket: &Path) -> ConnectOptions {
    let host = Host {
        address: Address::Unix(socket.to_owned()),
        hostaddr: None,
        port: server.port(),
        password: None,
    };
    ConnectOptions::new(host, server.user(), server.database())
}

/// Connections that PostgreSQL reserves for superusers (the default), and those that isobench needs
/// besides its clients.
const SPARE_CONNECTIONS: usize = 3;

/// PostgreSQL's default.
const DEFAULT_MAX_CONNECTIONS: usize = 100;

/// Checks that an embedded server allows this many clients, and this many other sessions for which it
/// reserves no connections.
///
/// # Errors
/// Its settings allow too few connections; the message says which setting to raise.
pub fn enough_connections(embedded: &ServerOptions, clients: usize, others: usize) -> Outcome {
    let most = match setting_of(embedded, "max_connections") {
        // The server itself refuses a value that isn't a number.
        Some(value) => value.parse().unwrap_or(usize::MAX),
        None => DEFAULT_MAX_CONNECTIONS,
    };
    if clients.saturating_add(SPARE_CONNECTIONS + others) <= most {
        return Ok(());
    }
    Err(Failure::setup(format!(
        "{clients} clients need more connections than the embedded server's max_connections ({most}) allows; add \
         --server-setting max_connections={}",
        clients + 20
    )))
}

fn setting_of<'a>(embedded: &'a ServerOptions, name: &str) -> Option<&'a str> {
    let given = embedded.settings.iter().rev().find(|(given, _)| given.eq_ignore_ascii_case(name));
    given.map(|(_, value)| value.as_str())
}
