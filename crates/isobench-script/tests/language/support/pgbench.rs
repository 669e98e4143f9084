//! The real pgbench, if installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::execute::SEED;
use super::fake_server::{self, Log};

/// The real program, connected to the fake server.
pub struct Pgbench {
    program: PathBuf,
    folder: tempfile::TempDir,
    pub log: Log,
    pub version: u32,
}

/// The output of a run.
pub struct Printed {
    pub stdout: String,
    /// The lines of `debug()`.
    pub debug: Vec<String>,
    /// The first error, without `pgbench: error: `, which may have several lines.
    pub error: Option<String>,
}

impl Pgbench {
    /// Finds the program by `pg_config --bindir`, or else in the search path.
    ///
    /// # Errors
    /// The reason that the oracle isn't available.
    pub fn find() -> Result<Self, String> {
        let (program, version) = isobench_testkit::installed::pgbench()?;
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder ({error})"))?;
        let log = fake_server::start(folder.path()).map_err(|error| format!("no socket ({error})"))?;
        Ok(Self { program, folder, log, version })
    }

    /// A file in the temporary folder; pgbench runs there, so its messages show the bare name.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("temporary folder is writable");
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs pgbench with further options.
    pub fn run(&self, options: &[&str]) -> Printed {
        let output = Command::new(&self.program)
            .current_dir(self.folder.path())
            .arg("-h")
            .arg(self.folder.path())
            .args(["-U", "nobody", "-n", &format!("--random-seed={SEED}")])
            .args(options)
            .arg("nothing")
            .env_clear()
            .env("LC_ALL", "C")
            .output()
            .expect("pgbench starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut error: Option<String> = None;
        for line in stderr.lines().skip_while(|line| !line.starts_with("pgbench: error: ")) {
            match (&mut error, line.strip_prefix("pgbench: ")) {
                (None, Some(text)) => error = text.strip_prefix("error: ").map(str::to_owned),
                (Some(error), None) => {
                    error.push('\n');
                    error.push_str(line);
                }
                _ => break,
            }
        }
        Printed {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            debug: stderr.lines().filter(|line| line.starts_with("debug(")).map(str::to_owned).collect(),
            error,
        }
    }

    /// The output of `--show-script`.
    pub fn shown(&self, builtin: &str) -> String {
        let output = Command::new(&self.program)
            .arg(format!("--show-script={builtin}"))
            .output()
            .expect("pgbench starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs one script as one transaction of one client.
    pub fn once(&self, script: &str, options: &[&str]) -> Printed {
        self.write("x.sql", script);
        self.log.take();
        let options: Vec<&str> = ["-t", "1", "-f", "x.sql"].iter().chain(options).copied().collect();
        self.run(&options)
    }
}
