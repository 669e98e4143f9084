//! The server for both programs, and a database for each run of one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::installed::RealPgbench;

use crate::state;

/// Settings of the server: fast, with a log of all statements for the comparison.
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
    ("shared_buffers", "64MB"),
    ("log_statement", "all"),
    ("log_min_messages", "error"),
    ("log_line_prefix", "%d|%a|%p|"),
    ("log_parameter_max_length_on_error", "-1"),
    ("deadlock_timeout", "50ms"),
    // On since 19; whether somebody waits as long as that is chance.
    ("log_lock_waits", "off"),
    ("max_connections", "150"),
];

/// The objects of every database, for use in scripts.
///
/// `flaky(n, code)` raises an error of this code unless it is the n-th, 2n-th, … call: a sequence
/// keeps its value through a rollback, so conflicts always come in the same places. With
/// `signal(n)` and `wait_for(n)`, n from 2, a client waits for another, regardless of snapshots.
const COMMON: &str = "
    create table t (i int, x text);
    create table k (i int primary key);
    create sequence calls;
    create function flaky(n int, code text) returns int language plpgsql as $$
    begin
        if nextval('calls') % n <> 0 then
            raise exception using errcode = code, message = 'flaky ' || code;
        end if;
        return n;
    end $$;
    create function signal(n int) returns bigint language sql as
        $$ select setval('calls', greatest(n, last_value)) from calls $$;
    create function wait_for(n int) returns int language plpgsql as $$
    begin
        while (select last_value from calls) < n loop
            perform pg_sleep(0.01);
        end loop;
        return n;
    end $$;
    create function noisy(level text) returns int language plpgsql as $$
    begin
        case level
            when 'notice' then raise notice 'a notice' using detail = 'with detail', hint = 'and hint';
            when 'warning' then raise warning 'a warning';
            when 'info' then raise info 'an info';
            else raise exception 'an error' using detail = 'with detail', hint = 'and hint';
        end case;
        return 1;
    end $$;
";

/// Removes everything from a database. Creating a new database takes much longer, since the server
/// makes a checkpoint for it.
const CLEAR: &str = "
    do $$
    declare found name;
    begin
        for found in select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema' loop
            execute format('drop schema %I cascade', found);
        end loop;
    end $$;
    create schema public authorization pg_database_owner;
    grant usage on schema public to public;
";

/// Undoes the effects of most cases, which is faster still.
const RESTORE: [&str; 2] = [
    "truncate t, k; select setval('calls', 1, false)",
    "truncate t, k; select setval('calls', 1, false); truncate pgbench_history;
     update pgbench_accounts set abalance = 0 where abalance <> 0;
     update pgbench_tellers set tbalance = 0; update pgbench_branches set bbalance = 0",
];

/// A server for one version of pgbench.
pub struct Site {
    /// The real program.
    pub pgbench: RealPgbench,
    server: Server,
    admin: Mutex<Connection>,
    /// Databases in their initial state: without and with pgbench's tables.
    ready: [Mutex<Vec<Database>>; 2],
    /// The state of a new database of each kind.
    fresh: [String; 2],
    number: AtomicU32,
}

impl Site {
    /// Starts the server of the same installation as the program.
    ///
    /// # Panics
    /// It can't be started, or pgbench's tables can't be created.
    pub fn start(pgbench: RealPgbench) -> Site {
        let settings = SETTINGS.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let options = ServerOptions { bin: pgbench.server.clone(), settings, ..ServerOptions::default() };
        let server = Server::start(&options, &mut |_| {}).expect("a server");
        let admin = Mutex::new(connect(&server, server.database()));
        let (ready, fresh, number) = Default::default();
        let mut site = Site { pgbench, server, admin, ready, fresh, number };
        site.prepare();
        site
    }

    /// Creates the two template databases.
    fn prepare(&mut self) {
        self.admin("create role lowly login");
        self.admin("create database kind_0");
        connect(&self.server, "kind_0").execute(COMMON).expect("the common objects");
        self.admin("create database kind_1 template kind_0");
        assert!(self.make_tables("kind_1"), "pgbench -i fails");
        for (kind, fresh) in self.fresh.iter_mut().enumerate() {
            let mut connection = connect(&self.server, &format!("kind_{kind}"));
            *fresh = state::of(&mut connection, kind == 0);
        }
    }

