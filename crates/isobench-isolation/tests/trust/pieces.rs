//! The check piece by piece against the check of the whole history at once: the same results, with
//! parts and pieces of the usual size and with the smallest possible, from memory and from a
//! recording.

use isobench_isolation::History;
use isobench_isolation::check::{self, Options, Pieces, Report, check_recording, render};
use isobench_isolation::history::binary;

/// Checks a history in all ways.
///
/// # Panics
/// If the results differ.
pub fn check(history: &History, options: &Options) -> Report {
    let with = |pieces| Options { pieces, ..options.clone() };
    let whole = check::check(history, &with(Pieces::Whole));
    for pieces in [Pieces::Usual, Pieces::Smallest] {
        let report = check::check(history, &with(pieces));
        assert_eq!(report, whole, "{pieces:?}, of {history:#?}");
    }
    if history.initial().is_empty() {
        recorded(history, &whole, options);
    }
    whole
}

/// Checks a recording of the history.
fn recorded(history: &History, whole: &Report, options: &Options) {
    let mut bytes = Vec::new();
    binary::write(history, &mut bytes).expect("memory can be written");
    let checked = check_recording(bytes.as_slice(), false, options).expect("a recording");
    assert!(checked.problem.is_none());
    assert_eq!(render(&checked.report), render(whole), "of {history:#?}");
    let mut report = checked.report;
    let id = |index: usize| checked.witnesses.transactions()[index].id;
    let own = |index: usize| history.transactions()[index].id;
    for (finding, expected) in report.findings.iter_mut().zip(&whole.findings) {
        for (step, expected) in finding.witness.steps.iter_mut().zip(&expected.witness.steps) {
            assert_eq!((id(step.from), id(step.to)), (own(expected.from), own(expected.to)));
            (step.from, step.to) = (expected.from, expected.to);
        }
    }
    assert_eq!(report, *whole, "of {history:#?}");
}
