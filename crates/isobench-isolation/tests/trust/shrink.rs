//! Shrinks a history that fails a test, as long as it fails.

use isobench_isolation::History;
use isobench_isolation::history::{Draft, text};

/// The smallest history that still fails, in the text format, after the reason.
pub fn report(history: &History, failure: &dyn Fn(&History) -> Option<String>) -> String {
    let mut smallest = history.clone();
    loop {
        let smaller = candidates(&smallest).find(|candidate| failure(candidate).is_some());
        match smaller {
            Some(smaller) => smallest = smaller,
            None => break,
        }
    }
    format!("{}\n{}", failure(&smallest).unwrap_or_default(), text::print(&smallest))
}

/// The history without one transaction, or without one operation.
fn candidates(history: &History) -> impl Iterator<Item = History> {
    let count = history.transactions().len();
    let transactions = (0..count).map(|index| without(history, index, None));
    let operations = (0..count).flat_map(move |index| {
        (0..history.operations(index).len()).map(move |place| without(history, index, Some(place)))
    });
    transactions.chain(operations)
}

fn without(history: &History, index: usize, place: Option<usize>) -> History {
    let mut smaller = History::new(history.tables().to_vec());
    for (at, transaction) in history.transactions().iter().enumerate() {
        let mut draft = Draft::new();
        for (step, operation) in history.operations(at).enumerate() {
            if at != index || place.is_some_and(|place| place != step) {
                draft.push(operation);
            }
        }
        if at != index || place.is_some() {
            smaller.push(*transaction, &draft);
        }
    }
    smaller
}
