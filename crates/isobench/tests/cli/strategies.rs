//! Strategies against conflicts, parameters and versions of the server as factors, and counted
//! transactions.

use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, assert_invariants_held, cells, count};
use crate::support::scene::Scene;

/// Runs a short comparison on tables that conflict, and reads its result.
fn run(scene: &Scene, options: &str) -> (String, Value) {
    let workload = if options.contains("-w") { "" } else { "-w tpcb-like" };
    let line = format!(
        "compare {workload} --clients 6 --warmup 0 --rounds 1 --json out.json --no-server-side {options}"
    );
    let finished = scene.run(&words(&line)).expect(0);
    scene.assert_clean();
    (finished.stdout, document::read(scene, "out.json"))
}

/// A cell's strategy and level.
fn name(cell: &Value) -> (&str, &str) {
    (cell["strategy"].as_str().unwrap_or_default(), cell["level"]["requested"].as_str().unwrap_or_default())
}

#[test]
fn what_is_swallowed_is_not_throughput() {
    let Some(scene) = Scene::with_database("what_is_swallowed_is_not_throughput") else { return };
    let (_, document) =
        run(&scene, "--strategies retry,swallow,procedure --levels rc,rr,ser --transactions 60");
    // The rows in the history match the commits: neither swallowed work nor retries inside the
    // server are included.
    assert_invariants_held(&document);
    assert_eq!(cells(&document).len(), 9);
    for cell in cells(&document) {
        let round = &cell["rounds"][0];
        let swallowed = round["transactions"]["swallowed"].as_u64().unwrap_or(0);
        let retried = count(round, "/attempts/retried");
        match name(cell) {
            // 6 clients on one row: of 360 transactions, some collide.
            ("swallow", "repeatable read" | "serializable") => {
                assert!(swallowed > 0, "{round:#}");
                assert_eq!(retried, 0, "nobody tries again");
            }
            ("procedure", "repeatable read" | "serializable") => {
                assert_eq!(swallowed, 0);
                let inside = round["conflicts"].as_array().expect("conflicts").iter();
                let inside =
                    inside.filter(|conflict| conflict["command"].to_string().contains("CALL")).count();
                assert!(inside > 0 && retried > 0, "{round:#}");
            }
            (_, "read committed") => assert_eq!((swallowed, retried), (0, 0), "{round:#}"),
            _ => assert!(swallowed == 0 && retried > 0, "{round:#}"),
        }
    }
    let strategies = document["workload"]["strategies"].as_array().expect("strategies");
    let trips: Vec<u64> = strategies.iter().map(|one| count(one, "/round_trips_most")).collect();
    assert_eq!(trips, [7, 1, 1]);
}

#[test]
fn every_strategy_does_the_same_work() {
    let Some(scene) = Scene::with_database("every_strategy_does_the_same_work") else { return };
    for (protocol, level) in [("simple", "rc"), ("prepared", "ser")] {
        let (_, document) = run(
            &scene,
            &format!(
                "--strategies single-statement,for-update,advisory-lock,reorder --levels {level} --transactions 20 \
                 --protocol {protocol}"
            ),
        );
        assert_invariants_held(&document);
        for cell in cells(&document) {
            assert_eq!(count(&cell["rounds"][0], "/transactions/committed"), 120, "{:?}", name(cell));
        }
    }
    let (_, document) = run(
        &scene,
        "--workload simple-update --strategies retry,procedure,swallow,single-statement,for-update,advisory-lock \
         --levels ser --transactions 20",
    );
    assert_invariants_held(&document);
}

