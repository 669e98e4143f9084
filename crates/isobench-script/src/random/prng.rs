//! PostgreSQL's generator: xoroshiro128**, seeded by splitmix64. Distributions are in
//! `distribution`.

/// A stream of pseudorandom numbers, equal to pgbench's for the same seed.
///
/// Source: Blackman and Vigna, <https://prng.di.unimi.it/> (xoroshiro128**, splitmix64); that
/// PostgreSQL 15 and later use it is in their release notes, and `tests/language/oracle.rs`
/// confirms the numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prng {
    state: [u64; 2],
}

impl Prng {
    /// The stream for a seed.
    pub fn seed(seed: u64) -> Self {
        let mut counter = seed;
        Self { state: [splitmix64(&mut counter), splitmix64(&mut counter)] }
    }

    /// Puts the elements of a list into random order; each order is equally likely.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.int_between(0, i64::try_from(last).unwrap_or(i64::MAX));
            list.swap(last, usize::try_from(other).unwrap_or(0));
        }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [first, mut second] = self.state;
        let result = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        second ^= first;
        self.state = [first.rotate_left(24) ^ second ^ (second << 16), second.rotate_left(37)];
        result
    }

    /// A number from 0 to `limit`, inclusive. Draws nothing if `limit` is 0.
    #[inline]
    pub(crate) fn up_to(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // The top bits of each draw, as many as the limit has, until they don't exceed it. This
        // avoids modulo bias.
        let shift = limit.leading_zeros();
        loop {
            let candidate = self.next_u64() >> shift;
            if candidate <= limit {
                return candidate;
            }
        }
    }

    /// A uniform integer from `min` to `max`, inclusive. If `max` isn't above `min`, returns `min`
    /// without drawing.
    #[inline]
    pub fn int_between(&mut self, min: i64, max: i64) -> i64 {
        if max <= min {
            return min;
        }
        let width = max.wrapping_sub(min).cast_unsigned();
        min.wrapping_add(self.up_to(width).cast_signed())
    }

    /// A uniform double, at least 0 and below 1, a multiple of 2^-52.
    #[inline]
    pub fn double(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * SCALE
    }
}

/// One step of splitmix64.
fn splitmix64(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *counter;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        let mut counter = 1_234_567;
        let numbers: Vec<u64> = (0..3).map(|_| splitmix64(&mut counter)).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    proptest! {
        #[test]
        fn integers_stay_in_their_range(seed: u64, a: i64, b: i64) {
            let mut rng = Prng::seed(seed);
            let (min, max) = (a.min(b), a.max(b));
            for _ in 0..20 {
                let value = rng.int_between(min, max);
                prop_assert!((min..=max).contains(&value));
            }
        }

        #[test]
        fn doubles_stay_in_their_range(seed: u64) {
            let mut rng = Prng::seed(seed);
            for _ in 0..20 {
                prop_assert!((0.0..1.0).contains(&rng.double()));
            }
        }
    }
}
