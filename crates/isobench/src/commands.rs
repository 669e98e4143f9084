//! One file for each command: what it does from its options to its exit status.

pub mod audit;
pub mod check;
pub mod compare;
pub mod init;
pub mod plans;
pub mod probe;
pub mod report;
pub mod run;
pub mod server;
pub mod workloads;
