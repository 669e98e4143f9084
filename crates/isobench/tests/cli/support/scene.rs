//! The folders of one test: its files, and a folder for temporary files that must be empty at the
//! end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use isobench_testkit::folder;
use rustix::process::{Pid, Signal, kill_process};

use super::has_postgresql;
use super::place::Place;
use super::program::{Finished, Running, isobench};

/// Folders of one test. Dropping it ends servers that a failed test left behind.
pub struct Scene {
    folder: tempfile::TempDir,
    /// The database that the environment of programs names.
    place: Option<Place>,
}

impl Scene {
    pub fn new() -> Scene {
        let folder = folder::short();
        // Accessible to all users as /tmp is.
        for name in ["", "tmp", "files"] {
            let path = folder.path().join(name);
            fs::create_dir_all(&path).expect("a folder");
            fs::set_permissions(&path, Permissions::from_mode(0o1777)).expect("chmod");
        }
        Scene { folder, place: None }
    }

    /// Creates a scene whose programs find a database of its own on the server that tests share;
    /// `None` after printing the reason if there is none. It saves the start of a server for each
    /// program.
    pub fn with_database(test: &str) -> Option<Scene> {
        let mut scene = Scene::with_server(test)?;
        scene.place = Some(Place::shared());
        Some(scene)
    }

    /// Creates a scene for a test whose programs start servers, since it is about these, their
    /// settings, versions or faults, or counts what a whole server does; `None` after printing the
    /// reason if that is impossible.
    pub fn with_server(test: &str) -> Option<Scene> {
        has_postgresql(test).then(Scene::new)
    }

    /// The root folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder for temporary files (`TMPDIR`).
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// A file of the test; the program runs in its folder, so messages show the bare name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program with arguments, in an environment that names no server but the scene's.
    pub fn isobench(&self, arguments: &[&str]) -> Command {
        self.program(Path::new(&isobench()), arguments)
    }

    /// Another program in the same environment.
    pub fn program(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.file("")).env("TMPDIR", self.temporary()).env("LC_ALL", "C");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") || name == "COLUMNS" {
                command.env_remove(name);
            }
        }
        command.envs(self.place.iter().flat_map(Place::environment));
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Finished {
        Running::start(&mut self.isobench(arguments)).finish()
    }

    /// The entries left in the folder for temporary files.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.temporary()).expect("the folder").flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Fails if a folder or a process is left.
    pub fn assert_clean(&self) {
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "something is left behind");
        assert_eq!(self.processes(), Vec::<String>::new(), "a process is left behind");
    }

    /// Processes that work in this scene's folders.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.folder().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let mut found = Vec::new();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()) {
            let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if command.contains(&folder) || cwd.starts_with(&folder) {
                found.push(format!("{} {command}", entry.file_name().to_string_lossy()));
            }
        }
        found
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for folder in self.leftovers() {
            let Ok(pidfile) = fs::read_to_string(folder.join("data/postmaster.pid")) else { continue };
            let pid = pidfile.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // It may have ended already. SIGQUIT is the server's immediate shutdown.
                let _ = kill_process(pid, Signal::QUIT);
            }
        }
    }
}
