//! Measures isobench against pgbench, and both against the physical limit.
//!
//! The parts: a [`null_server`] that leaves only the client to measure; a [`raw_loop`] that shows
//! what is left when the client does nothing; [`case`] (what is measured), [`contender`] (who),
//! [`servers`] (where), [`client`] (one run), [`mod@rounds`], [`ratio`] and [`table`] (what came
//! out); [`connections`], [`features`] and [`recording`] (questions of their own). The program's
//! `main` wires them. [`checking`] measures the checker of histories, [`observing`] what the
//! observer costs a server. Apart from these two nothing depends on isobench but for its embedded
//! PostgreSQL: isobench is measured as a program.

pub mod case;
pub mod checking;
pub mod client;
pub mod connections;
pub mod contender;
pub mod features;
pub mod null_server;
pub mod observing;
pub mod options;
pub mod ratio;
pub mod raw_loop;
pub mod recording;
pub mod rounds;
pub mod servers;
pub mod table;
