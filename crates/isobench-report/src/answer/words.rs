//! Cost and damage in words.
//!
//! Not here: when they are said (`rules`, `reasons`).

use super::evidence::{Candidate, Safety};
use crate::document::{AnomalyCount, RatioToFirst};
use crate::numbers::{count, counted, short, whole_percent};
use crate::words::{capital, enumerated};

/// A difference is unknown rather than small if its interval spans this factor.
const UNKNOWN: f64 = 4.0;

/// What one candidate costs or gains against another, as a clause: "costs 8 % (2 to 14 %) against
/// read committed".
pub fn cost(ratio: &RatioToFirst, to: &str) -> String {
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        let times = times(ratio.mean);
        return format!("commits {times} as much as {to}, in too few rounds for an interval");
    };
    let share = |factor: f64| whole_percent((factor - 1.0).abs());
    match ratio.mean {
        _ if !ratio.significant => {
            let unknown = high > UNKNOWN * low;
            let (low, high) = (signed(low - 1.0), signed(high - 1.0));
            if unknown {
                return format!("can't be told from {to} in these rounds ({low} to {high})");
            }
            format!("makes no measurable difference to {to} ({low} to {high})")
        }
        0.0 => format!("commits nothing, unlike {to}"),
        mean if mean < 1.0 => {
            format!("costs {} % ({} to {} %) against {to}", share(mean), share(high), share(low))
        }
        mean if mean < 1.5 => {
            format!("commits {} % more ({} to {} %) than {to}", share(mean), share(low), share(high))
        }
        mean => {
            format!("commits {} times as much ({} to {}) as {to}", short(mean), short(low), short(high))
        }
    }
}

/// What another candidate would cost instead: "serializable would cost 60 % (55 to 64 %)".
pub fn would_cost(ratio: &RatioToFirst, name: &str, than: &str) -> String {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) if ratio.significant && ratio.mean > 0.0 && ratio.mean < 1.0 => {
            let share = |factor: f64| whole_percent(1.0 - factor);
            format!("{name} would cost {} % ({} to {} %)", share(ratio.mean), share(high), share(low))
        }
        _ => format!("{name} {}", cost(ratio, than)),
    }
}

/// A ratio with what it means: `0.38 × (−62 %)`.
pub fn times(ratio: f64) -> String {
    format!("{} × ({})", short(ratio), signed(ratio - 1.0))
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", whole_percent(share.abs()))
}

/// The share of transactions as people say it: "1 transaction in 5".
pub fn one_in(wrong: u64, of: u64) -> String {
    let share = wrong as f64 / of.max(1) as f64;
    match share {
        _ if wrong >= of => "every transaction".to_owned(),
        _ if share >= 0.4 => format!("{} % of all transactions", whole_percent(share)),
        _ => format!("1 transaction in {}", count(of.saturating_add(wrong / 2) / wrong.max(1))),
    }
}

/// The damage that a candidate did: "Read committed lost updates: 1 transaction in 5 went wrong.".
pub fn damage(candidate: &Candidate<'_>) -> String {
    let name = capital(&candidate.name);
    let verdict = candidate.cell.summary.verdict.as_ref().filter(|verdict| verdict.anomalies > 0);
    let Some(verdict) = verdict else {
        let how = tables(candidate).map_or_else(String::new, |how| format!(": {how}"));
        return format!("{name} left the tables wrong{how}.");
    };
    let deed = candidate.kinds().first().map_or("went wrong", |kind| deed(kind));
    let least = if verdict.at_least { "at least " } else { "" };
    format!("{name} {deed}: {least}{} went wrong.", one_in(verdict.anomalies, verdict.committed))
}

/// The same in numbers: "Read committed: 4,450 of 21,126 transactions went wrong, with 4,450 lost
/// updates.". `None` without anomalies.
pub fn damage_in_numbers(candidate: &Candidate<'_>) -> Option<String> {
    let verdict = candidate.cell.summary.verdict.as_ref().filter(|verdict| verdict.anomalies > 0)?;
    let listed: Vec<String> = candidate.kinds().into_iter().map(kind_counted).collect();
    let tables = tables(candidate).map_or_else(String::new, |tables| format!("; afterwards {tables}"));
    Some(format!(
        "{}: {} of {} transactions went wrong, with {}{tables}.",
        capital(&candidate.name),
        count(verdict.anomalies),
        count(verdict.committed),
        enumerated(&listed)
    ))
}

