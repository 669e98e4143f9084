//! Files, and standard output and standard error, which may be pipes that somebody closes:
//! `isobench compare | head` is no panic.
//!
//! Standard output is where results go, so failing to write there is an error. Standard error is
//! for people; if nobody reads it, the run goes on. Whatever goes out here is fit for a terminal:
//! no control characters of a server's, no password.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use isobench_pgbench::fit;

use isobench_comparison::{Failure, Outcome};

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed.
/// Only for words of our own.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // There is nobody left to be told.
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed,
/// and shows nothing that a terminal would obey.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // There is nobody left to be told.
        let _ = writeln!(std::io::stderr(), "{}", isobench_pgbench::fit(&format!($($text)*)));
    }};
}

/// Writes a text to standard output.
///
/// # Errors
/// It is closed, or its disk is full.
pub fn print(text: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(fit(text).as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::Output(format!("could not write to standard output: {error}")))
}

/// Writes a line for people to standard error.
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Writes a file as a whole or not at all; what isn't a regular file (a pipe, a device) is written
/// to directly.
///
/// # Errors
/// It can't be written; the message names it.
pub fn save(path: &Path, text: &str) -> Outcome {
    let text = &fit(text);
    let shown = path.display();
    let failure = |error: io::Error| {
        Failure::Output(format!("could not write \"{shown}\": {error}; the results above are not saved"))
    };
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, text).map_err(failure);
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    fs::write(&partial, text).and_then(|()| fs::rename(&partial, path)).map_err(|error| {
        // The half-written file is of no use to anybody.
        let _ = fs::remove_file(&partial);
        failure(error)
    })
}

/// True if the path stands for standard input or output.
pub fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// How messages call a file.
pub fn shown(path: &Path) -> String {
    if is_stream(path) { "standard input".to_owned() } else { format!("\"{}\"", path.display()) }
}
