//! Why anybody should trust the checker.
//!
//! | file | holds |
//! |---|---|
//! | `oracle` | all small random histories against brute force: `naive` (the definitions) and `search` (orders of execution) |
//! | `simulated` | a simulated database that implements each level is never accused; with a planted defect it is caught |
//! | `golden` | each anomaly in a history, and one that differs a little without it; the examples of the literature |
//! | `doubts` | what makes it likelier that the history is wrong than that the database is withholds the verdict |
//! | `mutated` | histories of which something was left out or written down wrongly accuse nobody |
//! | `blind` | what can't be seen is said |
//! | `counts` | how often an anomaly occurs is counted again |
//! | `witness` | each step of a witness is looked up in the history again |
//!
//! None of it shares code with the checker. `ISOBENCH_SEEDS=N` makes the random tests N times as
//! long; `ISOBENCH_BLESS=1` writes the rendered reports of the golden histories anew.

mod blind;
mod counts;
mod doubts;
mod golden;
mod mutated;
mod naive;
mod oracle;
mod random;
mod search;
mod shrink;
mod simulated;
mod witness;

/// How many seeds a random test tries.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let times = std::env::var("ISOBENCH_SEEDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    0..usual * times
}
