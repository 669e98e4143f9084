//! Texts that several errors share.

use std::io;

/// libpq's text for a connection closed by the server.
pub(crate) const CLOSED: &str = "server closed the connection unexpectedly\n\
    \tThis probably means the server terminated abnormally\n\
    \tbefore or while processing the request.";

/// The text for a wait that was ended on request.
pub(crate) const INTERRUPTED: &str = "interrupted while waiting for the server";

/// The system's text for an error, without the number that Rust adds.
pub(crate) fn errno_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
