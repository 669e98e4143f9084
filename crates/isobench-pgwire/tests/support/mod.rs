//! Support shared by several test files: traces of messages as text, and the server's side of
//! SCRAM.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod scram;
pub mod trace;
