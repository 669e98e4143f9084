//! A server that crashes during the run: every attempt that was started is accounted for, and the
//! message says what was lost.

use crate::compare::words;
use crate::support::document::{self, count, rounds};
use crate::support::embedded::{self, kill_backend, kill_server};
use crate::support::program::Running;
use crate::support::scene::Scene;

const COMPARE: &str = "compare -w tpcb-like --levels rr,rc --clients 4 --time 600 --warmup 0 --rounds 1 \
    --server-setting fsync=off --json out.json";
const RUN: &str = "run --isolation rc -c 4 -T 600 --server-setting fsync=off --json out.json";

/// The effect on a run whose server loses a process.
enum Loss {
    /// One client's process: the server restarts and can be queried afterwards.
    Backend,
    /// The main process: the server is gone.
    Server,
}

fn crash(test: &str, command: &str, loss: &Loss) {
    let Some(scene) = Scene::with_server(test) else { return };
    let running = Running::start(&mut scene.isobench(&words(command)));
    let mut connection = embedded::wait_for_work(&scene);
    match loss {
        Loss::Backend => kill_backend(&mut connection),
        Loss::Server => kill_server(&scene),
    }
    let finished = running.finish().expect(2);
    let told = format!("{}{}", finished.stdout, finished.stderr);
    assert!(told.contains("client ") && told.contains("connection"), "what was lost isn't told: {told}");
    assert!(!told.contains("lost (the connection"), "it is said twice: {told}");
    scene.assert_clean();
    let document = document::read(&scene, "out.json");
    assert_eq!(document["complete"], false);
    let round = rounds(&document).next().expect("a round");
    assert!(count(round, "/transactions/committed") > 10);
    let errors = round["errors"].as_array().expect("errors");
    assert!(!errors.is_empty(), "{round:#}");
    for invariant in round["invariants"].as_array().expect("invariants") {
        match loss {
            Loss::Backend => assert_eq!(invariant["held"], true, "{invariant:#}"),
            Loss::Server => {
                assert!(invariant["held"].is_null(), "{invariant:#}");
                let detail = invariant["detail"].as_str().expect("a text");
                assert!(detail.starts_with("could not be checked"), "{detail}");
            }
        }
    }
}

#[test]
fn compare_survives_a_killed_backend() {
    crash("compare_survives_a_killed_backend", COMPARE, &Loss::Backend);
}

#[test]
fn run_survives_a_killed_backend() {
    crash("run_survives_a_killed_backend", RUN, &Loss::Backend);
}

#[test]
fn compare_survives_a_killed_server() {
    crash("compare_survives_a_killed_server", COMPARE, &Loss::Server);
}

#[test]
fn run_survives_a_killed_server() {
    crash("run_survives_a_killed_server", RUN, &Loss::Server);
}
