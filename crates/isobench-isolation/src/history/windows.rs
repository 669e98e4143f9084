//! Splits a history into windows of a number of transactions, in the order of their starts.
//!
//! Windows of a recording that isn't in memory are in `binary/windows.rs`, and checking windows in
//! the crate's `windows.rs`.

use super::{Draft, History};

/// The windows of a history, `size` transactions each. In each window all others count as dropped,
/// because they may have written the versions read.
pub fn windows(history: &History, size: usize) -> impl Iterator<Item = History> {
    let transactions = history.transactions();
    let mut order: Vec<usize> = (0..transactions.len()).collect();
    // The sort is stable: without instants the order is that of the history, and a client's
    // transactions stay in order.
    order.sort_by_key(|index| transactions[*index].begin);
    let size = size.max(1);
    let mut draft = Draft::new();
    (0..order.len().div_ceil(size)).map(move |number| {
        let members = &order[number * size..(number * size + size).min(order.len())];
        let mut window = history.blank();
        for index in members {
            draft.fill(history, *index);
            window.push(transactions[*index], &draft);
        }
        let others = (transactions.len() - members.len()) as u64;
        window.set_dropped(history.dropped().saturating_add(others));
        window
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::binary::{self, Windows};
    use super::super::{History, samples, text};
    use super::windows;

    fn texts(windows: impl Iterator<Item = History>) -> Vec<String> {
        windows.map(|window| text::print(&window)).collect()
    }

    #[test]
    fn a_window_has_the_transactions_that_began_next() {
        let text = "T1 client=0 30..31: w x = 1\nT2 client=1 10..50: w x = 2\nT3 client=0 40..41: w x = 3\n";
        let history = text::parse(text).expect("parses");
        let expected = [
            "dropped 1\nT2 client=1 10..50: w x = 2\nT1 client=0 30..31: w x = 1\n",
            "dropped 2\nT3 client=0 40..41: w x = 3\n",
        ];
        assert_eq!(texts(windows(&history, 2)), expected);
        assert_eq!(texts(windows(&history, 3)).len(), 1);
        assert_eq!(texts(windows(&History::default(), 3)).len(), 0);
        assert_eq!(texts(windows(&history, 0)).len(), 3);
    }

    /// Transactions that start at the same instant can be in different windows.
    fn differ(history: &History) -> bool {
        let mut begins: Vec<u64> =
            history.transactions().iter().map(|transaction| transaction.begin).collect();
        begins.sort_unstable();
        begins.windows(2).all(|two| two[0] < two[1]) || begins.iter().all(|begin| *begin == 0)
    }

    proptest! {
        // Generating whole histories takes a long time, especially in a debug build.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn those_of_a_file_are_those_of_its_history(
            list in proptest::collection::vec(samples::transactions(), 0..40),
            size in 1..10_usize,
            chunk in 1..10_usize,
            at_once in any::<bool>(),
        ) {
            let list: Vec<_> = list
                .into_iter()
                .enumerate()
                .map(|(index, (mut transaction, operations))| {
                    transaction.client = 0;
                    if at_once {
                        (transaction.begin, transaction.end) = (0, 0);
                    } else {
                        transaction.begin = transaction.begin % 1000 * 64 + index as u64;
                    }
                    (transaction, operations)
                })
                .collect();
            let (bytes, history) = binary::sample_file(&list, chunk, 3);
            prop_assume!(differ(&history));
            let read = Windows::new(|| Ok(&bytes[..]), size, false).expect("a file");
            prop_assert_eq!(read.transactions(), list.len() as u64);
            let sorted = |window: History| {
                let mut lines: Vec<String> = text::print(&window).lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let read: Vec<_> = read.map(|window| sorted(window.expect("whole"))).collect();
            let whole: Vec<_> = windows(&history, size).map(sorted).collect();
            prop_assert_eq!(read, whole);
        }
    }
}
