//! Sequences in which repetitions are left out.

use std::ops::Range;

/// The longest body of a loop that is recognised, in statements.
const LONGEST_BODY: usize = 12;

/// A sequence without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folded {
    /// For each element that is kept, the places where it stood, in order.
    pub places: Vec<Vec<usize>>,
    /// The ranges of kept elements that were repeated, in order and apart from each other.
    pub loops: Vec<Range<usize>>,
}

/// Leaves repetitions of up to some elements out: `a b b b c` is `a b c`.
pub fn folded<T: PartialEq>(sequence: &[T]) -> Folded {
    let mut found = Folded::default();
    let mut kept: Vec<&T> = Vec::new();
    for (place, element) in sequence.iter().enumerate() {
        kept.push(element);
        found.places.push(vec![place]);
        loop {
            let length = kept.len();
            let repeats = |body: &usize| kept[length - 2 * body..length - body] == kept[length - body..];
            let Some(body) = (1..=LONGEST_BODY.min(length / 2)).find(repeats) else { break };
            let repeated = found.places.split_off(length - body);
            kept.truncate(length - body);
            let from = length - 2 * body;
            for (known, again) in found.places[from..].iter_mut().zip(repeated) {
                known.extend(again);
            }
            found.note(from..length - body);
        }
    }
    found
}

impl Folded {
    /// Notes a loop; those that overlap are one.
    fn note(&mut self, body: Range<usize>) {
        let mut body = body;
        self.loops.retain(|known| {
            let apart = known.end <= body.start || body.end <= known.start;
            if !apart {
                body = body.start.min(known.start)..body.end.max(known.end);
            }
            apart
        });
        body.end = body.end.min(self.places.len());
        self.loops.push(body);
        self.loops.sort_by_key(|known| known.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> (String, Vec<Range<usize>>) {
        let words: Vec<&str> = text.split(' ').collect();
        let found = folded(&words);
        let kept: Vec<&str> = found.places.iter().map(|places| words[places[0]]).collect();
        (kept.join(" "), found.loops)
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range")]
    fn loops_are_folded() {
        assert_eq!(shown("a b b b c"), ("a b c".to_owned(), vec![1..2]));
        assert_eq!(shown("x a b a b a b y"), ("x a b y".to_owned(), vec![1..3]));
        assert_eq!(shown("a b c"), ("a b c".to_owned(), vec![]));
        assert_eq!(shown("a a b b a a b b").0, "a b");
    }

    proptest! {
        #[test]
        fn folding_again_changes_nothing(text in "([ab] |a b |c a b ){0,20}") {
            let words: Vec<&str> = text.split_whitespace().collect();
            let once = folded(&words);
            let kept: Vec<&str> = once.places.iter().map(|places| words[places[0]]).collect();
            prop_assert_eq!(folded(&kept).places.len(), kept.len());
            let all: usize = once.places.iter().map(Vec::len).sum();
            prop_assert_eq!(all, words.len());
            for pair in once.loops.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
        }
    }
}
