//! The trial of scripts before the measurement; a cell that can't be measured doesn't end the
//! others.

use crate::compare::words;
use crate::support::document::{self, cells};
use crate::support::scene::Scene;

const SHORT: &str = "--clients 2 --transactions 5 --warmup 0 --rounds 2 --json out.json";

#[test]
fn what_the_server_refuses_comes_to_light_before_measuring() {
    let Some(scene) = Scene::with_server("what_the_server_refuses_comes_to_light_before_measuring") else {
        return;
    };
    scene.write("setup.sql", "DROP TABLE IF EXISTS t; CREATE TABLE t (v int);\n");
    for (script, said) in [
        ("SELECT v FROM missing;\n", "relation \"missing\" does not exist"),
        ("BEGIN;\nUPDATE t SET w = 1;\nEND;\n", "column \"w\" of relation \"t\" does not exist"),
        ("SELECT v FROM t \\gset\n", "expected one row, got 0"),
        ("FROBNICATE;\n", "syntax error at or near \"FROBNICATE\""),
    ] {
        scene.write("own.sql", script);
        let command = format!("compare --workload own.sql --setup setup.sql --levels rc,ser {SHORT}");
        let finished = scene.run(&words(&command)).expect(1);
        assert!(!finished.stderr.contains("[1/"), "a cell was measured: {}", finished.stderr);
        finished.says(&["can't be measured", "own.sql:", said]);
    }
}

#[test]
fn a_cell_that_fails_does_not_end_the_others() {
    let Some(scene) = Scene::with_server("a_cell_that_fails_does_not_end_the_others") else { return };
    scene.write("setup.sql", "DROP TABLE IF EXISTS t; CREATE TABLE t (v int);\n");
    // The first fails in the trial, the second one only later, with more than one client.
    let early = "\\if :variant = 1\nSELECT nothing FROM t;\n\\else\nSELECT v FROM t;\n\\endif\n";
    let late =
        "\\if :variant = 1 and :client_id = 1\nSELECT nothing FROM t;\n\\else\nSELECT v FROM t;\n\\endif\n";
    for script in [early, late] {
        scene.write("own.sql", script);
        let command =
            format!("compare --workload own.sql --setup setup.sql --levels rc --vary variant=0,1 {SHORT}");
        let finished = scene.run(&words(&command)).expect(2);
        finished.says(&["column \"nothing\" does not exist"]);
        let document = document::read(&scene, "out.json");
        let rounds: Vec<usize> =
            cells(&document).iter().map(|cell| cell["rounds"].as_array().expect("rounds").len()).collect();
        assert_eq!(rounds, if script == early { [2, 0] } else { [2, 1] });
        let reason = document["incomplete_reason"].as_str().expect("a reason");
        assert!(reason.contains("variant 1 can't be measured"), "{reason}");
    }
}

/// Statements that are impossible within a transaction can't be tried, and are measured
/// nevertheless.
#[test]
fn what_cannot_be_tried_is_measured() {
    let Some(scene) = Scene::with_server("what_cannot_be_tried_is_measured") else { return };
    scene.write("setup.sql", "DROP TABLE IF EXISTS t; CREATE TABLE t (v int);\n");
    scene.write("own.sql", "VACUUM t;\n");
    let command = format!("compare --workload own.sql --setup setup.sql --levels rc {SHORT}");
    scene.run(&words(&command)).expect(0);
}