/// The condition that was found violated, with an example.
fn tables(candidate: &Candidate<'_>) -> Option<String> {
    let rounds = candidate.cell.rounds.iter();
    let mut violated = rounds.flat_map(|round| &round.invariants).filter(|one| one.held == Some(false));
    let first = violated.next()?;
    let detail = if first.detail.is_empty() { String::new() } else { format!(" ({})", first.detail) };
    Some(format!("\"{}\" didn't hold{detail}", first.name))
}

/// What a level did that shows this anomaly.
fn deed(kind: &AnomalyCount) -> &'static str {
    match kind.known_as.as_str() {
        "lost update" => "lost updates",
        "write skew" => "let write skew through",
        "read skew" => "showed inconsistent states",
        "phantom" => "let phantoms through",
        _ => "let anomalies through",
    }
}

/// A kind with its number: "4,450 lost updates".
fn kind_counted(kind: &AnomalyCount) -> String {
    match kind.known_as.as_str() {
        name @ ("lost update" | "read skew" | "write skew" | "phantom") => counted(kind.count, name),
        name => format!("{} × {name}", count(kind.count)),
    }
}

/// The number of transactions in which nothing was found, in words.
pub fn nothing_found(candidate: &Candidate<'_>) -> String {
    match candidate.safety {
        Safety::Safe(committed) => {
            format!("nothing wrong was found in {}", counted(committed, "transaction"))
        }
        _ => "every condition on the tables held".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(mean: f64, ends: Option<(f64, f64)>, significant: bool) -> RatioToFirst {
        let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
        RatioToFirst {
            to: "read committed".to_owned(),
            mean,
            low,
            high,
            significant,
            ..RatioToFirst::default()
        }
    }

    #[test]
    fn ratios_are_said_as_costs() {
        for (ratio, said) in [
            (ratio(0.92, Some((0.86, 0.98)), true), "costs 8 % (2 to 14 %) against x"),
            (ratio(1.12, Some((1.03, 1.22)), true), "commits 12 % more (3 to 22 %) than x"),
            (ratio(2.0, Some((1.8, 2.2)), true), "commits 2.00 times as much (1.80 to 2.20) as x"),
            (ratio(0.97, Some((0.9, 1.05)), false), "makes no measurable difference to x (−10 % to +5 %)"),
            (
                ratio(0.75, Some((0.0, 701.0)), false),
                "can't be told from x in these rounds (−100 % to +70,000 %)",
            ),
            (
                ratio(0.38, None, false),
                "commits 0.38 × (−62 %) as much as x, in too few rounds for an interval",
            ),
            (ratio(0.0, Some((0.0, 0.0)), true), "commits nothing, unlike x"),
            (ratio(0.997, Some((0.995, 0.999)), true), "costs 0.3 % (0.1 to 0.5 %) against x"),
        ] {
            assert_eq!(cost(&ratio, "x"), said);
        }
        let dear = ratio(0.4, Some((0.36, 0.45)), true);
        assert_eq!(would_cost(&dear, "serializable", "x"), "serializable would cost 60 % (55 to 64 %)");
        let same = ratio(0.97, Some((0.9, 1.05)), false);
        assert!(would_cost(&same, "serializable", "x").starts_with("serializable makes no measurable"));
    }

    #[test]
    fn shares_are_said_as_one_in_so_many() {
        for (wrong, of, said) in [
            (4450, 21_126, "1 transaction in 5"),
            (1, 1_000_000, "1 transaction in 1,000,000"),
            (1, 3, "1 transaction in 3"),
            (1, 2, "50 % of all transactions"),
            (99, 100, "99 % of all transactions"),
            (7, 7, "every transaction"),
            (0, 0, "every transaction"),
        ] {
            assert_eq!(one_in(wrong, of), said);
        }
    }
}
