//! Faults, and the commits that clients were told of: what is acknowledged is compared with what is there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::standby::until;
use isobench_testkit::{golden, night};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells};
use crate::support::has_postgresql;
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;

/// One row for each transaction.
const INSERT: &str = "INSERT INTO t (client) VALUES (:client_id);\n";
const SETUP: &str = "DROP TABLE IF EXISTS t; CREATE TABLE t (client int);\n";

const SHORT: &str = "--levels rc --rounds 1 --time 1.5 --warmup 0.1 --no-verdict --json out.json";

fn count(cell: &Value, name: &str) -> u64 {
    let value = &cell["rounds"][0]["faults"]["settlement"][name];
    value.as_u64().unwrap_or_else(|| panic!("{name}: {value}"))
}

/// What was told and what is there add up, and agree with the ledger.
fn assert_settled(cell: &Value) {
    let round = &cell["rounds"][0];
    let attempts = |name: &str| round["attempts"][name].as_u64().unwrap_or(0);
    assert_eq!(round["complete"], true, "{round}");
    assert_eq!(round["faults"]["settlement"].get("withheld"), None, "{round}");
    assert_eq!(count(cell, "acknowledged"), attempts("committed") + attempts("swallowed"));
    assert_eq!(count(cell, "found") + count(cell, "lost"), count(cell, "acknowledged"));
    let all = ["acknowledged", "unacknowledged", "failed"].map(|name| count(cell, name));
    let inside = round["conflicts"].as_array().unwrap().iter();
    let inside = inside.filter(|conflict| conflict["reason"] == "retried inside the server");
    let inside: u64 = inside.map(|conflict| conflict["count"].as_u64().unwrap()).sum();
    assert_eq!(all.iter().sum::<u64>(), attempts("started") - inside);
    assert!(count(cell, "unacknowledged") >= attempts("ambiguous"));
    assert!(count(cell, "kept") <= count(cell, "unacknowledged"));
    for impossible in ["failed_kept", "repeated", "strangers"] {
        assert_eq!(count(cell, impossible), 0, "{impossible}: {round}");
    }
}

fn varied<'a>(cell: &'a Value, name: &str) -> &'a str {
    cell["varied"][name].as_str().unwrap_or_default()
}

#[test]
fn acknowledged_commits_are_settled_by_the_data() {
    let test = "acknowledged_commits_are_settled_by_the_data";
    let Some(scene) = Scene::with_server(test) else { return };
    scene.write("insert.sql", INSERT);
    scene.write("setup.sql", SETUP);
    let line = format!(
        "compare --details {SHORT} -f insert.sql --setup setup.sql --vary setting:synchronous_commit=off,on \
         --fault none,crash@0.5,promote@0.5 --standby async"
    );
    let finished = scene.run(&words(&line)).expect(0);
    scene.assert_clean();
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document).len(), 6);
    for cell in cells(&document) {
        let (commit, fault) = (varied(cell, "setting:synchronous_commit"), varied(cell, "fault"));
        assert_eq!(varied(cell, "standby"), "async");
        let round = &cell["rounds"][0];
        // The cells that others are compared with do the same work.
        assert_settled(cell);
        if fault == "none" {
            assert_eq!(count(cell, "lost"), 0, "{round}");
            assert_eq!(round["faults"]["faults"], Value::Array(Vec::new()));
            continue;
        }
        let settlement = &round["faults"]["settlement"];
        let promised = commit == "on" && fault == "crash@0.5";
        assert_eq!(settlement["promised"], promised, "{commit} {fault}");
        let settings = format!("synchronous_commit={commit} without a synchronous standby");
        assert_eq!(settlement["settings"], settings);
        if promised {
            assert_eq!(count(cell, "lost"), 0, "{settlement}");
        }
        let event = &round["faults"]["faults"][0];
        let number = |name: &str| event[name].as_f64().unwrap_or_else(|| panic!("{name}: {event}"));
        assert!(number("at_s") >= 0.5 && number("back_s") > 0.0 && number("silent_s") > 0.0, "{event}");
        assert!(round["faults"]["lost_sessions"].as_u64().unwrap() >= 8, "{round}");
        // Clients went on afterwards, if the server was back in time.
        if number("at_s") + number("back_s") < 1.0 {
            assert!(number("first_commit_s") > 0.0, "{event}");
        }
    }
    for text in ["downtime", "unacknowledged", "No acknowledged commit was lost", "crash@0.5"] {
        assert!(finished.stdout.contains(text), "{text}: {}", finished.stdout);
    }
}

