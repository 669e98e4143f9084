//! `isobench observe`: what is told of each statement, that nothing is run, and that nothing is left.

use serde_json::Value;

use crate::support::named::Database;
use crate::support::scene::Scene;

const SCRIPT: &str = "\\set i random(1, 2)\nBEGIN;\nSELECT n FROM stock\n  WHERE item = :i FOR UPDATE;\nUPDATE stock \
    SET n = n - 1 WHERE item = :i;\nINSERT INTO audit VALUES (:i) \\; SELECT DISTINCT n FROM stock;\nEND;\n";
const TABLES: &str = "CREATE TABLE stock (item int PRIMARY KEY, n int);\nCREATE TABLE audit (item int);\nINSERT INTO \
    stock VALUES (1, 5), (2, 5);\n";

#[test]
fn a_built_in_script_is_described_within_80_columns() {
    let Some(scene) = Scene::with_server("a_built_in_script_is_described_within_80_columns") else {
        return;
    };
    let finished = scene.run(&["observe", "-b", "tpcb"]).expect(0);
    let finished = finished.prints(&[
        "(sort of)>:9: UPDATE pgbench_branches SET bbalance",
        "  writes    pgbench_branches, key (bid); versions in the order",
        "  untracked table pgbench_history isn't observed: it has no primary key",
        "tpcb-like: adds columns to 4 of 7 statements to see which rows they touch",
        "compare judges it by these rows.\n",
    ]);
    assert!(finished.stdout.lines().all(|line| line.chars().count() <= 80), "{}", finished.stdout);
    assert!(!finished.stdout.contains("xmin"), "only --sent shows what is sent");
    scene.assert_clean();
}

#[test]
fn scripts_and_tables_of_ones_own_are_described_as_they_are_sent() {
    let Some(scene) = Scene::with_database("scripts_and_tables_of_ones_own_are_described_as_they_are_sent")
    else {
        return;
    };
    scene.write("a.sql", SCRIPT);
    scene.write("tables.sql", TABLES);
    let line = ["observe", "--file", "a.sql", "--setup", "tables.sql", "--sent", "--json", "seen.json"];
    for _ in 0..2 {
        // The second time its own file is overwritten.
        let finished = scene.run(&line).expect(0);
        let finished = finished.prints(&[
            "a.sql:3: SELECT n FROM stock WHERE item = :i FOR UPDATE\n  reads     stock, key (item)",
            "\n    SELECT n, stock.\"item\" AS ",
            "\n      WHERE item = :i FOR UPDATE;\n",
            "  untracked rows of stock that it reads, hidden by DISTINCT\n",
            " on rows (",
        ]);
        assert_eq!(finished.stdout.matches("\n  sent      as written\n").count(), 3, "{}", finished.stdout);
    }
    let seen: Value = serde_json::from_str(&scene.read("seen.json")).expect("JSON");
    assert_eq!(
        (&seen["format"], &seen["workloads"][0]["recorded"]),
        (&"isobench/observe".into(), &"rows".into())
    );
    let statements = seen["workloads"][0]["statements"].as_array().expect("statements");
    assert_eq!(statements.len(), 6);
    assert_eq!(statements[1]["tables"][0]["key"], "(item)");
    assert!(
        statements[2]["sent"].as_str().expect("a text").contains("RETURNING stock."),
        "{}",
        statements[2]
    );
    assert_eq!(statements[3]["sent"], statements[4]["sent"], "one message has both");
    scene.write("theirs.json", "{\"name\": 1}");
    let finished = scene.run(&["observe", "-b", "tpcb", "--json", "theirs.json"]).expect(1);
    finished.says(&["--json: \"theirs.json\" exists and isn't a preview of isobench"]);
    scene.assert_clean();
}

