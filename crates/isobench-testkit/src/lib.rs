//! Test equipment: simulated and scripted servers, a shared embedded PostgreSQL.

pub mod scripted;
pub mod simulated;
