//! `isobench workloads`: the list, one of them, and the files for a workload of the user's own.

use crate::support::scene::Scene;

#[test]
fn workloads_are_listed_and_described_without_a_server() {
    let scene = Scene::new();
    let listed = scene.run(&["workloads"]).expect(0);
    let listed = listed.prints(&["registers", "write-skew", "+materialized-conflict", "smallbank"]);
    assert_eq!(listed.stderr, "");
    scene.run(&["workloads", "bank+for-update:accounts=7"]).expect(0).prints(&[
        "accounts=100",
        "total-unchanged",
        "---- tables.sql ----",
        "generate_series(1, 7)",
        "---- transfer.sql ----",
        "\\set accounts 7\n",
        "--@ read accounts",
        "FOR UPDATE",
    ]);
}

#[test]
fn a_wrong_name_is_an_error_that_lists_the_right_ones() {
    let scene = Scene::new();
    scene
        .run(&["workloads", "banks"])
        .expect(1)
        .says(&["no workload \"banks\"", "registers, list-append, bank"]);
    scene
        .run(&["workloads", "bank:money=1"])
        .expect(1)
        .says(&["no parameter \"money\"", "accounts, balance"]);
    scene.run(&["workloads", "--save", "somewhere"]).expect(1);
}

#[test]
fn what_is_saved_runs_as_a_workload_of_ones_own() {
    let Some(scene) = Scene::with_database("what_is_saved_runs_as_a_workload_of_ones_own") else { return };
    let saved = scene.run(&["workloads", "bank:transfers=9,totals=1", "--save", "mine"]).expect(0);
    let line = saved.stdout.lines().find(|line| line.starts_with("isobench compare")).expect("a command");
    assert!(line.contains("mine/transfer.sql@9") && line.contains("--setup mine/tables.sql"), "{line}");
    let words = line.split_whitespace().skip(1);
    let quick = ["--levels", "rr", "--transactions", "5", "--warmup", "0", "--rounds", "1", "-c", "2"];
    let arguments: Vec<&str> = words.chain(quick).collect();
    scene.run(&arguments).expect(0).prints(&["repeatable read"]);
}
