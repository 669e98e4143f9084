//! One run of one program: its output, its exit status, the resulting files and database, and its
//! statements.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;

use isobench_testkit::installed::program_under_test;

use crate::case::Case;
use crate::server::Site;

/// Time limit of a case; longer runs are considered hung.
const PATIENCE: Duration = Duration::from_secs(40);

/// One of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Theirs,
    Ours,
}

/// The results of a run.
#[derive(Debug, Clone)]
pub struct Left {
    /// Its exit status; `None` if it hung, or was ended by a signal.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// The files that it wrote.
    pub files: BTreeMap<String, String>,
    /// The database afterwards.
    pub state: String,
    /// The server's log meanwhile, about this database and others.
    pub log: String,
    /// Its database.
    pub database: String,
    /// The server's process in that database that belongs to the suite.
    pub own_session: String,
    /// Its process id.
    pub pid: u32,
}

/// The path of our program.
pub fn isobench() -> String {
    program_under_test(env!("CARGO_BIN_EXE_isobench"))
}

/// Runs a program on a case, in its own folder and database.
pub fn run(site: &Site, case: &Case, program: Program) -> Left {
    let folder = tempfile::tempdir().expect("a folder");
    let database = site.database(case.tables, &case.sql);
    let (name, own_session) = (database.name.clone(), database.pid.clone());
    let case = case.in_database(&name);
    for (name, text) in &case.files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let mut command = command(site, &case, program);
    command.current_dir(folder.path()).envs(site.environment(&name)).env("PGBENCH_RANDOM_SEED", "42");
    for (name, value) in &case.env {
        // An empty value unsets the variable.
        if value.is_empty() {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    let running = Running::start(&mut command, case.input.clone());
    let pid = running.child.id();
    let (status, stdout, stderr) = running.finish();
    let files = files(folder.path(), &case);
    let (state, log) = site.finish(database);
    Left { status, stdout, stderr, files, state, log, database: name, own_session, pid }
}

/// The program with the case's options, in an environment independent of this machine.
fn command(site: &Site, case: &Case, program: Program) -> Command {
    let (path, version) = match program {
        Program::Theirs => (site.pgbench.program.clone(), None),
        Program::Ours => (PathBuf::from(isobench()), Some(site.pgbench.major)),
    };
    let mut command = Command::new(path);
    // The name under which it runs turns isobench into pgbench.
    command.arg0("pgbench").env_clear().envs([("LC_ALL", "C"), ("TZ", "UTC"), ("PATH", "/usr/bin:/bin")]);
    // The default version must work without an option.
    if let Some(version) = version.filter(|&version| version != 18) {
        command.arg(format!("--compat={version}"));
    }
    let words = shlex::split(&case.options).unwrap_or_else(|| panic!("{}: {}", case.name, case.options));
    command.args(words);
    command
}

/// The files in a folder that don't belong to the case, by name.
fn files(folder: &Path, case: &Case) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !case.files.iter().any(|(given, _)| *given == name) {
            files.insert(name, fs::read_to_string(entry.path()).expect("a file of text"));
        }
    }
    files
}

/// A running program, whose output is read continuously.
struct Running {
    child: Child,
    /// Standard output and standard error, each once it has ended.
    output: [Receiver<String>; 2],
}

impl Running {
    fn start(command: &mut Command, input: String) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output =
            [collect(child.stdout.take().expect("a pipe")), collect(child.stderr.take().expect("a pipe"))];
        let mut stdin = child.stdin.take().expect("a pipe");
        // A program that doesn't read it may have closed it.
        spawn(move || drop(stdin.write_all(input.as_bytes())));
        Running { child, output }
    }

    /// Waits for its end within the time limit. Returns the exit status (`None` if it hung),
    /// standard output and standard error.
    fn finish(mut self) -> (Option<i32>, String, String) {
        let mut hangs = false;
        let texts = self.output.map(|receiver| {
            receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                hangs = true;
                self.child.kill().expect("a child that can be killed");
                receiver.recv_timeout(PATIENCE).unwrap_or_default()
            })
        });
        let status = self.child.wait().expect("a child");
        let [stdout, stderr] = texts;
        (status.code().filter(|_| !hangs), stdout, stderr)
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe");
        // The receiver is gone if it took too long.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}
