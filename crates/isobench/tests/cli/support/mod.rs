//! Support for the tests of the command line: folders, the running program, servers, and checks of
//! a result.

pub mod document;
pub mod embedded;
pub mod named;
pub mod pgbench;
pub mod pgbouncer;
pub mod place;
pub mod program;
pub mod retrying;
pub mod scene;
pub mod terminal;

use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_pgserver::{Server, ServerError, ServerOptions};
pub use isobench_testkit::installed::skip;

/// Time limit of any step: only a program that hangs reaches it.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// Returns whether a PostgreSQL is available, installed or fetched; if not, prints why the test is
/// skipped.
pub fn has_postgresql(test: &str) -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| match Server::start(&ServerOptions::default(), &mut |_| {}) {
        Err(ServerError::Fetch { message, .. }) => Some(message),
        // Any other error is a failure, which each test reports itself.
        Ok(_) | Err(_) => None,
    });
    if let Some(why) = missing {
        skip(test, &format!("no PostgreSQL is installed, and none can be fetched: {why}"));
    }
    missing.is_none()
}

/// Repeats a query until there is an answer.
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