/// The workloads of the matrix: two that aren't judged, and three that are.
const WORKLOADS: [&str; 5] = ["tpcb-like", "select-only", "orders", "registers", "write-skew"];

/// What happens alone, and what needs a standby, which takes time to start.
const ALONE: [&str; 7] = [
    "crash@0.3",
    "stop:fast@0.3",
    "stop:immediate@0.3",
    "backend@0.3",
    "freeze:0.3@0.3",
    "partition:0.3@0.3",
    "disconnect@0.3",
];
const WITH_STANDBY: [&str; 2] = ["promote@0.3", "partition-standby:0.3@0.3"];

const MATRIX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fault-matrix.md");

/// The text above the matrix.
const HEAD: &str = "# Every fault with every kind of workload

Every run ends, its ledger adds up, and the data settle each attempt: no failed attempt is there, none twice, and
each row belongs to an attempt. The table has each [fault](../guide/durability.md#what-can-happen) at serializable
with 8 clients and, for the last two, an asynchronous standby
(`ISOBENCH_BLESS=1 cargo test -p isobench --test cli every_fault_ends`).

- *lost*, *stay*: the clients' sessions;
- *kept*: all acknowledged commits are there, as the settings promise;
- *open*: nothing is promised;
- *level*: the history shows serializable; for annotated workloads without a lost commit.

";

#[test]
fn every_fault_ends_in_time_and_adds_up() {
    let test = "every_fault_ends_in_time_and_adds_up";
    if !has_postgresql(test) {
        return;
    }
    let column = |workload| {
        let scene = Scene::new();
        let alone = every(&scene, workload, &ALONE);
        let column: Vec<String> = alone.into_iter().chain(every(&scene, workload, &WITH_STANDBY)).collect();
        scene.assert_clean();
        column
    };
    if !night::all_cases() {
        // One that is judged.
        let (place, page) = (2, fs::read_to_string(MATRIX).expect("the page"));
        for (fault, found) in ALONE.iter().chain(&WITH_STANDBY).zip(column(WORKLOADS[place])) {
            let name = format!("`{fault}`");
            let mut rows = page.lines().filter(|line| line.starts_with('|'));
            let row = rows.find(|row| row.contains(&name)).expect("its row");
            // The first cells are empty and the faults.
            assert_eq!(row.split('|').nth(place + 2).map(str::trim), Some(found.as_str()), "{fault}: {row}");
        }
        return;
    }
    let columns = thread::scope(|scope| {
        let columns = WORKLOADS.map(|workload| scope.spawn(move || column(workload)));
        columns.map(|column| column.join().expect("no panic"))
    });
    let mut page = format!("{HEAD}| fault | {} |\n|---{}|\n", WORKLOADS.join(" | "), "|---".repeat(5));
    // Faults with the same outcomes share a row.
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (row, fault) in ALONE.iter().chain(&WITH_STANDBY).enumerate() {
        let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
        let (cells, name) = (cells.join(" | "), format!("`{fault}`"));
        match rows.iter_mut().find(|(other, _)| *other == cells) {
            Some((_, names)) => names.push(name),
            None => rows.push((cells, vec![name])),
        }
    }
    for (cells, names) in rows {
        page.extend(["| ", &names.join(", "), " | ", &cells, " |\n"]);
    }
    golden::expect(MATRIX, &page);
}

/// Lets each of these faults happen to a workload, and returns what came out, as far as that isn't a matter of
/// chance.
fn every(scene: &Scene, workload: &str, faults: &[&str]) -> Vec<String> {
    let line = format!(
        "compare --levels ser --rounds 1 --time 1 --warmup 0.1 --max-warmup 0.1 --json out.json -w {workload} \
         --fault {}",
        faults.join(",")
    );
    let finished = scene.run(&words(&line)).expect(0);
    let document = document::read(scene, "out.json");
    let found: Vec<&str> = cells(&document).iter().map(|cell| varied(cell, "fault")).collect();
    assert_eq!(found, faults);
    let outcome = |cell: &Value| {
        assert_settled(cell);
        let round = &cell["rounds"][0];
        let name = format!("{workload}, {}", varied(cell, "fault"));
        let settlement = &round["faults"]["settlement"];
        let promised = settlement["promised"] == true;
        if promised {
            assert_eq!(count(cell, "lost"), 0, "{name}: {settlement}");
        }
        let invariants = round["invariants"].as_array().unwrap();
        assert!(invariants.iter().all(|one| one["held"] != false), "{name}: {invariants:?}");
        let judged = ["orders", "registers", "write-skew"].contains(&workload) && count(cell, "lost") == 0;
        if judged {
            assert_eq!(round["verdict"]["kept"], true, "{name}: {}", finished.stdout);
        }
        let lost = round["faults"]["lost_sessions"].as_u64().unwrap() > 0;
        let sessions = if lost { "lost" } else { "stay" };
        let level = if promised && judged { ", level" } else { "" };
        format!("{sessions}, {}{level}", if promised { "kept" } else { "open" })
    };
    cells(&document).iter().map(outcome).collect()
}

#[test]
fn a_lost_commit_that_was_promised_is_told() {
    let test = "a_lost_commit_that_was_promised_is_told";
    let Some(scene) = Scene::with_server(test) else { return };
    // A server that forgets every tenth row, whatever it has acknowledged.
    let forgets = "CREATE FUNCTION plant() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF to_regclass('isobench_attempts') IS NOT NULL THEN \
        CREATE OR REPLACE RULE forget AS ON INSERT TO isobench_attempts WHERE NEW.attempt % 10 = 0 \
        DO INSTEAD NOTHING; END IF; END $$;\n\
        CREATE EVENT TRIGGER planted ON ddl_command_end WHEN TAG IN ('CREATE TABLE') \
        EXECUTE FUNCTION plant();\n";
    scene.write("insert.sql", INSERT);
    scene.write("setup.sql", &format!("{SETUP}{forgets}"));
    let line = format!("compare {SHORT} -f insert.sql --setup setup.sql --fault crash@0.5");
    let finished = scene.run(&words(&line)).expect(3);
    let document = document::read(&scene, "out.json");
    let cell = &cells(&document)[0];
    assert!(count(cell, "lost") > 0 && count(cell, "found") > count(cell, "lost"), "{cell}");
    let said = words(&finished.stdout).join(" ");
    for text in
        ["DURABILITY BROKEN", "synchronous_commit=on without a synchronous standby promises to keep them"]
    {
        assert!(said.contains(text), "{text}: {}", finished.stdout);
    }
    assert!(finished.stderr.contains("commits are lost that the settings promise to keep"));
}

#[test]
fn a_doubt_about_the_settings_withholds() {
    let test = "a_doubt_about_the_settings_withholds";
    let Some(scene) = Scene::with_server(test) else { return };
    // The script itself doesn't wait for its commits, so a crash may lose some that the server's
    // settings would promise to keep.
    let own = format!("BEGIN;\nSET LOCAL synchronous_commit = off;\n{INSERT}END;\n");
    scene.write("insert.sql", &own);
    scene.write("setup.sql", SETUP);
    let line = format!("compare {SHORT} -f insert.sql --setup setup.sql --fault stop:immediate@0.5");
    let finished = scene.run(&words(&line));
    let document = document::read(&scene, "out.json");
    let settlement = &cells(&document)[0]["rounds"][0]["faults"]["settlement"];
    assert_eq!(settlement["promised"], Value::Null, "{settlement}");
    let status = finished.status.code();
    assert!([Some(0), Some(1)].contains(&status), "never 3: {}", finished.stdout);
    assert_eq!(status == Some(1), count(&cells(&document)[0], "lost") > 0, "{}", finished.stdout);
}

#[test]
fn faults_that_cannot_be_are_refused_before_anything_starts() {
    let scene = Scene::new();
    scene.write("two.sql", "SELECT 1;\nSELECT 2;\n");
    scene.write("setup.sql", SETUP);
    for (line, part) in [
        ("--fault crash@9", "--fault: crash@9: each cell is measured for 1.5 s only"),
        ("--fault boom@1", "\"boom@1\" isn't a fault; there are crash@S"),
        ("--fault crash@1 --transactions 5", "it happens at a time"),
        ("--fault crash@1 --unlogged-tables -w tpcb-like", "a crash empties unlogged tables"),
        ("--fault promote@1 --standbys 0", "--fault promote@1 needs one"),
        ("--fault partition-standby:0.1@1 --standbys 0", "needs one"),
        ("--fault partition:2@1", "longer --time"),
        ("--fault command@1", "name it by --fault-command PROGRAM"),
        ("--fault command@1 --fault-command ./none", "\"./none\": there is no such program"),
        ("--fault command@1 --fault-command none-such", "there is no such program"),
        ("--fault crash@1 --fault-command true", "no fault runs it"),
        ("--fault crash@1 --background vacuum", "would end it"),
        ("--background reindex", "there are none, old-snapshot"),
        ("--alter-system", "an embedded server is started with the settings"),
        ("--standbys 9", "at most 8"),
        ("--standby often", "isn't a way for a standby to follow"),
        ("--fault crash@1 --reconnect often", "--reconnect"),
        ("--fault crash@1 --sweep --latency-limit 50", "--sweep"),
        ("--fault crash@1 -h db.example", "nothing happens to a named server"),
        ("--fault command@1,crash@1 --fault-command true -h db.example", "nothing happens to a named server"),
        (
            "-f two.sql --schema app --keep-data --fault command@1 --fault-command true -h db.example",
            "leave out --schema",
        ),
    ] {
        let options = line.replace("--transactions", "-t");
        let short = if options.contains("-t 5") { "--levels rc" } else { SHORT };
        let finished = scene.run(&words(&format!("compare {short} {options}"))).expect(1);
        assert!(finished.stderr.contains(part), "{line}: {}", finished.stderr);
    }
}

#[test]
fn a_script_of_several_transactions_cannot_be_settled() {
    let test = "a_script_of_several_transactions_cannot_be_settled";
    let Some(scene) = Scene::with_server(test) else { return };
    scene.write("two.sql", "SELECT 1;\nSELECT 2;\n");
    scene.write("setup.sql", SETUP);
    let line = format!("compare {SHORT} -f two.sql --setup setup.sql --fault crash@0.5");
    let finished = scene.run(&words(&line)).expect(1);
    assert!(
        finished.stderr.contains("a run of the script isn't exactly one transaction"),
        "{}",
        finished.stderr
    );
}

#[test]
fn nothing_happens_to_a_named_server() {
    let test = "nothing_happens_to_a_named_server";
    let Some(database) = Database::new(test) else { return };
    let scene = Scene::new();
    let before = database.inventory();
    let line = format!("compare {SHORT} --fault crash@0.5");
    let finished = database.run(&scene, &words(&line)).expect(1);
    assert!(finished.stderr.contains("nothing happens to a named server"), "{}", finished.stderr);
    assert_eq!(database.inventory(), before);
}

/// Says that it is time to fail over, and waits until that is done.
const FAILOVER: &str = "#!/bin/sh\ntouch failing\nwhile ! test -e promoted; do sleep 0.02; done\n";

/// A program in a folder that others can't change.
pub fn program(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.sh");
    fs::write(&path, text).expect("a program");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its mode");
    (folder, path.display().to_string())
}

/// A server with a standby, and both folders of sockets.
fn pair(options: ServerOptions) -> (Server, String) {
    let options = ServerOptions { standbys: 1, ..options };
    let server = Server::start(&options, &mut |_| {}).expect("a server");
    let mut session = connect(&server, server.socket_dir());
    session.execute("SELECT pg_create_physical_replication_slot('isobench_1', true)").expect("a slot");
    server.start_standbys().expect("a standby");
    let hosts = format!("{},{}", server.socket_dir().display(), server.standby_socket_dir(1).display());
    (server, hosts)
}

fn connect(server: &Server, socket: &Path) -> Connection {
    let host = Host::unix(socket, server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    Connection::open(&options).expect("a session")
}

#[test]
fn a_program_of_the_users_fails_a_named_server_over() {
    let test = "a_program_of_the_users_fails_a_named_server_over";
    let Some(scene) = Scene::with_server(test) else { return };
    let (server, hosts) = pair(ServerOptions::default());
    let (_folder, program) = program(FAILOVER);
    let port = server.port();
    let line = format!(
        "compare --levels rc --rounds 1 --time 2.5 --warmup 0.1 -w orders --fault command@0.5 --fault-command \
         {program} --json out.json -h {hosts} -p {port},{port} -U postgres -d postgres"
    );
    let running = Running::start(&mut scene.isobench(&words(&line)));
    until("the program is run", || if scene.file("failing").exists() { Ok(()) } else { Err(String::new()) });
    server.kill(0).expect("killed");
    let mut standby = connect(&server, &server.standby_socket_dir(1));
    let promoted = standby.value("SELECT pg_promote(true, 60)").expect("an answer");
    assert_eq!(promoted.as_deref(), Some("t"));
    scene.write("promoted", "");
    let finished = running.finish();
    let document = document::read(&scene, "out.json");
    let cell = &cells(&document)[0];
    let round = &cell["rounds"][0];
    assert_eq!(round["faults"]["settlement"]["promised"], Value::Null, "{round}");
    // What was promised depends on what the program did, which isobench doesn't know.
    let lost = count(cell, "lost");
    assert_eq!(finished.status.code(), Some(i32::from(lost > 0)), "{}", finished.stderr);
    if lost == 0 {
        assert_settled(cell);
    }
    let event = &round["faults"]["faults"][0];
    assert_eq!((&event["fault"], event.get("problem")), (&"command@0.5".into(), None), "{event}");
    assert!(event["first_commit_s"].as_f64().is_some(), "clients went on at the new primary: {event}");
    let left =
        standby.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'isobench'").expect("an answer");
    assert_eq!(left.as_deref(), Some("0"), "nothing is left on the new primary: {}", finished.stderr);
}

#[test]
fn a_plan_runs_no_programs_and_root_none_that_others_can_replace() {
    let scene = Scene::new();
    scene.write("plan.toml", "fault = [\"command@0.3\"]\nfault-command = \"true\"\n");
    let finished = scene.run(&words(&format!("compare {SHORT} --plan plan.toml"))).expect(1);
    assert!(finished.stderr.contains("fault-command"), "an unknown key: {}", finished.stderr);
    if rustix::process::geteuid().is_root() {
        scene.write("open/run.sh", "#!/bin/sh\n");
        let folder = scene.file("open");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("a folder of all");
        let line = format!("compare {SHORT} --fault command@0.3 --fault-command open/run.sh");
        scene.run(&words(&line)).expect(1).says(&["root runs no program that others can replace"]);
    }
}

#[test]
fn a_program_that_fails_is_named() {
    let test = "a_program_that_fails_is_named";
    let Some(scene) = Scene::with_server(test) else { return };
    // What it leaves behind keeps its standard error open for longer than anybody waits.
    let (_folder, program) =
        program("#!/bin/sh\nsleep 600 &\necho $! > left\necho the lever is stuck >&2\nexit 7\n");
    let line = format!("compare {SHORT} --fault command@0.3 --fault-command {program}");
    scene
        .run(&words(&line))
        .expect(2)
        .says(&[&format!("--fault-command {program}: exit status: 7: the lever is stuck")]);
    let document = document::read(&scene, "out.json");
    assert!(count(&cells(&document)[0], "acknowledged") > 0, "what was measured is kept");
    let left = scene.read("left").trim().parse().ok().and_then(Pid::from_raw).expect("a process");
    kill_process(left, Signal::KILL).expect("it went on");
    until("it ends", || scene.processes().first().map_or(Ok(()), |process| Err(process.clone())));
    scene.assert_clean();
}

#[test]
fn something_else_goes_on_beside_the_clients() {
    let test = "something_else_goes_on_beside_the_clients";
    let Some(scene) = Scene::with_server(test) else { return };
    let kinds = ["none", "old-snapshot", "long-writer", "vacuum", "checkpoint", "dump"];
    let line = format!(
        "compare --details --levels ser --rounds 1 --time 0.6 --warmup 0.1 --clients 4 --json out.json --server-setting \
         fsync=off --background {}",
        kinds.join(",")
    );
    let finished = scene.run(&words(&line)).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document).len(), kinds.len());
    for cell in cells(&document) {
        let (kind, round) = (varied(cell, "background"), &cell["rounds"][0]);
        assert_eq!(round["complete"], true, "{round}");
        if kind == "none" {
            assert_eq!(round.get("background"), None);
            continue;
        }
        let done = &round["background"];
        assert_eq!((&done["kind"], done.get("problem")), (&kind.into(), None), "{done}");
        let (times, mean) = (done["times"].as_u64().unwrap(), done["mean_s"].as_f64());
        if ["old-snapshot", "long-writer"].contains(&kind) {
            assert!(times == 1 && mean.is_some_and(|mean| mean >= 0.6), "open all the time: {done}");
        }
        // Whatever it is, it isn't held against a level.
        assert_ne!(round["verdict"]["kept"], false, "{round}");
    }
    assert!(finished.stdout.contains("Background work: old-snapshot, "), "{}", finished.stdout);
    scene.assert_clean();
}

