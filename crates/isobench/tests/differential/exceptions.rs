//! Intended differences: `exceptions.txt`, each with its reason.
//!
//! ```text
//! # The reason.
//! beginning of the name of cases: aspect, aspect
//! ```

use crate::case::Case;

const TEXT: &str = include_str!("exceptions.txt");

/// Returns the aspects of the lines that apply to a case.
fn of(case: &Case) -> impl Iterator<Item = &'static str> {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(": "))
        .filter(|(name, _)| case.name.starts_with(name))
        .map(|(_, listed)| listed)
}

/// Returns whether all aspects in which a case differs are listed for it.
pub fn are_known(case: &Case, aspects: &[String]) -> bool {
    let listed: Vec<&str> = of(case).flat_map(|listed| listed.split(", ")).collect();
    aspects.iter().all(|aspect| listed.contains(&aspect.as_str()))
}

/// Returns whether any difference is listed for a case.
pub fn exist(case: &Case) -> bool {
    of(case).next().is_some()
}
