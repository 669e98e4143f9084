//! The checked workloads and pgbench's scripts, observed by the rows that their statements show, and
//! by their lines `--@`.

use std::collections::BTreeSet;

use isobench_testkit::night;
use serde_json::Value;

use crate::compare::words;
use crate::observed::{anomalies, assert_kept};
use crate::support::document::{self, assert_invariants_held, cells, rounds};
use crate::support::scene::Scene;

/// The workloads, with parameters so small that transactions meet, and the anomaly that each is made
/// for, with the level that permits it.
const WORKLOADS: [(&str, &str, &str); 14] = [
    ("registers:keys=8", "read committed", "P4"),
    ("registers:keys=8", "repeatable read", "G2-item"),
    ("list-append:lists=4", "read committed", "G-single"),
    ("bank:accounts=8", "read committed", "P4"),
    ("write-skew:shifts=2", "repeatable read", "G2-item"),
    ("mytab:pairs=2", "repeatable read", "G2"),
    ("long-fork:groups=1", "read committed", "G-nonadjacent"),
    ("orders:products=5", "read committed", "P4"),
    ("smallbank:customers=10,hotspot=5", "read committed", "P4"),
    ("receipts:tills=1", "repeatable read", "G2"),
    ("reporting:departments=3,items=10,reports=20", "read committed", "G-single"),
    ("reporting:departments=3,items=10,reports=20", "repeatable read", "G2-item"),
    ("ycsb+f:records=10", "read committed", "P4"),
    ("ycsb-t+all:records=10", "read committed", "P4"),
];

/// A workload whose transactions read records and use them nowhere: by the letter, which is all that
/// annotations say, it shows an anomaly; by use it shows harmless reads.
const UNUSED: (&str, &str, &str) = ("ycsb+a:records=10", "repeatable read", "G2-item");

/// What is found in its place by rows.
const NO_HARM: &str = "harmless";

/// Workloads in which nothing goes wrong at any level.
const HARMLESS: [&str; 3] = ["sibench", "scan:rows=10", "ycsb+c:records=10"];

/// How often all are run until each anomaly was met. Once is nearly always enough: they are met
/// dozens of times in a run.
const TRIALS: usize = 4;

/// The cell in which PostgreSQL itself breaks its promise, once in some 100,000 transactions: a receipt
/// enters a batch after its report (`docs/concept/anomalies.md`, "While a transaction commits").
const RARELY_BROKEN: (&str, &str) = ("receipts:tills=1", "serializable");

/// Compares workloads at three levels, and returns the anomalies with workload and level; `None` if
/// the one promise was broken that rarely is.
fn found(
    scene: &Scene,
    observe: &str,
    workloads: &BTreeSet<&str>,
) -> Option<BTreeSet<(String, String, String)>> {
    let names: Vec<String> = workloads.iter().map(|name| format!("-w {name}")).collect();
    let line = format!(
        "compare {} --observe {observe} --clients 8 --transactions 60 --warmup 0 --rounds 1 --try 0 \
         --json out.json",
        names.join(" ")
    );
    let finished = scene.run(&words(&line));
    let document = document::read(scene, "out.json");
    if finished.status.code() == Some(3) {
        let broken = cells(&document).iter().filter(|cell| cell["summary"]["verdict"]["kept"] == false);
        let broken: Vec<(&str, &str)> = broken
            .map(|cell| {
                (cell["workload"].as_str().unwrap_or(""), cell["level"]["requested"].as_str().unwrap_or(""))
            })
            .collect();
        assert_eq!(broken, [RARELY_BROKEN], "{}", finished.stdout);
        return None;
    }
    finished.expect(0);
    if observe == "rows" {
        assert_observed(&document);
    } else {
        assert!(document.get("observations").is_none_or(|seen| *seen == serde_json::json!([])));
    }
    let mut found = BTreeSet::new();
    for cell in cells(&document) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (workload, level) = (text(&cell["workload"]), text(&cell["level"]["requested"]));
        // Nothing can be annotated in a scan.
        if observe == "annotations" && workload.starts_with("scan") {
            assert!(cell["rounds"][0].get("verdict").is_none_or(Value::is_null), "{cell:#}");
            continue;
        }
        assert_kept(cell);
        let mut names = anomalies(cell);
        if cell["summary"]["verdict"]["harmless"].as_u64() > Some(0) {
            names.push(NO_HARM.to_owned());
        }
        let harmless = level == "serializable" || HARMLESS.contains(&workload.as_str());
        assert!(!harmless || names.is_empty(), "{workload} at {level}: {names:?}");
        found.extend(names.into_iter().map(|name| (workload.clone(), level.clone(), name)));
    }
    Some(found)
}

/// Runs workloads once, and then those that haven't had the anomaly that they are made for. By day half of them
/// are observed by rows, the others by annotations.
fn each_is_found(scene: &Scene, observe: &str) {
    let first = usize::from(observe == "rows");
    let half = || WORKLOADS.iter().copied().skip(first).step_by(2).collect();
    let (mut all, mut wanted): (_, Vec<_>) =
        (BTreeSet::new(), if night::all_cases() { WORKLOADS.to_vec() } else { half() });
    let (workload, level, name) = UNUSED;
    wanted.push((workload, level, if observe == "rows" { NO_HARM } else { name }));
    let mut workloads: BTreeSet<&str> = wanted.iter().map(|(name, ..)| *name).chain(HARMLESS).collect();
    for _ in 0..TRIALS {
        let Some(found) = found(scene, observe, &workloads) else { continue };
        all.extend(found);
        let met = |(workload, level, name): &(&str, &str, &str)| {
            all.contains(&((*workload).to_owned(), (*level).to_owned(), (*name).to_owned()))
        };
        workloads = wanted.iter().filter(|case| !met(case)).map(|(name, ..)| *name).collect();
        if workloads.is_empty() {
            return;
        }
    }
    panic!("not found by {observe} in {TRIALS} runs: one of {wanted:?}; found: {all:?}");
}

