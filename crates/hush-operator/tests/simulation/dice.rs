//! The numbers that a seed draws.

use std::time::Duration;

use hush_math::csprng::Csprng;

/// Numbers that follow from a seed.
pub(crate) struct Dice(Csprng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Csprng::insecure_from_seed(seed))
    }

    /// Returns a number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// Returns true `percent` times in a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of some values.
    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// Returns a time up to `longest`, short ones as often as long ones.
    pub(crate) fn time(&mut self, longest: Duration) -> Duration {
        let doublings = longest.as_millis().max(1).ilog2() + 1;
        let scale = 1 << self.below(u64::from(doublings));
        Duration::from_millis(scale + self.below(scale)).min(longest)
    }
}
