//! The server that is measured: the one that is named, or an embedded PostgreSQL; and the place in it where isobench works.
//!
//! Not here: what is measured there.

use std::sync::Arc;

pub use isobench_database::Connector;
use isobench_database::{Database, Namespace, detect, environment, is_standby, relation_sizes, settings};
use isobench_observer::LocalServer;
use isobench_pgserver::{MajorVersion, Server, ServerOptions};
use isobench_pgwire::{Address, ConnectOptions, Connection, Given, Host, process_environment};
use isobench_report as report;
use isobench_runner::Control;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::options::{ConnectionOptions, EmbeddedOptions};

/// A server to measure, and how to reach the place where the tables are. What was started or made is stopped and removed
/// when this is dropped.
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
    /// Finds the named server, or starts an embedded one for so many clients, and tells which in one line. From then on
    /// signals are watched, so that what is started is stopped and what is made is removed; before that, Ctrl-C simply
    /// ends a program that waits for a server that doesn't answer.
    ///
    /// # Errors
    /// Wrong connection options, no server there, or the embedded server doesn't start.
    pub fn find(
        connection: &ConnectionOptions,
        database: Option<&str>,
        embedded: &EmbeddedOptions,
        clients: usize,
    ) -> Outcome<(Target, Arc<Control>)> {
        let given = given(connection, database);
        let control = Arc::new(Control::new());
        if is_named(&given) {
            if embedded.any() {
                return Err(Failure::setup(
                    "--server-bin, --server-version and --server-setting belong to the embedded PostgreSQL, but a server \
                     is named by option or environment; leave out one or the other",
                ));
            }
            let mut options =
                ConnectOptions::resolve(&given, &process_environment).map_err(Failure::setup)?;
            options.patience = control.patience().clone();
            let target = Target::new(None, options, Vec::new())?;
            interrupt::watch(&control)?;
            return Ok((target, control));
        }
        enough_connections(embedded, clients)?;
        interrupt::watch(&control)?;
        let target = interrupt::blame(&control, Target::start(embedded, &control))?;
        Ok((target, control))
    }

    /// The servers of a plan: the named one, or an embedded one of each version (of whichever there is, without versions), all of
    /// them running before anything is measured.
    ///
    /// # Errors
    /// As [`Target::find`].
    pub fn find_all(
        connection: &ConnectionOptions,
        embedded: &EmbeddedOptions,
        versions: &[MajorVersion],
        clients: usize,
    ) -> Outcome<(Vec<Target>, Arc<Control>)> {
        let Some((first, rest)) = versions.split_first() else {
            let (target, control) = Target::find(connection, None, embedded, clients)?;
            return Ok((vec![target], control));
        };
        let at = |version: &MajorVersion| EmbeddedOptions { version: Some(*version), ..embedded.clone() };
        let (target, control) = Target::find(connection, None, &at(first), clients)?;
        let mut targets = vec![target];
        for version in rest {
            targets.push(interrupt::blame(&control, Target::start(&at(version), &control))?);
        }
        Ok((targets, control))
    }

    /// Starts an embedded server.
    fn start(embedded: &EmbeddedOptions, control: &Control) -> Outcome<Target> {
        let server = start(embedded)?;
        eprintln!(
            "no server is named, so this uses an embedded PostgreSQL {} ({}), {}; fsync is {}",
            server.version(),
            server.origin(),
            if embedded.settings.is_empty() { "default settings" } else { "settings as given" },
            setting_of(embedded, "fsync").unwrap_or("on"),
        );
        let mut options = embedded_options(&server);
        options.patience = control.patience().clone();
        Target::new(Some(server), options, embedded.settings.clone())
    }

    fn new(
        embedded: Option<Server>,
        options: ConnectOptions,
        server_settings: Vec<(String, String)>,
    ) -> Outcome<Target> {
        let mut connection = Connection::open(&options).map_err(Failure::setup)?;
        let database = detect(&mut connection).map_err(Failure::setup)?;
        let standby = is_standby(&mut connection, &database).map_err(Failure::setup)?;
        let (options, host) = settled(options, &connection);
        connection.close();
        Ok(Target { namespace: None, options, embedded, host, standby, database, server_settings })
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        self.options.describe()
    }

    /// On a server that is somebody's, makes a schema of our own to work in, and says so. On the embedded one there is no
    /// need.
    ///
    /// # Errors
    /// The schema exists and isn't ours, or may not be made.
    pub fn claim_namespace(&mut self) -> Outcome {
        if self.embedded.is_none() {
            let namespace = Namespace::claim(&self.options, &self.database).map_err(Failure::setup)?;
            eprintln!("{}", namespace.describe());
            self.database.schema = Some(namespace.schema());
            self.namespace = Some(namespace);
        }
        Ok(())
    }

    /// Makes sure that a level set in a session of ours is the level of its transactions, whatever stands between.
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

    /// How the server's processes may be found on this machine; `None` if it is elsewhere. A Unix socket or a loopback address
    /// may lead out of a container or through a tunnel, which shows later.
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
        self.namespace
            .as_ref()
            .map_or_else(|| Connector::wherever(self.options.clone()), Namespace::connector)
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

    /// What the result document says of the server.
    ///
    /// # Errors
    /// The server is gone.
    pub fn describe(&self) -> Outcome<report::Server> {
        let mut connection = self.open().map_err(Failure::setup)?;
        let settings = settings(&mut connection, &self.database).map_err(Failure::setup)?;
        let environment = environment(&mut connection, &self.database);
        connection.close();
        if let Some(note) = settings.note {
            eprintln!("note: {note}");
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

/// Of several hosts the one that the first session is on, for all sessions to come, so that a comparison measures one server; and what
/// it is called.
fn settled(options: ConnectOptions, first: &Connection) -> (ConnectOptions, Option<String>) {
    if options.hosts.len() < 2 {
        return (options, None);
    }
    let host = first.host();
    eprintln!(
        "connected to {}, and so are all sessions to come; named were {}",
        host.describe(),
        options.describe()
    );
    (options.at(host.clone()), Some(host.describe()))
}

/// Starts an embedded server.
///
/// # Errors
/// No programs, wrong settings, or whatever keeps it from starting.
pub fn start(embedded: &EmbeddedOptions) -> Outcome<Server> {
    let options = ServerOptions {
        bin: embedded.bin.clone(),
        version: embedded.version,
        settings: embedded.settings.clone(),
    };
    Server::start(&options, &mut |note| eprintln!("{note}")).map_err(Failure::setup)
}

/// Connection options for a server that is named; `None` if none is.
///
/// # Errors
/// Wrong connection options.
pub fn named_server(
    connection: &ConnectionOptions,
    database: Option<&str>,
) -> Outcome<Option<ConnectOptions>> {
    let given = given(connection, database);
    if !is_named(&given) {
        return Ok(None);
    }
    resolve(&given).map(Some)
}

/// True if options or environment name a server.
pub fn names_server(connection: &ConnectionOptions) -> bool {
    is_named(&given(connection, None))
}

fn is_named(given: &Given) -> bool {
    ConnectOptions::names_server(given, &process_environment)
}

fn resolve(given: &Given) -> Outcome<ConnectOptions> {
    let options = ConnectOptions::resolve(given, &process_environment).map_err(Failure::setup)?;
    for warning in &options.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(options)
}

fn given(connection: &ConnectionOptions, database: Option<&str>) -> Given {
    Given {
        host: connection.host.clone(),
        port: connection.port.clone(),
        user: connection.username.clone(),
        dbname: database.map(str::to_owned).or_else(|| connection.dbname.clone()),
        password: None,
    }
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

/// Connections that PostgreSQL keeps for superusers (the default), and those that isobench needs besides its clients.
const SPARE_CONNECTIONS: usize = 3;

/// PostgreSQL's default.
const DEFAULT_MAX_CONNECTIONS: usize = 100;

fn enough_connections(embedded: &EmbeddedOptions, clients: usize) -> Outcome {
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

fn setting_of<'a>(embedded: &'a EmbeddedOptions, name: &str) -> Option<&'a str> {
    let given = embedded.settings.iter().rev().find(|(given, _)| given.eq_ignore_ascii_case(name));
    given.map(|(_, value)| value.as_str())
}
