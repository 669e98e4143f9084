//! Standard output and standard error, which may be pipes that somebody closes: `isobench compare | head` is no panic.
//!
//! Standard output is where results go, so failing to write there is an error. Standard error is for people; if nobody
//! reads it, the run goes on.

use std::io::{self, Write};

use crate::failure::{Failure, Outcome};

/// Writes a text to standard output.
///
/// # Errors
/// It is closed, or its disk is full.
pub fn print(text: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::Output(format!("could not write to standard output: {error}")))
}

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // There is nobody left to be told.
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // There is nobody left to be told.
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
