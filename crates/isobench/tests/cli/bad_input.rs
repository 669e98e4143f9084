//! Invalid input of every kind: the exit status, and a message with the place and a remedy. Never a
//! panic.

use std::net::TcpListener;
use std::path::Path;

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::scripted::ScriptedServer;

use crate::compare::words;
use crate::support::document::{self, count, rounds};
use crate::support::named::Database;
use crate::support::program::{Running, isobench};
use crate::support::scene::Scene;

/// Refused before any server is started: arguments, and parts of the message.
const REFUSED: &[(&str, &[&str])] = &[
    ("compare --levels snapshot", &["--levels", "\"snapshot\"", "ser (serializable)"]),
    ("compare --levels rc,rc", &["--levels", "twice"]),
    ("compare --backoff later", &["--backoff", "\"later\"", "exponential:base="]),
    ("compare --backoff fixed:soon", &["--backoff", "\"soon\"", "5ms"]),
    ("compare --protocol binary", &["--protocol", "\"binary\"", "simple, extended or prepared"]),
    ("compare --workload nosuch", &["workload \"nosuch\"", "tpcb-like, simple-update, select-only"]),
    ("compare --workload tpcb-like@x", &["weight", "@x"]),
    ("compare -w good.sql -w tpcb-like@2", &["compared, not mixed", "-b tpcb-like@2"]),
    ("compare -w good.sql -b tpcb-like", &["--workload", "--builtin"]),
    ("compare --workload registres", &["\"registres\" (did you mean \"registers\"?)"]),
    ("compare --levels serialisable", &["(did you mean \"serializable\"?)"]),
    ("compare --plan e3-patto", &["(did you mean \"e3-pato\"?)"]),
    ("run -i -s 1", &["isobench init makes the tables"]),
    ("-c 8 -T 10", &["did you mean isobench run -c 8 -T 10?"]),
    ("compare -h", &["-h names the server's host", "try '--help'"]),
    ("compare place.sql", &["place.sql", "a script is named by -f: -f place.sql"]),
    ("place.sql", &["isobench compare -f place.sql", "isobench run -f place.sql"]),
    ("mine.toml", &["isobench compare --plan mine.toml"]),
    ("compare -f notes.md", &["--file: the file \"notes.md\" is no script", "begins like SQL"]),
    ("run -f notes.md", &["the file \"notes.md\" is no script"]),
    ("advise place.sql", &["a script is named by -f: -f place.sql"]),
    ("advise --setup t.sql a.sql b.sql", &["isobench advise -f a.sql -f b.sql"]),
    ("advise -f place.sql --copy-from dbname=nosuch", &["--copy-from: it copies", "--setup tables.sql"]),
    ("compare -f place.sql --copy-from dbname=nosuch", &["--copy-from: it copies", "--setup tables.sql"]),
    ("compare --duration 5", &["--duration", "'--time'"]),
    ("compare --tiem 5", &["--tiem", "'--time'"]),
    ("compare --time 5x", &["5x", "500ms or 2min"]),
    ("compare --resolve 0.5", &["\"0.5\"", "0.5%", "50%"]),
    ("compare --resolve 2", &["\"2\"", "write 2%"]),
    ("compare --retry-sqlstate 2350", &["\"2350\"", "five digits or letters"]),
    ("compare --retry-sqlstate 23505,25P02", &["25P02", "earlier error"]),
    ("run --retry-sqlstate 40003", &["40003", "may have committed"]),
    ("run --levels rc,ser", &["one level", "compare"]),
    ("run -b simpel-update", &["(did you mean \"simple-update\"?)"]),
    ("run -f latin.sql", &["latin.sql:2: the script isn't UTF-8", "iconv"]),
    ("plans e3-patto", &["(did you mean \"e3-pato\"?)"]),
    ("workloads bnak", &["(did you mean \"bank\"?)"]),
    ("compare --setup nosuch.sql --workload good.sql", &["--setup", "\"nosuch.sql\"", "No such file"]),
    ("compare --plan nosuch.toml", &["\"nosuch.toml\"", "No such file"]),
    ("compare --clients 0", &["--clients"]),
    ("compare --clients many", &["--clients", "'many'"]),
    (
        "compare --clients 1000 --server-setting max_connections=500",
        &["1000 clients", "max_connections (500)", "--server-setting max_connections=1020"],
    ),
    ("compare --time 0", &["--time"]),
    ("compare --rounds 0", &["--rounds"]),
    ("compare --rate 10 --think-time 5", &["--rate", "--think-time"]),
    ("compare --server-bin nosuch", &["nosuch", "--server-bin", "initdb"]),
    ("compare --server-version 9", &["--server-version", "14 to 19"]),
    ("compare --server-setting fsync", &["--server-setting", "NAME=VALUE"]),
    ("compare --no-such-option", &["--no-such-option", "--help"]),
    ("compare -w syntax.sql", &["syntax.sql:2: syntax error", "\\set x 1 +\n", "^ error found here"]),
    ("run -f syntax.sql", &["syntax.sql:2: syntax error", "\\set x 1 +\n", "^ error found here"]),
    ("run -f function.sql", &["function.sql:1: ", "nosuch", "^ error found here"]),
    ("run -f command.sql", &["command.sql:1: ", "nosuch"]),
    ("run -f if.sql", &["if.sql", "\\if"]),
    ("run -f empty.sql", &["empty", "\"empty.sql\""]),
    ("run -f nosuch.sql", &["\"nosuch.sql\"", "No such file"]),
    ("run -b nosuch", &["\"nosuch\""]),
    ("run --isolation snapshot", &["--isolation", "\"snapshot\""]),
    ("run --backoff later", &["backoff", "\"later\""]),
    ("run -M binary", &["--protocol", "\"binary\""]),
    ("run -c 0", &["--client"]),
    ("run -j 0", &["--jobs"]),
    ("run -t 0", &["--transactions"]),
    ("run -t 1 -T 1", &["--transactions", "--time"]),
    ("run --max-tries 0 -t 5", &["tries", "--latency-limit", "-T"]),
    ("run -D novalue", &["\"novalue\""]),
    ("run --random-seed dice", &["\"dice\"", "unsigned integer"]),
    ("init", &["init needs a server", "isobench server"]),
    ("init -h /nowhere -I xyz", &["x"]),
    ("init -h /nowhere --partition-method=list", &["\"list\"", "range", "hash"]),
    ("init -h /nowhere --partition-method=hash", &["--partitions"]),
    ("server --no-such-option", &["--no-such-option"]),
    ("nosuch", &["'nosuch'"]),
    ("", &["Usage: isobench"]),
];

