//! Scripts tried against each other: by `probe`, and by `compare`.

use serde_json::Value;

use crate::compare::words;
use crate::support::document;
use crate::support::named::Database;
use crate::support::scene::Scene;

const SETUP: &str = "CREATE TABLE stock (id int PRIMARY KEY, left_over int NOT NULL);\n\
    INSERT INTO stock SELECT g, 100 FROM generate_series(1, 5) g;\n";

/// Loses updates where the level doesn't prevent it.
const SELL: &str = "\\set id random(1, 5)\nBEGIN;\nSELECT left_over AS n FROM stock WHERE id = :id \\gset\n\
    UPDATE stock SET left_over = :n - 1 WHERE id = :id;\nCOMMIT;\n";

fn scene(scene: Scene) -> Scene {
    for (name, text) in [("setup.sql", SETUP), ("sell.sql", SELL)] {
        scene.write(name, text);
    }
    scene
}

/// The verdicts of the levels: whether anything was found.
fn verdicts(document: &Value) -> Vec<(String, usize)> {
    let levels = document["levels"].as_array().expect("levels");
    let of = |level: &Value| {
        (
            level["level"].as_str().expect("a level").to_owned(),
            level["tried"]["found"].as_array().expect("a list").len(),
        )
    };
    levels.iter().map(of).collect()
}

#[test]
fn a_lost_update_is_shown_step_by_step() {
    let Some(s) = Scene::with_database("a_lost_update_is_shown_step_by_step").map(scene) else { return };
    let line = "probe -f sell.sql --setup setup.sql --try 100s --json found.json --replay lost.spec";
    let finished = s.run(&words(line)).expect(0);
    finished.prints(&[
        "read committed   unsafe (shown): data damaged\n",
        "repeatable read  nothing found in ",
        "serializable     nothing found in ",
        "What goes wrong at read committed (executed):\n     T1  sell.sql ",
        "UPDATE stock … left_over = 100 - 1\n",
        "     left_over of stock id 1 is 99; one after the other, in either order, it would be 98.\n",
    ]);
    let found: Value = serde_json::from_str(&s.read("found.json")).expect("JSON");
    let expected = [("read committed", 1), ("repeatable read", 0), ("serializable", 0)];
    assert_eq!(verdicts(&found), expected.map(|(level, found)| (level.to_owned(), found)));
    assert_eq!(found["format"], "isobench/interleavings");
    // A level that was asked for decides on the status.
    s.write("sell.sql", &format!("\u{feff}{SELL}"));
    for (levels, status) in [("--levels rr,ser --try 1", 0), ("--allocation *=rc --try 100s", 3)] {
        s.run(&words(&format!("probe -f sell.sql --setup setup.sql {levels}"))).expect(status);
    }
    let replayed = s.run(&words("probe --spec lost.spec --levels rc")).expect(0);
    replayed.prints(&["step t1s3: UPDATE stock SET left_over = 100 - 1 WHERE id = 1;\n", " 1|       99\n"]);
    let steps = &found["levels"][0]["tried"]["found"][0]["steps"];
    assert_eq!(
        steps[0],
        serde_json::json!({"transaction": 1, "sql": "BEGIN;", "line": 2, "answer": ["BEGIN"]})
    );
}

#[test]
fn wrong_input_is_refused_before_anything_is_started() {
    let s = scene(Scene::new());
    s.write("level.sql", "BEGIN ISOLATION LEVEL SERIALIZABLE;\nCOMMIT;\n");
    for (line, said) in [
        ("probe -f sell.sql", "--setup FILE.sql, which makes their tables"),
        ("probe -w orders -f sell.sql --setup setup.sql", "cannot be used with"),
        ("probe -f level.sql --setup setup.sql", "sets or resets the isolation level"),
        ("compare -f sell.sql --setup setup.sql --try 3 --fault crash@1", "--try: excludes --fault"),
    ] {
        let finished = s.run(&words(line)).expect(1);
        assert!(finished.stderr.contains(said), "{line}: {}", finished.stderr);
    }
}

#[test]
fn what_cannot_be_tried_is_named_with_its_reason() {
    let Some(s) = Scene::with_database("what_cannot_be_tried_is_named_with_its_reason").map(scene) else {
        return;
    };
    s.write("truncate.sql", "TRUNCATE stock;\n");
    let finished = s.run(&words("probe -f truncate.sql --setup setup.sql --levels rc")).expect(0);
    finished.prints(&[
        "read committed  nothing could be tried\n",
        "Interleavings of truncate.sql were not tried: line 1: TRUNCATE, which isn't undone row by row.\n",
    ]);
}

#[test]
fn a_mistake_in_a_script_or_a_condition_is_an_error() {
    let test = "a_mistake_in_a_script_or_a_condition_is_an_error";
    let Some(s) = Scene::with_database(test).map(scene) else { return };
    s.write("typo.sql", "BEGIN;\nSELECT lef_over FROM stock;\nCOMMIT;\n");
    let finished = s.run(&words("probe -f typo.sql --setup setup.sql --levels rc")).expect(1);
    assert!(
        finished.stderr.contains("--file: typo.sql: line 2: 42703: column \"lef_over\""),
        "{}",
        finished.stderr
    );
    let mut line = words("probe -f sell.sql --setup setup.sql --levels rc --try 100s --invariant");
    for (condition, status, said) in [
        ("none is sold: SELECT sum(left_over) >= 499 FROM stock", 3, "unsafe at read committed; see above"),
        ("all: SELECT sum(left_over) = 600 FROM stock", 1, "--invariant \"all\": doesn't hold"),
        ("SELECT lef_over FROM stock", 1, "column \"lef_over\""),
    ] {
        line.push(condition);
        let finished = s.run(&line).expect(status);
        assert!(finished.stderr.contains(said), "{condition}: {}", finished.stderr);
        line.pop();
    }
}

