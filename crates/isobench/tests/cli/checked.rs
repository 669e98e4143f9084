//! Checked workloads in `compare`, `audit`, `run` and `init`: the promise, the verdict on the
//! history, and the exit status.
//!
//! Not here: `isobench check` (`check.rs`), and the findings in individual histories (crate
//! `isobench-isolation`).

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells, count, rounds};
use crate::support::named::Database;
use crate::support::program::{Running, isobench};
use crate::support::scene::Scene;
use crate::support::{embedded, skip, wait_for};

/// The names of the anomalies of a round.
fn anomalies(round: &Value) -> Vec<&str> {
    let anomalies = round["verdict"]["anomalies"].as_array().expect("a verdict");
    anomalies.iter().map(|anomaly| anomaly["name"].as_str().expect("a name")).collect()
}

#[test]
fn each_level_is_judged_by_its_own_history() {
    let Some(scene) = Scene::with_database("each_level_is_judged_by_its_own_history") else { return };
    let options = "compare --workload registers:keys=16 --clients 8 --rounds 2 --transactions 60 --warmup 0.1 \
        --details --json out.json --csv out.csv";
    let finished = scene.run(&words(options)).expect(0);
    let finished = finished.prints(&["anomalies", "no forbidden anomaly", "transactions had an anomaly: "]);
    assert!(!finished.stdout.contains("BROKEN"), "{}", finished.stdout);
    let document = document::read(&scene, "out.json");
    let [committed, repeatable, serializable] = cells(&document) else { panic!("three cells") };
    // Read, then written, by eight clients on sixteen registers: at read committed increments are
    // lost.
    assert_eq!(committed["summary"]["verdict"]["models"], serde_json::json!(["read committed"]));
    assert!(rounds(&document).next().is_some_and(|round| anomalies(round).contains(&"P4")));
    assert!(count(committed, "/summary/violations") > 0);
    for (cell, promised) in [(repeatable, "snapshot isolation"), (serializable, "serializable")] {
        let verdict = &cell["summary"]["verdict"];
        assert_eq!((&verdict["promised"], &verdict["kept"]), (&promised.into(), &true.into()), "{verdict}");
        assert_eq!(cell["summary"]["invariants_held"], true, "increments are lost at no level above");
    }
    assert_eq!(count(serializable, "/summary/verdict/anomalies"), 0);
    for round in rounds(&document) {
        // Every attempt of the round is in the history, and so are the warm-up's.
        let looked_at = count(round, "/verdict/examined/committed");
        let run = count(round, "/attempts/committed") + count(round, "/warmup/committed");
        assert_eq!(looked_at, run);
        assert!(count(round, "/verdict/examined/write_read") > 0, "{}", round["verdict"]);
    }
    assert!(scene.read("out.csv").contains(",snapshot isolation,true,"), "{}", scene.read("out.csv"));
}

#[test]
fn an_audit_prints_witnesses_and_writes_histories() {
    let Some(scene) = Scene::with_database("an_audit_prints_witnesses_and_writes_histories") else { return };
    let options = "audit --levels rc,ser --workload write-skew:shifts=4 --clients 8 --transactions 100";
    let finished = scene.run(&words(options)).expect(0).says(&["the histories are in isobench-history"]);
    let finished = finished.prints(&[
        "wrong:",
        "\n  What goes wrong at read committed: ",
        ": no serial order gives this.\n",
        "\n  Anomalies read committed: ",
        "\n            serializable: none\n",
        "\n  More      isobench audit --details",
    ]);
    let heading = "write-skew:shifts=4, read committed, 8 clients\n═";
    assert!(!finished.stdout.contains(heading), "{}", finished.stdout);
    assert!(finished.stdout.starts_with("write-skew:shifts=4, 8 clients"), "{}", finished.stdout);
    let mut histories: Vec<String> = fs::read_dir(scene.file("isobench-history"))
        .expect("the folder")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    histories.sort();
    assert_eq!(histories.len(), 2, "{histories:?}");
    // A history recorded at read committed isn't serializable.
    let file = format!("isobench-history/{}", histories[0]);
    scene.run(&["check", &file, "--promised", "read committed"]).expect(0);
    scene.run(&["check", &file, "--promised", "serializable"]).expect(3);
    let file = format!("isobench-history/{}", histories[1]);
    scene.run(&["check", &file, "--promised", "serializable"]).expect(0);
}