const SCRIPTS: &[(&str, &str)] = &[
    ("good.sql", "select 1;\n"),
    ("syntax.sql", "select 1;\n\\set x 1 +\nselect 2;\n"),
    ("function.sql", "\\set y nosuch(3)\n"),
    ("command.sql", "\\nosuch\n"),
    ("if.sql", "\\if 1\nselect 1;\n"),
    ("empty.sql", "-- nothing\n"),
];

fn scripts() -> Scene {
    let scene = Scene::new();
    for (name, text) in SCRIPTS {
        scene.write(name, text);
    }
    scene.write("notes.md", "# Notes\n\nHow we **measure**.\n");
    std::fs::write(scene.file("latin.sql"), b"select 1;\n-- gr\xfc\xdfe\n").expect("a file");
    scene
}

#[test]
fn wrong_options_and_scripts_are_refused_at_once() {
    let scene = scripts();
    for (arguments, texts) in REFUSED {
        let finished = scene.run(&words(arguments)).expect(1).says(texts);
        assert_eq!(finished.stdout, "", "{arguments}");
        assert!(!finished.stderr.contains("no server is named"), "{arguments} started a server");
    }
    scene.assert_clean();
}

/// Scripts that fail only when run, and the message in front of the place.
const FAILING: &[(&str, &str, &[&str])] = &[
    (
        "table.sql",
        "\\set a 1\nselect * from\n  nowhere;\n",
        &["relation \"nowhere\" does not exist", "table.sql:2"],
    ),
    ("division.sql", "select 1;\n\n\\set x 1 / 0\n", &["division by zero", "division.sql:3"]),
    (
        "block.sql",
        "begin;\nselect 1;\n",
        &["without completing the last transaction", "end the script with COMMIT", "block.sql:2"],
    ),
    ("unset.sql", "select :nosuch + 1;\n", &["syntax error at or near \":\"", "unset.sql:1"]),
    ("gset.sql", "select 1 where false \\gset\n", &["expected one row, got 0", "gset.sql:1", "by \\aset"]),
];

#[test]
fn a_script_that_fails_names_its_line() {
    let Some(database) = Database::new("a_script_that_fails_names_its_line") else { return };
    let scene = Scene::new();
    for (name, text, texts) in FAILING {
        scene.write(name, text);
        let options = ["run", "-c", "2", "-t", "3", "-f", name, "--json", "out.json"];
        let finished = database.run(&scene, &options).expect(2).says(texts);
        let finished = finished.says(&["Run was aborted; the above results are incomplete."]);
        assert!(
            finished.stdout.contains("number of transactions actually processed: 0/6"),
            "{}",
            finished.stdout
        );
        let document = document::read(&scene, "out.json");
        let round = rounds(&document).next().expect("a round");
        assert_eq!(count(round, "/attempts/errored"), 2, "{name}: {}", round["attempts"]);
        assert_eq!(round["errors"].as_array().map(Vec::len), Some(2));
    }
    scene.assert_clean();
}

