//! TLS against a server made for the test, and against a real PostgreSQL beside psql.

#[path = "../support/postgres.rs"]
mod postgres;
mod postgresql;
