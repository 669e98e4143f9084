//! The tester against PostgreSQL's own `isolationtester`: the same specifications on the same
//! server, the same output.
//!
//! Debian's package `postgresql-client-15` has it; `ISOBENCH_ISOLATIONTESTER` can name one.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use isobench_database::products::POSTGRESQL;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_probe::anomalies::PROBES;
use isobench_probe::{Event, Opener, Options, RunError, Spec, Tester, WhoWaits, output};
use isobench_testkit::installed::{isolation_tester, postgresql_programs, skip};

/// A step's limit for both.
const LIMIT: Duration = Duration::from_secs(1);

/// What a tester printed: the output, and what it said beside it.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    output: String,
    beside: Vec<String>,
    success: bool,
}

struct Stage {
    server: Server,
    real: PathBuf,
}

impl Stage {
    /// Starts the server; `None` after saying what is missing.
    fn set(test: &str) -> Option<Stage> {
        let (real, bin) = match (isolation_tester(), postgresql_programs()) {
            (Ok(real), Some(bin)) => (real, bin),
            (Err(why), _) => return none(test, &why),
            (_, None) => return none(test, "no PostgreSQL is installed"),
        };
        let settings = vec![("fsync".to_owned(), "off".to_owned())];
        let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
        let server = Server::start(&options, &mut |_| {}).expect("a server");
        Some(Stage { server, real })
    }

    fn opener(&self, database: &str) -> Opener {
        let host = Host::unix(self.server.socket_dir(), self.server.port());
        let options = ConnectOptions::new(host, self.server.user(), database);
        Arc::new(move || Ok(Connection::open(&options)?))
    }

    /// A new database: its name.
    fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut admin = (self.opener(self.server.database()))().expect("a connection");
        admin.execute(&format!("CREATE DATABASE {name}")).expect("a database");
        name
    }

    fn run_real(&self, text: &str) -> Printed {
        let database = self.database();
        let conninfo = format!(
            "host={} port={} user={} dbname={database}",
            self.server.socket_dir().display(),
            self.server.port(),
            self.server.user()
        );
        let mut child = Command::new(&self.real)
            .arg(conninfo)
            .env("PGISOLATIONTIMEOUT", LIMIT.as_secs().to_string())
            .env_remove("PGAPPNAME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the real tester");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads all");
        let output = child.wait_with_output().expect("its output");
        let beside = String::from_utf8_lossy(&output.stderr).into_owned();
        Printed {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            beside: beside.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
            success: output.status.success(),
        }
    }

    /// Standard output and standard error in one, as `pg_isolation_regress` has them.
    fn run_real_in_one(&self, text: &str) -> String {
        let conninfo = format!(
            "host={} port={} user={} dbname={}",
            self.server.socket_dir().display(),
            self.server.port(),
            self.server.user(),
            self.database()
        );
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$1\" 2>&1"])
            .arg(&self.real)
            .arg(conninfo)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the real tester");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads all");
        String::from_utf8_lossy(&child.wait_with_output().expect("its output").stdout).into_owned()
    }

    fn tester(&self, database: &str) -> Tester<'static> {
        Tester {
            open: self.opener(database),
            product: &POSTGRESQL,
            level: None,
            options: Options { step_timeout: LIMIT, ..Options::default() },
            who_waits: WhoWaits::View,
            stopped: &|| false,
        }
    }

    fn run_ours(&self, text: &str) -> Printed {
        let database = self.database();
        let spec = Spec::parse("spec", text).unwrap_or_else(|error| panic!("{error}"));
        let tester = self.tester(&database);
        let (mut printed, mut beside) = (String::new(), String::new());
        let outcome = tester.run(&spec, &mut |event| {
            if let Event::Warning(warning) = &event {
                beside.push_str(warning);
                beside.push('\n');
            }
            printed.push_str(&output::text(&event));
        });
        // This one belongs to the output.
        if let Err(error) = &outcome
            && !matches!(error, RunError::Send { .. })
        {
            beside.push_str(&error.to_string());
        }
        Printed {
            output: printed,
            beside: beside.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
            success: outcome.is_ok(),
        }
    }

    /// Fails unless both print the same.
    fn compare(&self, name: &str, text: &str) {
        let (real, ours) = (self.run_real(text), self.run_ours(text));
        for (ours, real) in ours.output.lines().zip(real.output.lines()) {
            assert_eq!(ours, real, "{name}");
        }
        assert_eq!(ours, real, "{name}");
    }
}

fn none(test: &str, why: &str) -> Option<Stage> {
    skip(test, why);
    None
}

#[test]
fn specifications_print_what_the_real_tester_prints() {
    let Some(stage) = Stage::set("specifications_print_what_the_real_tester_prints") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() > 10, "the specifications are there");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        stage.compare(&file.display().to_string(), &text);
    }
}

#[test]
fn our_own_interleavings_print_what_the_real_tester_prints() {
    let Some(stage) = Stage::set("our_own_interleavings_print_what_the_real_tester_prints") else { return };
    for probe in PROBES {
        stage.compare(probe.file, probe.spec);
    }
}

/// Steps that no permutation launches come before everything else, as in PostgreSQL's expected
/// files, in the order of their names.
#[test]
fn unused_steps_are_named_where_the_real_tester_names_them() {
    let Some(stage) = Stage::set("unused_steps_are_named_where_the_real_tester_names_them") else { return };
    let text = "session s step d { SELECT 1; } step b { SELECT 2; } session t step a { SELECT 3; } \
                step c { SELECT 4; } permutation b";
    let real = stage.run_real_in_one(text);
    assert!(real.starts_with("unused step name: a\n"), "{real}");
    let mut ours = String::new();
    let database = stage.database();
    let spec = Spec::parse("spec", text).expect("a specification");
    let tester = stage.tester(&database);
    tester
        .run(&spec, &mut |event| match event {
            Event::Warning(warning) => {
                ours.push_str(&warning);
                ours.push('\n');
            }
            event => ours.push_str(&output::text(&event)),
        })
        .expect("it runs");
    assert_eq!(ours, real);
}
