//! `--plan FILE.toml`: the same names as the options, which override it.

use crate::compare::words;
use crate::support::document::{self, cells};
use crate::support::scene::Scene;

#[test]
fn options_override_the_plan_and_files_are_relative_to_it() {
    let Some(scene) = Scene::with_database("options_override_the_plan_and_files_are_relative_to_it") else {
        return;
    };
    scene.write(
        "plans/mine.toml",
        "levels = [\"rc\", \"rr\"]\n\
         clients = [3]\n\
         file = [\"own.sql@2\"]\nbuiltin = [\"select-only\"]\n\
         setup = \"own-tables.sql\"\n\
         transactions = 5\n\
         warmup = 0.0\n\
         rounds = 2\n\
         max-tries = 5\n\
         backoff = [\"fixed:1ms\"]\n\
         protocol = \"prepared\"\n\
         seed = 7\n",
    );
    scene.write(
        "plans/own-tables.sql",
        "drop table if exists pgbench_accounts; create table pgbench_accounts as \
         select aid, 0 as abalance from generate_series(1, 100000) aid; \
         alter table pgbench_accounts add primary key (aid)",
    );
    scene.write("plans/own.sql", "update pgbench_accounts set abalance = abalance + 1 where aid = 1;\n");
    let options = "compare --plan plans/mine.toml --levels ser --rounds 1 --protocol simple --json out.json";
    scene.run(&words(options)).expect(0);
    let document = document::read(&scene, "out.json");
    let plan = &document["plan"];
    assert_eq!(plan["levels"].to_string(), "[\"serializable\"]", "overridden");
    assert_eq!((&plan["rounds"], &plan["protocol"]), (&1.into(), &"simple".into()), "overridden");
    assert_eq!((&plan["seed"], &plan["max-tries"]), (&7.into(), &5.into()));
    assert_eq!(plan["backoff"].to_string(), "[\"fixed:1ms\"]");
    let scripts = &document["workload"]["scripts"];
    assert_eq!(scripts[1]["weight"], 2);
    assert!(scripts[1]["text"].as_str().is_some_and(|text| text.contains("abalance + 1")));
    assert_eq!(cells(&document).len(), 1);
    assert_eq!(cells(&document)[0]["clients"], 3);
}

#[test]
fn a_wrong_plan_names_file_and_line() {
    let scene = Scene::new();
    for (text, texts) in [
        ("levels = [\"rc\"]\nclient = [4]\n", &["line 2", "client", "clients"][..]),
        ("levels = \"rc\"\n", &["line 1", "levels"]),
        ("levels = [\n", &["line 1"]),
        ("rounds = -1\n", &["line 1", "rounds"]),
        ("levels = [\"snapshot\"]\n", &["levels", "\"snapshot\""]),
        ("workload = [\"nosuch.sql\"]\n", &["nosuch.sql"]),
    ] {
        scene.write("wrong.toml", text);
        let finished = scene.run(&["compare", "--plan", "wrong.toml"]).expect(1).says(texts);
        assert!(finished.stderr.starts_with("isobench: error: "), "{}", finished.stderr);
        if texts[0].starts_with("line") {
            assert!(finished.stderr.contains("plan \"wrong.toml\""), "{}", finished.stderr);
        }
    }
}
