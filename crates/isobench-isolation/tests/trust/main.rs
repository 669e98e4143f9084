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
//! None of them shares code with the checker. `ISOBENCH_SEEDS=N` makes the random tests N times as
//! long; `ISOBENCH_BLESS=1` updates the rendered reports of the golden histories.

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

/// The seeds for a random test: an eighth of these many, times `ISOBENCH_SEEDS`.
fn seeds(nightly: u64) -> std::ops::Range<u64> {
    let times = std::env::var("ISOBENCH_SEEDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    0..(nightly * times).div_ceil(8)
}