const SHORT: &str =
    "compare --levels rc,rr --clients 2 --transactions 5 --warmup 0 --rounds 1 --json out.json";

/// The places of texts in another one, each after the one before it.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        let place = text[from..].find(part);
        from += place.unwrap_or_else(|| panic!("\"{part}\" isn't there, or too early: {text}")) + part.len();
    }
}

#[test]
fn a_comparison_tries_after_its_first_round() {
    let test = "a_comparison_tries_after_its_first_round";
    let Some(s) = Scene::with_server(test).map(scene) else { return };
    let line = "compare --levels rc,rr --clients 2 --time 0.3 --warmup 0 --rounds 2 --json out.json -f sell.sql --setup \
        setup.sql --try 100s";
    let finished = s.run(&words(line)).expect(0);
    let said = [
        "measuring sell.sql at read committed and repeatable read with 2 clients on an embedded PostgreSQL: 2 cells in \
         2 rounds, about 1m 41s\n",
        "no server is named, so this uses an embedded PostgreSQL",
        "[2/4] round 1/2",
        "trying the scripts against each other, for 100 s\n",
        "an outcome that no serial order gives at read committed\n",
        "[3/4] round 2/2",
    ];
    assert_in_order(&finished.stderr, &said);
    assert!(finished.stderr.starts_with(said[0]), "{}", finished.stderr);
    let document = document::read(&s, "out.json");
    assert_eq!(document["cells"][0]["tried"]["found"][0]["damage"], true);
    assert!(document["cells"][1]["tried"]["interleavings"].as_u64() > Some(0));
    assert_ne!(document["answer"]["recommended"], serde_json::json!(["read committed"]));
    // What ends the comparison may end its first round.
    let finished = s.run(&words(&line.replace("--rounds 2", "--rounds 1 --stop-on-broken"))).expect(0);
    assert_in_order(&finished.stderr, &["trying the scripts against each other", "[1/2] round 1/1"]);
}

#[test]
fn a_comparison_answers_by_what_it_tried() {
    let test = "a_comparison_answers_by_what_it_tried";
    let Some(s) = Scene::with_database(test).map(scene) else { return };
    let line = format!("{SHORT} -f sell.sql --setup setup.sql --try 100s");
    let finished = s.run(&words(&line)).expect(0);
    for said in [
        "trying the scripts against each other, for 100 s\n",
        "an outcome that no serial order gives at read committed\n",
    ] {
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
    finished.prints(&[
        "What goes wrong at read committed (executed)\n",
        "left_over of stock id 1 is 99; one after the other, in either order, it would be 98.\n",
    ]);
    let document = document::read(&s, "out.json");
    let cells = document["cells"].as_array().expect("cells");
    assert_eq!(cells[0]["tried"]["found"][0]["damage"], true);
    assert!(cells[0]["summary"]["damage"].as_u64() >= Some(1));
    assert_eq!(cells[1]["tried"]["found"], serde_json::json!([]));
    assert!(cells[1]["tried"]["interleavings"].as_u64() > Some(0));
    assert_ne!(document["answer"]["recommended"], serde_json::json!(["read committed"]));
    // The tables that were measured aren't those that were tried.
    let untried = format!("{SHORT} -f sell.sql --setup setup.sql --try 0");
    s.run(&words(&untried)).expect(0);
    let document = document::read(&s, "out.json");
    assert_eq!(document["cells"][0]["tried"], Value::Null);
}

#[test]
fn a_session_that_is_lost_while_trying_ends_no_comparison() {
    let test = "a_session_that_is_lost_while_trying_ends_no_comparison";
    let Some(s) = Scene::with_database(test).map(scene) else { return };
    s.write("large.sql", "SELECT repeat('x', 68000000) AS x;\n");
    let line = "compare --levels rc --clients 1 --transactions 1 --warmup 0 --rounds 1 --json out.json -f large.sql \
                --setup setup.sql --try 5s";
    s.run(&words(line)).expect(0);
    let document = document::read(&s, "out.json");
    let tried = &document["cells"][0]["tried"]["not_tried"][0]["reason"];
    // On a slow machine the statement's time is over before.
    let reasons = ["more than 67108864 bytes", "has not ended after 5 seconds"];
    assert!(tried.as_str().is_some_and(|why| reasons.iter().any(|reason| why.contains(reason))), "{tried}");
    assert_eq!(document["complete"], true);
}

#[test]
fn a_named_server_is_left_as_it_was() {
    let Some(database) = Database::new("a_named_server_is_left_as_it_was") else { return };
    let s = scene(Scene::new());
    let before = database.inventory();
    let probe = "probe -f sell.sql --setup setup.sql --levels rc --try 100s";
    database.run(&s, &words(probe)).expect(3).prints(&["read committed  unsafe (shown): data damaged\n"]);
    // Rows of another schema aren't put back, so they aren't touched.
    database
        .connect()
        .execute("create table public.kept (v int); insert into public.kept values (1)")
        .expect("a table");
    s.write("other.sql", "UPDATE public.kept SET v = v + 1;\n");
    let other = "probe -f other.sql --setup setup.sql --levels rc --try 100s";
    database
        .run(&s, &words(other))
        .expect(0)
        .prints(&["it names schema \"public\", whose rows couldn't be put back"]);
    assert_eq!(database.value("select v from public.kept"), "1");
    database.connect().execute("drop table public.kept").expect("no table");
    let compare = format!("{SHORT} -f sell.sql --setup setup.sql --try 100s");
    database.run(&s, &words(&compare)).expect(0).prints(&["What goes wrong at read committed"]);
    assert_eq!(database.inventory(), before);
}
