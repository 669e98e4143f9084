//! Passwords are never shown, neither in output nor in files, however they are given and whatever
//! goes wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use isobench_testkit::night;

use crate::support::named::Database;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;

/// The password, and the parts of it that reveal a leak.
const PASSWORD: &str = "GeheimQQXX";
const PIECES: [&str; 3] = ["Geheim", "QQXX", "geheim"];

/// The place in each spelling for host, port, database and role.
const PLACE: &str = "host=127.0.0.1 port=@PORT dbname=@DB user=@ROLE";

/// Description, words after the command, and environment variables.
type Spelling = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// Spellings that lead to the server.
const LEGAL: [Spelling; 37] = [
    ("plain", &["-d", "@PLACE password=GeheimQQXX"], &[]),
    ("blanks around the sign", &["-d", "@PLACE password = GeheimQQXX"], &[]),
    ("a blank after the sign", &["-d", "@PLACE password= GeheimQQXX"], &[]),
    ("quoted", &["-d", "password='GeheimQQXX' @PLACE"], &[]),
    ("quoted, blanks", &["-d", "password = 'GeheimQQXX'@PLACE"], &[]),
    ("other white space", &["-d", "@PLACE\tpassword\n=\tGeheimQQXX"], &[]),
    ("escaped", &["-d", r"@PLACE password=\G\e\heimQQXX"], &[]),
    ("escaped and quoted", &["-d", r"password='Geh\eimQQXX' @PLACE"], &[]),
    (
        "after an escaped quote",
        &["-d", r"application_name='it\'s password=x' password=GeheimQQXX @PLACE"],
        &[],
    ),
    ("two", &["-d", "password=Geheim4712 password=GeheimQQXX @PLACE"], &[]),
    ("two, quoted", &["-d", "password='x Geheim4712' password='GeheimQQXX' @PLACE"], &[]),
    ("sslpassword first", &["-d", "sslpassword=Geheim4712 password=GeheimQQXX @PLACE"], &[]),
    ("sslpassword last", &["-d", "@PLACE password=GeheimQQXX sslpassword='Geheim 4712'"], &[]),
    ("another secret", &["-d", "@PLACE oauth_client_secret=Geheim4712 password=GeheimQQXX"], &[]),
    ("the long option", &["--dbname", "@PLACE password=GeheimQQXX"], &[]),
    ("the long option, a sign", &["--dbname=@PLACE password=GeheimQQXX"], &[]),
    ("the long option, short", &["--dbn=@PLACE password=GeheimQQXX"], &[]),
    ("joined", &["-d@PLACE password=GeheimQQXX"], &[]),
    ("joined URI", &["-dpostgresql://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB"], &[]),
    ("joined by a sign", &["-d=postgresql://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB"], &[]),
    ("URI", &["-d", "postgresql://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB"], &[]),
    ("URI, the short scheme", &["--dbname=postgres://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB"], &[]),
    ("URI, encoded", &["-d", "postgresql://@ROLE:%47eheimQQX%58@127.0.0.1:@PORT/@DB"], &[]),
    ("URI, parameter", &["-d", "postgresql://@ROLE@127.0.0.1:@PORT/@DB?password=GeheimQQXX"], &[]),
    ("URI, encoded name", &["-d", "postgresql://@ROLE@127.0.0.1:@PORT/@DB?pass%77ord=GeheimQQXX"], &[]),
    (
        "URI, all encoded",
        &["-d", "postgresql://127.0.0.1:@PORT/@DB?user=@ROLE&%70%61ssword=%47%65%68%65%69%6d%51QXX"],
        &[],
    ),
    ("URI, two", &["-d", "postgresql://@ROLE:Geheim4712@127.0.0.1:@PORT/@DB?password=GeheimQQXX"], &[]),
    (
        "URI, sslpassword",
        &["-d", "postgresql://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB?sslpassword=Geheim4712"],
        &[],
    ),
    ("URI, two hosts", &["-d", "postgresql://@ROLE:GeheimQQXX@127.0.0.1:1,127.0.0.1:@PORT/@DB"], &[]),
    ("PGDATABASE", &[], &[("PGDATABASE", "@PLACE password=GeheimQQXX")]),
    ("PGDATABASE, URI", &[], &[("PGDATABASE", "postgresql://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB")]),
    (
        "PGPASSWORD",
        &["-h", "127.0.0.1", "-p", "@PORT", "-U", "@ROLE", "-d", "@DB"],
        &[("PGPASSWORD", PASSWORD)],
    ),
    ("service file", &["-d", "service=mine"], &[("PGSERVICEFILE", "@FILES/services")]),
    ("service file named", &["-d", "postgresql://?service=mine&servicefile=@FILES/services"], &[]),
    ("PGSERVICE", &[], &[("PGSERVICE", "mine"), ("PGSERVICEFILE", "@FILES/services")]),
    ("password file", &["-d", "@PLACE passfile=@FILES/passwords"], &[]),
    ("PGPASSFILE", &["-d", "@PLACE"], &[("PGPASSFILE", "@FILES/passwords")]),
];

