//! SQL commands of a script: finding where they end, what they do, and which variables they use.

mod classify;
mod scanner;
mod substitute;

pub(crate) use classify::{classify, keyword, savepoint, sets_level};
pub(crate) use scanner::{End, Scanned, Scanner};
pub(crate) use substitute::substitute;
