//! Test equipment: simulated and scripted servers, what is installed here, and whether a document obeys
//! its schema.

pub mod h2;
pub mod installed;
pub mod schema;
pub mod scripted;
pub mod simulated;
pub mod standby;
