//! The limits of runs that would not end otherwise, and lost servers.

use std::cell::Cell;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use isobench_database::products::UNKNOWN;
use isobench_pgwire::{ConnectOptions, Host};
use isobench_probe::{Event, Options, RunError, Spec, Tester, WaitDetection, output};

use crate::support::clock::{self, WAITING, advance_once, condition};
use crate::support::{TestServer, installed, opener};

/// The time limit of steps, on the simulated clock.
const LIMIT: Duration = Duration::from_mins(1);

/// True while a session is in `pg_sleep`.
const SLEEPING: &str = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

/// A little more than the limit.
const BEYOND: Duration = Duration::from_millis(60_001);

/// The real time after which a test that hangs is stopped, and so fails.
const PATIENCE: Duration = Duration::from_mins(5);

struct Finished {
    output: String,
    outcome: Result<(), RunError>,
}

fn options() -> Options {
    Options { step_timeout: LIMIT, now: clock::now, ..Options::default() }
}

/// Runs a specification; `stopped` and `watch` can advance the clock.
fn run(server: &TestServer, stopped: &dyn Fn() -> bool, watch: &dyn Fn(&Event), text: &str) -> Finished {
    let spec = Spec::parse("limits.spec", text).expect("a specification");
    let started = Instant::now();
    let tester = Tester {
        open: server.opener(),
        product: server.database.product,
        level: None,
        options: options(),
        wait_detection: WaitDetection::View,
        stopped: &|| stopped() || started.elapsed() > PATIENCE,
    };
    let mut output = String::new();
    let outcome = tester.run(&spec, &mut |event| {
        watch(&event);
        output.push_str(&output::text(&event));
    });
    Finished { output, outcome }
}

#[test]
fn a_step_that_never_returns_is_cancelled() {
    let Some(server) = installed("a_step_that_never_returns_is_cancelled") else { return };
    let text = "session a step sleep { SELECT pg_sleep(1000); } step after { SELECT 1; }";
    let expire = advance_once(condition(&server, SLEEPING), BEYOND);
    let stopped = || {
        expire();
        false
    };
    let ran = run(&server, &stopped, &|_| {}, text);
    ran.outcome.expect("it continues");
    let expected = "isolationtester: canceling step sleep after 60 seconds\nstep sleep: SELECT pg_sleep(1000);\n\
                    ERROR:  canceling statement due to user request\nstep after: SELECT 1;";
    assert!(ran.output.contains(expected), "{}", ran.output);
}

#[test]
fn a_step_that_cant_be_cancelled_ends_the_run() {
    let Some(server) = installed("a_step_that_cant_be_cancelled_ends_the_run") else { return };
    // Transactions don't undo the use of a sequence, so other sessions see it.
    server.open().expect("a connection").execute("CREATE SEQUENCE cancelled").expect("a sequence");
    let text = "session a step deaf { DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(1000); \
                EXCEPTION WHEN query_canceled THEN PERFORM nextval('cancelled'); END; END LOOP; END $$; } \
                session b step other { SELECT 1; } permutation deaf other";
    let expire = advance_once(condition(&server, SLEEPING), BEYOND);
    let expire_again = advance_once(condition(&server, "SELECT is_called FROM cancelled"), LIMIT);
    let stopped = || {
        expire();
        expire_again();
        false
    };
    let ran = run(&server, &stopped, &|_| {}, text);
    let error = ran.outcome.expect_err("it gives up").to_string();
    assert_eq!(error, "step deaf timed out after 120 seconds\nactive steps are: deaf");
}

#[test]
fn a_run_that_is_stopped_ends() {
    let Some(server) = installed("a_run_that_is_stopped_ends") else { return };
    let asked = Cell::new(0);
    let stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let ran = run(&server, &stopped, &|_| {}, "session a step sleep { SELECT pg_sleep(1000); }");
    assert!(matches!(ran.outcome, Err(RunError::Stopped)), "{:?}", ran.outcome);
}

/// Everything that may block can be stopped, for example a setup that waits for a lock that another
/// session holds.
#[test]
fn a_setup_that_waits_is_stopped() {
    let Some(server) = installed("a_setup_that_waits_is_stopped") else { return };
    let mut holder = server.open().expect("a connection");
    holder.execute("CREATE TABLE held (v int)").expect("a table");
    holder.execute("BEGIN; LOCK TABLE held").expect("a lock");
    let blocked = condition(&server, WAITING);
    for text in [
        "setup { DROP TABLE held; } session a step x { SELECT 1; }",
        "session a setup { DROP TABLE held; } step x { SELECT 1; }",
        "session a step x { DROP TABLE held; }",
        "session a step x { SELECT 1; } teardown { DROP TABLE held; }",
        "session a step x { SELECT 1; } teardown { DROP TABLE held; } session b step y { SELECT 1; }",
    ] {
        let ran = run(&server, &blocked, &|_| {}, text);
        assert!(matches!(ran.outcome, Err(RunError::Stopped)), "{text}: {:?}", ran.outcome);
        // The waiting statement has to end first, because the next run would be stopped too early.
        while blocked() {
            std::thread::yield_now();
        }
    }
}

