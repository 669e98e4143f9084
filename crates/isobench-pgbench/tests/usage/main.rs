//! Command lines: what is refused in which words, by version, held against the real pgbench where
//! there is one.
//!
//! No server is needed: a command line without fault ends where the program would connect.

mod outcome;
mod pairs;
mod random;
mod resolved;
mod rows;