/// Spellings that lead nowhere, with the connection string that is wrong.
const WRONG: [(&str, &str); 31] = [
    ("another word", "@PLACE password=GeheimQQXX x"),
    ("a blank in it", "@PLACE password=my GeheimQQXX"),
    ("blanks and signs in it", "@PLACE password=my Geheim=QQXX"),
    ("no end", "@PLACE password='GeheimQQXX"),
    ("a misspelt name", "@PLACE passwd=GeheimQQXX"),
    ("a capital name", "@PLACE PASSWORD=GeheimQQXX"),
    ("an unknown option after it", "@PLACE password=GeheimQQXX nosuch=1"),
    ("an unsupported secret", "@PLACE scram_client_key=GeheimQQXX"),
    ("a value out of range after it", "@PLACE password=GeheimQQXX connect_timeout=x"),
    ("no host", "host= password=GeheimQQXX"),
    ("no mode", "@PLACE sslmode= password=GeheimQQXX"),
    ("no port", "host=127.0.0.1 port= password=GeheimQQXX"),
    ("no user", "host=127.0.0.1 user= password=GeheimQQXX"),
    ("inside the name of the database", "host=127.0.0.1 port=@PORT dbname='password=GeheimQQXX'"),
    ("inside the name, URI", "host=127.0.0.1 port=@PORT dbname=postgres://me:GeheimQQXX@db"),
    ("a wrong one", "@PLACE password=Geheim4712"),
    ("nobody there", "host=127.0.0.1 port=1 password=GeheimQQXX"),
    ("no such database", "host=127.0.0.1 port=@PORT dbname=nosuch user=@ROLE password=GeheimQQXX"),
    ("no such host", "host=nosuch.invalid password=GeheimQQXX"),
    ("URI, not encoded", "postgresql://me:Gehei%mmQQXX@127.0.0.1/GeheimQQXX%"),
    ("URI, a zero byte", "postgresql://me:GeheimQQXX%00@127.0.0.1/db"),
    ("URI, an @", "postgresql://me:a@GeheimQQXX@127.0.0.1/db"),
    ("URI, a slash", "postgresql://me:a/GeheimQQXX@127.0.0.1/db"),
    ("URI, a slash after digits", "postgresql://me:1/GeheimQQXX@127.0.0.1/db"),
    ("URI, an ampersand", "postgresql://127.0.0.1/db?password=a&GeheimQQXX"),
    ("URI, an ampersand and a sign", "postgresql://127.0.0.1/db?password=a&GeheimQQXX=b"),
    ("URI, a sign", "postgresql://127.0.0.1/db?password=a=GeheimQQXX"),
    ("URI, an unknown parameter", "postgresql://me:GeheimQQXX@127.0.0.1/db?nosuch=1"),
    ("URI, no end of an address", "postgresql://me:GeheimQQXX@[::1/db"),
    ("URI, no address", "postgresql://me:GeheimQQXX@[]/db"),
    ("URI, a wrong port", "postgresql://me:GeheimQQXX@127.0.0.1:x/db"),
];

