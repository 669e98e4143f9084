//! Support shared by the test files: golden blocks, a small executor of scripts, and the real
//! pgbench with a fake server.

pub mod blocks;
pub mod execute;
pub mod expressions;
pub mod fake_server;
pub mod pgbench;
