//! What the tests of the command line share: folders, the running program, servers, and what is
//! asked of a result.

pub mod document;
pub mod embedded;
pub mod named;
pub mod pgbench;
pub mod pgbouncer;
pub mod program;
pub mod scene;
pub mod terminal;

use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_pgserver::{Server, ServerError, ServerOptions};
pub use isobench_testkit::installed::skip;

/// How long anything may take before a test fails: only a program that hangs gets there.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// Whether there is a PostgreSQL to run here, installed or fetched; says why the test is skipped if
/// not.
pub fn has_postgresql(test: &str) -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| match Server::start(&ServerOptions::default(), &mut |_| {}) {
        Err(ServerError::Fetch { message, .. }) => Some(message),
        // Any other error is a failure, which each test shows in its own way.
        Ok(_) | Err(_) => None,
    });
    if let Some(why) = missing {
        skip(test, &format!("no PostgreSQL is installed, and none can be fetched: {why}"));
    }
    missing.is_none()
}

/// Asks again and again until there is an answer.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        sleep(Duration::from_millis(20));
    }
}