#[test]
fn on_a_named_server_nothing_is_run_and_nothing_is_left() {
    let Some(database) = Database::new("on_a_named_server_nothing_is_run_and_nothing_is_left") else {
        return;
    };
    let scene = Scene::new();
    let sql = format!("create schema shop; set search_path = shop; {TABLES}");
    database.connect().execute(&sql).expect("tables");
    scene.write("a.sql", SCRIPT);
    let rows = "select string_agg(s::text || xmin || xmax, ' ') from shop.stock s";
    let before = (database.inventory(), database.value(rows));
    let finished = database.run(&scene, &["observe", "-f", "a.sql", "--schema", "shop"]).expect(0);
    let finished = finished.prints(&["  writes    stock, key (item)"]);
    assert!(!finished.stderr.contains("schema isobench"), "{}", finished.stderr);
    database.run(&scene, &["observe", "-w", "registers", "-w", "tpcb-like"]).expect(0).prints(&[
        "registers",
        "tpcb-like: adds columns to 4 of 7 statements",
        "pgbench_accounts",
    ]);
    // Without their schema the user's tables aren't found, and the way to them is told.
    let finished = database.run(&scene, &["observe", "-f", "a.sql"]).expect(0);
    finished.prints(&["there is no table stock", "--schema NAME", "compare gives no verdict on it"]);
    assert_eq!((database.inventory(), database.value(rows)), before);
}

#[test]
fn wrong_options_and_scripts_are_errors_before_a_server_is_started() {
    let scene = Scene::new();
    scene.write("a.sql", SCRIPT);
    scene.write("bad.sql", "\\sat x 1\n");
    for (line, part) in [
        ("observe", "which scripts? Name them: --file FILE"),
        ("observe -f none.sql", "could not open file \"none.sql\""),
        ("observe -f bad.sql", "bad.sql:1:"),
        ("observe -w regsters", "did you mean"),
        ("observe -b tpcb -w registers", "cannot be used with"),
        ("observe -f a.sql --schema shop", "--schema: names tables of yours, but no server is named"),
        ("observe -f a.sql --schema shop --setup a.sql", "cannot be used with"),
        ("observe -f a.sql --json .", "is a folder"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let finished = scene.run(&words).expect(1);
        assert!(!finished.stderr.contains("embedded PostgreSQL"), "{line}: {}", finished.stderr);
        assert!(finished.stderr.contains(part), "{line}: {}", finished.stderr);
    }
}

#[test]
fn a_statement_whose_plan_would_change_is_sent_as_written() {
    let Some(scene) = Scene::with_database("a_statement_whose_plan_would_change_is_sent_as_written") else {
        return;
    };
    let tables = "DROP TABLE IF EXISTS big;\nCREATE TABLE big (id int PRIMARY KEY, v int NOT NULL);\n\
                  INSERT INTO big SELECT g, g FROM generate_series(1, 20000) AS g;\nANALYZE big;\n";
    // The branch isn't taken in the trial.
    let script = "\\set i random(1, 20000)\nBEGIN;\nSELECT max(id) AS last FROM big;\n\\if :i < 0\nSELECT min(id) FROM \
                  big;\n\\endif\nUPDATE big SET v = v + 1 WHERE id = :i;\nEND;\n";
    scene.write("tables.sql", tables);
    scene.write("a.sql", script);
    let reason = "because its plan would change with the columns that show them";
    let finished = scene.run(&["observe", "--script", "a.sql", "--setup", "tables.sql"]).expect(0);
    let one_line = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(one_line.matches(reason).count(), 2, "{}", finished.stdout);
    assert!(one_line.contains("Seq Scan on big instead of Index Only Scan"), "{}", finished.stdout);
    let line = "compare -w a.sql --setup tables.sql --levels rc,ser --clients 1 --transactions 5 --warmup 0 \
                --rounds 1 --json out.json";
    scene.run(&line.split_whitespace().collect::<Vec<_>>()).expect(0);
    let document: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
    let statements = document["observations"][0]["statements"].as_array().expect("statements");
    let of = |start: &str| {
        let own = |statement: &&Value| statement["text"].as_str().is_some_and(|text| text.starts_with(start));
        let found = statements.iter().find(own).expect("the statement");
        (found["sent_differently"] == true, found["dark"].to_string().contains(reason))
    };
    assert_eq!(of("SELECT max"), (false, true));
    assert_eq!(of("SELECT min"), (false, true));
    assert_eq!(of("UPDATE"), (true, false));
    scene.assert_clean();
}
