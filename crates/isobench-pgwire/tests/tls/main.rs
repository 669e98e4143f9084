//! TLS against a server made for the test, and against a real PostgreSQL beside psql.

mod authority;
mod negotiation;
#[path = "../support/postgres.rs"]
mod postgres;
mod postgresql;
mod server;
mod stream;
