//! What ends a run that would not end by itself, and servers that go away.

mod support;

use std::cell::Cell;
use std::net::TcpListener;
use std::time::Duration;

use isobench_database::products::UNKNOWN;
use isobench_pgwire::{ConnectOptions, Host};
use isobench_probe::{Options, RunError, Spec, Tester, WhoWaits, output};

use crate::support::{Place, installed, opener};

struct Ran {
    output: String,
    outcome: Result<(), RunError>,
}

fn run(place: &Place, limit: Duration, stopped: &dyn Fn() -> bool, text: &str) -> Ran {
    let spec = Spec::parse("limits.spec", text).expect("a specification");
    let tester = Tester {
        open: place.opener(),
        product: place.database.product,
        level: None,
        options: Options { step_timeout: limit, ..Options::default() },
        who_waits: WhoWaits::View,
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

/// Everything that may block can be stopped: here a setup that waits for a lock, which somebody
/// else never gives back.
#[test]
fn a_setup_that_waits_is_stopped() {
    let Some(place) = installed("a_setup_that_waits_is_stopped") else { return };
    let mut holder = place.open().expect("a connection");
    holder.execute("CREATE TABLE held (v int)").expect("a table");
    holder.execute("BEGIN; LOCK TABLE held").expect("a lock");
    let mut watcher = place.open().expect("a connection");
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    let watcher = std::cell::RefCell::new(&mut watcher);
    let blocked = || watcher.borrow_mut().value(waiting).expect("an answer") != Some("0".to_owned());
    for text in [
        "setup { DROP TABLE held; } session a step x { SELECT 1; }",
        "session a setup { DROP TABLE held; } step x { SELECT 1; }",
        "session a step x { DROP TABLE held; }",
        "session a step x { SELECT 1; } teardown { DROP TABLE held; }",
        "session a step x { SELECT 1; } teardown { DROP TABLE held; } session b step y { SELECT 1; }",
    ] {
        let ran = run(&place, LONG, &blocked, text);
        assert!(matches!(ran.outcome, Err(RunError::Stopped)), "{text}: {:?}", ran.outcome);
        // What it waited with is cancelled, or the next one would be stopped before it waits.
        while blocked() {
            std::thread::yield_now();
        }
    }
}

/// A server that takes the connection and says nothing.
#[test]
fn a_session_that_doesnt_open_is_stopped() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("its number").port();
    let asked = Cell::new(0);
    let tester = Tester {
        open: opener(ConnectOptions::new(Host::tcp("127.0.0.1", port), "me", "db")),
        product: &UNKNOWN,
        level: None,
        options: Options::default(),
        who_waits: WhoWaits::View,
        stopped: &|| {
            asked.set(asked.get() + 1);
            asked.get() > 3
        },
    };
    let spec = Spec::parse("limits.spec", "session a step x { SELECT 1; }").expect("a specification");
    let outcome = tester.run(&spec, &mut |_| {});
    assert!(matches!(outcome, Err(RunError::Stopped)), "{outcome:?}");
}

/// Notices that never end are no answer; looking at the clock isn't put off by them.
#[test]
fn endless_notices_end_with_the_limit() {
    let Some(place) = installed("endless_notices_end_with_the_limit") else { return };
    let text = "session a step loud { DO $$ BEGIN LOOP RAISE NOTICE 'x'; END LOOP; END $$; }";
    let ran = run(&place, SHORT, &|| false, text);
    ran.outcome.expect("it goes on");
    assert!(ran.output.contains("isolationtester: canceling step loud after 0.2 seconds\n"));
    let asked = Cell::new(0);
    let stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 30
    };
    let ran = run(&place, LONG, &stopped, text);
    assert!(matches!(ran.outcome, Err(RunError::Stopped)), "{:?}", ran.outcome);
}

#[test]
fn an_answer_beyond_all_bounds_ends_the_session() {
    let Some(place) = installed("an_answer_beyond_all_bounds_ends_the_session") else { return };
    let text = "session a step much { SELECT repeat('x', 1000000) FROM generate_series(1, 100); } step next { SELECT 1; }";
    let ran = run(&place, LONG, &|| false, text);
    let error = ran.outcome.expect_err("there is no session");
    assert!(error.is_lost(), "{error}");
    assert!(ran.output.contains("the server has answered with more than 67108864 bytes"));
}

/// The server stops at once, as its own program would be told to; what it says to its sessions
/// before is its own affair.
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
        open: place.opener(),
        product: &UNKNOWN,
        level: None,
        // Long enough for a busy machine to carry out the steps that don't wait.
        options: Options { step_timeout: LONG, waits_after: Duration::from_secs(2) },
        who_waits: WhoWaits::View,
        stopped: &|| false,
    };
    let mut output = String::new();
    tester.run(&spec, &mut |event| output.push_str(&output::text(&event))).expect("it runs");
    let expected = "step w1: UPDATE t SET v = 2;\nstep w2: UPDATE t SET v = 3; <waiting ...>\nstep c1: COMMIT;\n\
                    step w2: <... completed>\n";
    assert!(output.ends_with(expected), "{output}");
}
