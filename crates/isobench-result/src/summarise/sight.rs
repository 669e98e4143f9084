//! The limits of what was seen of a cell's transactions, and what no level protects in them.

use std::collections::BTreeSet;

use crate::document::{Cell, ClearedTransactions, Document, Observation, Round, VerdictSummary};
use crate::seen::place;
use crate::words::distinct;

/// Adds to the evidence of a cell what could matter and wasn't seen, and which values its scripts
/// carry from one transaction to another.
pub(super) fn with_limits(document: &Document, cell: &Cell, verdict: VerdictSummary) -> VerdictSummary {
    let own = || document.observations.iter().filter(|observation| is_of(observation, cell));
    let verdicts = cell.rounds.iter().filter_map(|round| round.verdict.as_ref());
    let unsearched: BTreeSet<&String> = verdicts.flat_map(|verdict| &verdict.unsearched).collect();
    let statements = own().flat_map(|observation| &observation.statements);
    let unseen = statements.filter_map(|statement| {
        let place = place(statement);
        let sometimes = statement.matters_if_unsearched.as_ref().filter(|_| unsearched.contains(&place));
        let matters = statement.matters.as_ref().or(sometimes)?;
        Some(format!("{place} {matters}"))
    });
    let carried = own()
        .flat_map(|observation| &observation.carried)
        .map(|value| format!("{} writes what {} read in another transaction", value.written, value.read));
    let clear = verdict.cleared.as_ref().is_some_and(ClearedTransactions::is_all);
    let level = cell.level.asked().and_then(|asked| asked.level());
    let proved = own().any(|observation| level.is_some_and(|level| observation.proved.contains(&level)));
    let unseen = unseen.filter(|_| !clear && !proved);
    VerdictSummary { unseen: distinct(unseen), carried: distinct(carried), ..verdict }
}

/// True if a cell's transactions are of an observed workload.
pub(crate) fn is_of(observation: &Observation, cell: &Cell) -> bool {
    let strategy = observation.strategy.as_deref();
    observation.workload == cell.workload && strategy.is_none_or(|strategy| strategy == cell.strategy())
}

/// The transactions that wrote what had changed since another transaction of theirs read it.
pub fn lost_between(rounds: &[Round]) -> u64 {
    let verdicts = rounds.iter().filter_map(|round| round.verdict.as_ref());
    verdicts.filter_map(|verdict| Some(verdict.lost_between.as_ref()?.count)).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isobench_isolation::{EffectiveLevel, Level};
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;
    use crate::document::{CarriedValue, CellLevel, Client, ObservedStatement, Plan, Server, Verdict};

    #[test]
    fn limits_are_those_of_the_cells_own_scripts() {
        let statement = |line: u32, matters: Option<&str>| ObservedStatement {
            script: "a.sql".to_owned(),
            line,
            matters: matters.map(str::to_owned),
            ..ObservedStatement::default()
        };
        let observation = |workload: &str, strategy: Option<&str>, line: u32| Observation {
            workload: workload.to_owned(),
            strategy: strategy.map(str::to_owned),
            statements: vec![statement(line, Some("decides an INSERT")), statement(9, None)],
            carried: vec![CarriedValue { read: "a.sql:1".to_owned(), written: format!("a.sql:{line}") }],
            ..Observation::default()
        };
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.observations = vec![
            observation("a", None, 2),
            observation("a", None, 2),
            observation("a", Some("other"), 3),
            observation("b", None, 4),
        ];
        let cell = Cell::new("a", CellLevel::new(None, EffectiveLevel::Unknown));
        let found = with_limits(&document, &cell, VerdictSummary::default());
        assert_eq!(found.unseen, ["a.sql:2 decides an INSERT"]);
        assert_eq!(found.carried, ["a.sql:2 writes what a.sql:1 read in another transaction"]);
        let mut sometimes = statement(5, None);
        sometimes.matters_if_unsearched = Some("flows into an UPDATE".to_owned());
        document.observations[0].statements.push(sometimes);
        let second = Duration::from_secs(1);
        for (unsearched, unseen) in [("a.sql:4", 1), ("a.sql:5", 2)] {
            let verdict = Verdict { unsearched: vec![unsearched.to_owned()], ..Verdict::default() };
            let mut round =
                Round::from_ledger(1, &Ledger::default(), &LatencyHistogram::new(), second, vec![]);
            round.verdict = Some(verdict);
            let cell = Cell { rounds: vec![round], ..cell.clone() };
            let found = with_limits(&document, &cell, VerdictSummary::default());
            assert_eq!(found.unseen.len(), unseen, "{:?}", found.unseen);
        }
        document.observations[0].statements.pop();
        document.observations.truncate(1);
        document.observations[0].proved = vec![Level::ReadCommitted];
        for (level, unseen) in [(Some(Level::ReadCommitted), 0), (Some(Level::RepeatableRead), 1), (None, 1)]
        {
            let cell = Cell::new("a", CellLevel::new(level, EffectiveLevel::Unknown));
            let found = with_limits(&document, &cell, VerdictSummary::default());
            assert_eq!((found.unseen.len(), found.carried.len()), (unseen, 1), "{level:?}");
        }
        for (cleared, why_not, unseen) in [(3, None, 0), (2, None, 1), (3, Some("the log wasn't read"), 1)] {
            let why_not = why_not.map(str::to_owned);
            let cleared = Some(ClearedTransactions { dark: 3, cleared, why_not });
            let found =
                with_limits(&document, &cell, VerdictSummary { cleared, ..VerdictSummary::default() });
            assert_eq!((found.unseen.len(), found.carried.len()), (unseen, 1));
        }
    }
}
