//! Command lines: the messages that refuse them, by version, compared with the real pgbench if it
//! is installed.
//!
//! No server is needed: a correct command line ends where the program would connect.

mod outcome;
mod pairs;
mod random;
mod resolved;
mod rows;
