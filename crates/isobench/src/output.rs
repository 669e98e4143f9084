//! Files, and standard output and standard error, which may be closed pipes: `isobench compare |
//! head` doesn't panic.
//!
//! Standard output has the results, so failing to write there is an error. Standard error has
//! messages; if it is closed, the run continues. All output is safe for a terminal: it has no
//! control characters from a server, and no password.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use isobench_pgbench::fit;

use isobench_comparison::{Failure, Outcome};

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed.
/// Only for trusted text.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // If this fails, there is no way to report it.
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed,
/// and removes control sequences.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // If this fails, there is no way to report it.
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

/// Writes a message to standard error.
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Writes a file as a whole or not at all; anything other than a regular file (a pipe, a device) is
/// written to directly.
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
        // A partial file is useless.
        let _ = fs::remove_file(&partial);
        failure(error)
    })
}

/// Returns whether the path means standard input or output.
pub fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns a file's name for messages.
pub fn shown(path: &Path) -> String {
    if is_stream(path) { "standard input".to_owned() } else { format!("\"{}\"", path.display()) }
}
