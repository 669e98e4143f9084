//! Servers that go wrong, between real PostgreSQL and the program: each defect is found in a short
//! run of scripts that nobody annotated. Also, from the same place: what is sent at all.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use isobench_testkit::proxy::{self, Plan, Planner, Reply};
use serde_json::Value;

use crate::compare::words;
use crate::observed::{anomalies, assert_kept};
use crate::support::document::{self, cells};
use crate::support::named::Database;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;

/// Reads a row, writes it back, and reads two.
const SCRIPT: &str = "\\set id random(1, 4)
BEGIN;
SELECT v FROM ledger WHERE id = :id \\gset
UPDATE ledger SET v = :v + 1 WHERE id = :id;
SELECT id, v FROM ledger WHERE id BETWEEN 1 AND 2 ORDER BY id;
END;
";

const SETUP: &str = "DROP TABLE IF EXISTS ledger;
CREATE TABLE ledger (id int PRIMARY KEY, v int NOT NULL) WITH (fillfactor = 50);
INSERT INTO ledger SELECT i, 0 FROM generate_series(1, 4) i;
ANALYZE ledger;
";

/// One in so many queries goes wrong.
const RARELY: usize = 7;

/// A real server behind a proxy, and the program's files.
struct Planted {
    database: Database,
    scene: Scene,
    folder: PathBuf,
}

impl Planted {
    /// `None` after printing the reason if there is no server.
    fn new(
        test: &str,
        planner: impl Fn(usize, &str) -> Option<Plan> + Send + Sync + 'static,
    ) -> Option<Planted> {
        let database = Database::new(test)?;
        let scene = Scene::new();
        let folder = scene.folder().join("proxy");
        std::fs::create_dir(&folder).expect("a folder");
        let [_, host, _, port, ..] = database.server_options();
        let server = PathBuf::from(host).join(format!(".s.PGSQL.{port}"));
        let planner: Arc<Planner> = Arc::new(planner);
        proxy::serve(&folder.join(".s.PGSQL.5432"), &server, planner).expect("a socket");
        scene.write("own.sql", SCRIPT);
        scene.write("setup.sql", SETUP);
        Some(Planted { database, scene, folder })
    }

    /// Runs the program on the server behind the proxy.
    fn run(&self, line: &str) -> Finished {
        let folder = self.folder.to_string_lossy().into_owned();
        let [.., user_option, user] = self.database.server_options();
        let named = ["-h", &folder, "-p", "5432", &user_option, &user, "-d", &self.database.name];
        Running::start(&mut self.scene.isobench(&[&words(line)[..], &named].concat())).finish()
    }

    /// The verdict on a short run at serializable, and how the program ended.
    fn verdict(&self) -> (Finished, Value) {
        let line = "compare -f own.sql --setup setup.sql -M simple --levels ser --clients 4 --transactions 100 \
            --warmup 0 --rounds 1 --json out.json";
        let finished = self.run(line);
        let document = document::read(&self.scene, "out.json");
        (finished, cells(&document)[0]["rounds"][0]["verdict"].clone())
    }

    /// Fails unless the defect is found: the promise is broken, or the verdict withheld with a reason.
    fn is_found(&self) -> Value {
        let (finished, verdict) = self.verdict();
        let withheld = verdict["withheld"].as_array().expect("reasons");
        assert!(verdict["kept"] == false || !withheld.is_empty(), "not found: {verdict:#}");
        assert!(verdict["kept"] != true, "{verdict:#}");
        let status = finished.status.code();
        assert_eq!(status, Some(if verdict["kept"] == false { 3 } else { 1 }), "{}", finished.stderr);
        verdict
    }
}

/// True if the query is this statement of the script, on its table.
fn is(sql: &str, verb: &str) -> bool {
    sql.starts_with(verb) && sql.contains("ledger")
}

/// True for one in some queries, from a counter.
fn rarely(counter: &AtomicUsize) -> bool {
    counter.fetch_add(1, Ordering::Relaxed) % RARELY == RARELY - 1
}

/// Changes nothing that is sent, but the answer.
fn answer(change: impl FnOnce(Vec<Reply>) -> Vec<Reply> + Send + 'static) -> Plan {
    Plan { send: None, answer: Box::new(change) }
}

/// The values of the rows of an answer.
fn rows(answer: &[Reply]) -> Vec<Vec<Option<Vec<u8>>>> {
    answer.iter().map(Reply::values).filter(|values| !values.is_empty()).collect()
}

