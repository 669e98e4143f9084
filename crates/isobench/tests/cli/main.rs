//! The command line as its users see it: each test runs the program, most of them on a real
//! PostgreSQL.
//!
//! By topic, a module each; one test program, so that it is linked once. The outcome of a test
//! doesn't depend on the time.

mod advise;
mod allocation;
mod bad_input;
mod changes;
mod check;
mod checked;
mod ci_templates;
mod commit_window;
mod compare;
mod crashes;
mod diagnosis;
mod durability;
mod encrypted;
mod endpoints;
#[expect(dead_code, reason = "tests of layouts use all examples at once")]
#[path = "../../../isobench-result/tests/result/examples/mod.rs"]
mod examples;
mod faults;
mod gates;
mod hostile_texts;
mod interleavings;
mod interrupted;
mod levels;
mod like_pgbench;
mod live;
mod live_metrics;
mod machines;
mod named_server;
mod observe;
mod observed;
mod observed_workloads;
mod one_answer;
mod orders;
mod ordinary_user;
mod own_tables;
mod page_plan;
mod pages;
mod passwords;
mod peers;
mod plan_file;
mod planted;
mod poolers;
mod probe;
mod products;
mod published;
mod race;
mod random_workloads;
mod record;
mod report;
mod results;
mod retries;
mod run_options;
mod saved;
mod scripts;
mod server_command;
mod server_side;
mod settings;
mod shell;
mod skill;
mod snapshots;
mod standby;
mod strategies;
mod support;
mod suspects;
mod tables;
mod tpcc;
mod trust;
mod usage;
mod warnings;
mod workloads_command;
