//! Support for tests: simulated and scripted servers, servers run by closures, golden files,
//! installed programs, and a schema checker.

pub mod capture;
pub mod folder;
pub mod golden;
pub mod h2;
pub mod handler;
pub mod installed;
pub mod network;
pub mod night;
pub mod ports;
pub mod proxy;
pub mod schema;
pub mod scripted;
pub mod simulated;
pub mod standby;
pub mod user;
