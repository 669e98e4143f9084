//! A database with the tables, in which statements run and are rolled back.

use std::time::Duration;

use isobench_observation::{Dark, Forms, Plans};
use isobench_pgserver::Server;
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_sql::Catalog;

/// All rows of each table in the order in which they are stored, and the log in its own.
const CONTENTS: &str = "SELECT
    (SELECT string_agg(log::text, ' ' ORDER BY step) FROM log), (SELECT string_agg(t::text, ' ') FROM t),
    (SELECT string_agg(u::text, ' ') FROM u), (SELECT string_agg(v::text, ' ') FROM v),
    (SELECT string_agg(p::text, ' ') FROM p), (SELECT string_agg(n::text, ' ') FROM n),
    (SELECT string_agg(k::text, ' ') FROM k), (SELECT string_agg(x::text, ' ') FROM x),
    (SELECT string_agg(h::text, ' ') FROM h), (SELECT string_agg(f::text, ' ') FROM f)";

const RESTART: &str = "SELECT setval('numbers', 1, false), setval('steps', 1, false)";

/// What sequences have given, which isn't rolled back.
const SEQUENCES: &str = "SELECT n.last_value, n.is_called, s.last_value, s.is_called FROM numbers n, steps s";

/// Rows that another session has locked, which SKIP LOCKED passes over and NOWAIT refuses.
const LOCKED: &str = "SELECT FROM j WHERE a % 4 = 0 FOR UPDATE";

type Row = Vec<Option<String>>;

pub struct Copy {
    options: ConnectOptions,
    connection: Connection,
    /// Holds locks.
    other: Connection,
    catalog: Catalog,
}

/// What a statement did.
#[derive(Debug, PartialEq, Eq)]
pub struct Effects {
    columns: Vec<String>,
    rows: Vec<Row>,
    tag: String,
    sequences: Row,
    tables: Row,
}

impl Copy {
    /// Makes a database.
    pub fn make(server: &Server, name: &str) -> Copy {
        let open = |database: &str| {
            let host = Host::unix(server.socket_dir(), server.port());
            let options = ConnectOptions::new(host, server.user(), database);
            (Connection::open(&options).unwrap(), options)
        };
        let (mut first, _) = open(server.database());
        first.execute(&format!("CREATE DATABASE {name}")).unwrap();
        let ((connection, options), (other, _)) = (open(name), open(name));
        let mut copy = Copy { options, connection, other, catalog: Catalog::default() };
        copy.renew();
        copy
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Makes the tables anew.
    pub fn renew(&mut self) {
        self.other = Connection::open(&self.options).unwrap();
        self.connection = Connection::open(&self.options).unwrap();
        self.connection.set_timeout(Some(Duration::from_mins(1)));
        let connection = &mut self.connection;
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").unwrap();
        connection.execute(include_str!("schema.sql")).unwrap();
        // Plans use indexes as on large tables, and index-only scans need the map of visible rows.
        connection
            .execute("SET random_page_cost = 1; SET seq_page_cost = 1.2; SET lock_timeout = '20ms'")
            .unwrap();
        for table in ["t", "u", "j", "v", "p", "n", "k", "x", "h", "f"] {
            connection.execute(&format!("VACUUM ANALYZE {table}")).unwrap();
        }
        self.catalog = Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).unwrap();
        self.other.execute("BEGIN").unwrap();
        self.other.execute(LOCKED).unwrap();
    }

    /// Compares the plans of both forms.
    pub fn compare(&mut self, forms: &Forms) -> Option<Dark> {
        let connection = &mut self.connection;
        let mut query =
            |sql: &str| connection.query(sql).map(|result| result.rows).map_err(|error| error.to_string());
        let mut plans = Plans::start(&mut query).unwrap();
        let found = plans.compare(forms, &|_| None).unwrap();
        plans.end().unwrap();
        found
    }

    /// Runs a statement whose last columns are `appended`, and rolls it back.
    pub fn run(&mut self, sql: &str, appended: usize) -> Result<Effects, String> {
        let connection = &mut self.connection;
        connection.execute(RESTART).unwrap();
        connection.execute("BEGIN").unwrap();
        let result = connection.query(sql).map_err(|error| message(&error.to_string()));
        let tables = result.is_ok().then(|| connection.query(CONTENTS).unwrap().rows.remove(0));
        connection.execute("ROLLBACK").unwrap();
        let sequences = connection.query(SEQUENCES).unwrap().rows.remove(0);
        let result = result?;
        let own = result.columns.len().saturating_sub(appended);
        // The tag needs another way of asking, so it runs once more.
        connection.execute(RESTART).unwrap();
        connection.execute("BEGIN").unwrap();
        let tag = connection.execute(sql).map_err(|error| message(&error.to_string()));
        connection.execute("ROLLBACK").unwrap();
        // A statement without columns may have rows now.
        let shown = result.rows.iter().filter(|_| own > 0);
        Ok(Effects {
            columns: result.columns[..own].to_vec(),
            rows: shown.map(|row| row[..own].to_vec()).collect(),
            tag: tag?.into_iter().map(|done| done.tag).collect(),
            sequences,
            tables: tables.unwrap_or_default(),
        })
    }
}

impl Effects {
    /// The differences, for people.
    pub fn differences(&self, sent: &Effects) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, left: String, right: String| {
            if left != right {
                found.push(format!("{what}: as written {left}, as sent {right}"));
            }
        };
        compare("columns", format!("{:?}", self.columns), format!("{:?}", sent.columns));
        compare("rows", format!("{:?}", self.rows), format!("{:?}", sent.rows));
        compare("tag", self.tag.clone(), sent.tag.clone());
        compare("sequences", format!("{:?}", self.sequences), format!("{:?}", sent.sequences));
        for (left, right) in self.tables.iter().zip(&sent.tables) {
            compare("a table", format!("{left:?}"), format!("{right:?}"));
        }
        found
    }
}

/// The first line of an error without the place, which may be another.
fn message(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split(" at character ").next().unwrap_or_default().to_owned()
}
