//! Benchmarks of isobench: compared with pgbench, and both with the physical limit.
//!
//! The parts: a [`null_server`], which leaves only the client to measure; a [`raw_loop`], which
//! shows the cost of a client that does nothing; [`case`] (the cases), [`contender`] (the
//! programs), [`servers`] (the servers), [`client`] (one run), [`mod@rounds`], [`ratio`] and
//! [`table`] (the results); [`connections`], [`features`] and [`recording`] (separate comparisons).
//! `main` combines them. [`checking`] measures the checker of histories, [`observing`] the cost of
//! the observer for a server, [`rows`] that of statements that show rows, [`reporting`] reports and
//! saving, [`initializing`] `-i`, [`starting`] the start of a comparison, [`precision`] what its
//! ratios are known to. Only these use isobench's crates, apart from the embedded PostgreSQL: isobench
//! is measured as a program.

pub mod case;
pub mod checking;
pub mod client;
pub mod connections;
pub mod contender;
pub mod features;
pub mod initializing;
pub mod loops;
pub mod null_server;
pub mod observing;
pub mod options;
pub mod precision;
pub mod ratio;
pub mod raw_loop;
pub mod recording;
pub mod reporting;
pub mod rounds;
pub mod rows;
pub mod servers;
pub mod starting;
pub mod table;
