//! Cost and damage in words.
//!
//! Not here: when they are said (`rules`, `reasons`).

use super::evidence::{Candidate, Evidence, SafetyEvidence};
use crate::document::{AnomalyCount, AnomalyFound, RatioToFirst, WrongOutcome, are_alike};
use crate::numbers::{count, counted, short, whole_percent};
use crate::summarise::lost_between as lost_between_transactions;
use crate::words::{capital, enumerated};

/// An interval that spans this factor says nothing, so its ends aren't worth reading.
const UNKNOWN: f64 = 4.0;

/// What one candidate costs or gains against another, as a clause: "costs 8 % (2 to 14 %) against
/// read committed".
pub fn cost(ratio: &RatioToFirst, to: &str) -> String {
    if ratio.mean == 0.0 {
        return format!("commits nothing, unlike {to}");
    }
    let Some(ends) = ratio.low.zip(ratio.high) else {
        let times = times(ratio.mean);
        return format!("commits {times} as much as {to}, in too few rounds for an interval");
    };
    let (low, high) = ends;
    let share = |factor: f64| whole_percent((factor - 1.0).abs());
    match ratio.mean {
        _ if !ratio.significant && are_alike(ends) => {
            format!("costs the same as {to} within 5 % ({})", range(ends))
        }
        _ if !ratio.significant && high > UNKNOWN * low => {
            format!("needs more rounds to compare with {to}")
        }
        _ if !ratio.significant => format!("shows no measurable difference to {to} ({})", range(ends)),
        mean if mean < 1.0 => {
            format!("costs {} %{} against {to}", share(mean), span(&share(high), &share(low), " %"))
        }
        mean if mean < 1.5 => {
            format!("commits {} % more{} than {to}", share(mean), span(&share(low), &share(high), " %"))
        }
        mean => {
            let ends = span(&short(low), &short(high), "");
            format!("commits {} times as much{ends} as {to}", short(mean))
        }
    }
}

/// The ends of an interval in parentheses; nothing if they are written alike.
fn span(low: &str, high: &str, unit: &str) -> String {
    if low == high { String::new() } else { format!(" ({low} to {high}{unit})") }
}

/// An interval around 1 as a change: "−10 % to +5 %"; one number if its ends are written alike.
pub fn range((low, high): (f64, f64)) -> String {
    let (low, high) = (signed(low - 1.0), signed(high - 1.0));
    if low == high { low } else { format!("{low} to {high}") }
}

/// The share of its attempts that a candidate made again: "retried 42 % of its attempts"; `None` if it
/// is next to nothing.
pub fn retried(candidate: &Candidate<'_>) -> Option<String> {
    let share = candidate.cell.summary.conflict_ratio;
    (share >= 0.01).then(|| format!("retried {} % of its attempts", whole_percent(share)))
}

/// What wasn't seen of a candidate, in a clause: "reserve.sql:4 decides an INSERT and wasn't seen".
pub fn unseen(candidate: &Candidate<'_>) -> String {
    const MOST: usize = 3;
    let all = candidate.unseen();
    let named: Vec<String> =
        all.iter().take(MOST).map(|clause| format!("{clause} and wasn't tracked")).collect();
    match all.len().saturating_sub(MOST) {
        0 => enumerated(&named),
        1 => format!("{}; nor was 1 more statement", named.join(", ")),
        more => format!("{}; nor were {more} more statements", named.join(", ")),
    }
}

/// A ratio with what it means: `0.38 × (−62 %)`.
pub fn times(ratio: f64) -> String {
    format!("{} × ({})", short(ratio), signed(ratio - 1.0))
}

/// A share as a change, with its sign: "−62 %".
pub fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", whole_percent(share.abs()))
}

/// The share of transactions as people say it: "1 of every 5 transactions".
pub fn one_in(wrong: u64, of: u64) -> String {
    let share = wrong as f64 / of.max(1) as f64;
    match share {
        _ if wrong >= of => "every transaction".to_owned(),
        _ if share >= 0.4 => format!("{} % of all transactions", whole_percent(share)),
        _ => format!("1 of every {} transactions", count(of.saturating_add(wrong / 2) / wrong.max(1))),
    }
}

