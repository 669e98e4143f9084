//! Test equipment: simulated and scripted servers, and what is installed here.

pub mod h2;
pub mod installed;
pub mod scripted;
pub mod simulated;
pub mod standby;
