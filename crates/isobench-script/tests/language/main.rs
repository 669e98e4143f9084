//! Tests of the language as a whole: golden files, properties, and the real pgbench as an oracle.

mod golden;
mod oracle;
mod properties;
mod support;
