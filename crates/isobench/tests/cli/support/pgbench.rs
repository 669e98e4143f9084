//! The real pgbench, if there is one.

use isobench_testkit::installed::{RealPgbench, pgbenches};

use super::skip;

/// Returns the newest one found; `None` after printing why the test is skipped.
pub fn find(test: &str) -> Option<RealPgbench> {
    let newest = pgbenches().pop();
    if newest.is_none() {
        skip(test, "there is no pgbench to compare with (ISOBENCH_PGBENCH can name one)");
    }
    newest
}
