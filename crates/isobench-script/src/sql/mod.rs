//! SQL commands of a script: their ends, their effects, and the variables they use.

mod classify;
pub mod lexer;
mod scanner;
mod statement;
mod substitute;

pub(crate) use classify::{
    classify, keyword, level_set_at, may_commit_inside, modes_place, savepoint, sets_level, statement_end,
};
pub(crate) use scanner::{End, Scanned, Scanner};
pub use statement::{Savepoint, Statement};
pub(crate) use substitute::substitute;
