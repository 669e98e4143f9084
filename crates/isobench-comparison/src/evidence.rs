//! Evidence against the level of a row: answers of the scripts' own transactions and of the
//! sessions after the run, and observations that are impossible at that level.
//!
//! A session's default level isn't evidence: a script, or a function that it calls, may set its own
//! level. Not here: asking sessions (`sessions.rs`) and transactions (`isobench_runner`).

use std::collections::BTreeMap;

use isobench_database::Product;
use isobench_isolation::{EffectiveLevel, Level};
use isobench_result::{Round, ServerSide};

use crate::sessions::agree;

/// Adds the answers of one run to those of others: number of transactions by level.
pub fn add(sum: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (level, count) in more {
        *sum.entry(level.clone()).or_default() += count;
    }
}

/// Returns the level that a round ran at: the answer of its sessions when they were opened, unless
/// there is evidence against it, which is noted in the round. `left` has the sessions' answers at
/// the end; `alone` is true if nothing else used the server in that time.
pub fn weigh(
    opened: &EffectiveLevel,
    left: &[EffectiveLevel],
    product: &Product,
    alone: bool,
    round: &mut Round,
) -> EffectiveLevel {
    let transactions = round.levels_named.keys().map(|name| EffectiveLevel::from_setting(name));
    let answers: Vec<EffectiveLevel> =
        std::iter::once(opened.clone()).chain(transactions).chain(left.iter().cloned()).collect();
    let said = agree(&answers);
    round.contradictions = contradictions(product, opened, round, alone);
    if said != *opened {
        round.contradictions.insert(
            0,
            format!("transactions or sessions said they ran at other levels than {opened}: {said}"),
        );
        return said;
    }
    if round.contradictions.is_empty() { said } else { EffectiveLevel::Other("another level".to_owned()) }
}

/// Returns observations that are impossible at the level that the sessions reported, a sentence
/// each. `alone` is true if no other program uses the server.
fn contradictions(product: &Product, opened: &EffectiveLevel, round: &Round, alone: bool) -> Vec<String> {
    let EffectiveLevel::Standard(level) = opened else { return Vec::new() };
    let impossible = round.conflicts.iter().filter(|conflict| product.contradicts(*level, &conflict.reason));
    let mut found: Vec<String> = impossible
        .map(|conflict| {
            let (count, reason, code) = (conflict.count, &conflict.reason, &conflict.sqlstate);
            format!("{count} attempts ended in {code} ({reason}), which {level} can't have")
        })
        .collect();
    let most = round.server.as_ref().and_then(ServerSide::most_predicate_locks).unwrap_or(0);
    if alone && most > 0 && *level != Level::Serializable {
        found.push(format!(
            "{most} predicate locks (SIReadLock) were held at once, which {level} doesn't take"
        ));
    }
    found
}
