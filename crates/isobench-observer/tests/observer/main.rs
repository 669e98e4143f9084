//! The observer, on real, scripted and absent servers.

mod postgresql;
mod products;
mod support;
mod turns;
