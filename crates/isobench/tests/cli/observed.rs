//! Verdicts on scripts without a word about isobench, from the rows that their statements show: the
//! shop in `examples/shop`.
//!
//! Not here: the ready-made workloads with and without their lines `--@` (`observed_workloads.rs`),
//! and servers that go wrong (`planted.rs`).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells, count, rounds};
use crate::support::scene::Scene;

/// The scripts of the shop, with their weights.
const SCRIPTS: [&str; 5] = ["place-order.sql@4", "restock.sql", "sign-up.sql@3", "visit.sql@3", "report.sql"];

/// How often a run is repeated until an anomaly has been met that is only probable. In one run at
/// repeatable read four doubly used telephone numbers are expected.
const TRIALS: usize = 8;

/// A scene with the files of the shop.
fn shop(test: &str) -> Option<Scene> {
    let scene = Scene::with_server(test)?;
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop"));
    for entry in fs::read_dir(folder).expect("the example") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        scene.write(&name, &fs::read_to_string(&path).expect("a text"));
    }
    Some(scene)
}

/// The command, as in the guide, with few transactions.
fn command(more: &str) -> String {
    let files: Vec<String> = SCRIPTS.iter().map(|script| format!("-f {script}")).collect();
    format!(
        "compare {} --setup setup.sql --clients 8 --transactions 60 --warmup 0 --rounds 1 \
         --json out.json {more}",
        files.join(" ")
    )
}

/// The names of the anomalies of a cell.
pub fn anomalies(cell: &Value) -> Vec<String> {
    let rounds = cell["rounds"].as_array().expect("rounds").iter();
    let found = rounds.flat_map(|round| round["verdict"]["anomalies"].as_array().expect("a verdict"));
    found.map(|anomaly| anomaly["name"].as_str().expect("a name").to_owned()).collect()
}

/// Fails unless a verdict was reached that accuses nobody.
pub fn assert_kept(cell: &Value) {
    for round in cell["rounds"].as_array().expect("rounds") {
        let verdict = &round["verdict"];
        assert_eq!(
            (&verdict["kept"], &verdict["withheld"]),
            (&true.into(), &serde_json::json!([])),
            "{cell:#}"
        );
    }
}

/// The shop's five scripts at three levels on two versions of the server, observed in one way.
fn is_judged(scene: &Scene, more: &str) -> Vec<String> {
    scene.run(&words(&format!("{} --details", command(more)))).expect(0).prints(&["no forbidden anomaly"]);
    let document = document::read(scene, "out.json");
    assert_eq!(cells(&document).len(), 6);
    let mut phantoms = Vec::new();
    for cell in cells(&document) {
        assert_kept(cell);
        let (version, found) = (&cell["varied"]["server-version"], anomalies(cell));
        match cell["level"]["requested"].as_str().expect("a level") {
            "read committed" => has_lost_updates(cell),
            "repeatable read" => {
                assert!(found.iter().all(|name| name.starts_with("G2")), "{found:?}");
                if found.iter().any(|name| name == "G2") {
                    phantoms.push(version.as_str().expect("a version").to_owned());
                }
            }
            _ => assert_eq!(found, [""; 0], "{cell:#}"),
        }
    }
    for round in rounds(&document) {
        assert_eq!(round["verdict"]["blind"], serde_json::json!([]), "{}", round["verdict"]);
        let looked_at = count(round, "/verdict/examined/committed");
        assert_eq!(looked_at, count(round, "/attempts/committed"));
    }
    every_table_is_seen(&document);
    phantoms
}

/// Each step of the witness has the statements of both transactions.
fn has_lost_updates(cell: &Value) {
    let found = cell["rounds"][0]["verdict"]["anomalies"].as_array().expect("anomalies");
    let lost = found.iter().find(|anomaly| anomaly["name"] == "P4");
    let lost = lost.unwrap_or_else(|| panic!("no lost update: {cell:#}"));
    let statements = lost["statements"].as_array().expect("statements");
    assert_eq!(statements.len(), lost["witness"].as_array().expect("a witness").len());
    for step in statements {
        let [from, to] = step.as_array().expect("statements").as_slice() else { panic!("{lost:#}") };
        for statement in [from, to] {
            let statement = statement.as_str().unwrap_or_else(|| panic!("no statement: {lost:#}"));
            let (place, sql) = statement.split_once(": ").expect("a place");
            assert!(place.contains(".sql:"), "{statement}");
            assert!(["SELECT", "UPDATE", "INSERT"].iter().any(|verb| sql.starts_with(verb)), "{statement}");
        }
    }
}

fn every_table_is_seen(document: &Value) {
    let statements = document["observations"].as_array().expect("what was observed").iter();
    let statements = statements.flat_map(|seen| seen["statements"].as_array().expect("statements"));
    let mut seen: Vec<(&str, &str, bool)> = Vec::new();
    for statement in statements {
        for rows in statement["tables"].as_array().expect("tables") {
            let writes = rows["access"] != "reads";
            seen.push((
                rows["table"].as_str().expect("a name"),
                rows["key"].as_str().expect("a key"),
                writes,
            ));
        }
    }
    for (table, key, writes) in [
        ("product", "(id)", true),
        ("customer", "(id)", true),
        ("order_line", "(id)", true),
        ("order_line", "(id)", false),
        ("member", "(id)", false),
        ("visits", "(product, weekday)", true),
    ] {
        assert!(seen.contains(&(table, key, writes)), "{table}: {seen:?}");
    }
}

