//! Tests that the checker can be trusted.
//!
//! | file | holds |
//! |---|---|
//! | `oracle` | small random histories against brute force: `naive` (definitions) and `search` (orders of execution) |
//! | `simulated` | a simulated database that implements each level is never accused; planted defects are caught |
//! | `observed` | logs of what a simulated PostgreSQL's answers show prove nothing false; see the file |
//! | `clearing` | no transaction on a cycle is cleared, whatever it read without showing it |
//! | `mixed` | each transaction is judged by its own level: definitions, schedules of PostgreSQL, examples |
//! | `golden` | each anomaly in a history, and a similar one without it; the examples of the literature |
//! | `pieces` | all of them are checked in pieces and at once, with the same results |
//! | `published` | histories of the literature and of other checkers, with their labels |
//! | `doubts` | the verdict is withheld if the history is more likely wrong than the database |
//! | `mutated` | incomplete or wrong histories accuse no database |
//! | `blind` | the limits of the check are reported |
//! | `counts` | the number of each anomaly is verified by counting again |
//! | `witness` | each step of a witness is verified in the history |
//!
//! None of them shares code with the checker. `ISOBENCH_SEEDS=N` makes them N times as long, 8 is
//! what a night does; `ISOBENCH_BLESS=1` updates the rendered reports of the golden histories.

mod blind;
mod clearing;
mod counts;
mod doubts;
mod golden;
mod mixed;
mod mutated;
mod naive;
mod observed;
mod oracle;
mod pieces;
mod published;
mod random;
mod search;
mod second;
mod shrink;
mod simulated;
mod witness;

/// A day tries an eighth, a night all of what tests are written for: `ISOBENCH_SEEDS`, in eighths.
fn eighths() -> u64 {
    std::env::var("ISOBENCH_SEEDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// The least that shows where a night shows this much.
fn share(nightly: u64) -> u64 {
    nightly * eighths() / 8
}

/// The seeds for a random test, of which a night tries this many.
fn seeds(nightly: u64) -> std::ops::Range<u64> {
    0..(nightly * eighths()).div_ceil(8)
}

/// Whether this one of all cases is tried: a night tries each.
fn is_tried(case: u64) -> bool {
    case % 8 < eighths()
}

/// Asserts that of `all` no less than this percentage was found; on a day but for chance, two
/// standard deviations of as many independent ones.
fn assert_found(found: u64, all: u64, percentage: u64, what: &dyn std::fmt::Debug) {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let (found, all, least) = (found as f64, all as f64, percentage as f64 / 100.0);
    let chance = if eighths() < 8 { 2.0 * (all * least * (1.0 - least)).sqrt() } else { 0.0 };
    assert!(found + chance >= all * least, "too little is found of {what:?}: {found} of {all}");
}
