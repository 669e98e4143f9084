//! Diagnoses on a real server: false conflicts at serializable in the example of the manual's page on own
//! workloads, as it is and with the few rows that the page warns of; predicate locks that run out; retries
//! that meet again.
//!
//! Not here: the rules of the diagnosis, one by one (crate `isobench-report`).

use crate::compare::words;
use crate::support::document;
use crate::support::named::Database;
use crate::support::scene::Scene;

/// The page's first blocks of SQL: the script and its tables.
fn example() -> [String; 2] {
    let page = include_str!("../../../../docs/guide/own-workloads.md");
    let mut blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    [blocks.next(), blocks.next()].map(|block| block.expect("the page has both").0.to_owned())
}

/// How often a run is repeated until it has been looked at.
const TRIALS: usize = 5;

/// Compares the levels and returns the text and the document.
fn compared(scene: &Scene, [script, tables]: [&str; 2]) -> (String, serde_json::Value) {
    scene.write("transfer.sql", script);
    scene.write("tables.sql", tables);
    let line = "compare --workload transfer.sql --setup tables.sql --levels rr,ser -c 8 --rounds 1 --time 1 --slice 0 \
        --warmup 0.1 --json out.json";
    let text = scene.run(&words(line)).expect(0).stdout;
    // However wide the terminal is.
    (text.split_whitespace().collect::<Vec<_>>().join(" "), document::read(scene, "out.json"))
}

#[test]
fn a_small_table_that_is_scanned_is_diagnosed() {
    let Some(scene) = Scene::with_database("a_small_table_that_is_scanned_is_diagnosed") else { return };
    let [script, tables] = example();
    let few = [script.replace("1000", "100").replace("999", "99"), tables.replace("1000", "100")];
    assert!(few[0].contains("random(1, 99)") && few[1].contains("generate_series(1, 100)"), "{few:?}");
    // On a busy machine no look at the locks may fall into a short run, or the table be scanned only later.
    let seen = |(text, document): &(String, serde_json::Value)| {
        let first = document.pointer("/cells/1/rounds/0/server/predicate_locks/relations/0/name");
        text.contains("may be false") && first.is_some_and(|name| name == "account")
    };
    let trials = || (0..TRIALS).map(|_| compared(&scene, [&few[0], &few[1]]));
    let (text, document) = trials().find(seen).expect("a diagnosis in one of the trials");
    assert!(
        text.contains("may be false: table account (100 rows) is scanned as a whole by transfer.sql:"),
        "{text}"
    );
    assert!(text.contains("Most conflicts at serializable ("), "{text}");
    let server = &document::cells(&document)[1]["rounds"][0]["server"];
    let locked = &server["predicate_locks"]["relations"][0];
    assert_eq!((locked["name"].as_str(), locked["rows"].as_u64()), (Some("account"), Some(100)), "{locked}");
    assert!(document::count(locked, "/relation/most") > 0, "{locked}");
    let table = &server["tables"][0];
    assert!(document::count(table, "/seq_scans") > document::count(table, "/index_scans"), "{table}");
}

#[test]
fn the_manuals_own_example_isnt_scanned() {
    let Some(scene) = Scene::with_database("the_manuals_own_example_isnt_scanned") else { return };
    let [script, tables] = example();
    let (text, document) = compared(&scene, [&script, &tables]);
    assert!(!text.contains("is scanned as a whole"), "{text}");
    for cell in document::cells(&document) {
        let table = &cell["rounds"][0]["server"]["tables"][0];
        assert_eq!(
            (table["table"].as_str(), table["seq_scans"].as_u64()),
            (Some("account"), Some(0)),
            "{table}"
        );
        assert!(document::count(table, "/index_scans") > 0, "{table}");
    }
}

/// A script of which each transaction locks some 150 rows.
const MANY_LOCKS: &str = "\\set a random(1, 9800)\nBEGIN;\nSELECT sum(v) FROM t WHERE id BETWEEN :a AND :a + 150;\n\
    UPDATE t SET v = v + 1 WHERE id = :a;\nCOMMIT;\n";

/// Settings with which the server has room for locks on 10 × (20 + 22) rows, pages and tables, and doesn't
/// promote them.
const LITTLE_ROOM: &str = "--server-setting max_pred_locks_per_transaction=10 --server-setting max_connections=20 \
    --server-setting max_pred_locks_per_page=1000 --server-setting max_pred_locks_per_relation=100000 \
    --server-setting enable_seqscan=off --server-setting enable_bitmapscan=off --server-setting \
    max_worker_processes=8 --server-setting max_wal_senders=10";

fn many_rows(scene: &Scene) {
    scene.write("lock.sql", MANY_LOCKS);
    scene.write(
        "tables.sql",
        "CREATE TABLE t (id int PRIMARY KEY, v int);\nINSERT INTO t SELECT i, 0 FROM generate_series(1, 10000) i;\n",
    );
}

