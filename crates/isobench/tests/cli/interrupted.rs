//! Ctrl-C and SIGTERM: the run ends in order, reports its partial results, and leaves nothing
//! behind.

use rustix::process::Signal;

use crate::compare::words;
use crate::support::document::{self, count, rounds};
use crate::support::named::Database;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::{embedded, wait_for};

const COMPARE: &str =
    "compare -w tpcb-like --levels rc,rr --clients 4 --time 600 --warmup 0 --rounds 1 --json out.json";
const RUN: &str = "run --isolation rr --max-tries 0 -c 4 -T 600 --json out.json";

/// Starts, waits for committed transactions, sends the signal, and returns the output.
fn interrupt(test: &str, command: &str, signal: Signal) -> Option<Finished> {
    let scene = Scene::with_server(test)?;
    let running = Running::start(&mut scene.isobench(&words(command)));
    drop(embedded::wait_for_work(&scene));
    running.signal(signal);
    let finished = running.finish().expect(2).says(&["stopping; once more to stop at once"]);
    scene.assert_clean();
    check_document(&scene);
    Some(finished)
}

/// The result is there, says that it is incomplete, and its books balance.
fn check_document(scene: &Scene) {
    let document = document::read(scene, "out.json");
    assert_eq!(document["complete"], false);
    let rounds: Vec<_> = rounds(&document).collect();
    // Of cells that take turns all have started but the last ones.
    assert!((1..=2).contains(&rounds.len()));
    assert!(rounds.iter().all(|round| round["complete"] == false));
    assert!(rounds.iter().any(|round| count(round, "/transactions/committed") > 10));
    for invariant in rounds.iter().flat_map(|round| round["invariants"].as_array().expect("invariants")) {
        assert_eq!(invariant["held"], true, "the server is well, so it can be asked: {invariant:#}");
    }
}

#[test]
fn compare_by_ctrl_c() {
    let Some(finished) = interrupt("compare_by_ctrl_c", COMPARE, Signal::INT) else { return };
    finished
        .prints(&["INCOMPLETE", "  read committed "])
        .says(&["the comparison is incomplete: interrupted"]);
}

/// Interleavings would have been tried after the first round.
#[test]
fn compare_before_anything_is_tried() {
    let test = "compare_before_anything_is_tried";
    let command = COMPARE.replace("--levels rc,rr", "--levels rc").replace("--time 600", "--time 50");
    let Some(scene) = Scene::with_server(test) else { return };
    let running = Running::start(&mut scene.isobench(&words(&command)));
    drop(embedded::wait_for_work(&scene));
    running.signal(Signal::INT);
    running.finish().expect(2).says(&["the comparison is incomplete: interrupted"]);
    scene.assert_clean();
    check_document(&scene);
    let tried = &document::read(&scene, "out.json")["cells"][0]["tried"];
    assert_eq!(tried["not_tried"][0]["reason"], "the comparison ended before");
}

#[test]
fn run_by_ctrl_c() {
    let Some(finished) = interrupt("run_by_ctrl_c", RUN, Signal::INT) else { return };
    let finished =
        finished.prints(&["number of transactions actually processed: ", "invariant history rows"]);
    finished.says(&["Run was interrupted; the above results are incomplete."]);
}

#[test]
fn run_by_sigterm() {
    let Some(finished) = interrupt("run_by_sigterm", RUN, Signal::TERM) else { return };
    finished.says(&["Run was interrupted; the above results are incomplete."]);
}

/// A statement that takes forever: the second signal doesn't wait for it.
#[test]
fn twice_ctrl_c_waits_for_nothing() {
    let Some(scene) = Scene::with_server("twice_ctrl_c_waits_for_nothing") else { return };
    scene.write("sleep.sql", "select pg_sleep(3600);\n");
    let options = "run -f sleep.sql -c 2 -T 3600 --json out.json";
    let running = Running::start(&mut scene.isobench(&words(options)));
    let mut connection = embedded::connect(&scene);
    let sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    wait_for("two sleeping clients", || (connection.value(sleeping).ok()?? == "2").then_some(()));
    drop(connection);
    running.signal(Signal::INT);
    running.wait_for_stderr("once more to stop at once");
    running.signal(Signal::INT);
    running.finish().expect(2);
    scene.assert_clean();
    let document = document::read(&scene, "out.json");
    let round = rounds(&document).next().expect("a round");
    assert_eq!(count(round, "/transactions/committed"), 0);
    assert_eq!(count(round, "/attempts/started"), 2);
}

/// While the tables are being created there is nothing to report yet.
#[test]
fn before_anything_is_measured() {
    let Some(scene) = Scene::with_server("before_anything_is_measured") else { return };
    for command in ["compare -w tpcb-like --scale 20 --json out.json", "run -s 20 -T 600 --json out.json"] {
        let running = Running::start(&mut scene.isobench(&words(command)));
        running.wait_for_stderr("no server is named");
        running.signal(Signal::INT);
        running.finish().expect(2);
        scene.assert_clean();
    }
}

/// On a named server, the schema is removed all the same.
#[test]
fn a_schema_is_removed() {
    let Some(database) = Database::new("a_schema_is_removed") else { return };
    let scene = Scene::new();
    let before = database.inventory();
    for signal in [Signal::INT, Signal::TERM] {
        let running = Running::start(&mut database.isobench(&scene, &words(COMPARE)));
        embedded::wait_for_rows(&mut database.connect(), "isobench_1.pgbench_history");
        running.signal(signal);
        running.finish().expect(2);
        check_document(&scene);
        assert_eq!(database.inventory(), before);
    }
}
