//! Comparisons on a simulated server: what is measured, what is passed on, and what is left when
//! something goes wrong.
//!
//! Transactions are counted, and whatever happens meanwhile happens at a statement or at a step of
//! the comparison, never at a time. Not here: what a real server does, and what people see
//! (`isobench/tests/cli`).

mod conflicts;
mod ends;
mod levels;
mod rounds;
mod stage;
mod trouble;