#[test]
fn predicate_locks_that_run_out_are_diagnosed() {
    let Some(scene) = Scene::with_server("predicate_locks_that_run_out_are_diagnosed") else { return };
    many_rows(&scene);
    let line = format!(
        "compare -f lock.sql --setup tables.sql --levels ser -c 8 --rounds 1 --time 1 --warmup 0 --try 0s \
         --continue-on-error --json out.json {LITTLE_ROOM}"
    );
    let text = scene.run(&words(&line)).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("The server ran out of predicate locks at serializable (SQLSTATE 53200, at lock.sql:"),
        "{text}"
    );
    let room = document::read(&scene, "out.json");
    let version = room["server"]["version"].as_str().expect("a version");
    let major: u32 = version.split('.').next().and_then(|it| it.parse().ok()).expect("a number");
    let processes = if major < 18 { 42 } else { 20 + 16 + 2 + 8 + 10 };
    let counted = format!("(max_pred_locks_per_transaction 10 × {processes} sessions and processes)");
    assert!(
        text.contains(&counted) && text.contains("--server-setting max_pred_locks_per_transaction=64"),
        "{text}"
    );
    // The server has room for twice as many locks as there are rows to be locked, and takes no more.
    let locks = &document::cells(&room)[0]["rounds"][0]["server"]["predicate_locks"];
    let most = locks["tuple"].as_array().expect("samples").iter().filter_map(serde_json::Value::as_u64).max();
    assert!(most.is_some_and(|most| most > 150 && most <= 2 * 10 * processes * 11 / 10), "{locks}");
}

#[test]
fn a_run_that_ends_for_lack_of_predicate_locks_names_the_setting() {
    let Some(scene) = Scene::with_server("a_run_that_ends_for_lack_of_predicate_locks_names_the_setting")
    else {
        return;
    };
    let own = MANY_LOCKS.replace(" t ", " pgbench_accounts ").replace("id", "aid");
    scene.write("lock.sql", &own.replace("sum(v)", "sum(abalance)").replace("v = v", "abalance = abalance"));
    let line = format!("run -f lock.sql --isolation ser -c 8 -T 5 --no-verdict {LITTLE_ROOM}");
    let finished = scene.run(&words(&line)).expect(2);
    assert!(finished.stderr.contains("the server ran out of predicate locks"), "{}", finished.stderr);
    let text = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("The server ran out of predicate locks at serializable (SQLSTATE 53200, at lock.sql:"),
        "{text}"
    );
    assert!(text.contains("Raise max_pred_locks_per_transaction"), "{text}");
}

/// `run` says what `compare` says of the same tables; without the server's statistics it can't.
#[test]
fn a_run_diagnoses_a_small_table_that_is_scanned() {
    let Some(database) = Database::new("a_run_diagnoses_a_small_table_that_is_scanned") else { return };
    let scene = Scene::new();
    let [script, tables] = example();
    scene.write("transfer.sql", &script.replace("1000", "100").replace("999", "99"));
    database.connect().execute(&tables.replace("1000", "100")).expect("tables");
    let run = |option: &str| {
        let line =
            format!("run -n -f transfer.sql --isolation ser -c 8 -t 100 --max-tries 0 -L 10000 {option}");
        let text = database.run(&scene, &words(&line)).expect(0).stdout;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // On a busy machine no look at the locks may fall into a short run.
    let said = |text: &String| {
        text.contains("may be false: table account (100 rows) is scanned as a whole")
            && text.contains("Most conflicts at serializable (")
    };
    (0..TRIALS).map(|_| run("")).find(said).expect("a diagnosis in one of the trials");
    assert!(!run("--no-server-side").contains("is scanned as a whole"));
}

#[test]
fn retries_that_meet_again_are_diagnosed() {
    let Some(scene) = Scene::with_database("retries_that_meet_again_are_diagnosed") else { return };
    scene.write("hot.sql", "BEGIN;\nSELECT v FROM hot;\nUPDATE hot SET v = v + 1;\nCOMMIT;\n");
    scene.write("tables.sql", "CREATE TABLE hot (v int);\nINSERT INTO hot VALUES (0);\n");
    let line = "compare -f hot.sql --setup tables.sql --levels rr -c 1,24 --rounds 1 --time 1 --warmup 0.1 --slice 0 \
        --try 0s --observe annotations";
    let run = |_| {
        let text = scene.run(&words(line)).expect(0).stdout;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // On a busy machine one client may be as slow as many.
    let said = |text: &String| {
        text.contains("Retries at repeatable read, 24 clients start at once (--backoff none)")
    };
    let text = (0..TRIALS).map(run).find(said).expect("a diagnosis in one of the trials");
    assert!(text.contains("Compare with a delay: --backoff none,exponential."), "{text}");
}
