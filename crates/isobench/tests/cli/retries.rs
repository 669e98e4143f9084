//! Two failures of published experiments that isobench must not repeat: clients that die of
//! conflicts, and failed transactions counted as throughput.

use crate::compare::words;
use crate::support::document::{self, assert_invariants_held, count, number, rounds};
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::wait_for;

/// pgbench 12 lost three of four clients at once here, and continued with one.
#[test]
fn all_clients_work_to_the_end_at_repeatable_read() {
    all_clients_work_to_the_end("all_clients_work_to_the_end_at_repeatable_read", "rr");
}

#[test]
fn all_clients_work_to_the_end_at_serializable() {
    all_clients_work_to_the_end("all_clients_work_to_the_end_at_serializable", "ser");
}

fn all_clients_work_to_the_end(test: &str, level: &str) {
    let Some(scene) = Scene::with_server(test) else { return };
    let options = format!(
        "run --isolation {level} -s 4 -c 4 -t 60 --max-tries 100000 --random-seed 1 --server-setting fsync=off \
         --json out.json"
    );
    let finished = scene.run(&words(&options)).expect(0);
    scene.assert_clean();
    let finished = finished.prints(&[
        "number of transactions actually processed: 240/240\n",
        "number of failed transactions: 0 (0.000%)\n",
        "scaling factor: 4\n",
    ]);
    let document = document::read(&scene, "out.json");
    assert_invariants_held(&document);
    let round = rounds(&document).next().expect("a round");
    assert_eq!(count(round, "/transactions/committed"), 240);
    assert_eq!(count(round, "/attempts/errored") + count(round, "/attempts/cut_off"), 0);
    assert!(count(round, "/attempts/retried") > 0, "there were no conflicts to survive: {}", finished.stdout);
}

/// What waits for a lock in this database.
const WAITING: &str =
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

/// Each client's first attempt waits for a row that another session has changed, and fails when that
/// commits. The server's own count of committed transactions is the one that is reported.
#[test]
fn a_collision_is_shown_as_one() {
    let test = "a_collision_is_shown_as_one";
    let Some(database) = Database::new(test) else { return };
    let scene = Scene::new();
    database.run(&scene, &["init", "-q"]).expect(0);
    let mut other = database.connect();
    other.execute("begin; update pgbench_branches set bbalance = bbalance").expect("a lock");
    let options = "run -n -b tpcb-like --isolation rr -c 16 -t 1 --max-tries 100000 --json out.json";
    let running = Running::start(&mut database.isobench(&scene, &words(options)));
    wait_for("16 clients that wait", || (database.value(WAITING) == "16").then_some(()));
    other.execute("commit").expect("a commit");
    running.finish().expect(0);
    let document = document::read(&scene, "out.json");
    assert_invariants_held(&document);
    let round = rounds(&document).next().expect("a round");
    let committed = count(round, "/transactions/committed");
    let (retried, started) = (count(round, "/attempts/retried"), count(round, "/attempts/started"));
    assert!(committed == 16 && retried >= 16 && started == committed + retried, "{}", round["attempts"]);
    let ratio = number(&document, "/cells/0/summary/conflict_ratio");
    assert!((ratio - retried as f64 / started as f64).abs() < 1e-9, "{ratio}: {}", round["attempts"]);
    let rows = database.value("select count(*) from pgbench_history");
    assert_eq!(rows, committed.to_string(), "committed against rows of history");
    let tps = committed as f64 / number(round, "/seconds");
    assert!((number(round, "/tps") - tps).abs() < 1e-6 * tps, "throughput is that of what was committed");
}
