//! The commands, a file each: from the options to the exit status. `rendered` is shared by those that
//! show saved results, `dump` by those that copy a database.

pub mod advise;
pub mod audit;
pub mod check;
pub mod compare;
pub mod dump;
pub mod help;
pub mod init;
pub mod observe;
pub mod peers;
pub mod plans;
pub mod probe;
pub mod race;
pub mod record;
pub mod rendered;
pub mod report;
pub mod run;
pub mod scripts;
pub mod server;
pub mod workloads;
