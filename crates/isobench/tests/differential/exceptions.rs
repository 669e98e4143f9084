//! Differences that are meant to be: `exceptions.txt`, each with its reason.
//!
//! ```text
//! # The reason.
//! beginning of the name of cases: aspect, aspect
//! ```

use crate::case::Case;

const TEXT: &str = include_str!("exceptions.txt");

/// Whether all aspects in which a case differs are listed for it.
pub fn are_known(case: &Case, aspects: &[String]) -> bool {
    aspects.iter().all(|aspect| {
        let listed = |line: &str| {
            let Some((name, listed)) = line.rsplit_once(": ") else { return false };
            case.name.starts_with(name) && listed.split(", ").any(|listed| listed == aspect)
        };
        TEXT.lines().filter(|line| !line.starts_with('#')).any(listed)
    })
}
