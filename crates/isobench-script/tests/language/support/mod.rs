//! What the test files share: the golden blocks, a tiny executor of scripts, and the real pgbench
//! with a fake server. Each test file uses a part of it.

pub mod blocks;
pub mod execute;
pub mod expressions;
pub mod fake_server;
pub mod pgbench;
