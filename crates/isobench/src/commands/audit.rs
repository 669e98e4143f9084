//! `isobench audit`: a checked workload at several levels, one after the other, and the guarantees
//! that each level kept.
//!
//! The measurement is that of `compare`, and so is the report, with what the histories show. This file
//! prints the reports on the histories in full (`--details`).

use std::fmt::Write as _;

use isobench_result::Document;

use super::compare::carry_out;
use crate::options::AuditOptions;
use isobench_comparison::Judgements;
use isobench_comparison::{Failure, Outcome};

/// Carries out the audit, and prints the answer of the comparison with the anomalies of each level.
///
/// # Errors
/// Wrong options, a workload without a history, no server, an incomplete measurement, a broken
/// promise.
pub fn audit(options: AuditOptions) -> Outcome {
    let options = options.resolve();
    if options.no_verdict {
        return Err(Failure::setup("--no-verdict: an audit without a verdict is isobench compare"));
    }
    let Some(mut comparison) = carry_out(&options)? else { return Ok(()) };
    comparison.show_histories();
    let in_full = comparison.in_full();
    let reports = if in_full { reports(&comparison.document, &comparison.judgements) } else { String::new() };
    if let Some(text) = comparison.where_histories_are() {
        eprintln!("{text}");
    }
    comparison.finish(&reports)
}

/// The report on each cell in full, below a heading.
fn reports(document: &Document, judgements: &Judgements) -> String {
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
        let line = "═".repeat(heading.chars().count());
        // Writing to a String can't fail.
        let _ = writeln!(text, "\n{heading}\n{line}\n{}", judgement.trim_end());
    }
    text
}