#[test]
fn parameters_of_tables_and_of_workloads_vary() {
    let Some(scene) = Scene::with_database("parameters_of_tables_and_of_workloads_vary") else { return };
    let (_, document) = run(
        &scene,
        "--levels rc --transactions 5 --vary scale=1,2 --vary foreign-keys=off,on --vary unlogged-tables=on",
    );
    let varied: Vec<String> = cells(&document).iter().map(|cell| cell["varied"].to_string()).collect();
    assert_eq!(varied[0], r#"{"foreign-keys":"off","scale":"1","unlogged-tables":"on"}"#);
    assert_eq!(varied[3], r#"{"foreign-keys":"on","scale":"2","unlogged-tables":"on"}"#);
    assert_eq!(cells(&document)[3]["scale"], 2);
    assert_invariants_held(&document);
    let (_, document) = run(&scene, "--workload registers --vary keys=4,9 --levels ser --transactions 5");
    let varied: Vec<&Value> = cells(&document).iter().map(|cell| &cell["varied"]["keys"]).collect();
    assert_eq!(varied, ["4", "9"]);
    assert!(cells(&document).iter().all(|cell| cell["workload"] == "registers"));
}

#[test]
fn versions_of_the_server_are_measured_side_by_side() {
    let Some(scene) = Scene::with_server("versions_of_the_server_are_measured_side_by_side") else { return };
    let (table, document) = run(&scene, "--levels rr --transactions 5 --vary server-version=17,18");
    assert!(document["server"]["version"].to_string().contains("\"17."), "{}", document["server"]["version"]);
    assert!(document["other_servers"][0]["version"].to_string().contains("\"18."));
    let versions: Vec<&Value> =
        cells(&document).iter().map(|cell| &cell["varied"]["server-version"]).collect();
    assert_eq!(versions, ["17", "18"]);
    assert!(table.contains("17") && table.contains("18"), "{table}");
    assert_invariants_held(&document);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_measured() {
    let scene = Scene::new();
    for (options, texts) in [
        ("--strategies hope", &["--strategies", "hope", "single-statement"][..]),
        ("--strategies retry,retry", &["--strategies", "twice"]),
        ("--workload registers --strategies swallow", &["swallow", "registers"]),
        ("--workload own.sql --strategies swallow", &["own.sql", "your own"]),
        ("--workload write-skew+for-update --strategies retry", &["--strategies", "write-skew+for-update"]),
        ("-w tpcb-like --vary rows=1", &["--vary", "\"rows\"", "foreign-keys"]),
        ("-w tpcb-like --vary scale=0", &["--vary", "scale=0"]),
        ("-w tpcb-like --vary foreign-keys=perhaps", &["--vary", "on or off"]),
        ("--vary scale", &["--vary", "NAME=VALUE"]),
        ("--vary server-version=9", &["--vary", "server-version=9"]),
        (
            "--vary server-version=18 -d postgresql:///none?host=/nonexistent",
            &["--vary", "a server is named"],
        ),
        ("--workload registers --vary doors=1", &["doors", "keys"]),
        ("--time 1 --transactions 1", &["--time", "--transactions"]),
        ("--transactions 0", &["--transactions"]),
        ("--plan e9-nobody", &["e9-nobody", "e3-pato", "isobench plans"]),
        ("--full", &["--plan"]),
        ("--plan own.toml --full", &["--full", "own.toml"]),
    ] {
        scene.write("own.sql", "select 1;\n");
        scene.write("own.toml", "levels = [\"rc\"]\n");
        let finished = scene.run(&words(&format!("compare {options}"))).expect(1).says(texts);
        assert!(!finished.stderr.contains("tps"), "{}", finished.stderr);
    }
}

#[test]
fn a_strategy_that_the_server_cannot_do_is_left_out_of_a_plan() {
    let Some(scene) = Scene::with_database("a_strategy_that_the_server_cannot_do_is_left_out_of_a_plan")
    else {
        return;
    };
    scene.write("mine.toml", "strategies = [\"retry\", \"savepoint\"]\nlevels = [\"rc\"]\n");
    let line = "compare --plan mine.toml --transactions 5 --warmup 0 --rounds 1 \
        --json out.json";
    scene.run(&words(line)).expect(0).says(&["note: left out: ", "savepoint"]);
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document).iter().map(|cell| name(cell).0).collect::<Vec<_>>(), ["retry"]);
}
