//! Elle's histories: EDN as Jepsen writes it, JSON as elle-cli reads it; list-append and
//! rw-register.
//!
//! Both are read operation by operation: EDN is turned into JSON (`edn.rs`), JSON is cut into its
//! objects (`json.rs`), an object is understood in one place (`event.rs`), and what invocations and
//! completions mean together stands in `read.rs`. What is read and written of the formats is listed
//! in `docs/reference/history-format.md`. Source: the manuals of Elle and elle-cli.

mod edn;
mod event;
mod json;
mod names;
mod read;
mod shown;
mod write;

pub use read::read;
pub use write::{Unwritable, write};

/// How operations are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Clojure's data notation.
    Edn,
    /// JSON, an object a line or all in an array.
    Json,
}

/// The table of rows with integer keys, if the operations are of lists.
const LISTS: &str = "lists";

/// The table of rows with integer keys, if the operations are of registers.
const REGISTERS: &str = "registers";

#[cfg(test)]
mod tests;
