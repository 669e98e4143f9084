//! TLS with a test server, and with a real PostgreSQL compared with psql.

mod authority;
mod negotiation;
#[path = "../support/postgres.rs"]
mod postgres;
mod postgresql;
mod server;
mod stream;
