//! The symbols of a key filter's slots: elements of Z_2^8 or Z_2^32.

use std::fmt::Debug;

use crate::{
    OpsError,
    contract::{BandSystem, FilterOps},
};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u32 {}
}

/// An element of Z_2^8 (`u8`) or Z_2^32 (`u32`).
///
/// A sum that holds modulo 2^32 holds modulo 2^k for every k <= 32, so `u32` serves plaintexts of any width.
pub trait Symbol: sealed::Sealed + Copy + Debug + Default + Eq + From<u8> + Send + Sync + 'static {
    /// Returns the sum, modulo 2^8 or 2^32.
    fn wrapping_add(self, other: Self) -> Self;

    /// Returns the difference, modulo 2^8 or 2^32.
    fn wrapping_sub(self, other: Self) -> Self;

    /// Returns the product, modulo 2^8 or 2^32.
    fn wrapping_mul(self, other: Self) -> Self;

    /// Returns whether the symbol is odd, and so has an inverse.
    fn is_odd(self) -> bool;

    /// Returns the inverse of an odd symbol. For an even symbol the result has no meaning.
    fn inverse(self) -> Self;

    /// Calls [`FilterOps::band_solve`] or [`FilterOps::band_solve_words`].
    fn band_solve(
        ops: &dyn FilterOps,
        system: &BandSystem,
        values: &[Self],
        size: usize,
        slots: &mut [Self],
    ) -> Result<(), OpsError>;
}

/// Computes the inverse of `odd` by Newton's iteration: `odd * odd = 1` modulo 8, and each step `x * (2 - odd * x)` doubles
/// the number of correct bits.
#[inline(always)]
fn newton<S: Symbol>(odd: S, steps: usize) -> S {
    (0..steps).fold(odd, |x, _| x.wrapping_mul(S::from(2).wrapping_sub(odd.wrapping_mul(x))))
}

/// Implements [`Symbol`] for an unsigned integer: the steps of an inverse, and the method of [`FilterOps`] that solves a system.
macro_rules! impl_symbol {
    ($symbol:ty, $steps:literal, $band_solve:ident) => {
        impl Symbol for $symbol {
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn wrapping_mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn is_odd(self) -> bool {
                self % 2 == 1
            }

            #[inline(always)]
            fn inverse(self) -> Self {
                newton(self, $steps)
            }

            fn band_solve(
                ops: &dyn FilterOps,
                system: &BandSystem,
                values: &[Self],
                size: usize,
                slots: &mut [Self],
            ) -> Result<(), OpsError> {
                ops.$band_solve(system, values, size, slots)
            }
        }
    };
}

impl_symbol!(u8, 2, band_solve);
impl_symbol!(u32, 4, band_solve_words);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_symbols_have_inverses() {
        assert!((1..=255u8).step_by(2).all(|odd| odd.wrapping_mul(odd.inverse()) == 1));
        let words =
            (0..2000u32).map(|i| 0x9e37_79b9u32.wrapping_mul(i) | 1).chain([1, u32::MAX, 1 << 31 | 1]);
        assert!(words.into_iter().all(|odd| odd.wrapping_mul(odd.inverse()) == 1));
    }
}
