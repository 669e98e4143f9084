//! The verdicts of the levels in words, below the table: proved by a history, or not proved at all.
//!
//! Not here: the columns of the table.

use std::fmt::Write as _;

use isobench_isolation::{Model, Order};

use isobench_result::document::{AnomalyCount, AnomalyFound, Cell, VerdictSummary};
use isobench_result::numbers::{count, counted};
use isobench_result::seen::{cut, of_step};
use isobench_result::words::distinct;

/// The evidence of the histories of a level's cells; `None` if none was recorded.
pub fn verdict(cells: &[&Cell]) -> Option<String> {
    let verdicts: Vec<&VerdictSummary> =
        cells.iter().filter_map(|cell| cell.summary.verdict.as_ref()).collect();
    if verdicts.is_empty() {
        return None;
    }
    let reasons: Vec<&str> =
        verdicts.iter().flat_map(|verdict| &verdict.withheld).map(String::as_str).collect();
    if let Some(first) = reasons.first() {
        let more = reasons.len() - 1;
        let more =
            if more == 0 { String::new() } else { format!("; and {}", counted(more as u64, "more reason")) };
        return Some(format!("the verdict is withheld: {first}{more}"));
    }
    let committed = verdicts.iter().map(|verdict| verdict.committed).fold(0, u64::saturating_add);
    let looked = format!("in the history of {}", counted(committed, "committed transaction"));
    let models = models(&verdicts);
    let kinds = AnomalyCount::add_up(verdicts.iter().flat_map(|verdict| verdict.kinds.clone()));
    let (by_data, by_order): (Vec<_>, Vec<_>) =
        kinds.into_iter().partition(|kind| kind.order == Order::Data.name());
    let blind = by_data.is_empty() && verdicts.iter().all(|verdict| verdict.nothing_shared);
    let mut text = if blind {
        format!("{looked} no transaction read or overwrote what another wrote, so no anomaly was possible")
    } else if by_data.is_empty() {
        format!("{looked} nothing contradicts {models}, which is no proof")
    } else {
        let least = if verdicts.iter().any(|verdict| verdict.at_least) { "at least " } else { "" };
        let allowed = if verdicts.iter().any(|verdict| verdict.models.is_empty()) {
            "which contradicts every level".to_owned()
        } else {
            format!("so the level gave no more than {models}")
        };
        format!("{looked} there is {least}{}, {allowed}", listed(&by_data))
    };
    for order in [Order::Session, Order::RealTime] {
        let kinds: Vec<AnomalyCount> =
            by_order.iter().filter(|kind| kind.order == order.name()).cloned().collect();
        if !kinds.is_empty() {
            let by = if order == Order::Session { "each client's own order" } else { "real time" };
            // Writing to a String can't fail.
            let _ = write!(text, "; by {by}, which is not promised, {}", listed(&kinds));
        }
    }
    Some(text)
}

/// The strongest models that no cell contradicts: what one of them shows isn't undone by another.
fn models(verdicts: &[&VerdictSummary]) -> String {
    let allowed: Vec<Model> = Model::ALL
        .into_iter()
        .filter(|model| verdicts.iter().all(|verdict| verdict.allows(*model)))
        .collect();
    Model::strongest(&allowed).into_iter().map(Model::name).collect::<Vec<_>>().join(" or ")
}

fn listed(kinds: &[AnomalyCount]) -> String {
    let one = |kind: &AnomalyCount| format!("{} × {}", count(kind.count), title(&kind.known_as, &kind.name));
    kinds.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The proof of a broken promise, step by step; `None` if none is broken.
pub fn broken(cells: &[&Cell]) -> Option<String> {
    let rounds = cells.iter().filter(|cell| cell.breaks_promise()).flat_map(|cell| &cell.rounds);
    let verdict = rounds.filter(|round| round.breaks_promise()).find_map(|round| round.verdict.as_ref())?;
    let anomaly: &AnomalyFound = verdict.anomalies.iter().find(|anomaly| anomaly.breaks_promise)?;
    let statements = distinct(anomaly.statements.iter().flat_map(|step| of_step(step)));
    let statements: Vec<String> =
        statements.into_iter().map(|statement| cut(statement, LONGEST_STATEMENT)).collect();
    let ran = if statements.is_empty() {
        String::new()
    } else {
        format!(" The statements: {}.", statements.join("; "))
    };
    Some(format!(
        "PROMISE BROKEN: {} is promised, but there was {}: {}.{ran}",
        verdict.promised.as_deref().unwrap_or("more"),
        title(&anomaly.known_as, &anomaly.name),
        anomaly.witness.join("; ").trim_end_matches('.')
    ))
}

/// The most letters of a statement that is named beside a proof.
const LONGEST_STATEMENT: usize = 120;

/// The common name of an anomaly, and its name in the literature where that is another.
fn title(known_as: &str, name: &str) -> String {
    if known_as == name { name.to_owned() } else { format!("{known_as} ({name})") }
}

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Level};

    use super::*;
    use isobench_result::document::CellLevel;

    /// A cell with these models left, and a lost update if they are fewer than serializable's.
    fn cell(model: Model, lost_updates: u64) -> Cell {
        let level = CellLevel::new(Some(Level::ReadCommitted), EffectiveLevel::Unknown);
        let mut cell = Cell::new("w", level);
        let kind = AnomalyCount {
            known_as: "lost update".to_owned(),
            name: "P4".to_owned(),
            order: Order::Data.name().to_owned(),
            count: lost_updates,
        };
        cell.summary.verdict = Some(VerdictSummary {
            models: vec![model.name().to_owned()],
            kinds: if lost_updates > 0 { vec![kind] } else { Vec::new() },
            committed: 100,
            ..VerdictSummary::default()
        });
        cell
    }

    /// A cell without anomalies doesn't make the level more than another cell shows that it is.
    #[test]
    fn cells_together_show_the_weakest() {
        let (clean, skewed) = (cell(Model::Serializable, 0), cell(Model::SnapshotIsolation, 0));
        let lost = cell(Model::ReadCommitted, 7);
        let said = |cells: &[&Cell]| verdict(cells).expect("verdicts");
        assert_eq!(
            said(&[&clean, &lost]),
            "in the history of 200 committed transactions there is 7 × lost update (P4), so the \
             level gave no more than read committed"
        );
        let nothing = "nothing contradicts snapshot isolation, which is no proof";
        assert!(said(&[&skewed, &clean]).ends_with(nothing), "{}", said(&[&skewed, &clean]));
    }
}
