//! Workloads and strategies, with and without a server.

mod h2;
mod manual;
mod popularity;
mod postgresql;
mod scan;
mod scripts;
mod strategies;
mod support;
