//! Arithmetic modulo a prime in Montgomery's form, which needs only products of 32-bit words, as vectors have them. This module
//! has its constants and, for tables, its scalar arithmetic; [`super::residues`] has the arithmetic of vectors.
//!
//! ```text
//! a w / 2^32 mod p:  q = (a w mod 2^32) p^-1 mod 2^32;   high(a w) - high(q p), plus p if negative
//! ```
//!
//! Source: Montgomery, "Modular multiplication without trial division". The quotient makes the low words equal, so
//! that their difference has no borrow (Seiler, "Faster AVX2 optimized NTT multiplication for Ring-LWE lattice
//! cryptography", section 3).

use hush_math::modulus::Modulus;

/// An odd prime p below 2^32 with the constants of Montgomery's reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Montgomery {
    p: u32,
    /// The inverse p^-1 mod 2^32.
    inverse: u32,
    /// The value 2^64 mod p.
    square: u32,
}

impl Montgomery {
    pub(crate) fn new(modulus: Modulus) -> Self {
        let p = modulus.value();
        // Newton's iteration: p p = 1 modulo 8, and each step doubles the bits.
        let inverse = (0..4).fold(p, |x, _| x.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(x))));
        let root = modulus.reduce(1 << 32);
        Self { p, inverse, square: modulus.mul(root, root) }
    }

    /// Returns p.
    pub(crate) fn p(self) -> u32 {
        self.p
    }

    /// Returns p^-1 mod 2^32.
    pub(crate) fn inverse(self) -> u32 {
        self.inverse
    }

    /// Returns 2^64 mod p, by which [`Montgomery::mul`] makes the form of a word.
    pub(crate) fn square(self) -> u32 {
        self.square
    }

    /// Computes `a w / 2^32 mod p` for any `a` and a canonical `w`: `a w'` if w is [`Montgomery::form`] of w'.
    pub(crate) fn mul(self, a: u32, w: u32) -> u32 {
        let product = u64::from(a) * u64::from(w);
        let quotient = (product as u32).wrapping_mul(self.inverse);
        let (high, negative) = ((product >> 32) as u32)
            .overflowing_sub(((u64::from(quotient) * u64::from(self.p)) >> 32) as u32);
        if negative { high.wrapping_add(self.p) } else { high }
    }

    /// Computes `w 2^32 mod p` for any `w`.
    pub(crate) fn form(self, w: u32) -> u32 {
        self.mul(w, self.square)
    }
}

#[cfg(test)]
mod tests {
    use hush_math::modulus::find_primes;

    use super::*;

    #[test]
    fn arithmetic_is_that_of_the_modulus() {
        for bits in [14, 20, 27, 31, 32] {
            let modulus = Modulus::new(find_primes(256, bits, 1)[0]);
            let m = Montgomery::new(modulus);
            let p = modulus.value();
            let edges = [0, 1, 2, p / 2, p - 2, p - 1];
            for a in edges.into_iter().chain([u32::MAX, p.wrapping_mul(77)]) {
                let residue = modulus.reduce(u64::from(a));
                for b in edges {
                    assert_eq!(m.mul(a, m.form(b)), modulus.mul(residue, b));
                }
                assert_eq!(m.form(a), modulus.mul(residue, modulus.reduce(1 << 32)));
            }
        }
    }
}
