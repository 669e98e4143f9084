//! TPC-C's transactions: the twelve conditions and the verdict at each level, the counts of each
//! script, and what is said of the rate.
//!
//! Not here: the conditions themselves (crate `isobench-workloads`).

use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells, count, number, rounds};
use crate::support::scene::Scene;

/// A small warehouse, so that two Deliveries meet, and a second one for remote customers and stocks.
const SMALL: &str = "tpcc:warehouses=2,customers=30,items=1000";

fn held(round: &Value) -> Vec<&Value> {
    let invariants = round["invariants"].as_array().expect("invariants");
    invariants.iter().map(|invariant| &invariant["held"]).collect()
}

#[test]
fn three_levels_have_a_verdict_and_twelve_conditions() {
    let Some(scene) = Scene::with_database("three_levels_have_a_verdict_and_twelve_conditions") else {
        return;
    };
    let options = format!(
        "compare --workload {SMALL} --levels rc,rr,ser --clients 4 --rounds 2 --transactions 15 --warmup 0.1 \
         --max-warmup 0.1 --json out.json"
    );
    let finished = scene.run(&words(&options)).expect(0);
    let finished =
        finished.prints(&["tpcc/new-order per minute (TPC-C-like, not a TPC result): read committed"]);
    let finished =
        finished.says(&["TPC-C's own isolation tests (clause 3.4.2) run by: isobench probe --tests tpcc"]);
    assert!(!finished.stdout.contains("BROKEN"), "{}", finished.stdout);
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document).len(), 3);
    for round in rounds(&document) {
        assert_eq!(round["verdict"]["kept"], true, "{}", round["verdict"]);
        assert!(count(round, "/verdict/examined/write_read") > 0);
        assert!(held(round).len() == 12 && held(round).iter().all(|held| held.is_boolean()), "{round:#}");
        // The scripts' counts add up to the round's.
        let scripts = round["scripts"].as_array().expect("scripts");
        assert_eq!(scripts.len(), 5);
        for path in ["/total", "/committed"] {
            let sum: u64 = scripts.iter().map(|script| count(&script["transactions"], path)).sum();
            assert_eq!(sum, count(&round["transactions"], path), "{path}");
        }
    }
    scene.run(&words("report out.json --html page.html")).expect(0);
    let page = scene.read("page.html");
    assert!(page.contains("Transactions by script") && page.contains("(TPC-C-like, not a TPC result)"));
    let markdown = scene.run(&words("report out.json --format markdown")).expect(0);
    markdown.prints(&["(TPC-C-like, not a TPC result)"]);
    for cell in &cells(&document)[1..] {
        assert_eq!(cell["summary"]["invariants_held"], true, "{}", cell["level"]);
    }
    for cell in cells(&document) {
        let of_round = |round: &Value| {
            let new_orders = &round["scripts"][0];
            assert_eq!(new_orders["name"], "tpcc/new-order");
            60.0 * number(new_orders, "/transactions/committed") / number(round, "/seconds")
        };
        let rates: Vec<f64> = cell["rounds"].as_array().expect("rounds").iter().map(of_round).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((number(cell, "/summary/per_minute/mean") - mean).abs() < 1e-6 * mean);
    }
}

#[test]
fn an_audit_judges_tpcc() {
    let Some(scene) = Scene::with_database("an_audit_judges_tpcc") else { return };
    let options = format!("audit --workload {SMALL} --clients 4 --transactions 20 --json out.json");
    scene.run(&words(&options)).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(rounds(&document).count(), 3);
    assert!(rounds(&document).all(|round| round["verdict"]["kept"] == true));
}
