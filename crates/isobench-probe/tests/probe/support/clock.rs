//! A simulated clock, which only moves when a test advances it, and conditions for that.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::TestServer;

/// True while a session waits for a lock.
pub const WAITING: &str = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted";

thread_local! {
    static ELAPSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The simulated time of this thread.
pub fn now() -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START + ELAPSED.get()
}

pub fn advance(by: Duration) {
    ELAPSED.set(ELAPSED.get() + by);
}

/// A condition on the server, evaluated over a separate connection.
pub fn condition<'a>(server: &TestServer, query: &'a str) -> impl Fn() -> bool + 'a {
    let connection = RefCell::new(server.open().expect("a connection"));
    move || connection.borrow_mut().value(query).expect("an answer").as_deref() == Some("t")
}

/// Advances the clock once, as soon as a condition is true.
pub fn advance_once(condition: impl Fn() -> bool, by: Duration) -> impl Fn() {
    let done = Cell::new(false);
    move || {
        if !done.get() && condition() {
            done.set(true);
            advance(by);
        }
    }
}