/// The answer, the table, one witness, the anomalies and what next: at most 40 lines of 80 columns.
#[test]
fn an_audit_of_three_levels_fits_on_a_screen() {
    let Some(scene) = Scene::with_database("an_audit_of_three_levels_fits_on_a_screen") else { return };
    let run = |more: &str| {
        let options = format!("audit --workload registers:keys=16 --clients 8 --transactions 60{more}");
        let mut command = scene.program(isobench().as_ref(), &words(&options));
        Running::start(command.env("COLUMNS", "80")).finish().expect(0)
    };
    let finished = run("");
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines.len() <= 40, "{} lines:\n{}", lines.len(), finished.stdout);
    let wide = lines.iter().filter(|line| line.chars().count() > 80 && !line.starts_with("Report: "));
    assert_eq!(wide.collect::<Vec<_>>(), Vec::<&&str>::new());
    let details = run(" --details");
    details.prints(&["registers:keys=16, read committed, 8 clients\n═", "\nanomaly ", "P4, lost update"]);
}

#[test]
fn a_run_is_judged_too() {
    let Some(scene) = Scene::with_database("a_run_is_judged_too") else { return };
    let run = "run --workload bank:accounts=8 --isolation rr -c 4 -t 100 --max-tries 1000 -L 10000";
    scene.run(&words("init --workload bank:accounts=8")).expect(0);
    let finished = scene.run(&words(&format!("{run} --history bank.history --json out.json"))).expect(0);
    finished.prints(&["transaction type: ", "snapshot isolation", "invariant total-unchanged: held"]);
    let document = document::read(&scene, "out.json");
    let round = rounds(&document).next().expect("a round");
    assert_eq!(round["verdict"]["promised"], "snapshot isolation");
    assert_eq!(count(round, "/verdict/examined/committed"), 400);
    scene.run(&words("check bank.history --promised snapshot-isolation")).expect(0);
    let finished = scene.run(&words(&format!("{run} --no-verdict"))).expect(0);
    assert!(!finished.stdout.contains("contradict"), "{}", finished.stdout);
}

#[test]
fn tables_on_a_named_server_are_made_by_init() {
    let Some(database) = Database::new("tables_on_a_named_server_are_made_by_init") else { return };
    let scene = Scene::new();
    database.run(&scene, &words("init --workload bank:accounts=10")).expect(0).says(&["made tables"]);
    let run = "run --workload bank:accounts=10 --isolation ser -c 2 -t 20 --max-tries 1000 -L 10000";
    database.run(&scene, &words(run)).expect(0).prints(&["total-unchanged: held", "serializable"]);
    // Versions continue from the first run.
    database.run(&scene, &words(run)).expect(0).prints(&["total-unchanged: held", "serializable"]);
    // Neither does an invariant that was violated before.
    database.connect().execute("update accounts set balance = balance + 1 where id = 1").expect("a change");
    let violated = database.run(&scene, &words(run)).expect(0);
    violated.prints(&["total-unchanged was violated before this run already", "init --workload bank"]);
    // Lists left by an earlier run don't accuse the database. With the same seed, and so few
    // elements, the next run uses the same ones.
    let lists = "list-append:lists=8,elements=1000";
    database.run(&scene, &words(&format!("init --workload {lists}"))).expect(0);
    for _ in 0..3 {
        let run = format!(
            "run --workload {lists} --random-seed 1 --isolation ser -c 2 -t 20 --max-tries 1000 -L 10000"
        );
        database.run(&scene, &words(&run)).expect(0).prints(&["Nothing contradicts serializable"]);
    }
}

/// A user's objects that bear a name from a workload: the statement that makes it, its kind and
/// name, and the workload.
const NAMESAKES: [(&str, &str, &str, &str); 4] = [
    ("create table accounts (id bigint, balance bigint)", "table", "accounts", "bank"),
    ("create sequence receipts_numbers", "sequence", "receipts_numbers", "receipts"),
    ("create view reports as select 1 as id", "view", "reports", "receipts"),
    (
        "create function orders_swallow() returns int language sql as 'select 1'",
        "routine",
        "orders_swallow",
        "orders+swallow",
    ),
];