#[test]
fn a_proxy_that_changes_nothing_accuses_nobody() {
    let test = "a_proxy_that_changes_nothing_accuses_nobody";
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let planner = move |_, sql: &str| {
        let its = sql.contains("ledger") || sql.starts_with("BEGIN");
        if its {
            heard.lock().expect("no panic").push(sql.to_owned());
        }
        // Kept until it is complete, and passed on.
        its.then(|| answer(|answer| answer))
    };
    let Some(planted) = Planted::new(test, planner) else { return };
    let (_, verdict) = planted.verdict();
    assert_eq!(
        (&verdict["kept"], &verdict["anomalies"]),
        (&true.into(), &serde_json::json!([])),
        "{verdict:#}"
    );
    let sent = |text: &str| seen.lock().expect("no panic").iter().filter(|sql| sql.contains(text)).count();
    assert!(sent("xmin") >= 1200, "three statements of each transaction show rows: {}", sent("xmin"));
    // Sent as written: without a verdict, paced, and as pgbench does.
    for line in [
        "compare -f own.sql --setup setup.sql -M simple --levels ser --clients 2 --transactions 5 --warmup 0 \
         --rounds 1 --no-verdict",
        "compare -f own.sql --setup setup.sql -M simple --levels ser --clients 2 --transactions 5 --warmup 0 \
         --rounds 1 --rate 1000",
        "compare -f own.sql --setup setup.sql -M simple --levels ser --clients 2 --transactions 5 --warmup 0 \
         --rounds 1 --observe annotations",
    ] {
        seen.lock().expect("no panic").clear();
        planted.run(line).expect(0);
        assert_eq!((sent("xmin"), sent("UPDATE ledger SET v = ") >= 10), (0, true), "{line}");
        let mut own = seen.lock().expect("no panic").clone();
        own.retain(|sql| is(sql, "UPDATE"));
        assert!(own.iter().all(|sql| !sql.contains("RETURNING")), "{own:?}");
    }
}

/// Answers some reads with what the same session got before.
fn stale_reads() -> impl Fn(usize, &str) -> Option<Plan> + Send + Sync + 'static {
    let known: Mutex<HashMap<(usize, String), Vec<Reply>>> = Mutex::default();
    let (known, counter) = (Arc::new(known), Arc::new(AtomicUsize::new(0)));
    move |connection, sql: &str| {
        // Of the row that is read before it is written: no trigger explains that.
        if !is(sql, "SELECT") || sql.contains("BETWEEN") {
            return None;
        }
        let (known, counter) = (Arc::clone(&known), Arc::clone(&counter));
        let key = (connection, sql.to_owned());
        Some(answer(move |answer| {
            let before = known.lock().expect("no panic").insert(key, answer.clone());
            // What the same session got before, if that was something else.
            match before {
                Some(before) if rows(&before) != rows(&answer) && rarely(&counter) => before,
                _ => answer,
            }
        }))
    }
}

#[test]
fn stale_reads_are_found() {
    let Some(planted) = Planted::new("stale_reads_are_found", stale_reads()) else { return };
    let verdict = planted.is_found();
    assert_eq!(verdict["kept"], false, "stale versions are known ones: {verdict:#}");
}

#[test]
fn the_first_broken_promise_ends_what_would_take_an_hour() {
    let test = "the_first_broken_promise_ends_what_would_take_an_hour";
    let Some(planted) = Planted::new(test, stale_reads()) else { return };
    let line = "compare -f own.sql --setup setup.sql -M simple --levels ser,rr --clients 4 --time 600 --warmup 0 \
        --rounds 3 --stop-on-broken --json out.json";
    let finished = planted
        .run(line)
        .expect(3)
        .prints(&["BROKEN"])
        .says(&["note: --stop-on-broken ended the comparison in round 1, at ", " contradicts "]);
    let document = document::read(&planted.scene, "out.json");
    assert_eq!((&document["complete"], &document["incomplete_reason"]), (&true.into(), &Value::Null));
    let rounds: Vec<&Value> =
        cells(&document).iter().flat_map(|cell| cell["rounds"].as_array().expect("rounds")).collect();
    assert_eq!(rounds.len(), 1, "nothing more is measured: {}", finished.stderr);
    assert_eq!(rounds[0]["verdict"]["kept"], false);
    planted.database.connect().execute(SETUP).expect("a table");
    let line = "run -f own.sql -n -M simple --isolation ser -c 4 -T 600 --observe rows --stop-on-broken";
    planted.run(line).expect(3).prints(&["PROMISE BROKEN"]).says(&["note: --stop-on-broken ended the run: "]);
}

#[test]
fn writes_that_are_not_made_are_found() {
    let counter = AtomicUsize::new(0);
    let planner = move |_, sql: &str| {
        let planted = is(sql, "UPDATE") && rarely(&counter);
        planted.then(|| Plan {
            send: Some(format!("SAVEPOINT planted; {}; ROLLBACK TO planted", sql.trim_end_matches(';'))),
            answer: Box::new(|mut answer| {
                answer.retain(|reply| !reply.completes("SAVEPOINT") && !reply.completes("ROLLBACK"));
                answer
            }),
        })
    };
    let Some(planted) = Planted::new("writes_that_are_not_made_are_found", planner) else { return };
    planted.is_found();
}

