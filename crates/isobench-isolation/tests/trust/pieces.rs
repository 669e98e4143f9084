//! The check piece by piece against the check of the whole history at once: the same results, with
//! parts and pieces of the usual size and with the smallest possible, from memory, from a
//! recording, and from the recordings of two machines.

use isobench_isolation::History;
use isobench_isolation::check::{self, GrowingRecording, Options, Pieces, Report, check_recording, render};
use isobench_isolation::history::Draft;
use isobench_isolation::history::binary::{self, Encoder};

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
        if history.provenance().is_none() {
            on_two_machines(history, options);
        }
    }
    whole
}

/// Checks the recordings of two machines, which have half of the clients each, against the check of
/// their concatenation. (Where versions can't be told apart, the order of the transactions decides
/// which is which.)
fn on_two_machines(history: &History, options: &Options) {
    let mut machines = [Encoder::new(), Encoder::new()];
    let mut whole = History::new(history.tables().to_vec());
    whole.set_dropped(history.dropped());
    let mut draft = Draft::new();
    for (number, machine) in machines.iter_mut().enumerate() {
        for (index, transaction) in history.transactions().iter().enumerate() {
            if transaction.client as usize % 2 == number {
                draft.fill(history, index);
                machine.push(transaction, &draft);
                whole.push(*transaction, &draft);
            }
        }
    }
    let mut recording = GrowingRecording::new(history.tables());
    for mut machine in machines.into_iter().filter(|machine| !machine.is_empty()) {
        let mut adopted = Encoder::new();
        let chunk = machine.take();
        adopted.adopt(&chunk, history.tables(), 0).expect("a chunk");
        let again = adopted.take();
        assert_eq!(again, chunk, "nothing changes on the way");
        recording.add(&again).expect("a chunk");
    }
    let (report, _) = recording.check(history.dropped(), options).expect("memory can be read");
    assert_eq!(render(&report), render(&check::check(&whole, options)), "of {whole:#?}");
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
    let broken = report.mixed.iter_mut().flat_map(|mixed| &mut mixed.broken).map(|it| &mut it.finding);
    let expected = whole.mixed.iter().flat_map(|mixed| &mixed.broken).map(|it| &it.finding);
    let expected = whole.findings.iter().chain(expected);
    for (finding, expected) in report.findings.iter_mut().chain(broken).zip(expected) {
        for (step, expected) in finding.witness.steps.iter_mut().zip(&expected.witness.steps) {
            assert_eq!((id(step.from), id(step.to)), (own(expected.from), own(expected.to)));
            (step.from, step.to) = (expected.from, expected.to);
        }
    }
    assert_eq!(report, *whole, "of {history:#?}");
}
