//! The servers that the options select: the one that they or the environment name, or embedded
//! ones; signals are watched from then on.
//!
//! Not here: the use of a server (`target.rs`).

use std::sync::Arc;

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Given, process_environment};
use isobench_plan::{Plan, Setting};
use isobench_runner::Control;

use crate::interrupt;
use crate::options::{ConnectionOptions, EmbeddedOptions};
use crate::output::say;
use isobench_comparison::{
    Choice, Chosen, Design, Failure, HotStandby, Outcome, Placed, Resolved, Target, enough_connections,
    require_transactions,
};

/// Finds the named server, or starts an embedded one for this number of clients, and reports it in
/// one line. From then on signals are watched, so that servers are stopped and schemas removed;
/// before that, Ctrl-C simply ends the program while it waits for a server.
///
/// # Errors
/// Wrong connection options, the server is missing, or the embedded server doesn't start.
pub fn find(
    connection: &ConnectionOptions,
    database: Option<&str>,
    embedded: &EmbeddedOptions,
    clients: Clients,
) -> Outcome<(Target, Arc<Control>)> {
    find_either(connection, database, embedded, clients, false)
}

/// As [`find`]. `follows`: the named server may fail over to another one of those that are named.
fn find_either(
    connection: &ConnectionOptions,
    database: Option<&str>,
    embedded: &EmbeddedOptions,
    clients: Clients,
    follows: bool,
) -> Outcome<(Target, Arc<Control>)> {
    let given = connection.given(database);
    let control = Arc::new(Control::new());
    if let Some(by) = named_by(&given) {
        if embedded.any() {
            return Err(Failure::setup(
                "--server-bin, --server-version and --server-setting belong to the embedded PostgreSQL, but a server \
                 is named by option or environment; leave out one or the other",
            ));
        }
        let mut options = resolve(&given)?;
        options.patience = control.patience().clone();
        if by.starts_with("PG") {
            say(&format!("{by} names the server, so this uses {}", options.describe()));
        }
        let target = if follows { Target::follow(options)? } else { Target::connect(options, &say)? };
        interrupt::watch(&control)?;
        return Ok((target, control));
    }
    let options = with_room(embedded.server_options(), clients)?;
    if let Some(note) = passed_over(&process_environment) {
        say(&note);
    }
    interrupt::watch(&control)?;
    let target = start_target(&options, clients.confined, &control)?;
    Ok((target, control))
}

/// Starts another embedded server for this number of clients, once signals are watched.
///
/// # Errors
/// It doesn't start.
pub fn start_another(embedded: &EmbeddedOptions, clients: Clients, control: &Control) -> Outcome<Target> {
    let options = with_room(embedded.server_options(), clients)?;
    start_target(&options, clients.confined, control)
}

/// What the options say of the servers of a plan.
pub struct Wanted<'a> {
    /// The named one.
    pub connection: &'a ConnectionOptions,
    /// The embedded ones.
    pub embedded: &'a EmbeddedOptions,
    /// The standby of the named one.
    pub standby: Option<&'a str>,
    /// Settings of the named one may be altered.
    pub alters: bool,
}

/// The servers of a plan, all running, and the plan that fits them.
pub struct Stage {
    /// The plan.
    pub design: Design,
    /// The servers, in the order of the plan's.
    pub targets: Vec<Target>,
    /// Requests to stop.
    pub control: Arc<Control>,
}

/// Finds or starts the servers of a plan, and fits the plan to them. `note` receives what is left out,
/// `before` the design as far as it is known before any server is asked.
///
/// # Errors
/// As [`find`], or the plan can't be carried out there.
pub fn stage(
    plan: Resolved,
    wanted: &Wanted<'_>,
    note: &dyn Fn(&str),
    before: &dyn Fn(&Design),
) -> Outcome<Stage> {
    let Wanted { connection, embedded, alters, .. } = *wanted;
    let named = names_server(connection);
    let follows = standby(wanted.standby, named)?;
    let choice = Choice { named, programs: embedded.chooses(), standby: follows.is_some() };
    let (chosen, notes) = plan.on(choice)?;
    for text in &notes {
        note(text);
    }
    before(chosen.design());
    let embedded = embedded.with(&server_settings(&chosen.design().plan, named));
    let (placed, mut targets, control) = find_all(chosen, connection, &embedded, alters)?;
    let first = &mut targets[0];
    if let Some(standby) = follows {
        interrupt::blame(&control, first.read_from(standby))?;
    }
    let (place, scale) = (first.place(), || first.scale());
    let hot = first.standby.then_some(HotStandby { place, scale: &scale });
    let (design, notes) = interrupt::blame(&control, placed.fit(&first.database, hot))?;
    for text in &notes {
        note(text);
    }
    let shares = targets[0].reach_by(&design.server_factors.endpoints);
    let mut design = design;
    design.shares_sessions = interrupt::blame(&control, shares)?;
    if design.shares_sessions {
        interrupt::blame(&control, require_transactions(&design))?;
    }
    if let Some(schema) = design.schema() {
        for target in &mut targets {
            interrupt::blame(&control, target.use_schema(schema))?;
        }
    }
    Ok(Stage { design, targets, control })
}

