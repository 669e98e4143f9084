//! Comparison of the server's counts with our own: the server must have counted every transaction
//! that the clients counted.
//!
//! Not here: reading the counters.

use crate::counters::Counter;

/// Our counts from [`before_sessions`](crate::Observer::before_sessions) to
/// [`after_sessions`](crate::Observer::after_sessions), including the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnCounts {
    /// Transactions whose COMMIT was answered (times the number of the server's transactions in one
    /// of ours, if a script has several or none).
    pub committed: u64,
    /// Attempts that ended in another way: retried, given up, errored, cut off.
    pub rolled_back: u64,
    /// Attempts that ended with 40P01.
    pub deadlocks: u64,
    /// Sessions opened in that database for any purpose. The server counts each as a committed
    /// transaction, which must not be counted in `other_committed` again.
    pub sessions: u64,
    /// Our other statements and blocks outside the clients' transactions: setting and reading
    /// levels, reading invariants, each round trip that prepares a statement outside a block.
    pub other_committed: u64,
    /// Attempts that the server repeated inside a statement, each possibly after a deadlock.
    pub inside: u64,
    /// The most transactions of a pooler's own in the clients' sessions; 0 if there is no pooler. Then the
    /// clients' sessions aren't among `sessions`.
    pub between: u64,
    /// Attempts with an unknown outcome (ambiguous, or cut off when the session was closed).
    pub uncertain: u64,
}

/// One of the server's counts beside our own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountComparison {
    /// "sessions", "commits", "rollbacks" or "deadlocks".
    pub what: &'static str,
    /// Our count, including the observer's own transactions.
    pub ours: u64,
    /// The server's count. 0 if its statistics were reset meanwhile.
    pub servers: u64,
    /// True if the two are equal, or their difference is explained.
    pub agrees: bool,
    /// The possible reasons for a difference; empty if they are equal.
    pub explanation: String,
}

/// Facts needed for the comparison besides the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ServerCounts {
    /// Committed transactions of the observer itself between the two readings.
    pub own_committed: u64,
    /// Failed transactions of the observer itself.
    pub own_rolled_back: u64,
    /// Sessions in the database that existed before the clients connected.
    pub others: u64,
    /// The most visits of autovacuum to the database, given the time that passed.
    pub autovacuum_visits: u64,
    /// The most vacuums and analyses of a table before the readings that were counted between them.
    pub autovacuum_before: u64,
    /// Some sessions hadn't ended when the counters were read, or that couldn't be seen.
    pub incomplete: bool,
    /// The counts fell meanwhile, and may have risen again since.
    pub reset: bool,
    /// The reason why the statistics can't be exact.
    pub inexact: Option<&'static str>,
}

/// Transactions of an autovacuum worker that finds nothing to do (measured with versions 15 and
/// 18).
const VISIT: u64 = 2;

/// The most transactions seen when a table was vacuumed or analyzed.
const PER_TABLE: u64 = 8;

/// Compares the counts; empty if the server's are unknown.
pub(crate) fn compare(counters: &[Counter], facts: &ServerCounts, ours: &OwnCounts) -> Vec<CountComparison> {
    let rise = |column: &str| {
        let name = format!("pg_stat_database.{column}");
        counters.iter().find(|counter| counter.name == name).map(|counter| counter.change)
    };
    let tables = |column: &str| {
        let name = format!("pg_stat_all_tables.{column}");
        counters.iter().find(|counter| counter.name == name).map_or(0, |counter| whole(counter.change))
    };
    let background = facts.autovacuum_visits * VISIT
        + (tables("autovacuum_count") + tables("autoanalyze_count") + facts.autovacuum_before) * PER_TABLE;
    let rows = [
        ("sessions", "sessions", ours.sessions, 0, 0),
        (
            "commits",
            "xact_commit",
            ours.committed + ours.sessions + ours.other_committed + facts.own_committed,
            ours.uncertain,
            background,
        ),
        ("rollbacks", "xact_rollback", ours.rolled_back + facts.own_rolled_back, ours.uncertain, 0),
        ("deadlocks", "deadlocks", ours.deadlocks, ours.inside, 0),
    ];
    let one = |(what, column, own, uncertain, background)| {
        let change = rise(column)?;
        let between = if what == "commits" { ours.between } else { 0 };
        Some(judge(what, own, change, (uncertain, background, between), facts))
    };
    // A pooler opens sessions when it likes.
    rows.into_iter().filter(|row| ours.between == 0 || row.0 != "sessions").filter_map(one).collect()
}

