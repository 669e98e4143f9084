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
    round.contradictions = match opened {
        EffectiveLevel::Standard(level) => impossible(product, &[*level], round, alone),
        EffectiveLevel::Other(_) | EffectiveLevel::Unknown => Vec::new(),
    };
    if said != *opened {
        round.contradictions.insert(
            0,
            format!("transactions or sessions said they ran at other levels than {opened}: {said}"),
        );
        return said;
    }
    if round.contradictions.is_empty() { said } else { EffectiveLevel::Other("another level".to_owned()) }
}

/// Returns observations that are impossible at each of these levels, which are those of a round's
/// transactions, a sentence each. `alone` is true if no other program uses the server.
pub fn impossible(product: &Product, levels: &[Level], round: &Round, alone: bool) -> Vec<String> {
    let (cannot, does_not) = match levels {
        [level] => (format!("{level} can't have"), format!("{level} doesn't take")),
        _ => ("none of the levels can have".to_owned(), "none of the levels takes".to_owned()),
    };
    let at_none = |reason: &str| levels.iter().all(|level| product.contradicts(*level, reason));
    let impossible = round.conflicts.iter().filter(|conflict| at_none(&conflict.reason));
    let mut found: Vec<String> = impossible
        .map(|conflict| {
            let (count, reason, code) = (conflict.count, &conflict.reason, &conflict.sqlstate);
            format!("{count} attempts ended in {code} ({reason}), which {cannot}")
        })
        .collect();
    let most = round.server.as_ref().and_then(ServerSide::most_predicate_locks).unwrap_or(0);
    if alone && most > 0 && !levels.contains(&Level::Serializable) {
        found.push(format!("{most} predicate locks (SIReadLock) were held at once, which {does_not}"));
    }
    found
}
