//! Test equipment: simulated, scripted and played servers, golden files, what is installed here,
//! and whether a document obeys its schema.

pub mod golden;
pub mod h2;
pub mod installed;
pub mod played;
pub mod schema;
pub mod scripted;
pub mod simulated;
pub mod standby;
