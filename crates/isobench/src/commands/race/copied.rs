//! A copy of the application's database on an embedded server. Copied SQL runs without a superuser's
//! rights, and so do the application and what puts rows back.

use std::io::Write as _;
use std::sync::Arc;

use isobench_comparison::confined::{CONFINED, as_role, make_role};
use isobench_comparison::{Failure, Outcome, Setup};
use isobench_pgserver::Server;
use isobench_pgwire::{ConnectOptions, Connection, Given, Host, process_environment};
use isobench_plan::Setting;
use isobench_runner::Control;

use crate::commands::dump::dump;
use crate::interrupt;
use crate::options::EmbeddedOptions;
use crate::output::say;
use crate::servers;

/// The role that puts rows back: it owns what the application owns, and no trigger fires for it.
const RESTORER: &str = "isobench_restorer";

/// Settings of a server that ends with isobench. A deadlock is found soon.
const SETTINGS: [(&str, &str); 3] =
    [("fsync", "off"), ("synchronous_commit", "off"), ("deadlock_timeout", "100ms")];

/// A copy, on a server that ends with it.
pub(super) struct Copied {
    server: Server,
    database: String,
}

impl Copied {
    /// Copies a database to an embedded server.
    ///
    /// # Errors
    /// The database can't be copied, or the server doesn't start.
    pub(super) fn make(
        source: &str,
        limit: u64,
        embedded: &EmbeddedOptions,
        control: &Arc<Control>,
    ) -> Outcome<Self> {
        let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("--copy-from: {error}"));
        let given = Given { dbname: Some(source.to_owned()), ..Given::default() };
        let original =
            ConnectOptions::resolve(&given, &process_environment).map_err(|error| wrong(&error))?;
        let text = dump(source, limit, &format!("--size-limit {limit}; raise it, or use a smaller copy"))?;
        let copied = Self::empty(&original.dbname, embedded, control)?;
        copied.fill(&text)?;
        say(&format!("the copy is on an embedded PostgreSQL {}", copied.server.version()));
        Ok(copied)
    }

    /// Starts an embedded server with an empty database of this name.
    ///
    /// # Errors
    /// The server doesn't start.
    pub(super) fn empty(database: &str, embedded: &EmbeddedOptions, control: &Arc<Control>) -> Outcome<Self> {
        let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("the copy: {error}"));
        let own = SETTINGS.map(|(name, value)| Setting { name: name.to_owned(), value: value.to_owned() });
        let server = interrupt::blame(control, servers::start(&embedded.with(&own)))?;
        let copied = Self { server, database: database.to_owned() };
        let mut admin = Connection::open(&copied.superuser("postgres")).map_err(|error| wrong(&error))?;
        make_role(&mut admin).map_err(|error| wrong(&error))?;
        let name = format!("\"{}\"", copied.database.replace('"', "\"\""));
        let mut statements = vec![
            format!("CREATE ROLE {RESTORER} LOGIN IN ROLE {CONFINED}"),
            format!("ALTER ROLE {RESTORER} SET session_replication_role = replica"),
        ];
        if copied.database != "postgres" {
            statements.push(format!("CREATE DATABASE {name} OWNER {CONFINED} TEMPLATE template0"));
        }
        for statement in &statements {
            admin.execute(statement).map_err(|error| wrong(&error))?;
        }
        admin.close();
        let mut owner =
            Connection::open(&copied.superuser(&copied.database)).map_err(|error| wrong(&error))?;
        owner.execute(&format!("ALTER SCHEMA public OWNER TO {CONFINED}")).map_err(|error| wrong(&error))?;
        owner.close();
        Ok(copied)
    }

    /// Executes a schema as the application's role, as far as the server permits it. Returns what it refused, each
    /// with the reason.
    ///
    /// # Errors
    /// The dump isn't SQL, or the server is gone.
    pub(super) fn make_schema(&self, text: &str) -> Outcome<Vec<(String, String)>> {
        let setup = self.written(text)?;
        let mut session = Connection::open(&self.server()).map_err(Failure::setup)?;
        let mut refused = Vec::new();
        for (_, statement) in setup.placed_statements() {
            match session.execute(statement) {
                Ok(_) => {}
                Err(error) if error.server().is_some() => {
                    let why = error.server().map_or_else(String::new, |server| server.message.clone());
                    refused.push((statement.to_owned(), why));
                }
                Err(error) => return Err(Failure::setup(error)),
            }
        }
        session.close();
        Ok(refused)
    }

    /// Executes a file of the user's as the application's role.
    ///
    /// # Errors
    /// The server refuses a statement.
    pub(super) fn run(&self, setup: &Setup) -> Outcome {
        let mut session = Connection::open(&self.server()).map_err(Failure::setup)?;
        setup.run(&mut session, true)?;
        session.close();
        Ok(())
    }

    /// Executes the dump as the application's role.
    fn fill(&self, text: &str) -> Outcome {
        let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("--copy-from: {error}"));
        let setup = self.written(text)?;
        let mut session = Connection::open(&self.server()).map_err(|error| wrong(&error))?;
        setup.run(&mut session, true)?;
        session.execute("ANALYZE").map_err(|error| wrong(&error))?;
        session.close();
        Ok(())
    }

    /// A dump as statements.
    #[expect(clippy::unused_self, reason = "what is executed on this copy")]
    fn written(&self, text: &str) -> Outcome<Setup> {
        let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("--copy-from: {error}"));
        let mut file = tempfile::Builder::new()
            .prefix("isobench-")
            .suffix(".sql")
            .tempfile()
            .map_err(|error| wrong(&error))?;
        writeln!(file, "--@ recorded\n{}", without_meta_commands(text)).map_err(|error| wrong(&error))?;
        Setup::read("copy-from", file.path())
    }

    fn superuser(&self, database: &str) -> ConnectOptions {
        let host = Host::unix(self.server.socket_dir(), self.server.port());
        ConnectOptions::new(host, self.server.user(), database)
    }

    /// The way for the application.
    pub(super) fn server(&self) -> ConnectOptions {
        as_role(&self.superuser(&self.database))
    }

    /// The way for what puts rows back.
    pub(super) fn admin(&self) -> ConnectOptions {
        ConnectOptions { user: RESTORER.to_owned(), ..self.superuser(&self.database) }
    }

    /// Its name for people.
    pub(super) fn name(&self) -> String {
        format!("a copy of {}", self.database)
    }

    /// Stops the server, and removes the copy.
    ///
    /// # Errors
    /// It doesn't stop.
    pub(super) fn close(self) -> Outcome {
        self.server.stop().map_err(Failure::setup)
    }
}

/// The dump without the lines by which newer versions of `pg_dump` enclose it for psql. They are its first
/// and last commands, outside of literals.
fn without_meta_commands(text: &str) -> String {
    let encloses = |line: &&str| line.starts_with("\\restrict ") || line.starts_with("\\unrestrict ");
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(encloses);
    let last = lines.iter().rposition(encloses).filter(|last| Some(*last) != first);
    let kept = lines.iter().enumerate().filter(|(at, _)| Some(*at) != first && Some(*at) != last);
    kept.flat_map(|(_, line)| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_enclosing_commands_are_left_out() {
        let dump = "--\n\\restrict x\nSELECT '\n\\restrict y\n';\n\\unrestrict x\n";
        assert_eq!(without_meta_commands(dump), "--\nSELECT '\n\\restrict y\n';\n");
        assert_eq!(without_meta_commands("SELECT 1;\n"), "SELECT 1;\n");
    }
}
