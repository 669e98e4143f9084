//! Products of servers: their statements, tables, errors, settings and write-ahead log.

mod conflicts;
mod golden;
mod h2;
mod postgresql;
mod products;
mod readings;
mod standby;
mod support;
mod wal;
