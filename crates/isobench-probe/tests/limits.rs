//! What ends a run that would not end by itself, and servers that go away.

mod support;

use std::cell::Cell;
use std::time::Duration;

use isobench_database::products::UNKNOWN;
use isobench_probe::{Options, RunError, Spec, Tester, output};

use crate::support::{Place, installed};

struct Ran {
    output: String,
    outcome: Result<(), RunError>,
}

fn run(place: &Place, limit: Duration, stopped: &dyn Fn() -> bool, text: &str) -> Ran {
    let spec = Spec::parse("limits.spec", text).expect("a specification");
    let tester = Tester {
        open: &|| place.open(),
        product: place.database.product,
        level: None,
        options: Options { step_timeout: limit, ..Options::default() },
        stopped,
    };
    let mut output = String::new();
    let outcome = tester.run(&spec, &mut |event| output.push_str(&output::text(&event)));
    Ran { output, outcome }
}

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_mins(1);

#[test]
fn a_step_that_never_returns_is_cancelled() {
    let Some(place) = installed("a_step_that_never_returns_is_cancelled") else { return };
    let text = "session a step sleep { SELECT pg_sleep(1000); } step after { SELECT 1; }";
    let ran = run(&place, SHORT, &|| false, text);
    ran.outcome.expect("it goes on");
    let expected = "isolationtester: canceling step sleep after 0.2 seconds\nstep sleep: SELECT pg_sleep(1000);\n\
                    ERROR:  canceling statement due to user request\nstep after: SELECT 1;";
    assert!(ran.output.contains(expected), "{}", ran.output);
}

#[test]
fn a_step_that_cant_be_cancelled_ends_the_run() {
    let Some(place) = installed("a_step_that_cant_be_cancelled_ends_the_run") else { return };
    let text = "session a step deaf { DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN \
                NULL; END; END LOOP; END $$; } session b step other { SELECT 1; } permutation deaf other";
    let ran = run(&place, SHORT, &|| false, text);
    let error = ran.outcome.expect_err("it gives up").to_string();
    assert_eq!(error, "step deaf timed out after 0.4 seconds\nactive steps are: deaf");
}

#[test]
fn a_run_that_is_stopped_ends() {
    let Some(place) = installed("a_run_that_is_stopped_ends") else { return };
    let asked = Cell::new(0);
    let stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let ran = run(&place, LONG, &stopped, "session a step sleep { SELECT pg_sleep(1000); }");
    assert!(matches!(ran.outcome, Err(RunError::Stopped)), "{:?}", ran.outcome);
}

/// The server stops at once, as its own program would be told to; what it says to its sessions before is its own affair.
#[test]
fn a_lost_server_is_told() {
    let Some(place) = installed("a_lost_server_is_told") else { return };
    let text = "session a step stop { COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -1 postmaster.pid)'; SELECT pg_sleep(60); }
                step next { SELECT 1; }";
    let error = run(&place, LONG, &|| false, text).outcome.expect_err("there is no server");
    assert!(error.is_lost(), "{error}");
}

#[test]
fn a_session_that_is_lost_is_told() {
    let Some(place) = installed("a_session_that_is_lost_is_told") else { return };
    let text =
        "session a step end { SELECT pg_terminate_backend(pg_backend_pid()); } step next { SELECT 1; }";
    let ran = run(&place, LONG, &|| false, text);
    let error = ran.outcome.expect_err("there is no session");
    assert!(error.is_lost(), "{error}");
    assert_eq!(error.to_string(), "failed to send query for step next: no connection to the server");
    assert!(
        ran.output.contains("FATAL:  terminating connection due to administrator command\n"),
        "{}",
        ran.output
    );
}

/// On a product without a view of who waits, the time tells.
#[test]
fn waiting_is_recognised_by_time() {
    let Some(place) = installed("waiting_is_recognised_by_time") else { return };
    let text = "setup { CREATE TABLE t (v int); INSERT INTO t VALUES (1); } teardown { DROP TABLE t; }
                session a setup { BEGIN; } step w1 { UPDATE t SET v = 2; } step c1 { COMMIT; }
                session b step w2 { UPDATE t SET v = 3; }
                permutation w1 w2 c1";
    let spec = Spec::parse("limits.spec", text).expect("a specification");
    let tester = Tester {
        open: &|| place.open(),
        product: &UNKNOWN,
        level: None,
        // Long enough for a busy machine to carry out the steps that don't wait.
        options: Options { step_timeout: LONG, waits_after: Duration::from_secs(2) },
        stopped: &|| false,
    };
    let mut output = String::new();
    tester.run(&spec, &mut |event| output.push_str(&output::text(&event))).expect("it runs");
    let expected = "step w1: UPDATE t SET v = 2;\nstep w2: UPDATE t SET v = 3; <waiting ...>\nstep c1: COMMIT;\n\
                    step w2: <... completed>\n";
    assert!(output.ends_with(expected), "{output}");
}
