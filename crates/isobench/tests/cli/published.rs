//! The published experiments: listed, printed, and repeated by one command.

use crate::compare::words;
use crate::support::document::{self, cells, rounds};
use crate::support::scene::Scene;

/// Every plan.
const PLANS: [&str; 10] = [
    "e1-dbist",
    "e2-pachot",
    "e3-pato",
    "e4-digoal",
    "e5-heikki",
    "smallbank",
    "sibench",
    "durability",
    "failover",
    "standby-reads",
];

#[test]
fn plans_are_listed_and_printed() {
    let scene = Scene::new();
    let list = scene.run(&["plans"]).expect(0).stdout;
    for plan in PLANS {
        assert!(list.contains(&format!("\n{plan}: ")), "{list}");
        let text = scene.run(&["plans", plan]).expect(0).stdout;
        // The output is a plan: a connection to a missing server is attempted before any other
        // error, unless the plan is for an embedded one.
        scene.write("mine.toml", &text);
        for size in ["--quick", "--full"] {
            let line = format!("compare --plan mine.toml {size} -d postgresql:///none?host=/nonexistent");
            let embedded = ["durability", "failover", "standby-reads"].contains(&plan);
            let expected = if embedded { "nothing happens to a named server" } else { "/nonexistent" };
            scene.run(&words(&line)).expect(1).says(&[expected]);
        }
    }
    assert_eq!(list.matches("\n  quick").count(), PLANS.len());
    scene.run(&["plans", "e6"]).expect(1).says(&["\"e6\"", "e5-heikki"]);
}

/// Runs a plan in its shortest form: a few transactions, one round, small tables, and no disk
/// flushes.
fn repeat(plan: &str, options: &str) {
    let Some(scene) = Scene::with_server(&format!("published experiment {plan}")) else { return };
    let line = format!("compare --plan {plan} --warmup 0 --rounds 1 --json out.json {options}");
    let finished = scene.run(&words(&line)).expect(0);
    scene.assert_clean();
    let document = document::read(&scene, "out.json");
    assert_eq!(document["plan"]["experiment"]["name"], plan);
    assert_eq!(document["plan"]["experiment"]["size"], "quick");
    assert!(finished.stdout.contains(document["plan"]["experiment"]["title"].as_str().expect("a title")));
    assert!(finished.stdout.contains("What the original missed"), "{}", finished.stdout);
    assert!(cells(&document).len() > 1 && rounds(&document).all(|round| round["complete"] == true));
    // Every published row has a cell of the result beside it.
    for row in document["plan"]["experiment"]["published"].as_array().expect("rows") {
        let matches = |cell: &&serde_json::Value| {
            row["cell"].as_object().expect("a selector").iter().all(|(factor, value)| match factor.as_str() {
                "level" => cell["level"]["requested"] == *value,
                "varied" => value
                    .as_object()
                    .expect("parameters")
                    .iter()
                    .all(|(name, value)| cell["varied"][name] == *value),
                factor => cell[factor] == *value,
            })
        };
        assert!(cells(&document).iter().any(|cell| matches(&cell)), "{plan}: {row:#}");
    }
}

#[test]
fn a_single_statement_against_a_block() {
    repeat("e1-dbist", "--transactions 3 --scale 1 --server-setting fsync=off");
}

#[test]
fn a_procedure_against_the_client() {
    repeat("e2-pachot", "--transactions 3 --server-setting fsync=off");
}

#[test]
fn four_levels() {
    // With the plan's own settings of the server.
    repeat("e3-pato", "--transactions 5 --scale 1");
}

#[test]
fn swallowed_conflicts() {
    repeat("e4-digoal", "--transactions 2 --server-setting fsync=off");
}

#[test]
fn predicate_locks_of_a_scan() {
    // The cells of one version and the published number of rows: five versions would load many
    // large tables.
    repeat(
        "e5-heikki",
        "--transactions 2 --vary rows=400000 --vary index=1 --vary table_rows=400000 --vary server-version=18 \
         --server-setting fsync=off",
    );
}

#[test]
fn smallbank() {
    repeat("smallbank", "--transactions 3 --vary hotspot=10 --server-setting fsync=off");
}

#[test]
fn sibench() {
    repeat("sibench", "--transactions 3 --vary items=10 --vary queries=1,10 --server-setting fsync=off");
}

#[test]
fn durability() {
    // What is varied is replaced as a whole: two cells, with the fault and the standby that the shapes name.
    repeat(
        "durability",
        "--time 1.8 --scale 1 --vary setting:synchronous_commit=off,on --standby async --fault crash@1.5",
    );
}

#[test]
fn failover() {
    repeat("failover", "--time 1.3 --fault crash@1,stop:fast@1 --standby async");
}

#[test]
fn standby_reads() {
    repeat("standby-reads", "--transactions 3 --standby async,sync --server-setting fsync=off");
}
