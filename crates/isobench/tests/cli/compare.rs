//! `isobench compare` from start to end on the embedded server.

use serde_json::Value;

use crate::support::document::{self, assert_invariants_held, cells, count, number, rounds};
use crate::support::scene::Scene;

/// All names that the result document must contain.
const NAMES: &str = "
    /format /format_version /measurement_version /complete
    /server/product /server/version /server/settings /client/version /client/cpu /client/cores /plan
    /cells/0/workload /cells/0/scale /cells/0/clients /cells/0/jobs /cells/0/protocol /cells/0/backoff
    /cells/0/level/requested /cells/0/level/effective /cells/0/rounds
    /cells/0/rounds/0/seconds /cells/0/rounds/0/tps
    /cells/0/rounds/0/attempts/started /cells/0/rounds/0/attempts/committed /cells/0/rounds/0/attempts/retried
    /cells/0/rounds/0/attempts/given_up /cells/0/rounds/0/attempts/ambiguous /cells/0/rounds/0/attempts/cut_off
    /cells/0/rounds/0/attempts/errored
    /cells/0/rounds/0/transactions/total /cells/0/rounds/0/transactions/committed
    /cells/0/rounds/0/transactions/given_up /cells/0/rounds/0/transactions/ambiguous
    /cells/0/rounds/0/transactions/cut_off /cells/0/rounds/0/transactions/errored
    /cells/0/rounds/0/transactions/skipped
    /cells/1/rounds/0/conflicts/0/sqlstate /cells/1/rounds/0/conflicts/0/command
    /cells/1/rounds/0/conflicts/0/reason /cells/1/rounds/0/conflicts/0/count
    /cells/0/rounds/0/time_s/useful /cells/0/rounds/0/time_s/wasted /cells/0/rounds/0/time_s/backoff
    /cells/0/rounds/0/time_s/waiting
    /cells/0/rounds/0/latency_ms/mean /cells/0/rounds/0/latency_ms/stddev /cells/0/rounds/0/latency_ms/p50
    /cells/0/rounds/0/latency_ms/p90 /cells/0/rounds/0/latency_ms/p95 /cells/0/rounds/0/latency_ms/p99
    /cells/0/rounds/0/latency_ms/p999 /cells/0/rounds/0/latency_ms/max /cells/0/rounds/0/latency_ms/histogram
    /cells/0/rounds/0/invariants/0/name /cells/0/rounds/0/invariants/0/held /cells/0/rounds/0/invariants/0/detail
    /cells/0/summary/tps/mean /cells/0/summary/tps/low /cells/0/summary/tps/high
    /cells/1/summary/ratio/to /cells/1/summary/ratio/mean /cells/1/summary/ratio/low /cells/1/summary/ratio/high
    /cells/1/summary/ratio/significant /cells/1/summary/conflict_ratio";

#[test]
fn three_levels_from_start_to_end() {
    let Some(scene) = Scene::with_server("three_levels_from_start_to_end") else { return };
    let options = "compare -w tpcb-like --transactions 40 --warmup 0.1 --rounds 2 --clients 4 --json out.json --csv \
        out.csv";
    let finished = scene.run(&words(options)).expect(0).says(&["no server is named", "embedded PostgreSQL"]);
    scene.assert_clean();
    let levels = ["read committed", "repeatable read", "serializable"];
    for level in levels {
        assert!(finished.stdout.contains(&format!("  {level}  ")), "{}", finished.stdout);
    }
    // Without a terminal, one plain line per cell.
    assert_eq!(finished.stderr.matches("[6/6] round 2/2").count(), 1, "{}", finished.stderr);

    let document = document::read(&scene, "out.json");
    for name in NAMES.split_whitespace() {
        assert!(document.pointer(name).is_some(), "{name} is missing");
    }
    assert_eq!(document["format"], "isobench/result");
    assert_eq!(document["complete"], true);
    assert_invariants_held(&document);
    assert_eq!(cells(&document).len(), 3);
    for (cell, level) in cells(&document).iter().zip(levels) {
        assert_eq!(cell["level"]["requested"], level);
        assert_eq!(cell["level"]["effective"], level);
        assert_eq!(cell["rounds"].as_array().map(Vec::len), Some(2));
        assert!(number(cell, "/summary/tps/mean") > 0.0);
    }
    assert!(number(&cells(&document)[0], "/summary/conflict_ratio") < 0.5);
    for cell in &cells(&document)[1..] {
        assert!(number(cell, "/summary/conflict_ratio") > 0.0, "four clients collide on one branch");
    }
    check_conflicts(&document);
    check_order(&document, &finished.stderr);
    check_csv(&document, &scene.read("out.csv"));
}

/// Unlimited attempts: every conflict is retried, or cut off by the end.
fn check_conflicts(document: &Value) {
    for round in rounds(document) {
        let conflicts = round["conflicts"].as_array().expect("conflicts");
        let conflicts: u64 = conflicts.iter().map(|conflict| count(conflict, "/count")).sum();
        assert_eq!(count(round, "/attempts/given_up"), 0);
        assert!(conflicts >= count(round, "/attempts/retried"), "{}", round["attempts"]);
        assert!(conflicts <= count(round, "/attempts/started"), "{}", round["attempts"]);
    }
}

