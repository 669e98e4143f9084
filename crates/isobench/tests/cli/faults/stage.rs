//! Plays a fault: a server, a command at work on it, the fault, and the remains.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use rustix::process::{Pid, Signal, kill_process};

use super::fault::{Fault, What};
use crate::compare::words;
use crate::support::document;
use crate::support::program::{Running, isobench};
use crate::support::scene::Scene;
use crate::support::wait_for;

/// A command that works on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Run,
    RunConnect,
    Compare,
    Audit,
    Probe,
    Init,
    Pgbench,
}

pub const COMMANDS: [Command; 7] = [
    Command::Run,
    Command::RunConnect,
    Command::Compare,
    Command::Audit,
    Command::Probe,
    Command::Init,
    Command::Pgbench,
];

/// The end of a command, as shown in the table.
#[derive(Debug, Clone)]
pub struct Ended {
    pub status: String,
    pub result: &'static str,
}

/// Seconds of a run that survives its fault: enough for the fault to occur in time.
const SOME: u32 = 10;

/// Seconds of a run that its fault ends.
const LONG: u32 = 600;

impl Command {
    pub const fn name(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::RunConnect => "run -C",
            Command::Compare => "compare",
            Command::Audit => "audit",
            Command::Probe => "probe",
            Command::Init => "init",
            Command::Pgbench => "pgbench",
        }
    }

    /// Returns whether it works on pgbench's tables, and doesn't make them.
    const fn needs_tables(self) -> bool {
        matches!(self, Command::Run | Command::RunConnect | Command::Pgbench)
    }

    /// The command line, without the server, for a fault.
    fn words(self, what: What) -> String {
        let time = match what {
            What::Stop | What::Cut => SOME,
            What::Notices | What::FullDisk | What::FileLimit => 1,
            What::NoHangUp => 3,
            _ => LONG,
        };
        let crowd = match what {
            What::NoDescriptors => "20",
            What::NoThreads => "64",
            What::Notices => "1",
            _ => "4",
        };
        let json = if what == What::FullDisk { "/dev/full" } else { "out.json" };
        let script = if what == What::Notices { "-f notices.sql" } else { "" };
        // Enough to be at work, and not more: many runs share the machine.
        let load = format!("-c {crowd} -R 200 -T {time}");
        match self {
            Command::Run => format!("run -n {script} {load} -j {crowd} --json {json}"),
            Command::RunConnect => format!("run -C -n {script} {load} -j 2 --json {json}"),
            Command::Compare => {
                let workload = if script.is_empty() { "-w tpcb-like" } else { "-w notices.sql" };
                format!(
                    "compare {workload} --levels rc,rr {load} --jobs {crowd} --warmup 0 \
                     --rounds 1 --json {json}"
                )
            }
            Command::Audit => {
                format!("audit --levels rc --clients {crowd} --jobs {crowd} --time {time} --json {json}")
            }
            Command::Probe => format!("probe --json {json}"),
            Command::Init => "init -s 200".to_owned(),
            Command::Pgbench => format!("pgbench -n {load} -j {crowd}"),
        }
    }

    /// A query that is true once the command's clients work.
    const fn at_work(self) -> &'static str {
        match self {
            Command::Run | Command::RunConnect | Command::Pgbench => {
                "select count(*) > 0 from pgbench_history"
            }
            Command::Compare => "select count(*) > 0 from isobench_1.pgbench_history",
            Command::Audit => "select sum(version) > 10 from isobench.registers",
            Command::Probe => "select count(*) > 0 from pg_tables where schemaname = 'isobench'",
            Command::Init => {
                "select count(*) > 0 from pg_stat_activity where datname = current_database() \
                 and query ~* '^copy pgbench_accounts' and state = 'active'"
            }
        }
    }
}

/// The server of all faults that don't hurt it.
pub struct Shared(Server);

/// A database with pgbench's tables, from which others are made.
const TABLES: &str = "tables";

impl Shared {
    pub fn start() -> Shared {
        let server = start();
        connect(&server, server.database()).execute("create database tables").expect("a database");
        make_tables(&Scene::new(), &server, TABLES);
        Shared(server)
    }

