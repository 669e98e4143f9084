//! `isobench audit`: a checked workload at several levels, one after the other, and the guarantees
//! that each level kept.
//!
//! The measurement is that of `compare`; this file prints the reports on the histories.

use std::fmt::Write as _;

use isobench_result::Document;

use super::compare::carry_out;
use crate::options::AuditOptions;
use isobench_comparison::Judgements;
use isobench_comparison::{Failure, Outcome};

/// Carries out the audit, and prints the answer of the comparison, followed by what the history of each level
/// shows.
///
/// # Errors
/// Wrong options, a workload without a history, no server, an incomplete measurement, a broken
/// promise.
pub fn audit(options: AuditOptions) -> Outcome {
    let options = options.resolve();
    if options.no_verdict {
        return Err(Failure::setup("--no-verdict: an audit without a verdict is isobench compare"));
    }
    let Some(comparison) = carry_out(&options)? else { return Ok(()) };
    let reports = reports(&comparison.document, &comparison.judgements, comparison.in_full());
    if let Some(text) = comparison.where_histories_are() {
        eprintln!("{text}");
    }
    comparison.finish(&reports)
}

/// The report on each cell, below a heading: in full, or the guarantees and the anomalies.
fn reports(document: &Document, judgements: &Judgements, in_full: bool) -> String {
    let mut text = String::new();
    for (cell, judgement) in document.cells.iter().zip(judgements) {
        let Some(judgement) = judgement else { continue };
        let plural = if cell.clients == 1 { "" } else { "s" };
        let mut heading =
            format!("{}, {}, {} client{plural}", cell.workload, cell.level.name(), cell.clients);
        let varied = cell.varied.iter().map(|(name, value)| format!("{name} {value}"));
        for more in cell.strategy.clone().into_iter().chain(varied) {
            heading = heading + ", " + &more;
        }
        let report = if in_full { judgement.trim_end().to_owned() } else { briefly(judgement) };
        // Writing to a String can't fail.
        let _ = writeln!(text, "\n{heading}\n{}\n{report}", "═".repeat(heading.chars().count()));
    }
    if !in_full && !text.is_empty() {
        text.push_str("\nOne witness of each anomaly: --details\n");
    }
    text
}

/// The guarantees, and the table of anomalies if there are any.
fn briefly(report: &str) -> String {
    let mut parts = report.split("\n\n");
    let guarantees = parts.next().unwrap_or_default();
    match parts.next().filter(|part| part.starts_with("anomaly ")) {
        Some(anomalies) => format!("{guarantees}\n\n{}", anomalies.trim_end()),
        None => guarantees.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_report_has_guarantees_and_anomalies() {
        let report =
            "Nothing contradicts x.\nThe strongest: y.\n\nanomaly  count\nP4           7\n\nP4: words\n";
        assert_eq!(
            briefly(report),
            "Nothing contradicts x.\nThe strongest: y.\n\nanomaly  count\nP4           7"
        );
        assert_eq!(briefly("Nothing contradicts x.\n\nExamined: 3\n"), "Nothing contradicts x.");
    }
}