/// The damage that a candidate did, and where: "Read committed lost updates in 1 of every 5 transactions
/// (orders:7 → orders:15)."; of several kinds the gravest with its own number: "Read committed let 102
/// write skews through; in all, 1 of every 8 transactions had an anomaly.".
pub fn damage(candidate: &Candidate<'_>) -> String {
    let name = capital(&candidate.name);
    let verdict = candidate.cell.summary.verdict.as_ref().filter(|verdict| verdict.anomalies > 0);
    let Some(verdict) = verdict else {
        if let (Some(wrong), None) = (candidate.cell.wrong_outcomes().first(), tables(candidate)) {
            return format!("{name} is unsafe, as trying {} showed: {}.", wrong.scripts(), outcome(wrong));
        }
        let how = tables(candidate).map_or_else(String::new, |how| format!(": {how}"));
        return format!("{name} left the tables wrong{how}.");
    };
    let least = if verdict.at_least { "at least " } else { "" };
    let share = one_in(verdict.anomalies, verdict.committed);
    match candidate.kinds().as_slice() {
        [] => format!("{name} had anomalies in {least}{share}."),
        [kind] => format!("{name} {} in {least}{share}{}.", deed(kind), place(candidate, kind)),
        [gravest, ..] => format!(
            "{name} {least}{}{}; in all, {least}{share} had an anomaly.",
            counted_deed(gravest),
            place(candidate, gravest)
        ),
    }
}

/// What is wrong with an outcome, in a clause.
pub fn outcome(wrong: &WrongOutcome) -> String {
    let between = wrong.damage && wrong.no_level_prevents;
    let place = if between { "between two transactions of a script, which no level prevents, " } else { "" };
    format!("{place}{}", wrong.what())
}

/// The statements of an example of a kind: " (orders:7 → orders:15)"; empty if none is known.
fn place(candidate: &Candidate<'_>, kind: &AnomalyCount) -> String {
    let place = candidate.example(kind).and_then(AnomalyFound::place);
    place.map_or_else(String::new, |place| format!(" ({place})"))
}

/// The same in numbers, with where one of each kind happened: "Read committed: 4,450 of 21,126
/// transactions had an anomaly: 4,450 lost updates (orders:7 → orders:15).". `None` without anomalies.
pub fn damage_in_numbers(candidate: &Candidate<'_>) -> Option<String> {
    let verdict = candidate.cell.summary.verdict.as_ref().filter(|verdict| verdict.anomalies > 0)?;
    let kinds = candidate.kinds().into_iter();
    let listed: Vec<String> =
        kinds.map(|kind| format!("{}{}", kind_counted(kind), place(candidate, kind))).collect();
    let tables = tables(candidate).map_or_else(String::new, |tables| format!("; afterwards {tables}"));
    Some(format!(
        "{}: {} of {} transactions had an anomaly: {}{tables}.{}",
        capital(&candidate.name),
        count(verdict.anomalies),
        count(verdict.committed),
        enumerated(&listed),
        permitted(candidate)
    ))
}

/// That no promise covers the anomalies of a cell with a level for each script: " Nothing promises to
/// prevent this among these levels.". Empty if a promise was broken, or all have one level.
fn permitted(candidate: &Candidate<'_>) -> &'static str {
    let verdicts = candidate.cell.rounds.iter().filter_map(|round| round.verdict.as_ref()?.mixed.as_ref());
    let mut mixed = verdicts.filter(|mixed| mixed.serializable == Some(false)).peekable();
    let is_permitted = mixed.peek().is_some() && mixed.all(|mixed| mixed.broken.is_empty());
    if is_permitted { " Nothing promises to prevent this among these levels." } else { "" }
}

/// The condition that was found violated, with an example.
pub fn tables(candidate: &Candidate<'_>) -> Option<String> {
    let rounds = candidate.cell.rounds.iter();
    let mut violated = rounds.flat_map(|round| &round.invariants).filter(|one| one.held == Some(false));
    let first = violated.next()?;
    let detail = if first.detail.is_empty() { String::new() } else { format!(" ({})", first.detail) };
    Some(format!("\"{}\" didn't hold{detail}", first.name))
}

/// The transactions of a candidate that wrote what had changed since another one of theirs read it:
/// "Serializable: 1 of every 12 transactions wrote what had changed since it was read.". `None` if there were
/// none.
pub fn lost_between(candidate: &Candidate<'_>) -> Option<String> {
    let damage = lost_between_transactions(&candidate.cell.rounds);
    let committed = candidate.verdict()?.committed;
    (damage > 0).then(|| {
        let name = capital(&candidate.name);
        format!("{name}: {} wrote what had changed since it was read.", one_in(damage, committed))
    })
}

/// What a level did that shows this anomaly.
fn deed(kind: &AnomalyCount) -> &'static str {
    match kind.known_as.as_str() {
        "lost update" => "lost updates",
        "write skew" | "write skew on a predicate" => "let write skew through",
        "read skew" => "showed inconsistent states",
        "phantom" => "let phantoms through",
        "read-only anomaly" => "let read-only anomalies through",
        _ => "let anomalies through",
    }
}

