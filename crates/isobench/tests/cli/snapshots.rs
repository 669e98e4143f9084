//! What statements read without showing it, narrowed down by the snapshots of their transactions
//! (`--observe snapshot`), on the embedded server.

use serde_json::Value;

use crate::compare::words;
use crate::observed::{anomalies, assert_kept};
use crate::support::document::{self, cells, count};
use crate::support::scene::Scene;

/// How often a run is repeated until transactions have met that only probably do.
const TRIALS: usize = 8;

/// Doctors of four wards; an update of one is noted by a trigger, whose reads and writes aren't seen.
const DOCTORS: &str =
    "CREATE TABLE doctors (id int PRIMARY KEY, ward int NOT NULL, on_call boolean NOT NULL);
CREATE TABLE audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doctor int NOT NULL);
INSERT INTO doctors SELECT id, id % 4, true FROM generate_series(1, 8) AS ids (id);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO audit (doctor) VALUES (NEW.id); RETURN NULL; END $$;
CREATE TRIGGER note AFTER UPDATE ON doctors FOR EACH ROW EXECUTE FUNCTION note();
";

/// Who finds a colleague on call leaves, or comes back. Two at once is write skew.
const LEAVE: &str = "\\set id random(1, 8)
BEGIN;
SELECT 1 WHERE EXISTS (SELECT FROM doctors WHERE on_call AND id <> :id AND ward = :id % 4);
UPDATE doctors SET on_call = NOT on_call WHERE id = :id;
COMMIT;
";

/// Accounts, and limits that decide whether they change; and a script that raises the limits, and never
/// gets to it.
const LIMITS: &str = "CREATE TABLE limits (account int PRIMARY KEY, least int NOT NULL);
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO limits SELECT id, 0 FROM generate_series(1, 4) AS ids (id);
INSERT INTO accounts SELECT id, 0 FROM generate_series(1, 4) AS ids (id);
";
const PAY: &str = "\\set id random(1, 4)
BEGIN;
SELECT count(*) AS allowed FROM limits TABLESAMPLE SYSTEM (100) WHERE account = :id AND least <= 0 \\gset
\\if :allowed > 0
UPDATE accounts SET balance = balance + 1 WHERE id = :id;
\\endif
COMMIT;
";
const RAISE: &str = "\\set wanted random(0, 0)
BEGIN;
SELECT 1;
\\if :wanted > 0
UPDATE limits SET least = least + 1 WHERE account = 1;
\\endif
COMMIT;
";

/// A comparison of these scripts by snapshots.
fn compared(scene: &Scene, more: &str) -> Value {
    let line = format!(
        "compare --warmup 0 --rounds 1 --no-try --clients 4 --transactions 60 --server-setting fsync=off \
         --json out.json {more}"
    );
    scene.run(&words(&line)).expect(0);
    document::read(scene, "out.json")
}

fn level(cell: &Value) -> &str {
    cell["level"]["requested"].as_str().expect("a level")
}

/// At repeatable read two doctors leave at once. That isn't seen, so nothing is accused; it is possible,
/// so they aren't cleared. At serializable one of them gets an error, and the others are cleared unless
/// a cycle is possible. At read committed nothing is asked.
#[test]
fn a_write_skew_that_is_not_seen_is_not_cleared() {
    let Some(scene) = Scene::with_server("a_write_skew_that_is_not_seen_is_not_cleared") else { return };
    scene.write("doctors.sql", DOCTORS);
    scene.write("leave.sql", LEAVE);
    let met = (0..TRIALS).any(|_| {
        let document =
            compared(&scene, "-f leave.sql --setup doctors.sql --levels rc,rr,ser --observe snapshot");
        let mut open = 0;
        for cell in cells(&document) {
            assert_kept(cell);
            assert_eq!(anomalies(cell), [""; 0], "{cell:#}");
            let verdict = &cell["summary"]["verdict"];
            if level(cell) == "read committed" {
                assert_eq!(verdict["cleared"], Value::Null, "{cell:#}");
                continue;
            }
            let of = |name: &str| count(verdict, &format!("/cleared/{name}"));
            assert_eq!(verdict.pointer("/cleared/why_not"), None, "{verdict:#}");
            assert_eq!(of("dark"), count(verdict, "/committed"));
            let unseen = verdict["unseen"].as_array().expect("what wasn't seen");
            assert_eq!(unseen.is_empty(), of("dark") == of("cleared"), "{verdict:#}");
            if level(cell) == "repeatable read" {
                open = of("dark") - of("cleared");
            }
        }
        open > 0
    });
    assert!(met, "no two transactions met in {TRIALS} runs");
}

/// What statements read unseen decides what is written. No transaction writes it, so the verdict covers
/// it.
#[test]
fn what_stays_unwritten_is_cleared_and_the_verdict_covers_it() {
    let Some(scene) = Scene::with_server("what_stays_unwritten_is_cleared_and_the_verdict_covers_it") else {
        return;
    };
    scene.write("limits.sql", LIMITS);
    scene.write("pay.sql", PAY);
    scene.write("raise.sql", RAISE);
    let scripts = "-f pay.sql -f raise.sql --setup limits.sql --levels rr,ser";
    for protocol in ["simple", "prepared"] {
        let by_log = compared(&scene, &format!("{scripts} --protocol {protocol} --observe wal"));
        for cell in cells(&by_log) {
            assert_ne!(cell["summary"]["verdict"]["unseen"], serde_json::json!([]), "{cell:#}");
        }
        let document = compared(&scene, &format!("{scripts} --protocol {protocol} --observe snapshot"));
        for cell in cells(&document) {
            assert_kept(cell);
            let verdict = &cell["summary"]["verdict"];
            assert_eq!(verdict["unseen"], serde_json::json!([]), "{cell:#}");
            let dark = count(verdict, "/cleared/dark");
            assert_eq!(count(verdict, "/cleared/cleared"), dark, "{cell:#}");
            assert!(0 < dark && dark < count(verdict, "/committed"), "those of one of the scripts: {cell:#}");
        }
    }
}

/// Statements outside of a block can't be asked, and that is said.
#[test]
fn transactions_without_a_commit_of_their_own_clear_nothing() {
    let Some(scene) = Scene::with_server("transactions_without_a_commit_of_their_own_clear_nothing") else {
        return;
    };
    scene.write("limits.sql", LIMITS);
    scene.write("pay.sql", &PAY.replace("BEGIN;\n", "").replace("COMMIT;\n", ""));
    let document = compared(&scene, "-f pay.sql --setup limits.sql --levels rr --observe snapshot");
    let verdict = &cells(&document)[0]["summary"]["verdict"];
    let why = verdict.pointer("/cleared/why_not").and_then(Value::as_str).expect("a reason");
    assert!(why.contains("couldn't be asked for their snapshots"), "{why}");
    assert_eq!(count(verdict, "/cleared/cleared"), 0);
}

/// The log of a named server isn't read, which is said before anything is connected to.
#[test]
fn a_named_server_is_refused() {
    let scene = Scene::new();
    for command in ["compare -w tpcb-like --levels rr", "run -b tpcb-like"] {
        let line = format!("{command} --observe snapshot -h nowhere.invalid");
        scene.run(&words(&line)).expect(1).says(&["--observe snapshot: reading the log of writes needs"]);
    }
}
