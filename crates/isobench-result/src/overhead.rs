//! The cost of each level beside the first one, for each value of the parameters that a plan
//! varies; and the predicate locks held.
//!
//! The study of E5: what a scan pays for remembering what it has read. Not here: the ratios
//! (`summarise`), the figure of the same (`html/chart/against`).

use crate::document::{Cell, Document, PredicateLocks, RatioToFirst};
use crate::factor::{Factor, strategies_vary, varying};
use crate::rounds::counted_rounds;
use crate::view::{Entry, Estimate, Heading, Table};

/// The legend of the table's columns, a sentence each.
pub const LEGEND: [&str; 2] = [
    "Overhead: further time per committed transaction, against the first level in the same rounds; \
     with the 95 % interval.",
    "Predicate locks: the most that any sample found, by what they cover. Locks on tuples are \
     promoted to pages, and these to relations, where there are many.",
];

/// The table: a row for each combination and each level but the first. `None` if no parameter
/// varies, or strategies do, too, which cost more than levels.
pub fn table(document: &Document) -> Option<Table> {
    let factors = varying(document);
    let parameters = factors.iter().any(Factor::is_varied);
    if !parameters || strategies_vary(document) {
        return None;
    }
    let compared: Vec<(&Cell, &RatioToFirst)> =
        document.cells.iter().filter_map(|cell| Some((cell, compared(cell)?))).collect();
    let (first, _) = compared.first()?;
    let several = compared.iter().any(|(cell, _)| cell.level != first.level);
    let locks = compared.iter().any(|(cell, _)| cell.summary.predicate_locks.is_some_and(|locks| locks > 0));
    let mut columns: Vec<Heading> = factors.iter().map(Factor::heading).collect();
    if several {
        columns.push(Heading::new("level", "", false));
    }
    columns.push(Heading::new("against", "first level", true));
    columns.push(Heading::new("overhead", "", true));
    if locks {
        columns.extend(
            PredicateLocks::GRANULARITIES.map(|(name, _)| Heading::new(format!("{name}s"), "locked", true)),
        );
    }
    let row = |(cell, ratio): &(&Cell, &RatioToFirst)| {
        let mut entries: Vec<Entry> = factors.iter().map(|factor| factor.value(cell).into()).collect();
        if several {
            entries.push(cell.level.name().into());
        }
        entries.push(Entry::ratio(ratio.mean, ratio.low.zip(ratio.high), ratio.significant));
        entries.push(Entry::Change(overhead(ratio)));
        if locks {
            entries.extend(PredicateLocks::GRANULARITIES.map(|(_, counts)| Entry::Count(most(cell, counts))));
        }
        entries
    };
    Some(Table::new(columns, compared.iter().map(row)))
}

/// The ratio of a cell to another one than itself, of a level that is measured for its own sake and
/// not paced.
pub fn compared(cell: &Cell) -> Option<&RatioToFirst> {
    let ratio = cell.summary.ratio.as_ref()?;
    let own = ratio.to != cell.level.name() && !cell.calibration && cell.rate.is_none();
    (own && ratio.mean > 0.0).then_some(ratio)
}

/// A rate that is half as high takes twice the time: an overhead of 100 %.
fn overhead(ratio: &RatioToFirst) -> Estimate {
    let further = |rate: f64| 1.0 / rate - 1.0;
    let ends = ratio.low.zip(ratio.high).filter(|(low, _)| *low > 0.0);
    Estimate { value: Some(further(ratio.mean)), ends: ends.map(|(low, high)| (further(high), further(low))) }
}

fn most(cell: &Cell, counts: fn(&PredicateLocks) -> &[u64]) -> Option<u64> {
    let rounds = counted_rounds(cell);
    let held = rounds.iter().filter_map(|round| round.server.as_ref()?.predicate_locks.as_ref());
    held.flat_map(counts).max().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Medium;

    #[test]
    fn half_the_rate_is_twice_the_time() {
        let ratio = |mean: f64, low: f64, high: f64| RatioToFirst {
            mean,
            low: Some(low),
            high: Some(high),
            ..RatioToFirst::default()
        };
        let overhead = |ratio: &RatioToFirst| -> Vec<String> {
            let lines = Entry::Change(overhead(ratio)).lines(Medium::Text);
            lines.into_iter().map(|line| line.text).collect()
        };
        assert_eq!(overhead(&ratio(0.5, 0.4, 0.625)), ["+100.0 %", "+60.0 % to +150.0 %"]);
        assert_eq!(overhead(&ratio(1.25, 1.0, 1.6)), ["−20.0 %", "−37.5 % to +0.0 %"]);
        assert_eq!(overhead(&ratio(0.5, 0.0, 1.0)), ["+100.0 %"]);
    }
}
