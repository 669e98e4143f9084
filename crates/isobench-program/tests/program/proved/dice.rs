//! Random choices.

use isobench_script::Prng;

pub struct Dice(Prng);

impl Dice {
    pub fn of(seed: u64) -> Dice {
        Dice(Prng::seed(seed))
    }

    /// A number from 0 to below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let last = i64::try_from(count).expect("few") - 1;
        usize::try_from(self.0.int_between(0, last)).expect("not negative")
    }

    /// A number from `low` to `high`.
    pub fn number(&mut self, low: i64, high: i64) -> i64 {
        self.0.int_between(low, high)
    }

    /// True with this probability in percent.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.0.int_between(1, 100) <= percent
    }

    pub fn one_of<'v, T: ?Sized>(&mut self, values: &[&'v T]) -> &'v T {
        values[self.below(values.len())]
    }
}