#[test]
fn what_may_not_go_on_is_said_before_the_clients_start() {
    let test = "what_may_not_go_on_is_said_before_the_clients_start";
    let Some(database) = Database::new(test) else { return };
    let scene = Scene::new();
    scene.write("none.sql", "SELECT 1;\n");
    scene.write("setup.sql", "SELECT 1;\n");
    let line = format!("compare {SHORT} -f none.sql --setup setup.sql --background dump");
    let finished = database.run(&scene, &words(&line)).expect(1);
    finished.says(&["--background dump: the workload has no tables"]);
}

/// The scripts of the test below: writers of one of eight rows, of which half don't wait for the
/// standby, and readers of all.
const FORKS: &str = "DROP TABLE IF EXISTS forks; CREATE TABLE forks (id bigint PRIMARY KEY, version bigint NOT NULL, \
    writer bigint) WITH (fillfactor = 10);\nINSERT INTO forks (id, version) SELECT id, 0 FROM generate_series(1, 8) \
    AS numbers (id);\n";
const WRITER: &str = "\\set row random(1, 8)\n\\set local random(0, 1)\nBEGIN;\n\\if :local\nSET LOCAL \
    synchronous_commit = local;\n\\endif\n--@ write forks key=$1 version=$2 value=$3\nUPDATE forks SET version = \
    version + 1, writer = :attempt_id WHERE id = :row RETURNING id, version, writer;\nCOMMIT;\n";
