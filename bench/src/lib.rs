//! Measures isobench against pgbench, and both against the physical limit.
//!
//! The parts: a [`null_server`] that leaves only the client to measure, a [`raw_loop`] that shows what is left
//! when the client does nothing, and what runs clients side by side and compares them.

pub mod null_server;
pub mod raw_loop;
