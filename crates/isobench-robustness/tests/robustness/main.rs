//! The decision against all schedules of small sets, and against what is known of workloads.
//!
//! | file | holds |
//! |---|---|
//! | `templates` | programs as text |
//! | `workloads` | the levels and changes that well-known workloads need |
//! | `schedules` | all schedules that PostgreSQL may execute of given transactions |
//! | `given` | the criterion for given transactions against all their schedules |
//! | `domains` | programs with variables against their transactions on small domains |

mod domains;
mod given;
mod schedules;
mod templates;
mod workloads;

use std::ops::Range;

use isobench_isolation::Level;

/// The levels to choose from.
const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The seeds for a random test.
fn seeds(usual: u64) -> Range<u64> {
    let times = std::env::var("ISOBENCH_SEEDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    0..usual * times
}

/// Every choice of one of these for each of some programs.
fn choices<T: Copy>(of: &[T], count: usize) -> Vec<Vec<T>> {
    (0..count).fold(vec![Vec::new()], |all, _| {
        let longer = |one: Vec<T>| of.iter().map(move |level| one.iter().copied().chain([*level]).collect());
        all.into_iter().flat_map(longer).collect()
    })
}