const READER: &str = "BEGIN;\n--@ read forks key=$1 version=$2 value=$3\nSELECT id, version, writer FROM forks ORDER \
    BY id;\nCOMMIT;\n";

#[test]
fn readers_on_a_standby_see_commits_in_another_order() {
    let test = "readers_on_a_standby_see_commits_in_another_order";
    let Some(scene) = Scene::with_server(test) else { return };
    for (name, text) in [("forks.sql", FORKS), ("write.sql", WRITER), ("read.sql", READER)] {
        scene.write(name, text);
    }
    // Commits wait for the first standby, and the second one is read, so that a commit is there long before it is
    // visible on the server. How often that shows is up to the machine, so there are several tries.
    let line = "compare -f write.sql -f read.sql@2 --setup forks.sql --read-script read.sql --readers 4 --standbys 2 \
        --standby sync --levels rr --rounds 1 --time 2 --json out.json";
    for _ in 0..15 {
        let finished = scene.run(&words(line)).expect(0);
        let document = document::read(&scene, "out.json");
        let rounds = cells(&document)[0]["rounds"].as_array().unwrap();
        let of = |round: &Value, name: &str| round["verdict"][name].clone();
        for round in rounds {
            assert_eq!(of(round, "promised"), Value::Null, "nothing is promised of two servers");
            assert!(round["standby_lag"]["samples"].as_u64().unwrap() > 0, "{round}");
        }
        assert_eq!(cells(&document)[0]["clients"], 8);
        let found =
            rounds.iter().flat_map(|round| of(round, "anomalies").as_array().cloned().unwrap_or_default());
        if let Some(fork) = found.into_iter().find(|anomaly| anomaly["known_as"] == "long fork") {
            assert!(!fork["witness"].as_array().unwrap().is_empty(), "{fork}");
            for text in ["4 readers on a standby", "long fork", "whatever", "synchronous_commit says"] {
                assert!(finished.stdout.contains(text), "{text}: {}", finished.stdout);
            }
            return scene.assert_clean();
        }
    }
    panic!("no long fork in fifteen tries");
}

