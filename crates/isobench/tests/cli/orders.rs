//! The strategies against conflicts of a contended workload: the verdict on each, and the counts of
//! its attempts.
//!
//! Not here: the SQL of each strategy (crate `isobench-workloads`), and options (`plan_file.rs`,
//! `compare.rs`).

use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells, count};
use crate::support::scene::Scene;

/// Strategy, and whether it keeps each update at read committed, too.
const STRATEGIES: [(&str, bool); 7] = [
    ("retry", false),
    ("procedure", false),
    ("swallow", false),
    ("single-statement", true),
    ("for-update", true),
    ("advisory-lock", true),
    ("reorder", false),
];

#[test]
fn every_strategy_gets_its_own_verdict() {
    let Some(scene) = Scene::with_database("every_strategy_gets_its_own_verdict") else { return };
    let names = STRATEGIES.map(|row| row.0).join(",");
    let options = format!(
        "compare --workload orders:shops=2 --strategies {names} --levels rc,ser --clients 8 --rounds 1 \
         --transactions 100 --warmup 0.1 --max-warmup 0.1 --json out.json"
    );
    scene.run(&words(&options)).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(cells(&document).len(), 2 * STRATEGIES.len());
    for (strategy, safe) in STRATEGIES {
        let of_strategy = cells(&document).iter().filter(|cell| cell["strategy"] == strategy);
        let [committed, serializable] = of_strategy.collect::<Vec<_>>()[..] else {
            panic!("two cells of {strategy}")
        };
        let round = &committed["rounds"][0];
        let lost = round["verdict"]["anomalies"].as_array().expect("a verdict");
        assert_eq!(lost.iter().any(|anomaly| anomaly["name"] == "P4"), !safe, "{strategy}: {lost:?}");
        // The tables agree with the history.
        assert_eq!(count(committed, "/summary/violations") > 0, !safe, "{strategy}");
        assert_eq!(count(serializable, "/summary/verdict/anomalies"), 0, "{strategy}");
        assert_eq!(serializable["summary"]["invariants_held"], true, "{strategy}");
        for cell in [committed, serializable] {
            // All commits are in the history, including those of a function.
            let round = &cell["rounds"][0];
            let run = count(round, "/attempts/committed") + count(round, "/warmup/committed");
            assert_eq!(count(round, "/verdict/examined/committed"), run, "{strategy}");
            assert!(count(round, "/verdict/examined/write_write") > 0, "{strategy}");
        }
        attempts_are_where_they_belong(strategy, &serializable["rounds"][0]["attempts"]);
    }
}

/// At serializable, eight clients on two shops.
fn attempts_are_where_they_belong(strategy: &str, attempts: &Value) {
    let swallowed = attempts.pointer("/swallowed").and_then(Value::as_u64).unwrap_or_default();
    match strategy {
        "swallow" => {
            assert!(swallowed > 0, "{attempts}");
            assert_eq!(count(attempts, "/retried"), 0, "nothing is retried");
        }
        // The snapshot comes after the lock; the remaining conflicts are predicate locks on more
        // than a row.
        "advisory-lock" => {
            assert!(count(attempts, "/retried") * 20 <= count(attempts, "/committed"), "{attempts}");
        }
        _ => assert!(count(attempts, "/retried") > 0 && swallowed == 0, "{strategy}: {attempts}"),
    }
}