#[test]
fn what_bears_a_workloads_name_by_chance_is_neither_dropped_nor_written() {
    let test = "what_bears_a_workloads_name_by_chance_is_neither_dropped_nor_written";
    for (made, kind, name, workload) in NAMESAKES {
        let Some(database) = Database::new(test) else { return };
        let scene = Scene::new();
        let run = format!("run -c 2 -t 20 --workload {workload}");
        let missing = format!("\"isobench init --workload {workload}\" makes it");
        database.run(&scene, &words(&run)).expect(1).says(&["isn't there", &missing]);
        let mut connection = database.connect();
        connection.execute(made).expect("an object");
        let message = format!("{kind} \"{name}\" exists already and was not made by \"isobench init\"");
        let init = format!("init --workload {workload}");
        for command in [&init, &run] {
            database.run(&scene, &words(command)).expect(1).says(&[&message]);
        }
        // A DROP finds it in any schema of the search path.
        let elsewhere =
            format!("create schema work; alter database {} set search_path = work, public", database.name);
        connection.execute(&elsewhere).expect("a search path");
        if kind != "routine" {
            database.run(&scene, &words(&init)).expect(1).says(&[&message]);
        }
        let count = "select (select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind <> \
                     'i') + (select count(*) from pg_proc where pronamespace = 'public'::regnamespace)";
        assert_eq!(connection.value(count).expect("a count").as_deref(), Some("1"), "{made}");
    }
}

const TABLE: &str = "DROP TABLE IF EXISTS t;\nCREATE TABLE t (id int PRIMARY KEY, version bigint, value bigint);\n\
                     INSERT INTO t VALUES (1, 0, -5), (2, 0, -5);\n";

/// Options of a short comparison of scripts with one client.
const SHORTLY: &str =
    "--setup tables.sql --levels ser --clients 1 --rounds 1 --transactions 20 --warmup 0 --json out.json";

/// `--@` lines that declare a read of an aborted attempt's value, as a defective server would
/// return it.
const ABORTED: &str = "BEGIN;\n--@ write t key=1 value=5\nUPDATE t SET value = 5 WHERE id = 1;\nROLLBACK;\n";
const READS_IT: &str = "BEGIN;\n--@ read t key=1 value=5\nSELECT value FROM t WHERE id = 1;\nEND;\n";

#[test]
fn a_broken_promise_is_branded_and_is_status_3() {
    let Some(database) = Database::new("a_broken_promise_is_branded_and_is_status_3") else { return };
    let scene = Scene::new();
    scene.write("aborted.sql", ABORTED);
    scene.write("reads.sql", READS_IT);
    scene.write("tables.sql", TABLE);
    let options = format!("compare --details -f aborted.sql -f reads.sql --observe annotations {SHORTLY}");
    let finished = database.run(&scene, &words(&options)).expect(3).says(&["did not give what it promises"]);
    finished.prints(&["PROMISE BROKEN", "FORBIDDEN ANOMALY", "aborted read"]);
    let document = document::read(&scene, "out.json");
    let round = rounds(&document).next().expect("a round");
    assert_eq!(round["verdict"]["kept"], false);
    // Without a check of the history, it is an unproved row like any other.
    let finished = database.run(&scene, &words(&format!("{options} --no-verdict"))).expect(0);
    finished.prints(&["unproved"]);
}

