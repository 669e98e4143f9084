//! The real pgbench, where there is one.

use isobench_testkit::installed::{RealPgbench, pgbenches};

use super::skip;

/// The newest of those that can be found; `None` after saying why the test is skipped.
pub fn find(test: &str) -> Option<RealPgbench> {
    let newest = pgbenches().pop();
    if newest.is_none() {
        skip(test, "there is no pgbench to compare with (ISOBENCH_PGBENCH can name one)");
    }
    newest
}