/// Command lines with a connection string in the wrong place, marked by `@`.
const MISPLACED: [&[&str]; 26] = [
    &["@"],
    &["compare", "@"],
    &["audit", "@"],
    &["probe", "@"],
    &["compare", "--clients", "@"],
    &["compare", "--clients=@"],
    &["compare", "-c@"],
    &["compare", "--levels", "@"],
    &["compare", "--nosuch=@"],
    &["compare", "--nosuch", "@"],
    &["compare", "--workload", "@"],
    &["compare", "--setup", "@", "--workload", "nosuch.sql"],
    &["compare", "--plan", "@"],
    &["compare", "--vary", "@"],
    &["compare", "--server-setting", "@", "--server-version", "99"],
    &["check", "@"],
    &["report", "@"],
    &["run", "-h", "127.0.0.1", "-p", "1", "@", "@"],
    &["run", "-f", "@"],
    &["init", "-s", "@"],
    &["init", "--partition-method", "@"],
    &["pgbench", "-c", "@"],
    &["pgbench", "--nosuch=@"],
    &["pgbench", "one", "@"],
    &["pgbench", "-f", "@"],
    &["pgbench", "-M@", "-D", "@", "x"],
];

/// The server, and the folder of its files.
struct Server {
    database: Database,
    scene: Scene,
    /// Files that contain the password, and aren't searched.
    files: tempfile::TempDir,
}

impl Server {
    fn new(test: &str) -> Option<Server> {
        let database = Database::new(test)?;
        let mut connection = database.connect();
        let role = format!("create role {}_user login superuser password '{PASSWORD}'", database.name);
        connection.execute(&role).expect("a role");
        let server = Server { database, scene: Scene::new(), files: tempfile::tempdir().expect("a folder") };
        let lines = PLACE.replace(' ', "\n");
        server.write("services", &format!("[mine]\n{lines}\npassword={PASSWORD}\n"));
        server.write("passwords", &format!("127.0.0.1:@PORT:@DB:@ROLE:{PASSWORD}\n"));
        Some(server)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.files.path().join(name);
        fs::write(&path, self.filled(text)).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
    }

    /// Returns a spelling with the names of this server.
    fn filled(&self, text: &str) -> String {
        let (port, _) = self.database.tcp();
        text.replace("@PLACE", PLACE)
            .replace("@ROLE", &format!("{}_user", self.database.name))
            .replace("@PORT", &port)
            .replace("@DB", &self.database.name)
            .replace("@FILES", &self.files.path().to_string_lossy())
    }

    /// Runs a command with the words and variables of a spelling.
    fn run(&self, command: &[&str], words: &[&str], environment: &[(&str, &str)]) -> Finished {
        let words: Vec<String> = words.iter().map(|word| self.filled(word)).collect();
        let mut command: Command = self.scene.isobench(command);
        command.args(&words).env("HOME", self.files.path());
        for (name, value) in environment {
            command.env(name, self.filled(value));
        }
        Running::start(&mut command).finish()
    }

    /// Fails if a part of the password is in the output or a file.
    fn assert_silent(&self, what: &str, finished: &Finished) {
        assert_clean(&format!("{what}: standard output"), &finished.stdout);
        assert_clean(&format!("{what}: standard error"), &finished.stderr);
        search(what, &self.scene.file(""));
    }
}

fn assert_clean(what: &str, text: &str) {
    for piece in PIECES {
        assert!(!text.contains(piece), "{what} shows \"{piece}\":\n{text:.4000}");
    }
}

/// Searches all files of a folder, and their names.
fn search(what: &str, folder: &Path) {
    for entry in fs::read_dir(folder).expect("the folder").flatten() {
        let path = entry.path();
        assert_clean(&format!("{what}: a file's name"), &path.to_string_lossy());
        if path.is_dir() {
            search(what, &path);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).expect("read")).into_owned();
            assert_clean(&format!("{what}: {}", path.display()), &text);
        }
    }
}

const COMPARE: &str = "compare --workload registers --levels rc --clients 1 --transactions 2 --warmup 0 --rounds 1 \
    --results out";

/// The spelling whose result is rendered in each format.
const RENDERED: &str = "two";

#[test]
fn no_spelling_of_a_password_is_shown_when_all_goes_well() {
    // By day a third of them, and the one whose result is rendered, too.
    let each = if night::all_cases() { 1 } else { 3 };
    let chosen =
        LEGAL.iter().enumerate().filter(|(place, (what, ..))| place % each == 0 || *what == RENDERED);
    let chosen: Vec<&Spelling> = chosen.map(|(_, spelling)| spelling).collect();
    std::thread::scope(|scope| {
        for spellings in chosen.chunks(chosen.len().div_ceil(3)) {
            scope.spawn(|| measure_with(spellings));
        }
    });
}

