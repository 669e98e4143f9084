//! Endpoints: further ways on which clients reach the server under test, such as a pooler, compared with
//! the direct one.
//!
//! Only the clients' sessions take such a way. The tables, the observer, the conditions and the trying of
//! interleavings stay with the server itself. Behind a pooler that shares sessions out, a level or a search
//! path isn't one client's, so each transaction asks for both, on every way that is compared.
//!
//! Not here: recognising a pooler (`isobench_database`), and the transactions' text (`modes.rs`).

use std::thread;
use std::time::Duration;

use isobench_database::{Connector, Error, Pooling, Product, pooling};
use isobench_isolation::Level;
use isobench_isolation::history::Mode;
use isobench_limits::LIMITS;
use isobench_pgwire::{Address, ConnectOptions, Connection, Given, process_environment};
use isobench_result::factor::ENDPOINT;
use isobench_script::Sql;

use crate::design::Design;
use crate::failure::{Failure, Outcome};
use crate::modes;
use crate::workload::Sources;

/// The name of the way without anything in between.
pub const DIRECT: &str = "direct";

/// The server reports a session's work at most once in this time (PostgreSQL's source,
/// `PGSTAT_MIN_INTERVAL`), and a bit.
const REPORTS: Duration = Duration::from_millis(1100);

/// Sessions of the pool besides one for each client.
const FURTHER: usize = 2;

/// A way to the server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    options: ConnectOptions,
    /// A pooler there gives each transaction any session of the server.
    pub shares_sessions: bool,
}

impl Endpoint {
    /// Finds the server behind a connection string, in which everything but the direct way's user,
    /// database and host is given.
    ///
    /// # Errors
    /// It can't be reached, leads to another server or database, or is a pooler behind which levels can't
    /// be right.
    pub fn find(conninfo: &str, direct: &Connector, product: &Product) -> Outcome<Endpoint> {
        let wrong =
            |why: &dyn std::fmt::Display| Failure::setup(format!("--vary: {ENDPOINT}={conninfo}: {why}"));
        let mut options = resolved(conninfo, direct.options()).map_err(|error| wrong(&error))?;
        options.patience = direct.options().patience.clone();
        if options.hosts.len() != 1 {
            return Err(wrong(&"names several hosts; an endpoint is one of them"));
        }
        let mut there = Connection::open(&options).map_err(|error| wrong(&error))?;
        let mut here = Connection::open(direct.options()).map_err(Failure::setup)?;
        let (this, other) = (here.value(SERVER), there.value(SERVER));
        if this.map_err(|error| wrong(&error))? != other.map_err(|error| wrong(&error))? {
            return Err(wrong(&format!(
                "leads to another server or database than {}: the system identifiers or the databases differ",
                direct.options().describe()
            )));
        }
        here.close();
        let shares_sessions = match pooling(&options, product).map_err(|error| wrong(&error))? {
            Pooling::None | Pooling::Sessions | Pooling::Unknown => false,
            Pooling::Leaky => return Err(wrong(&Error::Leaky)),
            Pooling::Transactions => true,
        };
        if shares_sessions {
            let level = modes::asked(&mut there, product, Mode::of(Level::Serializable));
            if level.is_ok_and(|level| level.differs_from(Level::Serializable))
                || there.execute("BEGIN").is_err()
            {
                return Err(wrong(
                    &"a transaction there doesn't keep its session and its level; use pool_mode = transaction or session",
                ));
            }
            there.execute("ROLLBACK").map_err(|error| wrong(&error))?;
        }
        there.close();
        Ok(Endpoint { options, shares_sessions })
    }

    /// A connector for the clients of a place on the server.
    pub(crate) fn clients(&self, place: &Connector) -> Connector {
        if self.shares_sessions {
            Connector::direct(self.options.clone())
        } else {
            place.at(self.options.clone())
        }
    }

    /// Makes the server count what the pool's sessions have done: after a pause each ends a transaction.
    /// Returns the number of these transactions.
    ///
    /// # Errors
    /// The endpoint is gone.
    pub(crate) fn report(&self, clients: usize) -> Outcome<u64> {
        thread::sleep(REPORTS);
        let mut open = Vec::new();
        for _ in 0..clients + FURTHER {
            let Ok(mut session) = Connection::open(&self.options) else { break };
            // The pool may have fewer sessions.
            session.set_timeout(Some(LIMITS.pooled_session));
            if session.execute("BEGIN").is_err() {
                break;
            }
            open.push(session);
        }
        let number = open.len() as u64;
        for mut session in open {
            session.execute("COMMIT").map_err(Failure::setup)?;
            session.close();
        }
        Ok(number)
    }
}

/// What tells a server and its database from others.
const SERVER: &str = "SELECT system_identifier || ' ' || pg_catalog.current_database() \
    FROM pg_catalog.pg_control_system()";