/// Scripts with a wrong or missing `--@` line, the message, and the statement that it names.
const WRONG: [(&str, &str, &str, &str); 4] = [
    (
        "forgotten.sql",
        "BEGIN;\n--@ read t key=1 version=$1\nSELECT version FROM t WHERE id = 1;\n\
         UPDATE t SET version = version + 1 WHERE id = 1;\nEND;\n",
        "which no transaction wrote",
        "has no line --@ write, insert or append: forgotten.sql:4 (UPDATE t SET version",
    ),
    (
        "not-raised.sql",
        "BEGIN;\n--@ read t key=1 version=$1 value=$2\nSELECT version, value FROM t WHERE id = 1;\n\
         --@ write t key=1 version=$1 value=:attempt_id\n\
         UPDATE t SET value = :attempt_id WHERE id = 1 RETURNING version;\nEND;\n",
        "of t 1",
        "check whether these statements raise the version with every write, and whether their values are unique: \
         not-raised.sql:5",
    ),
    (
        "impossible.sql",
        "BEGIN;\n--@ read t key=1 version=1000000 value=999999999\nSELECT value FROM t WHERE id = 1;\n\
         --@ write t key=1 version=$1 value=:attempt_id\n\
         UPDATE t SET version = version + 1 WHERE id = 1 RETURNING version;\nEND;\n",
        "read version 1000000 (value 999999999) of t 1, which no transaction wrote",
        "impossible.sql:5 (UPDATE t",
    ),
    (
        "same.sql",
        "BEGIN;\n--@ write t key=1 value=7\nUPDATE t SET value = 7 WHERE id = 1;\nEND;\n",
        "the values that identify the writers of versions are not unique",
        "same.sql:3 (UPDATE t",
    ),
];

#[test]
fn a_wrong_annotation_accuses_nobody() {
    let Some(database) = Database::new("a_wrong_annotation_accuses_nobody") else { return };
    let scene = Scene::new();
    scene.write("tables.sql", TABLE);
    for (name, script, what, place) in WRONG {
        scene.write(name, script);
        let compare = format!("compare --workload {name} --observe annotations {SHORTLY}");
        let finished = database.run(&scene, &words(&compare)).expect(1);
        assert!(!finished.stdout.contains("BROKEN"), "{name}: {}", finished.stdout);
        finished.prints(&["withheld"]).says(&[
            "warning: serializable, 1 client: the verdict is withheld",
            "isobench: error: the verdict is withheld",
            what,
            place,
        ]);
        let document = document::read(&scene, "out.json");
        for cell in cells(&document) {
            let verdict = &cell["summary"]["verdict"];
            assert_eq!(
                (&verdict["kept"], &verdict["models"]),
                (&Value::Null, &serde_json::json!([])),
                "{verdict}"
            );
        }
    }
    // The same holds for a single run.
    let run = "run -f same.sql -n -c 1 -t 5 --isolation ser";
    database.connect().execute(TABLE).expect("tables");
    database.run(&scene, &words(run)).expect(1).prints(&["VERDICT WITHHELD", "Where to look: "]);
}

#[test]
fn an_initial_value_that_nobody_wrote_accuses_nobody() {
    let Some(scene) = Scene::with_database("an_initial_value_that_nobody_wrote_accuses_nobody") else {
        return;
    };
    scene.write("tables.sql", TABLE);
    scene.write(
        "values.sql",
        "BEGIN;\n--@ read t key=1 value=$1\nSELECT value FROM t WHERE id = 1;\n\
         --@ write t key=1 value=:attempt_id\nUPDATE t SET value = :attempt_id WHERE id = 1;\nEND;\n",
    );
    scene.run(&words(&format!("compare --workload values.sql --observe annotations {SHORTLY}"))).expect(0);
    let document = document::read(&scene, "out.json");
    for round in rounds(&document) {
        let blind = round["verdict"]["blind"].to_string();
        assert_eq!(round["verdict"]["kept"], true, "{round}");
        assert!(blind.contains("read value -5 of t 1"), "{blind}");
    }
}

/// A disk with room for the head of a recording only.
#[test]
fn a_history_that_cant_be_written_proves_nothing() {
    let test = "a_history_that_cant_be_written_proves_nothing";
    let Some(scene) = Scene::with_database(test) else { return };
    if !may_mount() {
        return skip(test, "to mount a small file system takes root, unshare and mount");
    }
    fs::create_dir(scene.file("small")).expect("a folder");
    let program = isobench();
    let options = "compare --workload registers:keys=16 --levels ser --clients 4 --rounds 1 --transactions 500 \
        --warmup 0 --observe annotations --history small --json out.json";
    let command = format!("mount -t tmpfs -o size=8k none small && exec {program} {options}");
    let mut shell = scene.program("unshare".as_ref(), &["--mount", "/bin/sh", "-c", &command]);
    let finished = Running::start(&mut shell).finish().expect(2);
    let missing = [
        "ends before the run: ",
        "1 of the histories couldn't be written",
        "warning: serializable, 4 clients: the verdict is withheld: nothing was checked: ",
        "the recording ends here, because it can't be written",
    ];
    finished.prints(&["withheld"]).says(&missing);
    let document = document::read(&scene, "out.json");
    let verdict = &cells(&document)[0]["summary"]["verdict"];
    assert_eq!((&verdict["kept"], &verdict["models"]), (&Value::Null, &serde_json::json!([])), "{verdict}");
    let reasons = verdict["withheld"].to_string();
    assert!(reasons.contains("nothing was checked") && reasons.contains("attempts are missing"), "{reasons}");
}