    /// Creates a database, with pgbench's tables if the command needs them.
    fn database(&self, command: Command) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("case_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let template = if command.needs_tables() { TABLES } else { "template1" };
        let sql = format!("create database {name} template {template}");
        connect(&self.0, self.0.database()).execute(&sql).expect("a database");
        name
    }
}

fn make_tables(scene: &Scene, server: &Server, database: &str) {
    let mut init = scene.isobench(&["init", "-q", "-d", database]);
    Running::start(init.args(server_options(server))).finish().expect(0);
}

/// Causes the fault while the command works, and waits for its end.
pub fn play(fault: &Fault, command: Command, shared: &Shared) -> Ended {
    let scene = Scene::new();
    let what = fault.what;
    let own = what.hurts_the_server().then(start);
    let server = own.as_ref().unwrap_or(&shared.0);
    let database = match &own {
        Some(own) => own.database().to_owned(),
        None => shared.database(command),
    };
    if own.is_some() && command.needs_tables() {
        make_tables(&scene, server, &database);
    }
    scene.write("notices.sql", "do $$ begin loop raise notice '%', repeat('x', 8000); end loop; end $$;\n");
    let proxy = (what == What::Cut).then(|| Proxy::start(server));
    let address = proxy.as_ref().map_or_else(|| server_options(server), Proxy::options);
    let line = command.words(what);
    let limit = match what {
        What::FileLimit => "ulimit -f 1;",
        What::NoHangUp => "trap '' HUP;",
        What::NoDescriptors => "ulimit -n 16;",
        What::NoThreads => "ulimit -v 600000;",
        _ => "",
    };
    let shell = format!("{limit} exec \"$0\" \"$@\"");
    let program = isobench();
    let arguments = [&["-c", &shell, &program], &words(&line)[..]].concat();
    let mut program = scene.program(Path::new("/bin/sh"), &arguments);
    program.args(address).env("PGDATABASE", &database).env("ISOBENCH_PATIENCE", what.patience());
    // Endless notices aren't read.
    let stderr = if what == What::Notices { Stdio::null() } else { Stdio::piped() };
    let running = Running::start_on(&mut program, stderr);
    let open = || connect(server, &database);
    let struck = strike(what, command, &running, open, proxy.as_ref());
    let finished = running.finish_as(&format!("{line} ({})", fault.title));
    if let (Some(postmaster), Some(_)) = (struck, &own) {
        // Resumes a stopped server, so that it can be shut down.
        signal_all(&postmaster, Signal::CONT);
    }
    assert!(!finished.stderr.contains("panicked"), "{}, {line}: {}", fault.title, finished.stderr);
    let status = match (finished.code(), std::os::unix::process::ExitStatusExt::signal(&finished.status)) {
        (Some(code), _) => code.to_string(),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let result = result(&scene, command);
    if std::env::var_os("FAULTS_SHOWN").is_some() || finished.code().is_none() {
        println!("== {}, {}: {status}, {result}\n{}", fault.title, command.name(), finished.stderr);
    }
    Ended { status, result }
}

/// Describes the contents of the result file.
fn result(scene: &Scene, command: Command) -> &'static str {
    if matches!(command, Command::Init | Command::Pgbench) {
        return "–";
    }
    if !scene.file("out.json").exists() {
        return "none";
    }
    if command == Command::Probe {
        return of_matrix(&scene.read("out.json"));
    }
    let document = document::read(scene, "out.json");
    if document["complete"] == true {
        return "complete";
    }
    let reason = document["incomplete_reason"].as_str().unwrap_or_default();
    assert!(!reason.is_empty(), "{}: an incomplete document says why", command.name());
    let measured = document::rounds(&document).any(|round| document::count(round, "/attempts/started") > 0);
    if measured { "partial" } else { "reason only" }
}

/// Describes the contents of a probe's matrix.
fn of_matrix(text: &str) -> &'static str {
    let matrix: serde_json::Value = serde_json::from_str(text).expect("JSON");
    if matrix["complete"] == true {
        return "complete";
    }
    assert!(matrix["incomplete_reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{matrix:#}");
    "reason only"
}

