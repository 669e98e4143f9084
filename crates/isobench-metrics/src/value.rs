//! What a metric's values are made of: the figures of a cell's progress.

use isobench_runner::RunProgress;
use isobench_stats::{Attempts, LatencyCounts, TimeLedger, Transactions, seconds};

use crate::meter::Working;

/// A value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    Count(u64),
    Seconds(f64),
    Latencies(LatencyCounts),
}

fn counts<const N: usize>(counts: [u64; N]) -> Vec<Value> {
    counts.map(Value::Count).to_vec()
}

pub(crate) fn latencies(total: &RunProgress, _: Option<Working>) -> Vec<Value> {
    vec![Value::Latencies(total.latencies)]
}

pub(crate) fn attempts(total: &RunProgress, _: Option<Working>) -> Vec<Value> {
    // Names all buckets, so that none is forgotten.
    let Attempts {
        started: _,
        committed,
        retried,
        given_up,
        swallowed,
        rolled_back,
        ambiguous,
        cut_off,
        errored,
    } = total.ledger.attempts;
    counts([committed, retried, given_up, swallowed, rolled_back, ambiguous, cut_off, errored])
}

pub(crate) fn transactions(all: &RunProgress, _: Option<Working>) -> Vec<Value> {
    let Transactions {
        total: _,
        committed,
        given_up,
        swallowed,
        rolled_back,
        ambiguous,
        cut_off,
        errored,
        skipped,
    } = all.ledger.transactions;
    counts([committed, given_up, swallowed, rolled_back, ambiguous, cut_off, errored, skipped])
}

pub(crate) fn retries(total: &RunProgress, _: Option<Working>) -> Vec<Value> {
    counts([total.ledger.retries])
}

pub(crate) fn conflicts(total: &RunProgress, _: Option<Working>) -> Vec<Value> {
    counts([total.serialization_failures, total.deadlocks])
}

pub(crate) fn late(total: &RunProgress, _: Option<Working>) -> Vec<Value> {
    counts([total.ledger.late])
}

pub(crate) fn client_time(total: &RunProgress, _: Option<Working>) -> Vec<Value> {
    let TimeLedger { useful, wasted, backoff, waiting } = total.ledger.time;
    [useful, wasted, backoff, waiting].map(|ns| Value::Seconds(seconds(ns))).to_vec()
}

pub(crate) fn clients(_: &RunProgress, working: Option<Working>) -> Vec<Value> {
    working.map(|working| Value::Count(working.clients as u64)).into_iter().collect()
}

pub(crate) fn round(_: &RunProgress, working: Option<Working>) -> Vec<Value> {
    working.map(|working| Value::Count(working.round.into())).into_iter().collect()
}
