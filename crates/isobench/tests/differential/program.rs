//! One run of one program: what it printed, how it ended, the files and the database it left, and
//! what it asked for.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;

use crate::case::Case;
use crate::server::Site;

/// How long a case may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(40);

/// Which of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Theirs,
    Ours,
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct Left {
    /// Its exit status; `None` if it hung, or was ended by a signal.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// The files it wrote.
    pub files: BTreeMap<String, String>,
    /// The database afterwards.
    pub state: String,
    /// What the server logged meanwhile, about this database and others.
    pub log: String,
    /// The database it had.
    pub database: String,
    /// The server's process there that isn't for the program.
    pub own_session: String,
    /// Its process id.
    pub pid: u32,
}

/// Runs a program on a case, in a folder and a database of its own.
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
        // An empty value takes the variable away.
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

/// The program with the case's options, in an environment that has nothing of this machine's.
fn command(site: &Site, case: &Case, program: Program) -> Command {
    let (path, version) = match program {
        Program::Theirs => (site.pgbench.program.clone(), None),
        Program::Ours => (PathBuf::from(env!("CARGO_BIN_EXE_isobench")), Some(site.pgbench.major)),
    };
    let mut command = Command::new(path);
    // The name under which it runs is what makes isobench pgbench.
    command.arg0("pgbench").env_clear().envs([("LC_ALL", "C"), ("TZ", "UTC"), ("PATH", "/usr/bin:/bin")]);
    // What is the default must work without being asked for.
    if let Some(version) = version.filter(|&version| version != 18) {
        command.arg(format!("--compat={version}"));
    }
    let words = shlex::split(&case.options).unwrap_or_else(|| panic!("{}: {}", case.name, case.options));
    command.args(words);
    command
}

/// The files in a folder that are not the case's, by name.
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

/// A running program, whose output is read as it comes.
struct Running {
    child: Child,
    /// What it printed and what it said, when each has come to its end.
    output: [Receiver<String>; 2],
}

impl Running {
    fn start(command: &mut Command, input: String) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output =
            [collect(child.stdout.take().expect("a pipe")), collect(child.stderr.take().expect("a pipe"))];
        let mut stdin = child.stdin.take().expect("a pipe");
        // Whoever doesn't read it has closed it.
        spawn(move || drop(stdin.write_all(input.as_bytes())));
        Running { child, output }
    }

    /// Waits for its end, for as long as patience lasts: the exit status, none if it hung; what it
    /// printed and said.
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
        // Nobody listens any more if it took too long.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}