#[test]
fn a_variable_inside_quotes_is_no_parameter() {
    let test = "a_variable_inside_quotes_is_no_parameter";
    let Some(database) = Database::new(test) else { return };
    let scene = Scene::new();
    scene.write("quoted.sql", "\\set id 7\nselect 'user :id';\n");
    let hint = "a variable inside quotes becomes text ($1) and no parameter";
    for protocol in ["prepared", "extended"] {
        let options = ["run", "-c", "1", "-t", "1", "-M", protocol, "-f", "quoted.sql"];
        database.run(&scene, &options).expect(2).says(&[hint]);
    }
    database.run(&scene, &["run", "-c", "1", "-t", "1", "-M", "simple", "-f", "quoted.sql"]).expect(0);
}

#[test]
fn a_comparison_that_cant_be_measured_says_why_once() {
    let Some(scene) = Scene::with_database("a_comparison_that_cant_be_measured_says_why_once") else {
        return;
    };
    let (name, text, texts) = FAILING[0];
    scene.write(name, text);
    let options = [
        "compare",
        "--rounds",
        "1",
        "--transactions",
        "5",
        "--warmup",
        "0",
        "-c",
        "2",
        "-w",
        name,
        "--json",
        "out.json",
    ];
    let finished =
        scene.run(&options).expect(1).says(texts).says(&["read committed, 2 clients can't be measured: "]);
    assert_eq!(
        finished.stderr.matches("relation \"nowhere\" does not exist").count(),
        1,
        "{}",
        finished.stderr
    );
    assert!(!scene.file("out.json").exists());
    scene.assert_clean();
}

#[test]
fn a_result_that_cannot_be_written_is_still_printed() {
    let Some(scene) = Scene::with_database("a_result_that_cannot_be_written_is_still_printed") else {
        return;
    };
    let measure = "--transactions 5 --warmup 0 --rounds 1 --levels rc -c 1";
    if !Path::new("/dev/full").exists() {
        return;
    }
    for option in ["--json", "--csv"] {
        let arguments = format!("compare {measure} {option} /dev/full");
        let finished = scene.run(&words(&arguments)).expect(1);
        finished.says(&["could not write \"/dev/full\""]).prints(&[" read committed "]);
    }
    scene.run(&["init"]).expect(0);
    let finished = scene.run(&words("run -t 2 --json /dev/full")).expect(1);
    finished.says(&["could not write \"/dev/full\""]).prints(&["actually processed: 2/2"]);
    scene.assert_clean();
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let Some(scene) = Scene::with_database("a_closed_pipe_is_no_panic") else { return };
    let sh = |line: &str| {
        let line = line.replace(
            "COMPARE",
            "compare --transactions 5 --warmup 0 --rounds 1 --levels rc -c 1 --json out.json",
        );
        let mut command = scene.program(Path::new("/bin/sh"), &["-c", &line, &isobench()]);
        Running::start(&mut command).finish().expect(0)
    };
    // The reader is gone before the first line, or after it.
    let finished = sh("{ \"$0\" COMPARE; echo $? >status; } | true");
    finished.says(&["could not write to standard output"]);
    assert_eq!(scene.read("status"), "1\n");
    assert_eq!(document::read(&scene, "out.json")["complete"], true, "the file is written all the same");
    sh("{ \"$0\" COMPARE 2>&1; echo $? >status; } | head -1");
    assert_eq!(scene.read("status"), "1\n");
    // Standard error is closed, which isn't a reason to fail.
    sh("{ \"$0\" COMPARE 2>&1 >/dev/null; echo $? >status; } | true");
    assert_eq!(scene.read("status"), "0\n");
    scene.assert_clean();
}

#[test]
fn a_server_that_is_not_there() {
    let scene = scripts();
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let port = port.to_string();
    for command in ["compare", "run", "run -f good.sql", "init"] {
        let arguments = [&words(command)[..], &["-h", "127.0.0.1", "-p", &port]].concat();
        let finished = scene.run(&arguments).expect(1);
        finished.says(&[
            "isobench: error: connection to server at \"127.0.0.1\"",
            &port,
            "Connection refused",
        ]);
    }
    scene.run(&["run", "-h", "/nowhere"]).expect(1).says(&["/nowhere", "No such file"]);
    scene.run(&["run", "-h", "no-such-host.invalid"]).expect(1).says(&["no-such-host.invalid"]);
    // The environment names a server as well.
    let finished = Running::start(scene.isobench(&["run"]).env("PGHOST", "/nowhere")).finish();
    finished.expect(1).says(&["/nowhere"]);
}

