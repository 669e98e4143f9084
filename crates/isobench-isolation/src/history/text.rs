//! The text format of histories, with one transaction per line, for examples, tests, and manual
//! inspection.
//!
//! The grammar is in `docs/reference/history-format.md`.
//!
//! ```
//! use isobench_isolation::history::text;
//!
//! let history = text::parse("T1: r x = init, w x = 1\nT2 aborted: w x = 2  # a conflict\n").unwrap();
//! assert_eq!(history.transactions().len(), 2);
//! let error = text::parse("T1: r x = \n").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "line 1, column 11: expected a version (v3/17, v3, 17 or init), found the end of the line"
//! );
//! ```

mod cursor;
mod parse;
mod print;

pub use parse::{parse, read};
pub use print::{print, write};

/// The numbers in a line `observed`, in the order of [`super::Provenance::numbers`].
const OBSERVED: [&str; 6] =
    ["searches", "searches-left", "reads-left", "reads-odd", "orders-agreed", "orders-differ"];

/// The words for a transaction's modes, after its level's short name.
const READ_ONLY: &str = "readonly";
const DEFERRABLE: &str = "deferrable";

/// True if a table's name doesn't need quotes.
fn is_bare(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(begins_name) && letters.all(continues_name)
}

fn begins_name(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_' || letter == '.'
}

fn continues_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-')
}

#[cfg(test)]
mod tests;
