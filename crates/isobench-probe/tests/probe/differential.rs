//! Compares the tester with PostgreSQL's own `isolationtester`: the same specifications on the same
//! server must print the same output.
//!
//! Debian's package `postgresql-client-15` has the program; `ISOBENCH_ISOLATIONTESTER` can name
//! another one.

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
use isobench_probe::{Event, Opener, Options, RunError, Spec, Tester, WaitDetection, output};
use isobench_testkit::installed::{isolation_tester, postgresql_programs, skip};

/// Specifications whose steps exceed the time limit, which the real tester can only wait for.
const EXCEEDING: [&str; 2] = ["mutual.spec", "timeouts.spec"];

/// The time limit of steps in both testers.
fn limit(name: &str) -> Duration {
    let exceeding = EXCEEDING.iter().any(|file| name.ends_with(file));
    if exceeding { Duration::from_secs(3) } else { Duration::from_mins(3) }
}

/// The output of a tester, and its messages on standard error.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    output: String,
    warnings: Vec<String>,
    success: bool,
}

struct Fixture {
    server: Server,
    real: PathBuf,
}

/// How often a specification that differs is run.
const TRIES: usize = 3;

impl Fixture {
    /// Starts the server; `None` after reporting what is missing.
    fn set(test: &str) -> Option<Fixture> {
        let (real, bin) = match (isolation_tester(), postgresql_programs()) {
            (Ok(real), Some(bin)) => (real, bin),
            (Err(why), _) => return none(test, &why),
            (_, None) => return none(test, "no PostgreSQL is installed"),
        };
        let settings = vec![("fsync".to_owned(), "off".to_owned())];
        let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
        let server = Server::start(&options, &mut |_| {}).expect("a server");
        Some(Fixture { server, real })
    }

    fn opener(&self, database: &str) -> Opener {
        let host = Host::unix(self.server.socket_dir(), self.server.port());
        let options = ConnectOptions::new(host, self.server.user(), database);
        Arc::new(move |_| Ok(Connection::open(&options)?))
    }

    /// Creates a database and returns its name.
    fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut admin = (self.opener(self.server.database()))("admin").expect("a connection");
        admin.execute(&format!("CREATE DATABASE {name}")).expect("a database");
        name
    }

    fn run_real(&self, text: &str, limit: Duration) -> Printed {
        let database = self.database();
        let conninfo = format!(
            "host={} port={} user={} dbname={database}",
            self.server.socket_dir().display(),
            self.server.port(),
            self.server.user()
        );
        let mut child = Command::new(&self.real)
            .arg(conninfo)
            .env("PGISOLATIONTIMEOUT", limit.as_secs().to_string())
            .env_remove("PGAPPNAME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the real tester");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads all");
        let output = child.wait_with_output().expect("its output");
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        Printed {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            warnings: warnings.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
            success: output.status.success(),
        }
    }

    /// Standard output and standard error combined, as in `pg_isolation_regress`.
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

    fn tester(&self, database: &str, limit: Duration) -> Tester<'static> {
        Tester {
            open: self.opener(database),
            product: &POSTGRESQL,
            level: None,
            options: Options { step_timeout: limit, ..Options::default() },
            wait_detection: WaitDetection::View,
            stopped: &|| false,
        }
    }

    fn run_ours(&self, text: &str, limit: Duration) -> Printed {
        let database = self.database();
        let spec = Spec::parse("spec", text).unwrap_or_else(|error| panic!("{error}"));
        let tester = self.tester(&database, limit);
        let (mut printed, mut warnings) = (String::new(), String::new());
        let outcome = tester.run(&spec, &mut |event| {
            if let Event::Warning(warning) = &event {
                warnings.push_str(warning);
                warnings.push('\n');
            }
            printed.push_str(&output::text(&event));
        });
        // This error is part of the output.
        if let Err(error) = &outcome
            && !matches!(error, RunError::Send { .. })
        {
            warnings.push_str(&error.to_string());
        }
        Printed {
            output: printed,
            warnings: warnings.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
            success: outcome.is_ok(),
        }
    }

    /// Fails unless both print the same. Which of two steps ends first can be a matter of chance, so
    /// only a difference that stays counts.
    fn compare(&self, name: &str, text: &str) {
        let both = || (self.run_real(text, limit(name)), self.run_ours(text, limit(name)));
        let tries = (0..TRIES).map(|_| both());
        let Some((real, ours)) = tries.take_while(|(real, ours)| real != ours).nth(TRIES - 1) else { return };
        for (ours, real) in ours.output.lines().zip(real.output.lines()) {
            assert_eq!(ours, real, "{name}");
        }
        assert_eq!(ours, real, "{name}");
    }
}

fn none(test: &str, why: &str) -> Option<Fixture> {
    skip(test, why);
    None
}

#[test]
fn specifications_print_what_the_real_tester_prints() {
    let Some(fixture) = Fixture::set("specifications_print_what_the_real_tester_prints") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() > 10, "the specifications are there");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        fixture.compare(&file.display().to_string(), &text);
    }
}

#[test]
fn our_own_interleavings_print_what_the_real_tester_prints() {
    let Some(fixture) = Fixture::set("our_own_interleavings_print_what_the_real_tester_prints") else {
        return;
    };
    for probe in PROBES {
        fixture.compare(probe.file, probe.spec);
    }
}

/// Unused steps are reported before everything else, in the order of their names, as in
/// PostgreSQL's expected files.
#[test]
fn unused_steps_are_named_where_the_real_tester_names_them() {
    let Some(fixture) = Fixture::set("unused_steps_are_named_where_the_real_tester_names_them") else {
        return;
    };
    let text = "session s step d { SELECT 1; } step b { SELECT 2; } session t step a { SELECT 3; } \
                step c { SELECT 4; } permutation b";
    let real = fixture.run_real_in_one(text);
    assert!(real.starts_with("unused step name: a\n"), "{real}");
    let mut ours = String::new();
    let database = fixture.database();
    let spec = Spec::parse("spec", text).expect("a specification");
    let tester = fixture.tester(&database, limit(""));
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
