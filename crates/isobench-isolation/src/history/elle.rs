//! Elle's histories: EDN as written by Jepsen, JSON as read by elle-cli; list-append and
//! rw-register.
//!
//! Both are read one operation at a time: `edn.rs` converts EDN to JSON, `json.rs` splits JSON into
//! objects, `event.rs` parses an object, and `read.rs` combines invocations and completions.
//! `docs/reference/history-format.md` lists the supported parts of the formats. Source: the manuals
//! of Elle and elle-cli.

mod edn;
mod event;
mod json;
mod names;
mod read;
mod representation;
mod write;

pub use read::read;
pub use write::{Unwritable, write};

/// The notation of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Clojure's data notation.
    Edn,
    /// JSON, with one object per line or all objects in an array.
    Json,
}

/// The table of rows with integer keys, for operations on lists.
const LISTS: &str = "lists";

/// The table of rows with integer keys, for operations on registers.
const REGISTERS: &str = "registers";

#[cfg(test)]
mod tests;
