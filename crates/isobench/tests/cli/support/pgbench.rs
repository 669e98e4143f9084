//! The real pgbench, where there is one.

use std::path::PathBuf;

use super::skip;

/// The program of version 15 or newer; `None` after saying why the test is skipped.
pub fn find(test: &str) -> Option<PathBuf> {
    let found = isobench_testkit::installed::pgbench().map_err(|why| skip(test, &why));
    found.ok().map(|(program, _)| program)
}
