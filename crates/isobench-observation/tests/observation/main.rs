//! The reads and writes that statements show, and the statements that are sent for it.

mod corpus;
mod differential;
mod installed;
mod orm;
mod plans;
mod servers;
mod support;
mod withdrawn;
mod workloads;
