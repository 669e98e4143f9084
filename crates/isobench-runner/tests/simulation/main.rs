//! The whole runner on a simulated server and clock: every transition of a client, every bucket,
//! exact times.
//!
//! `harness.rs` runs a case and checks after every run that the ledger balances and agrees with
//! what the server really did. The other files hold the tests by topic.

mod accounting;
mod catching_up;
mod chaos;
mod events;
mod harness;
mod inside;
mod levels;
mod load;
mod lost;
mod machines;
mod observers;
mod own_rollback;
mod pacing;
mod phases;
mod pipelines;
mod protocol;
mod reconnecting;
mod recording;
mod reproducible;
mod retries;
mod rows;
mod rules;
mod savepoints;
mod scripts;
mod series;
mod sessions;
mod snapshots;
mod stopping;
mod turns;
