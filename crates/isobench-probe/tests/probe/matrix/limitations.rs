//! The reproductions of known limitations, pasted into two psql sessions.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use isobench_probe::LIMITATIONS;
use isobench_testkit::installed::postgresql_programs;

use crate::support::{TestServer, installed};

/// A psql session into which text is pasted. Its errors are part of its output.
struct Psql {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Psql {
    fn start(place: &TestServer) -> Psql {
        let program = postgresql_programs().expect("the programs of the server that runs").join("psql");
        let server = &place.server;
        let script = format!("exec {} -X -q -A -t 2>&1", program.display());
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .env("PGHOST", server.socket_dir())
            .env("PGPORT", server.port().to_string())
            .env("PGUSER", server.user())
            .env("PGDATABASE", server.database())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Psql { child, input, output: BufReader::new(output) }
    }

    /// Pastes a text, and returns the output.
    fn paste(&mut self, text: &str) -> String {
        writeln!(self.input, "{text}\n\\echo pasted").expect("psql reads");
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "psql has ended: {said}");
            if line == "pasted\n" {
                return said;
            }
            said.push_str(&line);
        }
    }
}

impl Drop for Psql {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pastes each part into the session named by its first line, and returns all output.
fn pasted(place: &TestServer, text: &str) -> Vec<String> {
    let mut sessions = [Psql::start(place), Psql::start(place)];
    let parts = text.split("-- psql ").skip(1);
    parts
        .map(|part| {
            let (number, sql) = part.split_once('\n').expect("a line that names the session");
            sessions[number.parse::<usize>().expect("a number") - 1].paste(sql)
        })
        .collect()
}

#[test]
fn a_reproduction_shows_the_limitation() {
    let Some(place) = installed("a_reproduction_shows_the_limitation") else { return };
    // The server allows 20 connections.
    let enough = LIMITATIONS[0].reproduction(1000);
    assert_eq!(pasted(&place, &enough), ["10\n", "20\n", ""]);
    let few = LIMITATIONS[0].reproduction(1);
    let said = pasted(&place, &few);
    assert!(
        said[2].contains("ERROR:  could not serialize access due to read/write dependencies"),
        "{said:?}"
    );
    let gist = LIMITATIONS[1].reproduction(0);
    assert_eq!(pasted(&place, &gist), ["0\n", "0\n", "", "", ""]);
}
