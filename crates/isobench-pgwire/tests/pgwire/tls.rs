//! TLS with a test server, and with a real PostgreSQL compared with psql.

mod authority;
mod negotiation;
mod postgresql;
mod server;
mod stream;
