//! The embedded server of a running program, seen from outside.

use std::fs;
use std::path::PathBuf;

use isobench_pgwire::{ConnectOptions, Connection, Host};
use rustix::process::{Pid, Signal, kill_process};

use super::scene::Scene;
use super::wait_for;

/// Connects to the embedded server of the only program in the scene, once it is up.
pub fn connect(scene: &Scene) -> Connection {
    wait_for("the embedded server", || {
        let data = data(scene)?;
        Connection::open(&ConnectOptions::new(Host::unix(&data, 5432), "postgres", "postgres")).ok()
    })
}

/// The data folder of the embedded server, with its socket.
fn data(scene: &Scene) -> Option<PathBuf> {
    let mut folders = scene.leftovers().into_iter().map(|folder| folder.join("data"));
    folders.find(|data| data.join(".s.PGSQL.5432").exists())
}

/// Waits until transactions have been committed, and returns a connection to the server.
pub fn wait_for_work(scene: &Scene) -> Connection {
    let mut connection = connect(scene);
    // Where cells take turns, tables are in schemas of their own.
    let tables = ["pgbench_history", "isobench_1.pgbench_history"];
    wait_for("committed transactions", || {
        tables.iter().any(|table| has_rows(&mut connection, table)).then_some(())
    });
    connection
}

/// Waits until a table has more than a few rows.
pub fn wait_for_rows(connection: &mut Connection, table: &str) {
    wait_for("committed transactions", || has_rows(connection, table).then_some(()));
}

fn has_rows(connection: &mut Connection, table: &str) -> bool {
    let query = format!("select count(*) > 10 from {table}");
    // The table may not exist yet.
    connection.value(&query).is_ok_and(|found| found.as_deref() == Some("t"))
}

/// Kills the server's main process, as the system does when memory runs out.
pub fn kill_server(scene: &Scene) {
    let pidfile = data(scene).expect("the server runs").join("postmaster.pid");
    let pidfile = fs::read_to_string(pidfile).expect("the server's pid file");
    kill(pidfile.lines().next().expect("a line"));
}

/// Kills one client's process of the server, which makes the server restart itself.
pub fn kill_backend(connection: &mut Connection) {
    let query = "select pid from pg_stat_activity \
                 where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1";
    kill(&connection.value(query).expect("an answer").expect("a client"));
}

fn kill(pid: &str) {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::KILL).expect("SIGKILL");
}
