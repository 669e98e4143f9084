//! Whether standard output was closed when the program began. Before `main`, Rust's library opens
//! `/dev/null` in place of what is closed, and whatever is written there is lost without an error.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls each pointer in this section once, before Rust's library begins, with the C
// calling convention. The function reads no arguments, and uses nothing of that library that has to be
// set up: an atomic variable and a system call.
#[expect(unsafe_code, reason = "a section of the program's file can't be named otherwise")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // SAFETY: `fcntl` with this command takes a number and returns one, whether a file is open or not.
    #[expect(unsafe_code, reason = "a system call")]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// True if standard output was closed when the program began: what is written there is lost.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