/// Returns the settings of the embedded server that a plan needs; those of a named one are its own.
fn server_settings(plan: &Plan, named: bool) -> Vec<Setting> {
    let mut settings = plan.server_settings.clone().unwrap_or_default();
    settings.extend(plan.observe().server_setting().filter(|_| !named));
    settings
}

/// Finds the named server, or starts the embedded ones, and places the plan's settings in servers or
/// sessions.
fn find_all(
    plan: Chosen,
    connection: &ConnectionOptions,
    embedded: &EmbeddedOptions,
    alters: bool,
) -> Outcome<(Placed, Vec<Target>, Arc<Control>)> {
    let design = plan.design();
    let clients = Clients { number: design.most_clients(), confined: design.runs_recorded_sql() };
    let embedded = &embedded.relayed(design.is_relayed());
    let follows = design.has_faults();
    let (first, control) = find_either(connection, None, &embedded.of(&design.servers[0]), clients, follows)?;
    let own = first.is_embedded().then_some(embedded.settings.as_slice());
    let placed = interrupt::blame(&control, plan.place(&first, own, alters))?;
    let mut targets = vec![first];
    if placed.has_server_settings() {
        // It was started to be asked, without the settings of any of them.
        targets.pop().map_or(Ok(()), |asked| asked.close(false))?;
    }
    for server in &placed.design().servers[targets.len()..] {
        let options = with_room(embedded.of(server).server_options(), clients)?;
        targets.push(start_target(&options, clients.confined, &control)?);
    }
    Ok((placed, targets, control))
}

/// Returns the options of an embedded server that has room for this many clients: its
/// `max_connections` is raised unless it is given.
///
/// # Errors
/// It is given and too small.
fn with_room(mut options: ServerOptions, clients: Clients) -> Outcome<ServerOptions> {
    let given = options.settings.iter().any(|(name, _)| name.eq_ignore_ascii_case(MAX_CONNECTIONS));
    match enough_connections(&options, clients.number, clients.unreserved()) {
        Err(failure) if given => Err(failure),
        Err(_) => {
            let clients = clients.number;
            let most = clients.saturating_add(OWN_CONNECTIONS);
            say(&format!(
                "the embedded server's {MAX_CONNECTIONS} is raised to {most}, for {clients} clients and isobench's own \
                 sessions"
            ));
            options.settings.push((MAX_CONNECTIONS.to_owned(), most.to_string()));
            Ok(options)
        }
        Ok(()) => Ok(options),
    }
}

/// The clients of a server.
#[derive(Clone, Copy)]
pub struct Clients {
    /// Their number.
    pub number: usize,
    /// What they execute was recorded, so that on an embedded server neither they nor the sessions that
    /// make tables are a superuser's.
    pub confined: bool,
}

impl Clients {
    /// The number of isobench's own sessions beside them for which no connection is reserved.
    fn unreserved(self) -> usize {
        if self.confined { CONFINED_CONNECTIONS } else { 0 }
    }
}

/// The setting that limits sessions.
const MAX_CONNECTIONS: &str = "max_connections";

/// Sessions besides the clients': the observer's, those that make tables, and those that
/// PostgreSQL reserves.
const OWN_CONNECTIONS: usize = 20;

/// Those of them that aren't a superuser's where what is executed was recorded.
const CONFINED_CONNECTIONS: usize = 5;