/// The same with its number: "lost 121 updates".
fn counted_deed(kind: &AnomalyCount) -> String {
    match kind.known_as.as_str() {
        "lost update" => format!("lost {}", counted(kind.count, "update")),
        "read skew" => format!("showed {}", counted(kind.count, "inconsistent state")),
        _ => format!("let {} through", kind_counted(kind)),
    }
}

/// A kind with its number: "4,450 lost updates".
fn kind_counted(kind: &AnomalyCount) -> String {
    match kind.known_as.as_str() {
        "write skew on a predicate" if kind.count == 1 => "1 write skew on a predicate".to_owned(),
        "write skew on a predicate" => format!("{} write skews on predicates", count(kind.count)),
        "read-only anomaly" if kind.count == 1 => "1 read-only anomaly".to_owned(),
        "read-only anomaly" => format!("{} read-only anomalies", count(kind.count)),
        name @ ("lost update" | "read skew" | "write skew" | "phantom" | "long fork") => {
            counted(kind.count, name)
        }
        name => format!("{} × {name}", count(kind.count)),
    }
}

/// The grounds for calling a candidate safe, in words.
pub fn nothing_found(candidate: &Candidate<'_>, evidence: &Evidence<'_>) -> String {
    let conditions = candidate.cell.rounds.first().map_or(0, |round| round.invariants.len());
    let held = if conditions == 1 { "the condition held" } else { "the conditions held" };
    let shared = candidate.verdict().is_some_and(|verdict| !verdict.nothing_shared);
    match candidate.safety {
        // What the history would have shown wasn't seen.
        SafetyEvidence::Unseen(_) | SafetyEvidence::Tried(_)
            if candidate.held() && evidence.has_violations() =>
        {
            held.to_owned()
        }
        SafetyEvidence::Safe(_) if !shared => {
            "no transaction read or overwrote what another one wrote".to_owned()
        }
        SafetyEvidence::Safe(committed) | SafetyEvidence::Unseen(committed) => {
            let found = format!("no anomaly found in {}", counted(committed, "transaction"));
            match candidate.cell.tried.as_ref().map_or(0, |tried| tried.interleavings) {
                0 => found,
                tried => format!("{found} and {}", counted(tried, "interleaving")),
            }
        }
        SafetyEvidence::Tried(tried) => format!("nothing was found in {}", counted(tried, "interleaving")),
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
            (ratio(0.97, Some((0.9, 1.05)), false), "shows no measurable difference to x (−10 % to +5 %)"),
            (ratio(1.0, Some((0.97, 1.04)), false), "costs the same as x within 5 % (−3 % to +4 %)"),
            // An interval of such ends says nothing, and isn't worth reading.
            (ratio(0.75, Some((0.0, 701.0)), false), "needs more rounds to compare with x"),
            (ratio(0.45, Some((0.449, 0.451)), true), "costs 55 % against x"),
            (
                ratio(0.38, None, false),
                "commits 0.38 × (−62 %) as much as x, in too few rounds for an interval",
            ),
            (ratio(0.0, Some((0.0, 0.0)), true), "commits nothing, unlike x"),
            (ratio(0.0, None, false), "commits nothing, unlike x"),
            (ratio(0.997, Some((0.995, 0.999)), true), "costs 0.3 % (0.1 to 0.5 %) against x"),
        ] {
            assert_eq!(cost(&ratio, "x"), said);
        }
    }

    #[test]
    fn shares_are_said_as_one_in_so_many() {
        for (wrong, of, said) in [
            (4450, 21_126, "1 of every 5 transactions"),
            (1, 1_000_000, "1 of every 1,000,000 transactions"),
            (1, 3, "1 of every 3 transactions"),
            (1, 2, "50 % of all transactions"),
            (99, 100, "99 % of all transactions"),
            (7, 7, "every transaction"),
            (0, 0, "every transaction"),
        ] {
            assert_eq!(one_in(wrong, of), said);
        }
    }
}
