//! Texts from a server never control the user's terminal, and don't fill it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use isobench_pgwire::visible;

use crate::support::named::Database;
use crate::support::program::Finished;
use crate::support::scene::Scene;

/// Sets the title, clears the screen, and moves back; in 7 and 8 bits. In a PostgreSQL string.
const IN_SQL: &str = r"\u001b]0;title\u0007 \u001b[2J \r gone \u009b31m \u0008 \u007f \u202e \u2066";
/// Maximum size of a message, in bytes.
const ROOM: usize = 60_000;

fn assert_harmless(what: &str, text: &str) {
    assert_eq!(visible(text), text, "{what}");
    assert!(text.len() < ROOM, "{what}: {} bytes", text.len());
}

fn assert_output_is_harmless(what: &str, finished: &Finished) {
    assert_harmless(&format!("{what}: standard output"), &finished.stdout);
    assert_harmless(&format!("{what}: standard error"), &finished.stderr);
}

/// A script that fails with hostile words in every field, after a notice.
fn script() -> String {
    format!(
        "do $$ begin raise warning e'{IN_SQL} notice'; \
         raise exception using message = e'{IN_SQL} ünicode' || repeat('x', 1000000), \
         detail = e'two\\nlines {IN_SQL}' || repeat('y', 1000000), hint = e'{IN_SQL}'; end $$;\n"
    )
}

fn all_files(folder: &Path, check: &dyn Fn(&Path, &str)) {
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        if entry.path().is_dir() {
            all_files(&entry.path(), check);
        } else {
            let bytes = std::fs::read(entry.path()).expect("read");
            check(&entry.path(), &String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn errors_of_a_server_are_shown_without_their_control_characters() {
    let Some(database) = Database::new("errors_of_a_server_are_shown_without_their_control_characters")
    else {
        return;
    };
    let scene = Scene::new();
    // The settings of the database are part of each result, and so are the names of tables.
    let name = &database.name;
    let hostile = format!(
        "do $$ begin execute format('alter database {name} set application_name = %L', e'{IN_SQL}'); \
         execute format('create table public.%I (a int)', e'{IN_SQL}'); end $$"
    );
    database.connect().execute(&hostile).expect("a setting and a table");
    scene.write("hostile.sql", &script());
    // A script that fails in the trial leaves no result, so this one fails later.
    let late = format!("\\if :client_id = 1\n{}\\else\nselect 1;\n\\endif\n", script());
    scene.write("late.sql", &late);
    for line in [
        "run -n -t 1 -f hostile.sql --verbose-errors",
        "run -n -t 1 -f hostile.sql --continue-on-error --debug",
        "compare --workload late.sql --levels rc --clients 2 --transactions 5 --warmup 0 --rounds 1 --results out",
        "pgbench -n -t 1 -f hostile.sql",
        "pgbench -n -t 1 -f hostile.sql --verbose-errors --debug",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let finished = database.run(&scene, &words);
        assert!(finished.stderr.contains(r"\u001b]0;title\u0007"), "{line}: {:.3000}", finished.stderr);
        assert!(finished.stderr.contains("ünicodexxx"), "{line}: {:.3000}", finished.stderr);
        assert!(finished.stderr.contains("more characters)"), "{line}: not said that it is cut");
        assert_output_is_harmless(line, &finished);
    }
    all_files(&scene.file("out"), &|path, text| assert_eq!(visible(text), text, "{}", path.display()));
    let result = scene.read("out/result.json");
    assert!(result.contains(r"\u009b31m"), "the setting isn't in the result; else this tests nothing");
    for format in ["text", "markdown", "csv", "json"] {
        let finished = scene.run(&["report", "out/result.json", "--format", format]);
        assert_eq!(visible(&finished.stdout), finished.stdout, "{format}");
    }
}

#[test]
fn a_refusal_that_fills_the_screen_is_cut() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // The start-up packet is short and comes at once.
            let _ = stream.read(&mut [0; 1024]);
            let mut fields = b"SFATAL\0C28000\0M\x1b[2J\xc2\x9b".to_vec();
            fields.extend(std::iter::repeat_n(b'z', 900_000));
            fields.extend(b"\0\0");
            let length = u32::try_from(fields.len() + 4).expect("a short message");
            let _ = stream.write_all(&[b"E", length.to_be_bytes().as_slice(), &fields].concat());
        }
    });
    let scene = Scene::new();
    let options = ["-h", "127.0.0.1", "-p", &port, "-U", "me", "-d", "sslmode=disable dbname=x"];
    for command in [&["compare"][..], &["probe"], &["init"], &["run", "-t", "1"], &["pgbench", "-t", "1"]] {
        let words = [command, &options[..]].concat();
        let finished = scene.run(&words).expect(1);
        assert!(finished.stderr.contains(r"FATAL:  \u001b[2J\u009bzzz"), "{:.3000}", finished.stderr);
        assert!(finished.stderr.contains("more characters)"), "not said that it is cut");
        assert_output_is_harmless(command[0], &finished);
    }
}