fn measure_with(spellings: &[&Spelling]) {
    let Some(server) = Server::new("no_spelling_of_a_password_is_shown_when_all_goes_well") else { return };
    for (what, words, environment) in spellings {
        let compare: Vec<&str> = COMPARE.split(' ').collect();
        let finished = server.run(&compare, words, environment);
        assert_eq!(finished.code(), Some(0), "{what}: {}{}", finished.stdout, finished.stderr);
        assert!(
            server.scene.file("out/result.json").exists() && server.scene.file("out/report.html").exists()
        );
        server.assert_silent(what, &finished);
        for format in ["text", "markdown", "csv", "json"].into_iter().filter(|_| *what == RENDERED) {
            let finished = server.scene.run(&["report", "out/result.json", "--format", format]).expect(0);
            server.assert_silent(what, &finished);
        }
        fs::remove_dir_all(server.scene.file("out")).expect("remove");
    }
}

#[test]
fn no_command_shows_a_password() {
    let Some(server) = Server::new("no_command_shows_a_password") else { return };
    let uri = "postgresql://@ROLE:GeheimQQXX@127.0.0.1:@PORT/@DB?sslpassword=Geheim4712";
    for command in [
        "init --quiet",
        "run -t 1 -n --json run.json",
        "run -t 1 -n --debug -l",
        "run -t 1 -f nosuch.sql",
        "pgbench -i -I dt",
        "pgbench -t 1 -n --debug",
        "pgbench -t 1 -S -r -l",
        "init -I dtg",
        "run -t 1 -n -M nosuch",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        // As the name of the database, the only argument that isn't an option.
        let finished = server.run(&words, &[uri], &[]);
        server.assert_silent(command, &finished);
        let finished = server.run(&words, &["@PLACE password = 'GeheimQQXX'"], &[]);
        server.assert_silent(command, &finished);
    }
    let probe = "probe --levels rc --json probe.json";
    let finished = server.run(&probe.split(' ').collect::<Vec<_>>(), &["-d", uri], &[]);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    server.assert_silent("probe", &finished);
    let audit = "audit --workload registers --levels rc --transactions 2 --rounds 1 --history histories --results out";
    let finished = server.run(&audit.split(' ').collect::<Vec<_>>(), &["-d", uri], &[]);
    server.assert_silent("audit", &finished);
}

#[test]
fn no_spelling_of_a_password_is_shown_when_it_is_wrong() {
    let Some(server) = Server::new("no_spelling_of_a_password_is_shown_when_it_is_wrong") else { return };
    for (what, string) in WRONG {
        for (command, environment, words) in [
            (COMPARE, None, &["-d", string][..]),
            ("run -t 1 -n", None, &[string]),
            ("pgbench -t 1 -n", None, &[string]),
            ("init -I d", Some(string), &[]),
        ] {
            let words: Vec<&str> = words.to_vec();
            let variable = environment.map(|value| ("PGDATABASE", value));
            let finished = server.run(&command.split(' ').collect::<Vec<_>>(), &words, variable.as_slice());
            assert_ne!(finished.code(), Some(0), "{what}, {command}: {}", finished.stderr);
            assert!(!finished.stderr.is_empty(), "{what}, {command}: nothing is said");
            server.assert_silent(&format!("{what}, {command}"), &finished);
        }
    }
}

#[test]
fn a_connection_string_in_the_wrong_place_is_not_quoted() {
    let scene = Scene::new();
    for string in ["password=GeheimQQXX", "postgresql://me:GeheimQQXX@db/x", "host=x password=my GeheimQQXX"]
    {
        for line in MISPLACED {
            let words: Vec<String> = line.iter().map(|word| word.replace('@', string)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let finished = scene.run(&words);
            assert_ne!(finished.code(), Some(0), "{words:?}: {}", finished.stderr);
            assert_clean(&format!("{line:?}"), &finished.stdout);
            assert_clean(&format!("{line:?}"), &finished.stderr);
            search(&format!("{line:?}"), &scene.file(""));
        }
    }
}