/// Causes the fault. Returns the server's main process.
fn strike(
    what: What,
    command: Command,
    running: &Running,
    open: impl FnOnce() -> Connection,
    proxy: Option<&Proxy>,
) -> Option<String> {
    let meanwhile = !matches!(
        what,
        What::Notices | What::FullDisk | What::FileLimit | What::NoDescriptors | What::NoThreads
    );
    if !meanwhile {
        return None;
    }
    let mut connection = open();
    wait_for("clients at work", || {
        // The tables may not exist yet.
        (connection.value(command.at_work()).ok()??.as_str() == "t").then_some(())
    });
    let postmaster = parent(&connection.value("select pg_backend_pid()").expect("an answer").expect("a pid"));
    drop(connection);
    match what {
        What::Stop => signal_all(&postmaster, Signal::STOP),
        What::StopAndInterrupt(times) => {
            signal_all(&postmaster, Signal::STOP);
            running.signal(Signal::INT);
            if times > 1 {
                if command != Command::Pgbench {
                    running.wait_for_stderr("once more to stop at once");
                }
                running.signal(Signal::INT);
            }
        }
        What::Kill => signal_all(&postmaster, Signal::KILL),
        What::Cut => proxy.expect("a proxy").cut(),
        What::Interrupt => running.signal(Signal::INT),
        What::HangUp | What::NoHangUp => running.signal(Signal::HUP),
        _ => {}
    }
    Some(postmaster)
}

/// Signals the main process first, so that it doesn't start others, then its children.
fn signal_all(postmaster: &str, wanted: Signal) {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pids: Vec<String> = pids.filter(|pid| pid.parse::<u32>().is_ok()).collect();
    signal(postmaster, wanted);
    pids.iter().filter(|pid| parent(pid) == postmaster).for_each(|pid| signal(pid, wanted));
}

fn signal(pid: &str, signal: Signal) {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process id");
    // It may have ended already.
    let _ = kill_process(pid, signal);
}

/// The process that started this one; empty if it is gone.
fn parent(pid: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.unwrap_or_default().trim().to_owned()
}

fn start() -> Server {
    let settings = [("fsync", "off"), ("max_connections", "500")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Server::start(&ServerOptions { settings, ..ServerOptions::default() }, &mut |_| {}).expect("a server")
}

fn connect(server: &Server, database: &str) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, server.user(), database)).expect("a connection")
}

fn server_options(server: &Server) -> Vec<String> {
    let host = server.socket_dir().to_string_lossy().into_owned();
    let (port, user) = (server.port().to_string(), server.user().to_owned());
    vec!["-h".to_owned(), host, "-p".to_owned(), port, "-U".to_owned(), user]
}

/// Forwards TCP connections to a server's socket until it is cut.
struct Proxy {
    port: u16,
    user: String,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    fn start(server: &Server) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let to: PathBuf = server.socket_dir().join(format!(".s.PGSQL.{}", server.port()));
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = Arc::clone(&cut);
        thread::spawn(move || {
            // Connections that are held open.
            let mut held = Vec::new();
            for client in listener.incoming().flatten() {
                if !is_cut.load(Ordering::Relaxed)
                    && let Ok(server) = UnixStream::connect(&to)
                {
                    let to_client = client.try_clone().expect("a socket");
                    let from_client = client.try_clone().expect("a socket");
                    let to_server = server.try_clone().expect("a socket");
                    let (up, down) = (Arc::clone(&is_cut), Arc::clone(&is_cut));
                    thread::spawn(move || forward(from_client, to_server, &up));
                    thread::spawn(move || forward(server, to_client, &down));
                }
                held.push(client);
            }
        });
        Proxy { port, user: server.user().to_owned(), cut }
    }

    fn options(&self) -> Vec<String> {
        ["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", &self.user].map(str::to_owned).to_vec()
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

fn forward(mut from: impl Read, mut to: impl Write + Close, is_cut: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    // If one side closes, so does the other.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while is_cut.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_secs(1));
        }
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
    if !is_cut.load(Ordering::Relaxed) {
        to.close();
    }
}

/// A socket whose other side is told that no more is sent.
trait Close {
    fn close(&self);
}

impl Close for TcpStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Close for UnixStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}
