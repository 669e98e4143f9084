//! Support shared by several test files: traces of messages as text, and the server's side of
//! SCRAM.

pub mod postgres;
pub mod scram;
pub mod trace;
