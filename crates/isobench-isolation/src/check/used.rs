//! Judges a history by what its transactions used of what they read, where that is known
//! ([`crate::observed`]'s `usage`).
//!
//! Whether the level, or each transaction's own, kept its promise is a question of the history as it
//! is, row by row: it is answered before, and stays. What was wrong for the application is a question
//! of what was used: its findings replace those of the whole history.

use super::report::{Finding, LostBetween, Report, WritingBack, WrittenBack};
use super::{Options, check};
use crate::anomaly::Anomaly;
use crate::history::History;
use crate::model::Order;

/// Judges a history, of which `report` is the whole, by use. Returns the history that the findings'
/// witnesses refer to.
pub fn by_use(history: History, mut report: Report, options: &Options) -> (History, Report) {
    let levels = options.levels.filter(|_| report.mixed.is_some());
    let without_promise = Options { promised: None, levels, ..options.clone() };
    let by_data = Options { order: Order::Data, levels: None, between: false, ..without_promise.clone() };
    let used = (!report.findings.is_empty() || options.between).then(|| history.used()).flatten();
    let of_use = used.as_ref().map(|used| check(used, &without_promise));
    if let Some(carried) = history.carried().and_then(|carried| carried.used()) {
        let within = of_use.as_ref().map_or(report.anomalous, |of_use| of_use.anomalous);
        report.lost_between = lost_between(check(&carried, &by_data), within);
    }
    let (Some(used), Some(of_use)) = (used, of_use) else { return (history, report) };
    report.between = of_use.between;
    if report.findings.is_empty() {
        return (history, report);
    }
    report.harmless = report.anomalous.saturating_sub(of_use.anomalous);
    if report.verdict.kept == Some(false) {
        return (history, report);
    }
    report.anomalous = of_use.anomalous;
    if let (Some(mixed), Some(of_use)) = (&mut report.mixed, of_use.mixed) {
        mixed.permitted = of_use.permitted;
    }
    report.findings = of_use.findings;
    report.written_back = written_back(&used, &report, &by_data);
    if report.verdict.withheld.is_empty() {
        report.verdict.not_contradicted = of_use.verdict.not_contradicted;
    }
    (used, report)
}

/// What shows only if values that were carried from one transaction to another are taken together.
fn lost_between(together: Report, within: u64) -> Option<LostBetween> {
    let count = together.anomalous.saturating_sub(within);
    let first: Option<Finding> = together.findings.into_iter().next();
    first.filter(|_| count > 0).map(|example| LostBetween { count, example })
}

/// What shows only because columns are written back as they were read.
fn written_back(used: &History, report: &Report, by_data: &Options) -> Option<WrittenBack> {
    let found = |report: &Report| -> Vec<Anomaly> {
        let by_data = report.findings.iter().filter(|finding| finding.order == Order::Data);
        by_data.map(|finding| finding.anomaly).collect()
    };
    let with = found(report);
    if with.is_empty() {
        return None;
    }
    let without = check(&used.without_unchanged()?, by_data);
    let left = found(&without);
    let anomalies: Vec<Anomaly> = with.into_iter().filter(|anomaly| !left.contains(anomaly)).collect();
    let transactions = report.anomalous.saturating_sub(without.anomalous);
    let statements: Vec<WritingBack> = used.writing_back().collect();
    let shows = transactions > 0 || !anomalies.is_empty();
    shows.then_some(WrittenBack { statements, transactions, anomalies })
}
