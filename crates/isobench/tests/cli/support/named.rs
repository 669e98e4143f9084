//! A named server: one for all tests, with a database for each.

use std::process::Command;

use isobench_pgwire::Connection;

use super::has_postgresql;
use super::place::Place;
use super::program::{Finished, Running};
use super::scene::Scene;

/// A database of one test.
pub struct Database {
    place: Place,
    pub name: String,
}

impl Database {
    /// Creates a database; `None` after printing the reason if there is none.
    pub fn new(test: &str) -> Option<Database> {
        has_postgresql(test).then(|| Database::of(Place::shared()))
    }

    /// Creates a database on a server of its own with these settings; `None` after printing the reason
    /// if there is none.
    pub fn with_settings(test: &str, settings: &[(&str, &str)]) -> Option<Database> {
        has_postgresql(test).then(|| Database::of(Place::with_settings(settings)))
    }

    fn of(place: Place) -> Database {
        let name = place.name.clone();
        Database { place, name }
    }

    pub fn connect(&self) -> Connection {
        self.place.connect()
    }

    /// The options that name the server, for isobench, pgbench and psql.
    pub fn server_options(&self) -> [String; 6] {
        let [host, port, user, _] = self.place.environment().map(|(_, value)| value);
        ["-h".to_owned(), host, "-p".to_owned(), port, "-U".to_owned(), user]
    }

    /// The program with arguments, and the options that name this database.
    pub fn isobench(&self, scene: &Scene, arguments: &[&str]) -> Command {
        let mut command = scene.isobench(arguments);
        command.args(self.server_options()).args(["-d", &self.name]);
        command
    }

    /// Runs the program on this database to its end.
    pub fn run(&self, scene: &Scene, arguments: &[&str]) -> Finished {
        Running::start(&mut self.isobench(scene, arguments)).finish()
    }

    /// The port and the password of its TCP address, 127.0.0.1.
    pub fn tcp(&self) -> (String, String) {
        let server = &self.place.server;
        (server.port().to_string(), server.password().expect("a password").to_owned())
    }

    /// The first value of a query.
    pub fn value(&self, sql: &str) -> String {
        self.connect().value(sql).expect("an answer").unwrap_or_default()
    }

    /// All objects besides the system's own: kind and name, one per line.
    pub fn inventory(&self) -> String {
        self.value(
            "select coalesce(string_agg(what, ', ' order by what), '') from (
                select 'schema ' || nspname as what from pg_namespace
                    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public')
                union all select nspname || '.' || relname from pg_class c join pg_namespace n on n.oid = relnamespace
                    where nspname !~ '^pg_' and nspname <> 'information_schema'
            ) as found",
        )
    }
}