/// Returns a note about variables of the environment that don't say where a server is, and are
/// therefore passed over.
fn passed_over(environment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let is_set = |name: &&str| environment(name).is_some_and(|value| !value.is_empty());
    let set: Vec<&str> = ["PGUSER", "PGDATABASE"].into_iter().filter(is_set).collect();
    let (verb, it) = if set.len() == 1 { ("doesn't", "it is") } else { ("don't", "they are") };
    (!set.is_empty()).then(|| {
        format!(
            "{} {verb} say where a server is, so {it} passed over; -h or PGHOST names one",
            set.join(" and ")
        )
    })
}

fn start_target(options: &ServerOptions, confined: bool, control: &Control) -> Outcome<Target> {
    interrupt::blame(control, Target::start(options, confined, control.patience(), &say))
}

/// Starts an embedded server.
///
/// # Errors
/// No programs, wrong settings, or any failure to start.
pub fn start(embedded: &EmbeddedOptions) -> Outcome<Server> {
    Server::start(&embedded.server_options(), &mut say).map_err(Failure::setup)
}

/// Returns connection options for the named server; `None` if there isn't one. Prints warnings.
///
/// # Errors
/// Wrong connection options.
pub fn named_server(
    connection: &ConnectionOptions,
    database: Option<&str>,
) -> Outcome<Option<ConnectOptions>> {
    let given = connection.given(database);
    if named_by(&given).is_none() {
        return Ok(None);
    }
    let options = resolve(&given)?;
    for warning in &options.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(Some(options))
}

/// Returns connection options for the standby of a server that is `named`, from a connection string.
///
/// # Errors
/// Wrong connection options, or no server is named.
fn standby(conninfo: Option<&str>, named: bool) -> Outcome<Option<ConnectOptions>> {
    let Some(conninfo) = conninfo else { return Ok(None) };
    if !named {
        return Err(Failure::setup(
            "--standby-server: an embedded server has standbys of its own (--standbys); name the server that this one \
             follows, too (-h, -p, -d)",
        ));
    }
    let given = Given { dbname: Some(conninfo.to_owned()), ..Given::default() };
    let options = ConnectOptions::resolve(&given, &process_environment);
    options.map(Some).map_err(|error| Failure::setup(format!("--standby-server: {error}")))
}

/// Returns whether options or environment name a server.
pub fn names_server(connection: &ConnectionOptions) -> bool {
    named_by(&connection.given(None)).is_some()
}

/// Describes the server that options or environment name, or an embedded one, before it is asked.
///
/// # Errors
/// Wrong connection options.
pub fn place(connection: &ConnectionOptions) -> Outcome<String> {
    let given = connection.given(None);
    if named_by(&given).is_none() {
        return Ok("an embedded PostgreSQL".to_owned());
    }
    resolve(&given).map(|options| options.describe())
}

/// Returns the option or variable that names the server.
fn named_by(given: &Given) -> Option<&'static str> {
    ConnectOptions::named_by(given, &process_environment)
}

fn resolve(given: &Given) -> Outcome<ConnectOptions> {
    ConnectOptions::resolve(given, &process_environment).map_err(Failure::setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(settings: &[(&str, &str)], clients: usize) -> Outcome<Vec<(String, String)>> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let options =
            ServerOptions { settings: settings.iter().map(owned).collect(), ..ServerOptions::default() };
        with_room(options, Clients { number: clients, confined: false }).map(|options| options.settings)
    }

    #[test]
    fn many_clients_get_connections_unless_the_user_says_otherwise() {
        assert_eq!(room(&[], 90).unwrap(), []);
        assert_eq!(room(&[], 150).unwrap(), [("max_connections".to_owned(), "170".to_owned())]);
        assert_eq!(room(&[("Max_Connections", "300")], 150).unwrap().len(), 1);
        let message = room(&[("max_connections", "120")], 150).unwrap_err().to_string();
        assert!(message.contains("(120)") && message.contains("max_connections=170"), "{message}");
    }

    #[test]
    fn variables_that_name_no_server_are_told() {
        let of = |set: &'static [&str]| {
            passed_over(&move |name: &str| set.contains(&name).then(|| "x".to_owned()))
        };
        assert_eq!(of(&[]), None);
        assert!(of(&["PGUSER"]).unwrap().starts_with("PGUSER doesn't say where"));
        assert!(of(&["PGUSER", "PGDATABASE"]).unwrap().starts_with("PGUSER and PGDATABASE don't"));
    }
}