#[test]
fn the_standby_of_a_named_server_is_read() {
    let test = "the_standby_of_a_named_server_is_read";
    let Some(scene) = Scene::with_server(test) else { return };
    let (server, _) = pair(ServerOptions::default());
    let (folder, port) = (server.socket_dir().display(), server.port());
    let line = format!(
        "compare -w long-fork:groups=1,rows=8 --levels rr --rounds 1 --time 1 --warmup 0.1 --readers 2 --json out.json \
         -h {folder} -p {port} -U postgres -d postgres --standby-server"
    );
    let conninfo =
        |socket: &Path| format!("host={} port={port} user=postgres dbname=postgres", socket.display());
    let run = |standby: &str| scene.run(&[&words(&line)[..], &[standby]].concat());
    let finished = run(&conninfo(&server.standby_socket_dir(1))).expect(0);
    assert!(finished.stdout.contains("2 further clients read on a standby"), "{}", finished.stdout);
    let document = document::read(&scene, "out.json");
    let cell = &cells(&document)[0];
    assert_eq!(cell["varied"].get("standby"), None, "isobench doesn't know how it follows");
    let round = &cell["rounds"][0];
    assert_eq!(round["verdict"]["promised"], Value::Null, "{round}");
    assert!(round["standby_lag"]["samples"].as_u64().unwrap() > 0, "{round}");
    run(&conninfo(server.socket_dir())).expect(1).says(&["is no standby: it accepts writes"]);
    // One of another version isn't from the same initdb.
    let version = if server.version().starts_with("18") { "17" } else { "18" };
    let version = Some(version.parse().expect("a version"));
    let (other, _) = pair(ServerOptions { version, ..ServerOptions::default() });
    let other = conninfo(&other.standby_socket_dir(1)).replace(&port.to_string(), &other.port().to_string());
    run(&other).expect(1).says(&["is a standby of another server", "system identifiers differ"]);
    let mut session = connect(&server, server.socket_dir());
    let left =
        session.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'isobench'").expect("an answer");
    assert_eq!(left.as_deref(), Some("0"));
}

