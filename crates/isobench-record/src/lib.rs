//! Relays.
mod decode;
mod policy;
mod sql;
mod value;