/// What statements showed is written once it was judged.
#[test]
fn an_audit_says_which_histories_arent_there() {
    let test = "an_audit_says_which_histories_arent_there";
    let Some(scene) = Scene::with_database(test) else { return };
    if !may_mount() {
        return skip(test, "to mount a small file system takes root, unshare and mount");
    }
    fs::create_dir(scene.file("small")).expect("a folder");
    let program = isobench();
    let options = "audit -w registers:keys=16 --levels rr,ser --clients 4 --transactions 500 --warmup 0 --history \
        small --json out.json";
    let command = format!(
        "mount -t tmpfs -o size=8k none small && {program} {options}; s=$?; echo left: $(ls small); exit $s"
    );
    let mut shell = scene.program("unshare".as_ref(), &["--mount", "/bin/sh", "-c", &command]);
    let finished = Running::start(&mut shell).finish().expect(2);
    let finished = finished.says(&[
        "--history: could not write the file \"small/",
        "there is none now; its verdict is not concerned",
        "0 of 2 histories are in small",
        "--history: 2 of the histories couldn't be written",
    ]);
    assert!(finished.stdout.ends_with("\nleft:\n"), "{}", finished.stdout);
    let document = document::read(&scene, "out.json");
    for round in rounds(&document) {
        assert_eq!((&round["complete"], &round["history"]), (&true.into(), &Value::Null), "{round}");
    }
}

/// Returns whether a file system can be mounted privately.
fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    tried.is_ok_and(|output| output.status.success())
}

#[test]
fn an_interrupted_audit_judges_what_there_is() {
    let Some(scene) = Scene::with_server("an_interrupted_audit_judges_what_there_is") else { return };
    let mut command = scene.isobench(&words("audit --levels rc --clients 4 --time 600 --json out.json"));
    let running = Running::start(&mut command);
    let mut connection = embedded::connect(&scene);
    wait_for("committed transactions", || {
        // The table may not exist yet.
        let begun = connection.value("select sum(version) > 10 from registers").ok()??;
        (begun == "t").then_some(())
    });
    drop(connection);
    running.signal(Signal::INT);
    running.finish().expect(2).prints(&["INCOMPLETE", "read committed"]);
    let document = document::read(&scene, "out.json");
    for round in rounds(&document) {
        assert_eq!(count(round, "/verdict/examined/committed"), count(round, "/attempts/committed"));
        assert!(count(round, "/attempts/committed") > 0);
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    let scene = Scene::new();
    scene.write("tables.sql", "SELECT 1;\n");
    for (options, words_said) in [
        ("compare -w registers:leys=3", &["no parameter \"leys\" (did you mean \"keys\"?)"][..]),
        ("compare -w bank+fast", &["no variant \"fast\"", "for-update"]),
        ("compare -w nothing", &["neither a built-in script (tpcb-like", "registers", "nor a file"]),
        ("compare -w bank --setup tables.sql", &["--setup", "makes its own tables"]),
        ("compare -w tpcb-like --observe annotations --history h", &["tpcb-like", "nothing shows what"]),
        ("audit -w tpcb-like --observe annotations", &["nothing shows what"]),
        ("audit --no-verdict", &["--no-verdict"]),
        ("run -w bank -b tpcb-like", &["--workload", "--builtin"]),
        ("run -S --history h", &["--history", "nothing shows what"]),
    ] {
        scene.run(&words(options)).expect(1).says(words_said);
    }
}
