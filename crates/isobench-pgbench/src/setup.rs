//! The connection before a run: opening it, the header, the scale of the tables, the vacuum.

use std::fmt::Display;

use isobench_database::PartitionMethod;
use isobench_pgwire::{ConnectOptions, Connection, Env, Error, Given, shown};

use crate::console::{Console, Message};
use crate::password;
use crate::version::Version;

/// The properties of the tables that a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// Their scale: the number of branches, or the value of `-s`.
    pub scale: i64,
    /// The partitioning of the accounts, if any.
    pub partitions: Option<(PartitionMethod, u64)>,
}

/// Access to the server; a missing password is asked for once.
#[derive(Debug, Clone)]
pub struct Login {
    options: ConnectOptions,
}

impl Login {
    /// Parses the connection options.
    ///
    /// # Errors
    /// They are invalid; libpq's words.
    pub fn new(given: &Given, env: Env<'_>) -> Result<Login, String> {
        let mut options = ConnectOptions::resolve(given, env).map_err(|error| error.to_string())?;
        options.fallback_application_name = Some("pgbench".to_owned());
        Ok(Login { options })
    }

    /// The connection options.
    pub fn options(&self) -> &ConnectOptions {
        &self.options
    }

    /// Opens the first session, and asks for the password if the server requires one and none was
    /// given. The password is kept for the other sessions.
    ///
    /// # Errors
    /// The server refuses or can't be reached; libpq's words.
    pub fn first(&mut self) -> Result<Connection, String> {
        match Connection::open(&self.options) {
            Err(Error::Connect(error)) if error.needs_password() => {
                let password = password::ask("Password: ").map_err(|error| error.to_string())?;
                self.options.password = Some(isobench_pgwire::Secret::new(password));
                self.open()
            }
            outcome => outcome.map_err(|error| error.to_string()),
        }
    }

    /// Opens a further session.
    ///
    /// # Errors
    /// The server refuses or can't be reached; libpq's words.
    pub fn open(&self) -> Result<Connection, String> {
        Connection::open(&self.options).map_err(|error| error.to_string())
    }
}

/// Returns the first line of standard output: the version of the program, and of the server if they
/// differ.
pub fn header(version: Version, server: Option<&str>) -> String {
    match server {
        Some(server) if number(server) != version.release() => {
            format!("pgbench ({}, server {server})\n", version.release())
        }
        _ => format!("pgbench ({})\n", version.release()),
    }
}

/// Returns the number in a server's version, which the name of the distribution may follow.
fn number(release: &str) -> &str {
    release.split(' ').next().unwrap_or_default()
}

/// Reads the scale and the partitioning of the tables.
///
/// # Errors
/// The tables don't exist, or the server refuses.
pub fn tables(connection: &mut Connection, dbname: &str, version: Version) -> Result<Tables, Message> {
    const COUNT: &str = "select count(*) from pgbench_branches";
    let hint =
        format!("Perhaps you need to do initialization (\"pgbench -i\") in database \"{}\".", shown(dbname));
    let scale = connection.value(COUNT).map_err(|error| {
        let why = words(&error, COUNT);
        Message::error(format_args!("could not count number of branches: {why}")).hint(&hint)
    })?;
    let scale = scale.unwrap_or_default();
    let scale = scale
        .parse()
        .map_err(|_| Message::error(format_args!("invalid count(*) from pgbench_branches: \"{scale}\"")))?;
    // Servers without these catalogs have no partitions.
    let Ok(rows) = connection.query(PARTITIONS) else { return Ok(Tables { scale, partitions: None }) };
    // The last two columns: test servers that replay pgbench's own query return one more before
    // them.
    let Some([.., method, count]) = rows.rows.first().map(Vec::as_slice) else {
        let path = if version.quotes_settings() { "\"search_path\"" } else { "search_path" };
        return Err(Message::error(format_args!("no pgbench_accounts table found in {path}")).hint(&hint));
    };
    let count = count.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    let partitions = match method.as_deref() {
        Some("r") => Some((PartitionMethod::Range, count)),
        Some("h") => Some((PartitionMethod::Hash, count)),
        Some(other) => return Err(Message::error(format_args!("unexpected partition method: \"{other}\""))),
        None => None,
    };
    Ok(Tables { scale, partitions })
}

/// The method and number of partitions of the accounts; no row if the table doesn't exist.
const PARTITIONS: &str = "select p.partstrat, count(i.inhrelid) from pg_catalog.pg_class c \
    left join pg_catalog.pg_partitioned_table p on p.partrelid = c.oid \
    left join pg_catalog.pg_inherits i on i.inhparent = c.oid \
    where c.oid = pg_catalog.to_regclass('pgbench_accounts') group by p.partstrat";

/// Vacuums the small tables and empties the history, then vacuums the accounts if requested. A
/// statement that the server refuses is reported and otherwise ignored.
///
/// # Errors
/// The connection is lost.
pub fn vacuum(connection: &mut Connection, accounts: bool, tell: &dyn Fn(Vacuum<'_>)) -> Result<(), Error> {
    let mut work = |title: &str, statements: &[&str]| {
        tell(Vacuum::Starting(title));
        for statement in statements {
            match connection.execute(statement) {
                Err(error @ Error::Server(_)) if !error.is_connection_lost() => {
                    tell(Vacuum::Refused(&words(&error, statement)));
                }
                outcome => drop(outcome?),
            }
        }
        tell(Vacuum::End);
        Ok::<(), Error>(())
    };
    work("vacuum", &["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"])?;
    if accounts {
        work("vacuum pgbench_accounts", &["vacuum analyze pgbench_accounts"])?;
    }
    Ok(())
}

/// A step of the vacuum.
#[derive(Debug, Clone, Copy)]
pub enum Vacuum<'a> {
    /// This operation starts.
    Starting(&'a str),
    /// The server refused a statement.
    Refused(&'a str),
    /// The operation has ended.
    End,
}

/// Reports a step on standard error, in pgbench's words.
pub fn tell_vacuum(console: Console, step: Vacuum<'_>) {
    match step {
        Vacuum::Starting(title) => console.write(format_args!("starting {title}...")),
        Vacuum::Refused(why) => {
            console.say(&Message::error(why).detail("(ignoring this error and continuing anyway)"));
        }
        Vacuum::End => console.write("end.\n"),
    }
}

/// Returns an error in libpq's words, with its position in the statement.
pub fn words(error: &Error, statement: &str) -> String {
    error.server().map_or_else(|| error.to_string(), |error| error.report(Some(statement)))
}

/// Returns the message that no session could be opened for this purpose.
pub fn no_session(why: impl Display, purpose: impl Display) -> Message {
    Message::error(why).then_error(format_args!("could not create connection for {purpose}"))
}