/// A server that accepts connections but never replies.
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
        wait_detection: WaitDetection::View,
        stopped: &|| {
            asked.set(asked.get() + 1);
            asked.get() > 3
        },
    };
    let spec = Spec::parse("limits.spec", "session a step x { SELECT 1; }").expect("a specification");
    let outcome = tester.run(&spec, &mut |_| {});
    assert!(matches!(outcome, Err(RunError::Stopped)), "{outcome:?}");
}

/// Endless notices don't end the wait for a reply, and don't keep the tester from checking the time.
#[test]
fn endless_notices_end_with_the_limit() {
    let Some(server) = installed("endless_notices_end_with_the_limit") else { return };
    let text = "session a step loud { DO $$ BEGIN LOOP RAISE NOTICE 'x'; END LOOP; END $$; }";
    let notices = Cell::new(0);
    let count = |event: &Event| notices.set(notices.get() + u32::from(matches!(event, Event::Notice { .. })));
    let expire = advance_once(|| notices.get() > 1000, BEYOND);
    let stopped = || {
        expire();
        false
    };
    let ran = run(&server, &stopped, &count, text);
    ran.outcome.expect("it continues");
    assert!(ran.output.contains("isolationtester: canceling step loud after 60 seconds\n"));
    let asked = Cell::new(0);
    let stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 30
    };
    let ran = run(&server, &stopped, &|_| {}, text);
    assert!(matches!(ran.outcome, Err(RunError::Stopped)), "{:?}", ran.outcome);
}

#[test]
fn an_answer_beyond_all_bounds_ends_the_session() {
    let Some(server) = installed("an_answer_beyond_all_bounds_ends_the_session") else { return };
    let text = "session a step much { SELECT repeat('x', 1000000) FROM generate_series(1, 100); } \
                step next { SELECT 1; }";
    let ran = run(&server, &|| false, &|_| {}, text);
    let error = ran.outcome.expect_err("there is no session");
    assert!(error.is_lost(), "{error}");
    assert!(ran.output.contains("the server has answered with more than 67108864 bytes"));
}

/// The server shuts down immediately. Its messages to the sessions before that may vary.
#[test]
fn a_lost_server_is_told() {
    let Some(server) = installed("a_lost_server_is_told") else { return };
    let text = "session a step stop { COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -1 postmaster.pid)'; \
                SELECT pg_sleep(60); } step next { SELECT 1; }";
    let error = run(&server, &|| false, &|_| {}, text).outcome.expect_err("there is no server");
    assert!(error.is_lost(), "{error}");
}

#[test]
fn a_session_that_is_lost_is_told() {
    let Some(server) = installed("a_session_that_is_lost_is_told") else { return };
    let text =
        "session a step end { SELECT pg_terminate_backend(pg_backend_pid()); } step next { SELECT 1; }";
    let ran = run(&server, &|| false, &|_| {}, text);
    let error = ran.outcome.expect_err("there is no session");
    assert!(error.is_lost(), "{error}");
    assert_eq!(error.to_string(), "failed to send query for step next: no connection to the server");
    assert!(
        ran.output.contains("FATAL:  terminating connection due to administrator command\n"),
        "{}",
        ran.output
    );
}

/// On a product without a view of waiting sessions, waiting is detected by time.
#[test]
fn waiting_is_recognised_by_time() {
    let Some(server) = installed("waiting_is_recognised_by_time") else { return };
    let text = "setup { CREATE TABLE t (v int); INSERT INTO t VALUES (1); } teardown { DROP TABLE t; }
                session a setup { BEGIN; } step w1 { UPDATE t SET v = 2; } step c1 { COMMIT; }
                session b step w2 { UPDATE t SET v = 3; }
                permutation w1 w2 c1";
    let spec = Spec::parse("limits.spec", text).expect("a specification");
    let waits_after = Duration::from_secs(2);
    let expire = advance_once(condition(&server, WAITING), waits_after);
    let started = Instant::now();
    let tester = Tester {
        open: server.opener(),
        product: &UNKNOWN,
        level: None,
        options: Options { waits_after, ..options() },
        wait_detection: WaitDetection::View,
        stopped: &|| {
            expire();
            started.elapsed() > PATIENCE
        },
    };
    let mut output = String::new();
    tester.run(&spec, &mut |event| output.push_str(&output::text(&event))).expect("it runs");
    let expected = "step w1: UPDATE t SET v = 2;\nstep w2: UPDATE t SET v = 3; <waiting ...>\nstep c1: COMMIT;\n\
                    step w2: <... completed>\n";
    assert!(output.ends_with(expected), "{output}");
}