/// Compares one count. `uncertain` transactions may or may not be in either count; `background` ones, and
/// those of a pooler `between`, may be in the server's in addition.
fn judge(
    what: &'static str,
    ours: u64,
    change: f64,
    (uncertain, background, between): (u64, u64, u64),
    facts: &ServerCounts,
) -> CountComparison {
    let servers = whole(change);
    let mut row =
        CountComparison { what, ours, servers, agrees: ours == servers, explanation: String::new() };
    if change < 0.0 || facts.reset {
        (row.agrees, row.servers) = (false, 0);
        "the server's statistics were reset during the run, or it was restarted"
            .clone_into(&mut row.explanation);
        return row;
    }
    if row.agrees {
        return row;
    }
    let missing = ours.saturating_sub(servers);
    let extra = servers.saturating_sub(ours);
    let mut reasons = Vec::new();
    if missing.max(extra) <= uncertain {
        reasons.push(format!("{uncertain} attempts ended in a way that isn't known here"));
    } else if extra > 0 && extra <= uncertain + between {
        reasons.push(format!("the pooler's own transactions, of which there may be up to {between}"));
    } else if extra > 0 && extra <= uncertain + background + between {
        reasons.push(format!("autovacuum, which may have taken up to {background} transactions"));
    } else {
        if extra > 0 && facts.others > 0 {
            let sessions = if facts.others == 1 { "session was" } else { "sessions were" };
            reasons.push(format!("{} other {sessions} connected to the database", facts.others));
        }
        if missing > 0 && facts.incomplete {
            reasons.push("some sessions may not have ended when the counters were read".to_owned());
        }
        reasons.extend(facts.inexact.map(str::to_owned));
    }
    row.agrees = !reasons.is_empty();
    row.explanation = if row.agrees {
        reasons.join("; ")
    } else if extra > 0 {
        format!("{extra} more than ours: other sessions, or background processes, in the same database?")
    } else {
        format!("{missing} fewer than ours: not explained")
    };
    row
}

/// A counter's change as a whole number; 0 if it fell.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counters are far below 2^53")]
fn whole(change: f64) -> u64 {
    change.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(commits: f64, rollbacks: f64) -> Vec<Counter> {
        let counter = |name: &str, change| Counter {
            name: format!("pg_stat_database.{name}"),
            meaning: String::new(),
            change,
        };
        vec![
            counter("sessions", 2.0),
            counter("xact_commit", commits),
            counter("xact_rollback", rollbacks),
            counter("deadlocks", 0.0),
        ]
    }

    const OURS: OwnCounts = OwnCounts {
        committed: 100,
        rolled_back: 5,
        deadlocks: 0,
        sessions: 2,
        other_committed: 4,
        between: 0,
        inside: 0,
        uncertain: 1,
    };

    fn judged(commits: f64, rollbacks: f64, facts: &ServerCounts) -> Vec<(bool, String)> {
        let rows = compare(&counters(commits, rollbacks), facts, &OURS);
        rows.into_iter().skip(1).map(|row| (row.agrees, row.explanation)).collect()
    }

    #[test]
    fn equal_counts_agree_without_a_word() {
        let facts = ServerCounts { own_committed: 10, ..ServerCounts::default() };
        let rows = compare(&counters(116.0, 5.0), &facts, &OURS);
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.agrees && row.explanation.is_empty()), "{rows:?}");
        assert_eq!((rows[1].what, rows[1].ours, rows[1].servers), ("commits", 116, 116));
    }

    #[test]
    fn uncertain_attempts_may_be_on_either_side() {
        let facts = ServerCounts::default();
        assert!(judged(107.0, 4.0, &facts).iter().all(|row| row.0));
        let rows = judged(108.0, 3.0, &facts);
        assert_eq!((rows[0].0, rows[1].0), (false, false));
        assert!(rows[0].1.starts_with("2 more"), "{rows:?}");
        assert!(rows[1].1.starts_with("2 fewer"), "{rows:?}");
    }

    #[test]
    fn autovacuum_explains_more_commits_but_not_fewer() {
        let facts = ServerCounts { autovacuum_visits: 2, ..ServerCounts::default() };
        assert!(judged(110.0, 5.0, &facts)[0].1.starts_with("autovacuum"));
        assert!(!judged(112.0, 5.0, &facts)[0].0);
        assert!(!judged(102.0, 5.0, &facts)[0].0);
        let facts = ServerCounts { autovacuum_visits: 1, autovacuum_before: 4, ..ServerCounts::default() };
        assert!(judged(140.0, 5.0, &facts)[0].1.starts_with("autovacuum"), "it counts them when it ends");
        assert!(!judged(142.0, 5.0, &facts)[0].0);
    }

    #[test]
    fn others_explain_what_they_may_have_done() {
        let facts = ServerCounts { others: 1, ..ServerCounts::default() };
        let rows = judged(9999.0, 3.0, &facts);
        assert_eq!(rows[0], (true, "1 other session was connected to the database".to_owned()));
        assert!(!rows[1].0, "others take no rollbacks away");
    }

    #[test]
    fn a_reset_is_no_agreement() {
        let rows = judged(-5.0, 5.0, &ServerCounts::default());
        assert!(!rows[0].0 && rows[0].1.contains("reset"), "{rows:?}");
        let facts = ServerCounts { reset: true, ..ServerCounts::default() };
        let rows = judged(106.0, 5.0, &facts);
        assert!(rows.iter().all(|row| !row.0 && row.1.contains("reset")), "it only looks equal: {rows:?}");
    }

    #[test]
    fn without_counters_there_is_no_comparison() {
        assert_eq!(compare(&[], &ServerCounts::default(), &OURS), []);
    }
}
