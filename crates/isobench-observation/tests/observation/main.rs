//! The reads and writes that statements show, and the statements that are sent for it.

mod corpus;
mod differential;
mod flows;
mod names;
mod orm;
mod plans;
mod proved;
mod readings;
mod servers;
mod support;
mod templates;
mod understood;
mod withdrawn;
mod workloads;