#[test]
fn what_cannot_be_read_on_a_standby_is_refused() {
    let scene = Scene::new();
    scene.write("write.sql", WRITER);
    for (line, part) in [
        ("--readers 2 -w tpcb-like", "has no script that only reads"),
        ("--readers 2 -w tpcb-like --read-script write.sql", "writes (UPDATE)"),
        ("--readers 2 -w long-fork --read-script write.sql", "scripts of its own that only read"),
        ("--wait-for-lsn -w tpcb-like", "needs --readers NUM, the number of clients that wait"),
        ("--read-script select-only -w tpcb-like", "needs --readers NUM, the number of clients that run it"),
        ("--readers 2 -w long-fork --levels ser", "runs no transactions at serializable"),
        ("--readers 2 -w long-fork --fault crash@0.5", "leave out --fault or --readers"),
        ("--readers 2 -w long-fork --standbys 0", "--readers have their sessions on one"),
        (
            "--readers 2 -w long-fork --standby-server host=/nonexistent",
            "name the server that this one follows",
        ),
        (
            "-w long-fork -h db.example --standby-server host=/nonexistent",
            "needs --readers NUM, the number of clients that read there",
        ),
        ("-w long-fork -h db.example --readers 2", "--standby-server names one that there is"),
    ] {
        let finished = scene.run(&words(&format!("compare --rounds 1 --time 1 {line}"))).expect(1);
        assert!(finished.stderr.contains(part), "{line}: {}", finished.stderr);
    }
}

/// There is no build of version 19 to try it on.
#[test]
fn readers_wait_on_no_server_before_19() {
    let name = "readers_wait_on_no_server_before_19";
    let Some(s) = Scene::with_server(name) else { return };
    let line =
        "compare -b simple-update --levels rc --readers 1 --read-script select-only --wait-for-lsn -c 1 -t 1";
    let finished = s.run(&words(line)).expect(1);
    finished
        .says(&["--wait-for-lsn: readers can't wait on PostgreSQL ", "WAIT FOR LSN came with version 19"]);
}
