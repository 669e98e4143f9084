//! The level in the row is the level that ran: scripts that set one are refused, and functions that
//! set one inside a script mark the row.

use crate::compare::words;
use crate::support::document::{self, cells, rounds};
use crate::support::scene::Scene;

/// One of 128 transactions is asked for its level.
const SHORT: &str = "--clients 2 --transactions 300 --warmup 0 --rounds 1";

#[test]
fn scripts_that_set_a_level_are_refused() {
    let scene = Scene::new();
    for statement in [
        "BEGIN ISOLATION LEVEL SERIALIZABLE;\nCOMMIT;",
        "BEGIN;\nSET TRANSACTION ISOLATION LEVEL SERIALIZABLE;\nCOMMIT;",
        "SET default_transaction_isolation = 'serializable';",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;",
        "SELECT set_config('default_transaction_isolation', 'serializable', false);",
        "RESET ALL;",
    ] {
        scene.write("own.sql", &format!("SELECT 1;\n{statement}\n"));
        for command in
            ["compare --workload own.sql", "audit --workload own.sql", "run -f own.sql --isolation rc"]
        {
            let finished = scene.run(&words(command)).expect(1);
            finished.says(&["own.sql:", "sets or resets the isolation level", "--levels", "--isolation"]);
        }
    }
    // The line is that of the words, so that it is seen what they are in: here no SQL at all.
    scene.write("own.sql", "SELECT 1;\n# Levels\n\nThe isolation level\nmatters.\n");
    let finished = scene.run(&words("compare --workload own.sql")).expect(1);
    finished.says(&["own.sql:4: \"The isolation level\" sets or resets the isolation level"]);
}

/// Runs a script at read committed whose function changes the level, and returns the result.
fn measured(scene: &Scene, setup: &str, script: &str) -> serde_json::Value {
    scene.write("setup.sql", setup);
    scene.write("own.sql", script);
    let command = format!("compare --workload own.sql --setup setup.sql --levels rc --json out.json {SHORT}");
    let finished = scene.run(&words(&command)).expect(0);
    finished.prints(&[
        "Level contradicted (read committed).",
        "No level is recommended: the server ran mixed (read committed,",
    ]);
    document::read(scene, "out.json")
}

#[test]
fn a_function_that_changes_the_sessions_level_brands_the_row() {
    let Some(scene) = Scene::with_database("a_function_that_changes_the_sessions_level_brands_the_row")
    else {
        return;
    };
    let setup = "CREATE FUNCTION sneak() RETURNS text LANGUAGE sql AS
        $$ SELECT set_config('default_transaction_isolation', 'serializable', false) $$;";
    for script in ["SELECT sneak();\n", "BEGIN;\nSELECT sneak();\nCOMMIT;\n"] {
        let document = measured(&scene, setup, script);
        assert_eq!(
            cells(&document)[0]["level"]["effective"],
            "mixed (read committed, serializable)",
            "{script}"
        );
        assert_eq!(cells(&document)[0]["summary"]["level_differs"], true);
    }
    let strict = format!("compare --workload own.sql --setup setup.sql --levels rc --strict-levels {SHORT}");
    scene.run(&words(&strict)).expect(1).says(&["--strict-levels: read committed was asked for"]);
}

#[test]
fn a_level_that_a_variable_sets_brands_the_row() {
    let Some(scene) = Scene::with_database("a_level_that_a_variable_sets_brands_the_row") else { return };
    let script = "SELECT 'ISOLATION LEVEL SERIALIZABLE' AS more \\gset\nBEGIN :more;\nSELECT 1;\nCOMMIT;\n";
    let document = measured(&scene, "CREATE TABLE t (v int);", script);
    let round = rounds(&document).next().expect("a round");
    assert!(round["levels_named"]["serializable"].as_u64() >= Some(2), "{}", round["levels_named"]);
    assert_eq!(cells(&document)[0]["level"]["effective"], "mixed (read committed, serializable)");
}