/// Every round measures every cell once, in the order shown by its places and the progress lines.
fn check_order(document: &Value, stderr: &str) {
    let mut expected = Vec::new();
    for cell in cells(document) {
        for round in cell["rounds"].as_array().expect("rounds") {
            let level = cell["level"]["requested"].as_str().expect("a level");
            let number = count(round, "/round");
            let place = count(round, "/order");
            expected.push((number, place, format!("] round {number}/2, {level}, 4 clients: ")));
        }
    }
    expected.sort();
    let places: Vec<(u64, u64)> = expected.iter().map(|(round, place, _)| (*round, *place)).collect();
    assert_eq!(places, [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]);
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(lines.len(), expected.len(), "{stderr}");
    for (line, (_, _, title)) in lines.iter().zip(&expected) {
        assert!(line.contains(title), "expected {title} in {line}");
    }
}

/// One line per cell and round, with the document's figures.
fn check_csv(document: &Value, csv: &str) {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| names.iter().position(|column| *column == name).expect("a column");
    let figures = |line: &str| {
        let values: Vec<&str> = line.split(',').collect();
        assert_eq!(values.len(), names.len(), "{line}");
        let value = |name: &str| values[column(name)].to_owned();
        [value("level"), value("round"), value("attempts_started"), value("transactions_committed")]
    };
    let mut found: Vec<_> = lines.map(figures).collect();
    let mut expected = Vec::new();
    for cell in cells(document) {
        for round in cell["rounds"].as_array().expect("rounds") {
            let number = |path| count(round, path).to_string();
            let level = cell["level"]["requested"].as_str().expect("a level").to_owned();
            let (started, committed) = (number("/attempts/started"), number("/transactions/committed"));
            expected.push([level, number("/round"), started, committed]);
        }
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_mix_of_scripts_keeps_the_books() {
    let Some(scene) = Scene::with_database("a_mix_of_scripts_keeps_the_books") else { return };
    let options = "compare --levels ser --clients 3 -b tpcb-like@2 -b simple-update \
        -b select-only@3 --protocol extended --max-tries 2 --transactions 40 --warmup 0 --rounds 1 --json out.json";
    scene.run(&words(options)).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document)[0]["workload"], "tpcb-like@2+simple-update@1+select-only@3");
    assert_eq!(document["plan"]["builtin"].as_array().map(Vec::len), Some(3));
    for round in rounds(&document) {
        // Two tries: the number of given-up transactions equals that of failed second attempts.
        let held = |invariant: &Value| invariant["held"] == Value::Bool(true);
        assert!(round["invariants"].as_array().expect("invariants").iter().all(held), "{round:#}");
    }
}

#[test]
fn more_clients_than_the_default_get_connections() {
    let Some(scene) = Scene::with_server("more_clients_than_the_default_get_connections") else { return };
    let options = "compare --server-setting fsync=off --levels rc -w select-only -c 110 -t 1 --warmup 0 --rounds 1 \
        --json out.json";
    scene.run(&words(options)).expect(0).says(&["max_connections is raised to 130"]);
    let document = document::read(&scene, "out.json");
    let settings = document["plan"]["server-settings"].as_array().expect("settings");
    assert!(settings.contains(&"max_connections=130".into()), "{settings:?}");
}

#[test]
fn a_workload_of_ones_own() {
    let Some(scene) = Scene::with_database("a_workload_of_ones_own") else { return };
    scene.write(
        "tables.sql",
        "drop table if exists doctors;\n\
         create table doctors (id int primary key, on_call bool);\n\
         insert into doctors select i, true from generate_series(1, 4) i;\n",
    );
    // Write skew: every doctor checks whether another one is on call, and leaves.
    scene.write(
        "leave.sql",
        "\\set id random(1, 4)\n\
         begin;\n\
         select count(*) from doctors where on_call;\n\
         update doctors set on_call = not on_call where id = :id;\n\
         end;\n",
    );
    let options = "compare --levels rc,ser --clients 4 --setup tables.sql \
        --workload leave.sql --transactions 100 --warmup 0 --rounds 1 --json out.json";
    let finished = scene.run(&words(options)).expect(0).prints(&["leave.sql"]);
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document)[0]["workload"], "leave.sql");
    for round in rounds(&document) {
        assert!(count(round, "/transactions/committed") > 0);
        assert_eq!(round["invariants"][0]["held"], Value::Null);
    }
    let conflicts = cells(&document)[1]["rounds"][0]["conflicts"].to_string();
    assert!(conflicts.contains("40001"), "{conflicts}\n{}", finished.stderr);
    assert!(!finished.stdout.contains("held"), "nothing was checked:\n{}", finished.stdout);
}

/// Statements that are impossible within a transaction can't be tried, and are measured
/// nevertheless.
#[test]
fn what_cannot_be_tried_is_measured() {
    let Some(scene) = Scene::with_database("what_cannot_be_tried_is_measured") else { return };
    scene.write("setup.sql", "DROP TABLE IF EXISTS t; CREATE TABLE t (v int);\n");
    scene.write("own.sql", "VACUUM t;\n");
    let options = "compare --workload own.sql --setup setup.sql --levels rc --clients 2 --transactions 5 --warmup 0 \
        --rounds 1";
    scene.run(&words(options)).expect(0);
}

/// Splits a command line at blanks.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
