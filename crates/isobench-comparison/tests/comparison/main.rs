//! Comparisons on a simulated server: the rounds of all cells, the messages, and the result after a
//! failure.
//!
//! Runs have a number of transactions, and faults and interrupts happen at a statement or a step of
//! the comparison, never at a time. Not here: real servers and the display (`isobench/tests/cli`).

mod conflicts;
mod ends;
mod levels;
mod own;
mod rounds;
mod stage;
mod trouble;
mod turns;
mod unannotated;
