//! `PgBouncer` between a test and its server, if it is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use isobench_pgwire::{ConnectOptions, Connection, Host};
use rustix::process::{Pid, Signal, kill_process};

use super::named::Database;
use super::program::{Finished, Running};
use super::scene::Scene;
use super::{skip, wait_for};

/// The port in the name of its socket.
const PORT: u16 = 6432;

/// Debian's path, outside of an ordinary user's search path.
const PROGRAMS: [&str; 2] = ["/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"];

/// A running `PgBouncer`; dropping it ends it.
pub struct PgBouncer {
    child: Child,
    socket: PathBuf,
    database: String,
}

impl PgBouncer {
    /// Starts one in front of a database, with these lines in its section `[pgbouncer]`; `None`
    /// after printing the reason if that is impossible.
    pub fn start(test: &str, scene: &Scene, database: &Database, settings: &str) -> Option<PgBouncer> {
        let Some(program) = PROGRAMS.iter().map(Path::new).find(|path| path.exists()) else {
            skip(test, "PgBouncer isn't installed");
            return None;
        };
        let (port, password) = database.tcp();
        let socket = scene.file("");
        let config = format!(
            "[databases]\n* = host=127.0.0.1 port={port} user=postgres password={password}\n\
             [pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {}\nauth_type = any\n\
             default_pool_size = 40\nlogfile = {}\n{settings}\n",
            socket.display(),
            scene.file("pgbouncer.log").display(),
        );
        scene.write("pgbouncer.ini", &config);
        let mut command = Command::new(program);
        // It doesn't run as root.
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "nobody"]);
        }
        command
            .arg(scene.file("pgbouncer.ini"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("PgBouncer starts");
        let bouncer = PgBouncer { child, socket, database: database.name.clone() };
        wait_for("PgBouncer", || bouncer.connect().ok());
        Some(bouncer)
    }

    /// A session through it.
    pub fn connect(&self) -> Result<Connection, isobench_pgwire::Error> {
        Connection::open(&ConnectOptions::new(Host::unix(&self.socket, PORT), "postgres", &self.database))
    }

    /// Runs the program through it.
    pub fn run(&self, scene: &Scene, arguments: &[&str]) -> Finished {
        let mut command = scene.isobench(arguments);
        command.arg("-h").arg(&self.socket).args([
            "-p",
            &PORT.to_string(),
            "-U",
            "postgres",
            "-d",
            &self.database,
        ]);
        Running::start(&mut command).finish()
    }

    /// Returns the settings left in the server's sessions that it may give to other clients,
    /// without duplicates: level and search path.
    pub fn left_behind(&self, sessions: usize) -> Vec<String> {
        let mut open: Vec<Connection> = (0..sessions).map(|_| self.connect().expect("a session")).collect();
        let mut left = Vec::new();
        for session in &mut open {
            // One transaction each, all open at once, so that each uses a different session of the
            // server.
            session.execute("begin").expect("begin");
            let query = "select concat_ws(', ', current_setting('default_transaction_isolation'), \
                current_setting('search_path'), nullif(current_setting('isobench.passed_on', true), ''), \
                (select count(*) from pg_locks where locktype = 'advisory'
                    and database = (select oid from pg_database where datname = current_database())))";
            left.push(session.value(query).expect("settings").expect("settings"));
        }
        left.sort();
        left.dedup();
        left
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_file(self.socket.join(format!(".s.PGSQL.{PORT}")));
    }
}