#[test]
fn a_wrong_password_and_other_refusals() {
    let Some(database) = Database::new("a_wrong_password_and_other_refusals") else { return };
    let scene = scripts();
    let (port, password) = database.tcp();
    let tcp = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", &database.name];
    let run = |password: Option<&str>| {
        let mut command = scene.isobench(&[&["run", "-t", "1", "-f", "good.sql"], &tcp[..]].concat());
        command.env("PGPASSFILE", "/nowhere");
        if let Some(password) = password {
            command.env("PGPASSWORD", password);
        }
        Running::start(&mut command).finish()
    };
    run(Some(&password)).expect(0);
    let wrong = run(Some("wrong")).expect(1);
    assert!(!wrong.stderr.contains("wrong"), "a password is printed: {}", wrong.stderr);
    wrong.says(&["127.0.0.1", "password authentication failed for user \"postgres\""]);
    run(None).expect(1).says(&["no password"]);

    let options = database.server_options();
    let named: Vec<&str> = options.iter().map(String::as_str).collect();
    let run = |database: &str| scene.run(&[&["run"], &named[..], &["-d", database]].concat());
    run("nosuch").expect(1).says(&["database \"nosuch\" does not exist"]);
    // pgbench's tables are missing: the message says how to create them.
    run(&database.name).expect(1).says(&["\"pgbench_branches\" does not exist", "isobench init"]);
}

/// On a server of its own: the others would be refused, too.
#[test]
fn more_clients_than_connections() {
    let Some(scene) = Scene::with_server("more_clients_than_connections") else { return };
    scene.write("good.sql", "select 1;\n");
    let settings = [("max_connections", "20"), ("fsync", "off")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() }, &mut |_| {});
    let server = server.expect("a server");
    let (folder, port) = (server.socket_dir().to_string_lossy().into_owned(), server.port().to_string());
    let named = ["-h", &folder, "-p", &port, "-U", server.user(), "-d", server.database()];
    for command in ["run -f good.sql", "compare --levels rc --transactions 1 --warmup 0"] {
        let arguments = [&words(command)[..], &["-c", "30"], &named].concat();
        let finished = scene.run(&arguments).expect(1);
        finished.says(&["too many clients", "30 clients", "raise max_connections"]);
    }
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let schemas = "select count(*) from pg_namespace where nspname = 'isobench'";
    let left = Connection::open(&options).expect("a connection").value(schemas).expect("an answer");
    assert_eq!(left.as_deref(), Some("0"), "the schema is removed after a failure, too");
}

/// A full disk while the tables are loaded, in the server's own words.
#[test]
fn a_full_disk() {
    let scene = Scene::new();
    let server = ScriptedServer::start_unix(
        scene.folder(),
        r#"
        == connect
        ! parameter in_hot_standby=off
        > SELECT version()
        < row PostgreSQL 15.18 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit
        > drop table if exists *
        < tag DROP TABLE
        > create table pgbench_history*
        < tag CREATE TABLE
        > create table pgbench_tellers*
        < tag CREATE TABLE
        > create table pgbench_accounts*
        < tag CREATE TABLE
        > create table pgbench_branches*
        < tag CREATE TABLE
        > begin
        < tag BEGIN
        > truncate table *
        < tag TRUNCATE TABLE
        > select relkind*
        < row f | f
        > copy pgbench_branches*
        < copy
        < tag COPY 1
        > select relkind*
        < row f | f
        > copy pgbench_tellers*
        < copy
        < tag COPY 10
        > select relkind*
        < row f | f
        > copy pgbench_accounts*
        < copy
        < error 53100 "could not extend file \"base/5/16400\": No space left on device" hint "Check free disk space."
        > rollback
        < tag ROLLBACK
        "#,
    );
    let folder = scene.folder().display().to_string();
    let finished = scene.run(&["init", "-h", &folder, "-U", "test", "-d", "test"]).expect(1);
    finished.says(&["No space left on device", "copying rows into pgbench_accounts failed"]);
    server.finish();
}

/// Rust's library opens `/dev/null` in place of a closed standard output, so nothing that is written fails.
#[test]
fn a_closed_standard_output_is_an_error_and_files_are_written() {
    let scene = Scene::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/compare.json");
    scene.write("bad.edn", "not a history");
    let closed = |line: &str| {
        let arguments = ["-c", "exec \"$0\" \"$@\" >&-"].into_iter().map(str::to_owned);
        let arguments: Vec<String> =
            arguments.chain([isobench()]).chain(line.split(' ').map(str::to_owned)).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Running::start(&mut scene.program(Path::new("/bin/sh"), &arguments)).finish_as(line)
    };
    let printed = format!("report {example} --format csv --html page.html");
    for line in ["workloads", "help", "--version", "compare --help", "help compare", "plans", &printed] {
        closed(line).expect(1).says(&["could not write to standard output: it is closed"]);
    }
    assert!(scene.read("page.html").contains("</html>"));
    closed("nosuch").expect(1).says(&["nosuch"]);
    closed(&format!("report {example} --html other.html")).expect(0);
}
