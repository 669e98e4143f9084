//! `isobench race CAPTURE`: the pairs of recorded transactions that can race.

use std::fs;

use isobench_testkit::capture::{SHOP, Tape, shop};
use serde_json::Value;

use crate::compare::words;
use crate::gates::findings;
use crate::support::named::Database;
use crate::support::scene::Scene;

/// Orders at once lose the counter of an offer, which is saved as a whole.
#[test]
fn a_recording_names_what_can_race() {
    let Some(s) = Scene::with_server("a_recording_names_what_can_race") else { return };
    fs::write(s.file("shop.capture"), shop(40)).expect("a capture");
    s.write("shop.sql", SHOP);
    let found = s
        .run(&words("race shop.capture --setup shop.sql --json out.json --junit out.xml --sarif out.sarif"))
        .expect(3);
    let found = found.prints(&[
        "can race at the level they ran at.",
        "update offer after reading it",
        "needs repeatable read",
        "isobench race --copy-from CONNECTION -- REQUEST --and REQUEST",
    ]);
    found.says(&["transactions of the capture can race"]);
    let answer: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(answer["format"], "isobench/suspects");
    assert_eq!(answer["suspects"][0]["kind"], "lost-update", "{answer:#}");
    let results = findings(&s, "out.sarif");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"lost-update".into(), &"warning".into()));
    let xml = s.read("out.xml");
    assert!(xml.contains("name=\"read committed: update offer after reading it\""), "{xml}");
    s.run(&words("race shop.capture --setup shop.sql --details"))
        .expect(3)
        .prints(&["All kinds of transactions"]);
    s.run(&words("race shop.capture")).expect(1).says(&["the tables of the capture are missing"]);
    s.run(&words("race shop.sql --setup shop.sql")).expect(1).says(&["this is no capture"]);
    s.assert_clean();
}

/// The schema is copied, whatever its name is, and nothing of the capture is executed on its server.
#[test]
fn the_schema_is_copied_from_the_recorded_database() {
    let test = "the_schema_is_copied_from_the_recorded_database";
    let (Some(s), Some(database)) = (Scene::with_server(test), Database::new(test)) else { return };
    let tables = "CREATE SCHEMA app; CREATE TYPE app.mood AS ENUM ('ok'); \
        CREATE TABLE app.page (id int PRIMARY KEY, hits int NOT NULL, mood app.mood)";
    database.connect().execute(tables).expect("tables");
    let capture = |statements: &[&str]| {
        let mut tape = Tape::begin(false);
        for number in 0..6 {
            for sql in statements {
                let status = if statements.len() == 1 || *sql == "COMMIT" { 'I' } else { 'T' };
                let sql = sql.replace("{i}", &number.to_string());
                let tag = sql.split(' ').next().unwrap_or_default().to_owned();
                let tag = if tag.len() == 6 && tag != "COMMIT" { format!("{tag} 1") } else { tag };
                tape.send(1, &sql, Vec::new(), vec![isobench_testkit::capture::done(&tag)], status);
            }
        }
        tape.end()
    };
    let [_, folder, _, port, _, user] = database.server_options();
    let source = format!("host={folder} port={port} user={user} dbname={}", database.name);
    let safe = capture(&["UPDATE app.page SET hits = hits + 1 WHERE id = {i}"]);
    fs::write(s.file("safe.capture"), safe).expect("a capture");
    s.run(&["race", "safe.capture", "--copy-from", &source])
        .expect(0)
        .prints(&["No pair of transactions can race", "1 kind without a schedule at read committed"]);
    let change = "UPDATE app.page SET hits = 1{i} WHERE id = {i}";
    let lost = capture(&["BEGIN", "SELECT hits FROM app.page WHERE id = {i}", change, "COMMIT"]);
    fs::write(s.file("lost.capture"), lost).expect("a capture");
    let found = s.run(&["race", "lost.capture", "--copy-from", &source]).expect(3);
    found.prints(&["1 pair of transactions can race", "update app.page after reading it"]);
    let nothing = capture(&["UPDATE app.nothing SET hits = 1 WHERE id = {i}"]);
    fs::write(s.file("nothing.capture"), nothing).expect("a capture");
    s.run(&["race", "nothing.capture", "--copy-from", &source]).expect(2).prints(&["1 kind not analysed"]);
    assert_eq!(database.value("SELECT count(*) FROM app.page"), "0");
    s.assert_clean();
}
