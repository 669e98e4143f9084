//! Endpoints as a factor: the same clients directly and through a pooler or a proxy, with the counts of both
//! sides.

use serde_json::Value;

use crate::support::document::{self, cells};
use crate::support::named::Database;
use crate::support::pgbouncer::PgBouncer;
use crate::support::program::Finished;
use crate::support::retrying;
use crate::support::scene::Scene;

/// A script whose transactions conflict.
const HOT: &str = "\\set id random(1, 3)\nBEGIN;\nSELECT v FROM hot WHERE id = :id;\n\
    UPDATE hot SET v = v + 1 WHERE id = :id;\nCOMMIT;\n";
const TABLES: &str =
    "CREATE TABLE hot (id int PRIMARY KEY, v int);\nINSERT INTO hot VALUES (1, 0), (2, 0), (3, 0);\n";

const COMMON: [&str; 16] = [
    "compare",
    "-f",
    "hot.sql",
    "--setup",
    "tables.sql",
    "-c",
    "4",
    "--transactions",
    "100",
    "--warmup",
    "0",
    "--rounds",
    "1",
    "--try",
    "0s",
    "--details",
];

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("hot.sql", HOT);
    scene.write("tables.sql", TABLES);
    scene
}

fn compare(scene: &Scene, database: &Database, levels: &str, endpoints: &str, further: &[&str]) -> Finished {
    let vary = format!("endpoint={endpoints}");
    let options = ["--levels", levels, "--vary", &vary, "--json", "out.json"];
    database.run(scene, &[&COMMON[..], &options, further].concat())
}

/// Where `PgBouncer` listens, without what the direct way says already.
fn at(scene: &Scene) -> String {
    format!("host={} port=6432 user=postgres", scene.file("").display())
}

/// The server's side of the only round of a cell.
fn counts<'v>(cell: &'v Value, what: &str) -> &'v Value {
    let rows = cell["rounds"][0]["server"]["comparison"].as_array().expect("a comparison");
    rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("no {what} in {rows:?}"))
}

#[test]
fn levels_are_right_by_every_way_and_both_sides_count_the_same() {
    let test = "levels_are_right_by_every_way_and_both_sides_count_the_same";
    for mode in ["pool_mode = session", "pool_mode = transaction\ndefault_pool_size = 2"] {
        let Some(database) = Database::new(test) else { return };
        let scene = scene();
        let Some(_bouncer) = PgBouncer::start(test, &scene, &database, mode) else { return };
        let way = at(&scene);
        compare(&scene, &database, "rr,ser", &format!("direct,{way}"), &[]).expect(0);
        let document = document::read(&scene, "out.json");
        let cells = cells(&document);
        assert_eq!(cells.len(), 4, "{mode}");
        for (cell, (endpoint, level)) in cells.iter().zip([
            ("direct", "repeatable read"),
            ("direct", "serializable"),
            (&way, "repeatable read"),
            (&way, "serializable"),
        ]) {
            assert_eq!(cell["varied"]["endpoint"], endpoint, "{mode}");
            assert_eq!(cell["level"]["effective"], level, "{mode}: {endpoint}");
            let named = &cell["rounds"][0]["levels_named"];
            assert_eq!(
                named.as_object().map(|it| it.keys().collect::<Vec<_>>()),
                Some(vec![&level.to_owned()])
            );
            assert_eq!(cell["rounds"][0]["transactions"]["committed"], 400, "{mode}: {endpoint}");
            for what in ["commits", "rollbacks"] {
                let row = counts(cell, what);
                assert_eq!(row["agrees"], true, "{mode}: {endpoint}: {row}");
            }
            let (ours, servers) = (&counts(cell, "rollbacks")["ours"], &counts(cell, "rollbacks")["servers"]);
            assert_eq!(ours, servers, "{mode}: {endpoint}");
        }
    }
}

#[test]
fn retries_hidden_in_between_are_seen() {
    let Some(database) = Database::new("retries_hidden_in_between_are_seen") else { return };
    let scene = scene();
    let [_, folder, _, port, ..] = database.server_options();
    let socket = format!(".s.PGSQL.{port}");
    retrying::serve(&scene.file(".s.PGSQL.7000"), &std::path::Path::new(&folder).join(socket));
    let way = format!("host={} port=7000", scene.file("").display());
    let finished = compare(&scene, &database, "rr", &format!("direct,{way}"), &["--observe", "annotations"]);
    let text = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the clients saw only 0 fail; by the direct way the difference is 0"), "{text}");
    assert!(text.contains(&format!("Something at {way} may retry them")), "{text}");
    let document = document::read(&scene, "out.json");
    let rows: Vec<[u64; 2]> = cells(&document)
        .iter()
        .map(|cell| {
            ["ours", "servers"].map(|side| counts(cell, "rollbacks")[side].as_u64().expect("a count"))
        })
        .collect();
    assert!(rows[0][0] > 10 && rows[0][0] == rows[0][1], "{rows:?}");
    assert!(rows[1][0] == 0 && rows[1][1] > 10, "{rows:?}");
}

#[test]
fn what_cannot_be_right_at_an_endpoint_is_refused() {
    let test = "what_cannot_be_right_at_an_endpoint_is_refused";
    let Some(database) = Database::new(test) else { return };
    let scene = scene();
    let settings = "pool_mode = transaction\ndefault_pool_size = 2";
    let Some(bouncer) = PgBouncer::start(test, &scene, &database, settings) else { return };
    let ways = format!("direct,{}", at(&scene));
    scene
        .write("set.sql", "SET work_mem = '1MB';\nBEGIN;\nUPDATE hot SET v = v + 1 WHERE id = 1;\nCOMMIT;\n");
    for (further, part) in [
        (&["-M", "prepared"][..], "use --protocol simple"),
        (&["-f", "set.sql"], "set.sql:1 makes a setting of the session"),
        (&["--vary", "setting:work_mem=1MB,2MB"], "the plan sets work_mem in each session"),
    ] {
        let finished = compare(&scene, &database, "ser", &ways, further).expect(1);
        finished.says(&["--vary: endpoint: ", "transaction pooling", part]);
    }
    for (ways, part) in [
        ("direct,host=/tmp password=secret", "leave out the password"),
        ("direct,pooler", "endpoint=pooler: use direct, or a connection string"),
        ("direct,dbname=postgres", "leads to another server or database"),
        ("direct,host=/nowhere", "endpoint=host=/nowhere: "),
    ] {
        compare(&scene, &database, "ser", ways, &[]).expect(1).says(&["--vary: endpoint", part]);
    }
    drop(bouncer);
    let statement = PgBouncer::start(test, &scene, &database, "pool_mode = statement");
    compare(&scene, &database, "ser", &ways, &[]).expect(1).says(&["doesn't keep its session"]);
    drop(statement);
    // The embedded server has no pooler.
    let options = ["--levels", "ser", "--vary", &format!("endpoint={ways}")];
    scene.run(&[&COMMON[..], &options].concat()).expect(1).says(&["isobench starts the embedded one"]);
    assert_eq!(database.inventory(), "", "nothing is left");
}
