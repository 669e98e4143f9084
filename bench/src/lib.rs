//! Measures isobench against pgbench, and both against the physical limit.
//!
//! The parts: a [`null_server`] that leaves only the client to measure, and what will run clients against it.

pub mod null_server;
