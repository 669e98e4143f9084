//! What statements read without showing it, narrowed down by the snapshots of their transactions
//! (`--observe snapshot`): on the embedded server, and on a named one, where nothing but a temporary
//! replication slot is made.

use rustix::process::Signal;
use serde_json::Value;

use crate::compare::words;
use crate::observed::{anomalies, assert_kept};
use crate::support::document::{self, cells, count};
use crate::support::named::Database;
use crate::support::pgbouncer::PgBouncer;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::wait_for;

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
pub const LIMITS: &str = "CREATE TABLE limits (account int PRIMARY KEY, least int NOT NULL);
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO limits SELECT id, 0 FROM generate_series(1, 4) AS ids (id);
INSERT INTO accounts SELECT id, 0 FROM generate_series(1, 4) AS ids (id);
";
pub const PAY: &str = "\\set id random(1, 4)
BEGIN;
SELECT count(*) AS allowed FROM limits TABLESAMPLE SYSTEM (100) WHERE account = :id AND least <= 0 \\gset
\\if :allowed > 0
UPDATE accounts SET balance = balance + 1 WHERE id = :id;
\\endif
COMMIT;
";
pub const RAISE: &str = "\\set wanted random(0, 0)
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
        "compare --warmup 0 --rounds 1 --try 0 --clients 4 --transactions 60 --server-setting fsync=off \
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

/// A named server whose log can be decoded.
pub fn logical(test: &str) -> Option<Database> {
    Database::with_settings(test, &[("wal_level", "logical")])
}

/// The slots and publications of a server, which is asked in any database.
pub fn made(database: &Database) -> String {
    database.value(
        "select concat_ws(', ', (select string_agg(slot_name || ' ' || plugin || ' ' || temporary, ', ')
            from pg_replication_slots), (select string_agg(pubname, ', ') from pg_publication))",
    )
}

/// True if a session there has executed transactions. One of a command that has ended may still be there.
fn works(database: &Database) -> bool {
    database.value("select exists (select from pg_stat_activity where query ilike 'update %pgbench_%')")
        == "t"
}

/// Waits until transactions are measured there, with the slot.
fn wait_for_the_slot(database: &Database, running: &mut Running) {
    let slot = wait_for("transactions with a slot", || {
        assert!(!running.has_ended(), "it ended before it measured");
        let slot = made(database);
        (!slot.is_empty() && works(database)).then_some(slot)
    });
    assert!(slot.starts_with("isobench_wal_") && slot.ends_with(" test_decoding true"), "{slot}");
}

#[test]
fn the_log_of_a_named_server_is_read_and_nothing_is_left_there() {
    let Some(database) = logical("the_log_of_a_named_server_is_read_and_nothing_is_left_there") else {
        return;
    };
    let scene = Scene::new();
    // The user's tables have names of the workload's.
    database
        .connect()
        .execute(
            "create table accounts (id text); create table limits (v int); insert into limits values (1)",
        )
        .expect("tables");
    let before = database.inventory();
    scene.write("limits.sql", LIMITS);
    scene.write("pay.sql", PAY);
    scene.write("raise.sql", RAISE);
    let line = "compare -f pay.sql -f raise.sql --setup limits.sql --levels rr,ser --warmup 0 --rounds 1 --try 0 \
        --clients 4 --transactions 60 --json out.json --observe";
    for observe in ["snapshot", "wal"] {
        database.run(&scene, &words(&format!("{line} {observe}"))).expect(0).says(&[&format!(
            "note: --observe {observe}: while a cell is measured there is a temporary replication slot on the server"
        )]);
        assert_eq!((made(&database), database.inventory()), (String::new(), before.clone()));
        for cell in cells(&document::read(&scene, "out.json")) {
            assert_kept(cell);
            let verdict = &cell["summary"]["verdict"];
            if observe == "snapshot" {
                let dark = count(verdict, "/cleared/dark");
                assert_eq!((count(verdict, "/cleared/cleared"), dark > 0), (dark, true), "{verdict:#}");
                assert_eq!(verdict["unseen"], serde_json::json!([]), "{cell:#}");
            } else {
                assert_ne!(verdict["unseen"], serde_json::json!([]), "{cell:#}");
            }
        }
    }
}

