//! Vectors of residues modulo a prime.

use super::montgomery::Montgomery;
use crate::lanes::Lanes;

/// Arithmetic modulo p in all lanes. Operands and results are canonical unless a method says otherwise.
///
/// # Safety
/// The methods need the instruction set of `L`.
#[derive(Clone, Copy)]
pub(crate) struct Residues<L: Lanes> {
    p: L::Words,
    /// The inverse p^-1 mod 2^32.
    inverse: L::Words,
    /// The bound 2^32 p.
    bound: u64,
}

// SAFETY of all blocks: the caller has the instruction set.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<L: Lanes> Residues<L> {
    #[inline(always)]
    pub(crate) unsafe fn new(montgomery: Montgomery) -> Self {
        let p = montgomery.p();
        let inverse = montgomery.inverse();
        unsafe { Self { p: L::splat(p), inverse: L::splat(inverse), bound: u64::from(p) << 32 } }
    }

    #[inline(always)]
    pub(crate) unsafe fn add(self, a: L::Words, b: L::Words) -> L::Words {
        unsafe { self.sub(a, L::sub(self.p, b)) }
    }

    /// Computes `a - b`; `b` may be p.
    #[inline(always)]
    pub(crate) unsafe fn sub(self, a: L::Words, b: L::Words) -> L::Words {
        unsafe { L::sub_mod(a, b, self.p) }
    }

    /// Computes `a w / 2^32`, for any `a`.
    #[inline(always)]
    pub(crate) unsafe fn mul(self, a: L::Words, w: L::Words) -> L::Words {
        unsafe {
            let product = L::mul_wide(a, w);
            self.reduce(product, L::high(product))
        }
    }

    /// Computes [`Residues::mul`] for a `w` that is the same in all lanes.
    #[inline(always)]
    pub(crate) unsafe fn mul_splat(self, a: L::Words, w: L::Words) -> L::Words {
        unsafe {
            let product = L::mul_splat(a, w);
            self.reduce(product, L::high(product))
        }
    }

    /// Computes `x / 2^32`, for `x < 2^33 p`. If that does not hold for all products of words, p is below 2^31.
    #[inline(always)]
    pub(crate) unsafe fn reduce_sum(self, x: L::Wide) -> L::Words {
        unsafe {
            let high = L::high(x);
            self.reduce(x, L::min(high, L::sub(high, self.p)))
        }
    }

    /// Computes `x + product`, both below `2^32 p`, modulo `2^32 p`.
    #[inline(always)]
    pub(crate) unsafe fn add_wide(self, x: L::Wide, product: L::Wide) -> L::Wide {
        unsafe { L::add_wide_mod(x, product, self.bound) }
    }

    /// Computes `x / 2^32`, where x has the low halves of `low` and the high halves `high`, which are below p.
    #[inline(always)]
    unsafe fn reduce(self, low: L::Wide, high: L::Words) -> L::Words {
        unsafe {
            let quotient = L::mul_low_half(low, self.inverse);
            self.sub(high, L::high(L::mul_low_half(quotient, self.p)))
        }
    }
}
