//! The server that is measured: the one that is named, or an embedded PostgreSQL; and the place in
//! it where isobench works.
//!
//! Nothing is printed here: who calls is handed notes for people, one line each, as they come up.
//! Not here: which server the options name (`servers.rs`), and what is measured there.

use isobench_database::{
    Connector, Database, Namespace, detect, environment, is_standby, relation_sizes, settings,
};
use isobench_observer::LocalServer;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{Address, ConnectOptions, Connection, Host, Patience};
use isobench_report as report;

use crate::failure::{Failure, Outcome};

/// A server to measure, and how to reach the place where the tables are. What was started or made
/// is stopped and removed when this is dropped.
pub struct Target {
    // Dropped in this order: first what was made on the server, then the server.
    namespace: Option<Namespace>,
    options: ConnectOptions,
    embedded: Option<Server>,
    /// Which of several hosts that are named it is.
    host: Option<String>,
    /// Whether it is a hot standby, which can only be read.
    pub standby: bool,
    /// The product and its version.
    pub database: Database,
    /// Settings given to the embedded server.
    pub server_settings: Vec<(String, String)>,
}

impl Target {
    /// Connects to the server that the options name. `say` is handed notes for people.
    ///
    /// # Errors
    /// No server there, or one that refuses.
    pub fn connect(options: ConnectOptions, say: &dyn Fn(&str)) -> Outcome<Target> {
        Target::new(None, options, Vec::new(), say)
    }

    /// Starts an embedded server. `say` is handed notes for people.
    ///
    /// # Errors
    /// The server doesn't start.
    pub fn start(embedded: &ServerOptions, patience: &Patience, say: &dyn Fn(&str)) -> Outcome<Target> {
        let server = Server::start(embedded, &mut |note| say(note)).map_err(Failure::setup)?;
        say(&format!(
            "no server is named, so this uses an embedded PostgreSQL {} ({}), {}; fsync is {}",
            server.version(),
            server.origin(),
            if embedded.settings.is_empty() { "default settings" } else { "settings as given" },
            setting_of(embedded, "fsync").unwrap_or("on"),
        ));
        let mut options = embedded_options(&server);
        options.patience = patience.clone();
        Target::new(Some(server), options, embedded.settings.clone(), say)
    }

    fn new(
        embedded: Option<Server>,
        options: ConnectOptions,
        server_settings: Vec<(String, String)>,
        say: &dyn Fn(&str),
    ) -> Outcome<Target> {
        let mut connection = Connection::open(&options).map_err(Failure::setup)?;
        let database = detect(&mut connection).map_err(Failure::setup)?;
        let standby = is_standby(&mut connection, &database).map_err(Failure::setup)?;
        let (options, host) = settled(options, &connection, say);
        connection.close();
        Ok(Target { namespace: None, options, embedded, host, standby, database, server_settings })
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        self.options.describe()
    }

    /// On a server that is somebody's, makes a schema of our own to work in, and hands `say` its
    /// description. On the embedded one there is no need.
    ///
    /// # Errors
    /// The schema exists and isn't ours, or may not be made.
    pub fn claim_namespace(&mut self, say: &dyn Fn(&str)) -> Outcome {
        if self.embedded.is_none() {
            let namespace = Namespace::claim(&self.options, &self.database).map_err(Failure::setup)?;
            say(&namespace.describe());
            self.database.schema = Some(namespace.schema());
            self.namespace = Some(namespace);
        }
        Ok(())
    }

    /// Makes sure that a level set in a session of ours is the level of its transactions, whatever
    /// stands between.
    ///
    /// # Errors
    /// A pooler shares sessions out, or passes them on as they are.
    pub fn require_sessions(&self) -> Outcome {
        if self.is_embedded() {
            return Ok(());
        }
        isobench_database::require_sessions(&self.options, self.database.product).map_err(Failure::setup)
    }

    /// True if the server is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// How the server's processes may be found on this machine; `None` if it is elsewhere. A Unix
    /// socket or a loopback address may lead out of a container or through a tunnel, which shows
    /// later.
    pub fn local(&self) -> Option<LocalServer> {
        let mut hosts = self.options.hosts.iter().map(LocalServer::of_host);
        hosts.all(|local| local.is_some()).then_some(LocalServer::Maybe)
    }

    /// Opens a session in the place where the tables are.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn open(&self) -> Result<Connection, isobench_database::Error> {
        self.connector().open()
    }

    /// How sessions get there, for other threads, too.
    pub fn connector(&self) -> Connector {
        self.namespace.as_ref().map_or_else(|| Connector::direct(self.options.clone()), Namespace::connector)
    }

    /// The scale of the tables that are there.
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

    /// What the result document says of the server. `say` is handed notes for people.
    ///
    /// # Errors
    /// The server is gone.
    pub fn describe(&self, say: &dyn Fn(&str)) -> Outcome<report::Server> {
        let mut connection = self.open().map_err(Failure::setup)?;
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

    /// Sizes of the tables and indexes that are there; none if the server doesn't tell.
    pub fn relations(&self) -> Vec<report::RelationSize> {
        let sizes = |mut connection| relation_sizes(&mut connection, &self.database).ok();
        let sizes = self.open().ok().and_then(sizes).unwrap_or_default();
        let size = |size: isobench_database::RelationSize| report::RelationSize {
            name: size.name,
            kind: size.kind,
            bytes: size.bytes,
            rows: size.rows,
        };
        sizes.into_iter().map(size).collect()
    }

    /// The end of the embedded server's log, for the case that it is the cause of trouble.
    pub fn log_tail(&self) -> Option<String> {
        self.embedded.as_ref().map(Server::log_tail)
    }

    /// Removes what was made, unless it is to be kept, and stops what was started.
    ///
    /// # Errors
    /// Something is left; the message says what.
    pub fn close(mut self, keep: bool) -> Outcome {
        match self.namespace.take() {
            Some(namespace) if keep => namespace.keep(),
            Some(namespace) => namespace.release().map_err(Failure::setup)?,
            None => {}
        }
        match self.embedded.take() {
            Some(server) => server.stop().map_err(Failure::setup),
            None => Ok(()),
        }
    }
}

/// Of several hosts the one that the first session is on, for all sessions to come, so that a
/// comparison measures one server; and what it is called.
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

fn embedded_options(server: &Server) -> ConnectOptions {
    let host = Host {
        address: Address::Unix(server.socket_dir().to_owned()),
        hostaddr: None,
        port: server.port(),
        password: None,
    };
    ConnectOptions::new(host, server.user(), server.database())
}

/// Connections that PostgreSQL keeps for superusers (the default), and those that isobench needs
/// besides its clients.
const SPARE_CONNECTIONS: usize = 3;

/// PostgreSQL's default.
const DEFAULT_MAX_CONNECTIONS: usize = 100;

/// Makes sure that an embedded server admits so many clients.
///
/// # Errors
/// Its settings allow too few connections; the message says which setting to raise.
pub fn enough_connections(embedded: &ServerOptions, clients: usize) -> Outcome {
    let most = match setting_of(embedded, "max_connections") {
        // What isn't a number is the server's to refuse.
        Some(value) => value.parse().unwrap_or(usize::MAX),
        None => DEFAULT_MAX_CONNECTIONS,
    };
    if clients.saturating_add(SPARE_CONNECTIONS) <= most {
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