#[test]
fn versions_that_are_swapped_are_found() {
    let counter = Arc::new(AtomicUsize::new(0));
    let planner = move |_, sql: &str| {
        if !(is(sql, "SELECT") && sql.contains("BETWEEN")) {
            return None;
        }
        let counter = Arc::clone(&counter);
        Some(answer(move |mut answer| {
            let [one, other] = &rows(&answer)[..] else { return answer };
            if one[1..] == other[1..] || !rarely(&counter) {
                return answer;
            }
            // All but the author's column of the key, and the appended one.
            let (mut first, mut second) = (other.clone(), one.clone());
            for place in [0, 2] {
                std::mem::swap(&mut first[place], &mut second[place]);
            }
            let mut swapped = [first, second].into_iter();
            for reply in answer.iter_mut().filter(|reply| !reply.values().is_empty()) {
                *reply = Reply::row(&swapped.next().expect("two rows"));
            }
            answer
        }))
    };
    let Some(planted) = Planted::new("versions_that_are_swapped_are_found", planner) else { return };
    planted.is_found();
}

#[test]
fn commits_that_are_lost_are_found() {
    let counter = AtomicUsize::new(0);
    let planner = move |_, sql: &str| {
        let planted = sql.starts_with("END") && rarely(&counter);
        planted.then(|| Plan {
            send: Some("ROLLBACK".to_owned()),
            answer: Box::new(|answer| {
                let commit = |reply: Reply| {
                    if reply.completes("ROLLBACK") { Reply::complete("COMMIT") } else { reply }
                };
                answer.into_iter().map(commit).collect()
            }),
        })
    };
    let Some(planted) = Planted::new("commits_that_are_lost_are_found", planner) else { return };
    let verdict = planted.is_found();
    assert_eq!(verdict["kept"], false, "committed updates are lost: {verdict:#}");
}

/// Each takes a number, reads one row of the pair with this number, and writes the other.
const SHORT: &str = "SELECT nextval('queue') AS p \\gset
\\set one :p * 2
\\set other :p * 2 + 1
BEGIN;
SELECT v FROM item WHERE id = :other;
UPDATE item SET v = 1 WHERE id = :one;
END;
";

/// The same the other way round, with a number that is soon to be taken; it writes when a thousand
/// others have committed.
const LONG: &str = "SELECT last_value + 30 AS p FROM queue \\gset
\\set one :p * 2
\\set other :p * 2 + 1
BEGIN;
SELECT v FROM item WHERE id = :one;
SELECT waits_for(:p + 1000);
UPDATE item SET v = 1 WHERE id = :other;
END;
";

const PAIRS: &str = "DROP TABLE IF EXISTS item;
DROP SEQUENCE IF EXISTS queue;
CREATE TABLE item (id int PRIMARY KEY, v int NOT NULL) WITH (fillfactor = 40);
INSERT INTO item SELECT i, 0 FROM generate_series(1, 200000) i;
CREATE SEQUENCE queue;
CREATE OR REPLACE FUNCTION waits_for(number bigint) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    FOR i IN 1..200 LOOP
        EXIT WHEN (SELECT last_value FROM queue) >= number;
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$$;
VACUUM ANALYZE item;
";

/// How often the run is repeated until the server has summarised a transaction that matters.
const TRIALS: usize = 5;

#[test]
fn summarised_conflicts_are_found() {
    let Some(scene) = Scene::with_server("summarised_conflicts_are_found") else { return };
    for (name, text) in [("short.sql", SHORT), ("long.sql", LONG), ("setup.sql", PAIRS)] {
        scene.write(name, text);
    }
    let line = "compare -f short.sql@1000 -f long.sql --setup setup.sql --levels ser --clients 6 --time 3 --warmup 0 \
        --rounds 1 --server-setting fsync=off --server-setting max_connections=20 --server-setting \
        max_pred_locks_per_transaction=2000 --json out.json";
    for _ in 0..TRIALS {
        let finished = scene.run(&words(line));
        let document = document::read(&scene, "out.json");
        let cell = &cells(&document)[0];
        let found = anomalies(cell);
        if found.is_empty() {
            assert_kept(cell);
            continue;
        }
        assert_eq!(found, ["G2-item"], "{cell:#}");
        finished.expect(3).prints(&["BROKEN"]);
        let anomaly = &cell["rounds"][0]["verdict"]["anomalies"][0];
        let statements = anomaly["statements"].to_string();
        assert!(statements.contains("long.sql:5") && statements.contains("short.sql:6"), "{anomaly:#}");
        return;
    }
    panic!("write skew wasn't permitted after summarisation, in {TRIALS} runs");
}
