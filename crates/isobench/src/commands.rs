//! The commands, a file each: from the options to the exit status.

pub mod audit;
pub mod check;
pub mod compare;
pub mod help;
pub mod init;
pub mod observe;
pub mod peers;
pub mod plans;
pub mod probe;
pub mod report;
pub mod run;
pub mod server;
pub mod workloads;
