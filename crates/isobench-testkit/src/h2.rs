//! H2, a database in Java that speaks PostgreSQL's protocol: a second engine for tests.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use isobench_pgwire::{ConnectOptions, Host, Secret};

/// A running H2 on a loopback port, with its data in the caller's folder; stopped when dropped.
pub struct H2 {
    process: Child,
    /// The port on 127.0.0.1.
    pub port: u16,
}

impl Drop for H2 {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl H2 {
    /// Starts H2 with the jar named by `ISOBENCH_H2_JAR`, or the one in the local Maven repository.
    ///
    /// # Errors
    /// The missing program or file.
    ///
    /// # Panics
    /// If it doesn't report that it is running.
    pub fn start(folder: &Path) -> Result<H2, String> {
        let jar = jar()
            .ok_or("no H2 jar (ISOBENCH_H2_JAR, or com.h2database:h2:2.4.240 in the Maven repository)")?;
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = listener.map_err(|error| format!("no free port ({error})"))?.port();
        let mut process = Command::new("java")
            .arg("-cp")
            .arg(jar)
            .args(["org.h2.tools.Server", "-pg", "-pgPort", &port.to_string(), "-ifNotExists", "-baseDir"])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("no Java ({error})"))?;
        let stdout = process.stdout.take();
        let h2 = H2 { process, port };
        // It reports that it is running as soon as it listens.
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        assert!(line.contains("PG server running"), "H2 says: {line}");
        Ok(h2)
    }

    /// The options for connecting to its database `test`.
    pub fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new(Host::tcp("127.0.0.1", self.port), "sa", "test");
        options.password = Some(Secret::new("sa"));
        options
    }
}

fn jar() -> Option<PathBuf> {
    let named = std::env::var_os("ISOBENCH_H2_JAR").map(PathBuf::from);
    let in_repository = || {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".m2/repository/com/h2database/h2/2.4.240/h2-2.4.240.jar"))
    };
    named.or_else(in_repository).filter(|path| path.exists())
}