    fn admin(&self, sql: &str) {
        lock(&self.admin).execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The variables that name a database of the server.
    pub fn environment(&self, database: &str) -> Vec<(String, String)> {
        let folder = self.server.socket_dir().to_string_lossy().into_owned();
        let port = self.server.port().to_string();
        let variables = [
            ("PGHOST", folder),
            ("PGPORT", port),
            ("PGUSER", "postgres".into()),
            ("PGDATABASE", database.into()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Returns a database in its initial state, with pgbench's tables if requested, after executing
    /// statements.
    ///
    /// # Panics
    /// A statement fails.
    pub fn database(&self, tables: bool, statements: &[String]) -> Database {
        let kind = usize::from(tables);
        let ready = lock(&self.ready[kind]).pop();
        let mut database = ready.unwrap_or_else(|| self.new_database(kind));
        for sql in statements {
            let sql = sql.replace("$DATABASE", &database.name);
            database.connection.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        database.log_start = std::fs::metadata(self.log_file()).expect("the server's log").len();
        database
    }

    fn new_database(&self, kind: usize) -> Database {
        let name = format!("db_{}", self.number.fetch_add(1, Ordering::Relaxed));
        self.admin(&format!("create database {name} template kind_{kind}"));
        let mut connection = connect(&self.server, &name);
        let pid = connection.value("select pg_backend_pid()").expect("an answer").unwrap_or_default();
        Database { kind, name, connection, pid, log_start: 0 }
    }

    /// The initial state of a database.
    pub fn fresh(&self, tables: bool) -> &str {
        &self.fresh[usize::from(tables)]
    }

    /// Returns the state of the database, and the server's log meanwhile for all databases. The
    /// database returns to the pool if it can be restored.
    pub fn finish(&self, mut database: Database) -> (String, String) {
        database.wait_for_quiet();
        let log = self.log_since(database.log_start);
        let kind = database.kind;
        let state = state::of(&mut database.connection, kind == 0);
        // A database that can't be reused stays until the server ends.
        if state == self.fresh[kind] || self.restore(&mut database, &state) {
            lock(&self.ready[kind]).push(database);
        }
        (state, log)
    }

    /// Restores a database to its initial state, if possible.
    fn restore(&self, database: &mut Database, state: &str) -> bool {
        let kind = database.kind;
        if relations(state) == relations(&self.fresh[kind]) {
            if database.connection.execute(RESTORE[kind]).is_err() {
                return false;
            }
        } else {
            let cleared =
                database.connection.execute(CLEAR).and_then(|_| database.connection.execute(COMMON));
            if cleared.is_err() || kind == 1 && !self.make_tables(&database.name) {
                return false;
            }
        }
        let settings =
            "select datallowconn and datconnlimit = -1 from pg_database where datname = current_database()";
        database.connection.value(settings).is_ok_and(|usable| usable.as_deref() == Some("t"))
            && state::of(&mut database.connection, kind == 0) == self.fresh[kind]
    }

    /// Lets the real program create its tables. Returns whether that succeeded.
    fn make_tables(&self, database: &str) -> bool {
        let mut command = Command::new(&self.pgbench.program);
        let output = command.args(["-i", "-q"]).envs(self.environment(database)).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn log_since(&self, start: u64) -> String {
        let mut file = File::open(self.log_file()).expect("the server's log");
        file.seek(SeekFrom::Start(start)).expect("a file");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("the server's log");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn log_file(&self) -> PathBuf {
        self.server.log_path()
    }
}

/// A database for one run of a program.
pub struct Database {
    kind: usize,
    pub name: String,
    connection: Connection,
    /// The server's process for the suite's own connection, which isn't the program's.
    pub pid: String,
    log_start: u64,
}

impl Database {
    /// Waits until no other session is left: a program's last sessions end shortly after it.
    fn wait_for_quiet(&mut self) {
        let began = Instant::now();
        let query = "select count(*) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        while self.connection.value(query).expect("an answer").as_deref() != Some("0") {
            assert!(began.elapsed() < Duration::from_secs(20), "sessions stay in {}", self.name);
            sleep(Duration::from_millis(2));
        }
    }
}

/// The part of a state before the contents of tables.
fn relations(state: &str) -> &str {
    state.split_once("\nCONTENTS").map_or(state, |(relations, _)| relations)
}

fn connect(server: &Server, database: &str) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, server.user(), database)).expect("a connection")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
