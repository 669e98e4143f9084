//! Test equipment: simulated, scripted and played servers, golden files, and what is installed here.

pub mod golden;
pub mod h2;
pub mod installed;
pub mod played;
pub mod scripted;
pub mod simulated;
pub mod standby;
