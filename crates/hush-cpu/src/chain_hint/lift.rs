//! Words modulo 2^32 as residues of their multiples: `round(h Q / 2^32)`.
//!
//! `h Q = 2^32 m + c` with m the rounded value, half up, and `-2^31 <= c < 2^31`. Modulo a prime of Q the left side is 0: so
//! `m = -c / 2^32`, and c is the low word of `h Q`. No product is longer than a word but the one of Montgomery's reduction.

use hush_math::modulus::Modulus;

use crate::{
    Level,
    ring::{
        Montgomery, Residues, WideLanes,
        vector_loop::{self, VectorLoop},
    },
};

/// The lift of words to `factor round(h Q / 2^32)` modulo one prime of Q.
#[derive(Clone, Copy)]
pub(super) struct WordLift {
    montgomery: Montgomery,
    /// Q mod 2^32.
    product: u32,
    /// What `c + 2^31` is multiplied by: minus the factor.
    scale: u32,
    /// The product for c = 0.
    zero: u32,
}

impl WordLift {
    /// For a canonical `factor` and `product` = Q modulo 2^32.
    pub(super) fn new(modulus: Modulus, product: u32, factor: u32) -> Self {
        let montgomery = Montgomery::new(modulus);
        let scale = modulus.neg(factor);
        Self { montgomery, product, scale, zero: montgomery.mul(1 << 31, scale) }
    }

    /// Lifts whole multiples of 16 words.
    pub(super) fn apply(self, level: Level, words: &[u32], residues: &mut [u32]) {
        vector_loop::run(level, LiftLoop { lift: self, words, residues });
    }
}

struct LiftLoop<'a> {
    lift: WordLift,
    words: &'a [u32],
    residues: &'a mut [u32],
}

impl VectorLoop for LiftLoop<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        let WordLift { montgomery, product, scale, zero } = self.lift;
        let words = self.words.chunks_exact(L::WIDTH);
        for (to, words) in self.residues.chunks_exact_mut(L::WIDTH).zip(words) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(montgomery);
                let low = L::mul_low(L::load(words.as_ptr()), L::splat(product));
                let positive = L::add(low, L::splat(1 << 31));
                let scaled = residues.mul_splat(positive, L::splat(scale));
                L::store(to.as_mut_ptr(), residues.sub(scaled, L::splat(zero)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, modulus::find_primes};

    use super::*;

    #[test]
    fn words_become_rounded_multiples() {
        let mut rng = Csprng::insecure_from_seed(1);
        for primes in [[67_104_769, 67_084_289], [find_primes(64, 31, 1)[0], find_primes(64, 21, 1)[0]]] {
            let q = primes.iter().map(|&p| u128::from(p)).product::<u128>();
            let mut words = vec![0, 1, 2, u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, (1 << 31) + 1];
            words.resize_with(512, || rng.next_u32());
            for (modulus, factor) in primes.map(Modulus::new).into_iter().flat_map(|p| [(p, 1), (p, 77)]) {
                let lift = WordLift::new(modulus, q as u32, factor);
                let expected: Vec<u32> = words
                    .iter()
                    .map(|&h| ((u128::from(h) * q + (1 << 31)) >> 32) % u128::from(modulus.value()))
                    .map(|residue| modulus.mul(residue as u32, factor))
                    .collect();
                for level in Level::ALL.into_iter().filter(|level| level.require().is_ok()) {
                    let mut residues = vec![0; words.len()];
                    lift.apply(level, &words, &mut residues);
                    assert!(residues == expected, "{level} {}", modulus.value());
                }
            }
        }
    }
}
