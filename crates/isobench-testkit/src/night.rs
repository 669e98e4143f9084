//! Matrices of cases: a share of them by day, all by night.

use std::env;

use crate::golden::blessing;

/// True if a test is to try every case of its matrix: if `ISOBENCH_NIGHT` is set, as `.ci/nightly` does,
/// or if golden files are written, which have all of them.
pub fn all_cases() -> bool {
    env::var_os("ISOBENCH_NIGHT").is_some() || blessing()
}
