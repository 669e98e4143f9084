//! The command line as its users see it: each test runs the program, most of them on a real PostgreSQL.
//!
//! By topic, a module each; one test program, so that it is linked once. No test decides by time.

mod bad_input;
mod check;
mod checked;
mod compare;
mod crashes;
mod encrypted;
mod faults;
mod interrupted;
mod like_pgbench;
mod live;
mod named_server;
mod orders;
mod ordinary_user;
mod page_plan;
mod plan_file;
mod precision;
mod probe;
mod products;
mod published;
mod report;
mod retries;
mod run_options;
mod saved;
mod server_command;
mod server_side;
mod strategies;
mod support;
mod usage;
mod workloads_command;