#[test]
fn workloads_are_judged_by_rows() {
    let Some(scene) = Scene::with_database("workloads_are_judged_by_rows") else { return };
    each_is_found(&scene, "rows");
}

#[test]
fn workloads_are_judged_by_annotations() {
    let Some(scene) = Scene::with_database("workloads_are_judged_by_annotations") else { return };
    each_is_found(&scene, "annotations");
}

/// Ranges are searched: what they missed is seen, too. Nothing is made of it, so no harm is done.
#[test]
fn ranges_have_phantoms() {
    let Some(scene) = Scene::with_database("ranges_have_phantoms") else { return };
    let line = "audit -w ycsb+e:records=20,inserts=20,longest=5 --levels rr --clients 8 --transactions 60 \
                --json out.json";
    scene.run(&words(line)).expect(0);
    let document = document::read(&scene, "out.json");
    let cell = &cells(&document)[0];
    assert_eq!(anomalies(cell), Vec::<String>::new(), "{document:#}");
    assert!(cell["summary"]["verdict"]["harmless"].as_u64() > Some(0), "{document:#}");
}

/// A session for each transaction; the verdict is the same, and a hot spot moves on.
#[test]
fn every_transaction_can_have_a_session_of_its_own() {
    let test = "every_transaction_can_have_a_session_of_its_own";
    let Some(scene) = Scene::with_database(test) else { return };
    let line = "compare -w ycsb+f:operations=2,hotspot=1 --vary moves=0,5 --details --connect --levels ser --clients 2 \
                --transactions 20 --warmup 0 --rounds 1 --json out.json";
    scene.run(&words(line)).expect(0).prints(&["a connection for each", "Moves 5"]);
    let document = document::read(&scene, "out.json");
    cells(&document).iter().for_each(assert_kept);
}

/// The workload that reads nothing but an index, which columns would change: it is judged by its lines
/// `--@`.
const AS_WRITTEN: &str = "mytab";

/// Every other workload has statements that show rows.
fn assert_observed(document: &Value) {
    let observations = document["observations"].as_array().expect("what was observed");
    let seen: BTreeSet<&str> = observations.iter().filter_map(|seen| seen["workload"].as_str()).collect();
    let names = cells(document).iter().filter_map(|cell| cell["workload"].as_str());
    let names: BTreeSet<&str> = names.filter(|name| !name.starts_with(AS_WRITTEN)).collect();
    assert_eq!(seen, names);
    for observed in observations {
        let statements = observed["statements"].as_array().expect("statements");
        assert!(statements.iter().any(|statement| statement["sent_differently"] == true), "{observed:#}");
    }
}

#[test]
fn pgbenchs_scripts_are_serializable_at_every_level() {
    let test = "pgbenchs_scripts_are_serializable_at_every_level";
    let Some(scene) = Scene::with_server(test) else { return };
    // By day the server that most have installed.
    let versions = if night::all_cases() { &["15", "18"][..] } else { &["15"] };
    for version in versions {
        let line = format!(
            "compare --details -w tpcb-like -w simple-update -w select-only --vary server-version={version} \
             --clients 8 --transactions 60 --warmup 0 --rounds 1 --try 0 --json out.json"
        );
        scene.run(&words(&line)).expect(0).prints(&["serializable", "no forbidden anomaly"]);
        let document = document::read(&scene, "out.json");
        assert_eq!(cells(&document).len(), 9);
        assert_invariants_held(&document);
        assert_observed(&document);
        for cell in cells(&document) {
            assert_kept(cell);
            assert_eq!(anomalies(cell), [""; 0], "{cell:#}");
        }
        for round in rounds(&document) {
            let verdict = &round["verdict"];
            assert_eq!(verdict["not_contradicted"], serde_json::json!(["strict serializable"]), "{verdict}");
        }
        for cell in cells(&document).iter().filter(|cell| cell["workload"] == "tpcb-like") {
            assert_eq!(cell["rounds"][0]["verdict"]["blind"], serde_json::json!([]), "{cell:#}");
        }
    }
}

/// TPC-C's New-Order and Payment change different columns of the same rows, so that read committed is
/// enough for the two, although their statements all change `version` and `writer`.
#[test]
fn new_order_and_payment_are_serializable_by_columns() {
    let test = "new_order_and_payment_are_serializable_by_columns";
    let Some(scene) = Scene::with_database(test) else { return };
    let line = "compare -w tpcc:customers=30,items=100,order_statuses=0,deliveries=0,stock_levels=0 --levels rc \
                --clients 8 --transactions 60 --warmup 0 --rounds 1 --try 0 --json out.json";
    scene.run(&words(line)).expect(0);
    let document = document::read(&scene, "out.json");
    for cell in cells(&document) {
        assert_kept(cell);
        let verdict = &cell["rounds"][0]["verdict"];
        assert_eq!(anomalies(cell), [""; 0], "{verdict:#}");
        assert!(verdict["harmless"].as_u64() > Some(0), "by rows there are anomalies: {verdict:#}");
    }
}
