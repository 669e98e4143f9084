//! The seeded random numbers of a simulation, from splitmix64, which is independent of the
//! generator under test.

use std::ops::RangeInclusive;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Rng {
    state: u64,
}

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in the range, approximately uniform; the lower bound if the range is empty.
    pub(super) fn between(&mut self, range: &RangeInclusive<u64>) -> u64 {
        let span = range.end().saturating_sub(*range.start());
        // A range with one number draws nothing, so that exact tests don't depend on draws
        // elsewhere.
        if span == 0 { *range.start() } else { range.start() + self.next() % span.saturating_add(1) }
    }

    /// True with this probability. Probabilities of 0 and 1 draw nothing.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        probability >= 1.0
            || (probability > 0.0 && (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_range_and_reach_its_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..200).map(|_| rng.between(&(3..=5))).collect();
        assert!(drawn.iter().all(|number| (3..=5).contains(number)));
        assert!((3..=5).all(|number| drawn.contains(&number)));
        assert_eq!(rng.between(&(7..=7)), 7);
    }

    #[test]
    fn chances_are_about_what_they_say() {
        let mut rng = Rng::new(2);
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }
}