/// Repeats a run until both versions have had a doubly used telephone number at repeatable read.
fn meets_phantoms(scene: &Scene, more: &str) {
    let mut met = Vec::new();
    for _ in 0..TRIALS {
        met.extend(is_judged(scene, more));
        if ["15", "18"].iter().all(|version| met.iter().any(|known| known == version)) {
            return;
        }
    }
    panic!("no telephone number was taken twice at repeatable read, apart from versions {met:?}");
}

#[test]
fn a_shop_is_judged_on_two_versions_by_the_rows_that_it_shows() {
    let test = "a_shop_is_judged_on_two_versions_by_the_rows_that_it_shows";
    let Some(scene) = shop(test) else { return };
    meets_phantoms(&scene, "--vary server-version=15,18");
}

#[test]
fn a_shop_is_judged_the_same_from_the_log() {
    let Some(scene) = shop("a_shop_is_judged_the_same_from_the_log") else { return };
    meets_phantoms(&scene, "--vary server-version=15,18 --observe wal --history seen");
    // The two sources agree, in each of the histories.
    let mut histories = 0;
    for entry in fs::read_dir(scene.file("seen")).expect("a folder") {
        let history = entry.expect("a file").path().to_string_lossy().into_owned();
        scene.run(&["check", &history, "--convert", "text:seen.txt"]);
        let text = scene.read("seen.txt");
        let line = text.lines().find(|line| line.starts_with("observed ")).expect("what was observed");
        assert!(line.ends_with(" orders-differ=0") && !line.contains(" orders-agreed=0 "), "{line}");
        histories += 1;
    }
    assert_eq!(histories, 6);
}

/// The verdicts of a run at read committed of scripts that each change one column of an account.
fn saved(scene: &Scene, sets: [&str; 2]) -> Vec<Value> {
    scene.write(
        "accounts.sql",
        "CREATE TABLE accounts (id int PRIMARY KEY, name int NOT NULL, city int NOT NULL);\n\
         INSERT INTO accounts SELECT id, 0, 0 FROM generate_series(1, 3) AS ids(id);\n",
    );
    for (column, set) in ["name", "city"].iter().zip(sets) {
        scene.write(
            &format!("{column}.sql"),
            &format!(
                "\\set id random(1, 3)\nBEGIN;\nSELECT name, city FROM accounts WHERE id = :id \\gset\n\
                 \\set {column} :{column} + 1\nUPDATE accounts SET {set} WHERE id = :id;\nEND;\n"
            ),
        );
    }
    let line = "compare -f name.sql -f city.sql --setup accounts.sql --levels rc --clients 8 --transactions 100 \
                --warmup 0 --rounds 1 --try 0 --json out.json";
    scene.run(&words(line)).expect(0);
    rounds(&document::read(scene, "out.json")).map(|round| round["verdict"].clone()).collect()
}

/// Two scripts that save whole rows overwrite each other's columns, and the result says so.
#[test]
fn columns_that_are_written_back_are_said() {
    let Some(scene) = Scene::with_database("columns_that_are_written_back_are_said") else { return };
    let whole = "name = :name, city = :city";
    for verdict in saved(&scene, [whole, whole]) {
        assert!(verdict["anomalous"].as_u64() > Some(0), "{verdict:#}");
        let written = &verdict["written_back"];
        assert!(written["transactions"].as_u64() > Some(0), "{verdict:#}");
        let columns = written["statements"].as_array().expect("statements").iter();
        let columns: Vec<String> = columns.map(|one| one["columns"].to_string()).collect();
        assert_eq!(columns, ["[\"city\"]", "[\"name\"]"]);
        assert!(written["statements"][0]["statement"].as_str().expect("a text").starts_with("name.sql:5: "));
    }
    for verdict in saved(&scene, ["name = :name", "city = :city"]) {
        assert_eq!(verdict["written_back"], Value::Null, "{verdict:#}");
    }
}

/// A page whose OFFSET is a variable is named among what isn't covered only where it skipped rows.
#[test]
fn a_page_is_named_where_it_skipped_rows() {
    let Some(scene) = Scene::with_database("observed_pages") else { return };
    scene.write(
        "setup.sql",
        "CREATE TABLE seat (id int PRIMARY KEY, room int NOT NULL, taken int NOT NULL DEFAULT 0);\n\
         INSERT INTO seat SELECT id, id % 4 FROM generate_series(1, 400) AS id;\n",
    );
    for (pages, unseen) in [("0, 0", &[][..]), ("0, 2", &["page.sql:4 decides an UPDATE"])] {
        scene.write(
            "page.sql",
            &format!(
                "\\set room random(0, 3)\n\\set skip random({pages})\nBEGIN;\n\
                 SELECT id AS seat FROM seat WHERE room = :room ORDER BY id LIMIT 1 OFFSET :skip \\gset\n\
                 UPDATE seat SET taken = taken + 1, room = room WHERE id = :seat;\nEND;\n"
            ),
        );
        let command = "compare -f page.sql --setup setup.sql --levels ser --clients 2 --transactions 40 \
                       --warmup 0 --rounds 1 --try 0 --json out.json";
        scene.run(&words(command)).expect(0);
        let document = document::read(&scene, "out.json");
        let cell = &cells(&document)[0];
        assert_kept(cell);
        assert_eq!(cell["summary"]["verdict"]["unseen"], serde_json::json!(unseen), "{cell:#}");
    }
}
