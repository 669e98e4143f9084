//! `permute`: a pseudorandom permutation of the numbers below a size.

use super::prng::Prng;

const ROUNDS: usize = 6;

/// The position of `value` (taken modulo `size`) in the permutation of 0 to `size` − 1 selected by
/// `seed`.
///
/// Each round scrambles the largest power-of-two block at the bottom of the range, then the one at
/// its top (the two overlap, so that every number is reached), and rotates the whole range. Source:
/// pgbench manual, `permute`; the numbers are confirmed by `tests/language/oracle.rs`.
pub(crate) fn permute(value: i64, size: u64, seed: u64) -> i64 {
    if size <= 1 {
        return 0;
    }
    let mut rng = Prng::seed(seed);
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    // As in pgbench, a negative value is taken as unsigned, so -5 doesn't mean "5 from the end".
    let mut place = value.cast_unsigned() % size;
    for _ in 0..ROUNDS {
        let mut block = Block::draw(&mut rng, mask, bits);
        if place <= mask {
            place = block.scramble(place);
        }
        block = Block::draw(&mut rng, mask, bits);
        let from_top = size - 1 - place;
        if from_top <= mask {
            place = size - 1 - block.scramble(from_top);
        }
        place = (place + rng.up_to(size - 1)) % size;
    }
    place.cast_signed()
}

/// A bijection on the numbers up to `mask`: times an odd number, exclusive-or, rotation by one bit.
struct Block {
    multiplier: u64,
    flips: u64,
    mask: u64,
    bits: u32,
}

impl Block {
    fn draw(rng: &mut Prng, mask: u64, bits: u32) -> Self {
        let multiplier = (rng.next_u64() & mask) | 1;
        Self { multiplier, flips: rng.next_u64() & mask, mask, bits }
    }

    fn scramble(&self, place: u64) -> u64 {
        let mixed = (place.wrapping_mul(self.multiplier) ^ self.flips) & self.mask;
        ((mixed << 1) & self.mask) | (mixed >> (self.bits - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_that_pgbench_printed() {
        assert_eq!(permute(5, 10, 5432), 7);
        assert_eq!(permute(-5, 10, 5432), 5);
        assert_eq!(permute(123_456_789, 9_223_372_036_854_775_807, 7), 8_625_716_259_475_274_070);
    }

    proptest! {
        #[test]
        fn it_is_a_permutation(size in 1_u64..300, seed: u64) {
            let mut places: Vec<i64> = (0..size.cast_signed()).map(|value| permute(value, size, seed)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..size.cast_signed()).collect::<Vec<_>>());
        }
    }
}