/// A trigger writes to a table that no statement shows. By the log it is known who wrote it.
#[test]
fn what_triggers_write_on_a_named_server_is_in_its_log() {
    let Some(database) = logical("what_triggers_write_on_a_named_server_is_in_its_log") else { return };
    let scene = Scene::new();
    scene.write("doctors.sql", DOCTORS);
    scene.write("leave.sql", LEAVE);
    let line = "compare -f leave.sql --setup doctors.sql --levels rr,ser --warmup 0 --rounds 1 --try 0 --clients 4 \
        --transactions 60 --json out.json --observe snapshot";
    database.run(&scene, &words(line)).expect(0);
    let document = document::read(&scene, "out.json");
    for cell in cells(&document) {
        assert_kept(cell);
        let verdict = &cell["summary"]["verdict"];
        assert_eq!(verdict.pointer("/cleared/why_not"), None, "{verdict:#}");
        assert_eq!(count(verdict, "/cleared/dark"), count(verdict, "/committed"));
    }
}

/// While the slot is there, tables without a key are written as ever by others, and on every way out the
/// slot is gone.
#[test]
fn others_work_on_and_an_end_of_any_kind_removes_the_slot() {
    let Some(database) = logical("others_work_on_and_an_end_of_any_kind_removes_the_slot") else { return };
    let scene = Scene::new();
    let keyless = "create table keyless (v int, w text); insert into keyless values (1, 'a'), (2, 'b')";
    database.connect().execute(keyless).expect("a table");
    database.run(&scene, &words("init -s 1 -q")).expect(0);
    for (command, signal) in [
        ("run --isolation rr -n -c 2 -T 600 --observe snapshot", Signal::INT),
        ("run --isolation rr -n -c 2 -T 600 --observe wal", Signal::TERM),
        (
            "compare -w tpcb-like --levels rr --clients 2 --time 600 --warmup 0 --rounds 1 --try 0 --observe wal",
            Signal::INT,
        ),
        ("run --isolation rr -n -c 2 -T 600 --observe snapshot", Signal::KILL),
    ] {
        wait_for("the end of the sessions before", || (!works(&database)).then_some(()));
        let mut running = Running::start(&mut database.isobench(&scene, &words(command)));
        wait_for_the_slot(&database, &mut running);
        let mut other = database.connect();
        for sql in [
            "update keyless set v = v + 1",
            "delete from keyless where v > 100",
            "update keyless set w = null",
        ] {
            other.execute(sql).unwrap_or_else(|error| panic!("{command}: {sql}: {error}"));
        }
        running.signal(signal);
        if signal == Signal::KILL {
            drop(running);
            wait_for("the end of the slot", || made(&database).is_empty().then_some(()));
        } else {
            running.finish().expect(2);
            assert_eq!(made(&database), "", "{command}");
        }
    }
}

#[test]
fn a_named_server_that_cannot_be_read_is_refused_before_anything_is_made() {
    let test = "a_named_server_that_cannot_be_read_is_refused_before_anything_is_made";
    let commands =
        ["compare -w tpcb-like --levels rr --observe snapshot", "run --isolation rr --observe wal"];
    let scene = Scene::new();
    let refused = |database: &Database, user: &str, texts: &[&str]| {
        let before = database.inventory();
        for command in commands {
            let mut command = scene.isobench(&words(command));
            command.args(&database.server_options()[..4]).args(["-U", user, "-d", &database.name]);
            Running::start(&mut command).finish().expect(1).says(texts);
            assert_eq!((made(database), database.inventory()), (String::new(), before.clone()));
        }
    };
    let Some(replica) = Database::new(test) else { return };
    let texts =
        ["wal_level is replica, and has to be logical", "ALTER SYSTEM SET wal_level", "--observe rows"];
    refused(&replica, "postgres", &texts);
    let Some(logical) = logical(test) else { return };
    logical
        .connect()
        .execute("create role plain login; grant all on schema public to plain")
        .expect("a role");
    logical.connect().execute(&format!("grant all on database {} to plain", logical.name)).expect("a right");
    refused(&logical, "plain", &["attribute REPLICATION (ALTER ROLE … REPLICATION)"]);
    let Some(bouncer) = PgBouncer::start(test, &scene, &logical, "pool_mode = session") else { return };
    for command in commands {
        bouncer.run(&scene, &words(command)).expect(1).says(&["a pooler stands between"]);
    }
    assert_eq!(made(&logical), "");
}