/// The options of a connection string, whose missing parts are those of the direct way.
fn resolved(conninfo: &str, direct: &ConnectOptions) -> Result<ConnectOptions, String> {
    let given = Given { dbname: Some(conninfo.to_owned()), ..Given::default() };
    let host = direct.hosts.first();
    let known = |name: &str| match name {
        "PGUSER" => Some(direct.user.clone()),
        "PGDATABASE" => Some(direct.dbname.clone()),
        "PGHOST" => host.map(|host| match &host.address {
            Address::Unix(folder) => folder.to_string_lossy().into_owned(),
            Address::Tcp(name) => name.clone(),
        }),
        "PGPORT" => host.map(|host| host.port.to_string()),
        _ => process_environment(name),
    };
    ConnectOptions::resolve(&given, &known).map_err(|error| error.to_string())
}

/// Refuses a plan whose transactions need more than a transaction where an endpoint shares sessions out.
///
/// # Errors
/// The plan's protocol, settings or scripts do; the message names them.
pub fn require_transactions(design: &Design) -> Outcome {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::setup(format!(
            "--vary: {ENDPOINT}: an endpoint gives each transaction any session (transaction pooling), and {why}"
        ))
    };
    if !design.sends_simple() {
        return Err(refused(&"a prepared statement belongs to a session; use --protocol simple"));
    }
    if let Some(setting) = design.sessions.iter().flatten().next() {
        return Err(refused(&format!("the plan sets {} in each session; leave it out", setting.name)));
    }
    match design.works.iter().find_map(|work| needs_session(&work.sources)) {
        Some((place, what)) => Err(refused(&format!(
            "{place} {what}, which belongs to a session; leave it out, or use pool_mode = session"
        ))),
        None => Ok(()),
    }
}

/// Words of statements that make or use something of a session, all of them, and what that is. `PgBouncer`'s
/// manual, "SQL feature map for pooling modes"; PostgreSQL's manual, "Advisory Lock Functions", "Sequence
/// Manipulation Functions".
const WORDS: [(&[&str], &str); 12] = [
    (&["pg_advisory_lock"], "takes an advisory lock"),
    (&["pg_advisory_lock_shared"], "takes an advisory lock"),
    (&["pg_try_advisory_lock"], "takes an advisory lock"),
    (&["pg_try_advisory_lock_shared"], "takes an advisory lock"),
    (&["create", "temp"], "makes a temporary table"),
    (&["create", "temporary"], "makes a temporary table"),
    (&["into", "temp"], "makes a temporary table"),
    (&["pg_temp"], "uses a temporary table"),
    (&["declare", "hold"], "keeps a cursor"),
    (&["currval"], "asks for the session's last number of a sequence"),
    (&["lastval"], "asks for the session's last number of a sequence"),
    (&["set_config"], "may make a setting of the session (set_config)"),
];

/// First words of such commands.
const COMMANDS: [(&str, &str); 8] = [
    ("prepare", "prepares a statement or a transaction"),
    ("execute", "executes a prepared statement"),
    ("deallocate", "drops a prepared statement"),
    ("listen", "listens"),
    ("unlisten", "listens"),
    ("reset", "makes a setting of the session"),
    ("discard", "makes settings of the session"),
    ("load", "loads a library"),
];

/// The first statement of scripts that makes or uses something of its session, with what it does.
fn needs_session(sources: &Sources) -> Option<(String, &'static str)> {
    sources.statements().find_map(|(place, sql)| Some((place, of_session(sql)?)))
}

fn of_session(sql: &Sql) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().all(|word| sql.keyword(&[word]).is_some());
    let text = sql.as_written().to_ascii_lowercase();
    let of_command = |command: &str| {
        let mut words = command.split_whitespace();
        let first = words.next()?;
        if first == "set" {
            let local = matches!(words.next(), Some("local" | "transaction" | "constraints"));
            return (!local).then_some("makes a setting of the session");
        }
        COMMANDS.iter().find(|(known, _)| *known == first).map(|(_, what)| *what)
    };
    let by_words = WORDS.iter().find(|(words, _)| has(words)).map(|(_, what)| *what);
    by_words.or_else(|| text.split(';').find_map(of_command))
}

#[cfg(test)]
mod tests {
    use isobench_script::{Symbols, parse};

    use super::*;

    fn found(text: &str) -> Option<&'static str> {
        parse("own.sql", text, &mut Symbols::new()).unwrap().sql().find_map(of_session)
    }

    #[test]
    fn what_belongs_to_a_session_is_found_and_nothing_else() {
        for text in [
            "SET work_mem = '1MB';",
            "BEGIN\\; SET search_path = a\\; COMMIT;",
            "SELECT pg_advisory_lock(1);",
            "PREPARE a AS SELECT 1;",
            "CREATE TEMP TABLE a (b int);",
            "SELECT currval('a');",
            "SELECT set_config('a.b', 'c', false);",
            "DISCARD ALL;",
        ] {
            assert!(found(text).is_some(), "{text}");
        }
        for text in [
            "BEGIN;\nSET LOCAL work_mem = '1MB';\nCOMMIT;",
            "SET TRANSACTION READ ONLY;",
            "UPDATE t SET v = 1;",
            "SELECT pg_advisory_xact_lock(1);",
            "SELECT nextval('a');",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
