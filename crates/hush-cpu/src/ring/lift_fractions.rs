//! Words as fractions of 2^32, lifted to the same fractions of Q.
//!
//! With `rest = b Q + 2^31 mod 2^32`, the rounded lift is `(b Q + 2^31 - rest) / 2^32`, an integer. Modulo a prime of Q the
//! first term vanishes, so that a reduction of Montgomery is all that there is to do.

use hush_math::rns::Rns;

use super::{
    ModRing,
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};

/// The lift of words b to `round(b Q / 2^32) / divisor` modulo the primes of Q, half up.
pub(crate) struct LiftFractions {
    /// Q modulo 2^32.
    product: u32,
    /// `1 / divisor` modulo each prime.
    factors: Vec<u32>,
}

impl LiftFractions {
    /// `rns` is the base of the rings; the divisor is no multiple of its primes.
    pub(crate) fn new(rns: &Rns, divisor: usize) -> Self {
        let factors = rns.moduli().iter().map(|p| p.inverse(p.reduce(divisor as u64)));
        Self { product: rns.product() as u32, factors: factors.collect() }
    }

    /// Lifts at most N words to the first coefficients of `poly`, whose others become zero.
    pub(crate) fn apply(&self, ring: &ModRing, words: &[u32], poly: &mut [u32]) {
        let limbs = ring.limbs().iter().zip(&self.factors);
        for ((limb, &factor), poly) in limbs.zip(poly.chunks_exact_mut(ring.degree())) {
            let (montgomery, product) = (limb.montgomery, self.product);
            let (lifted, rest) = poly.split_at_mut(words.len());
            lifted.copy_from_slice(words);
            rest.fill(0);
            let half = montgomery.mul(1 << 31, factor);
            vector_loop::run(ring.level(), LiftLoop { montgomery, product, factor, half, words: poly });
        }
    }
}

struct LiftLoop<'a> {
    montgomery: Montgomery,
    product: u32,
    /// `1 / divisor`.
    factor: u32,
    /// `2^31 / 2^32 / divisor`.
    half: u32,
    words: &'a mut [u32],
}

impl VectorLoop for LiftLoop<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        for words in self.words.chunks_exact_mut(L::WIDTH) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let product = L::mul_low(L::load(words.as_ptr()), L::splat(self.product));
                let rest = residues.mul_splat(L::add(product, L::splat(1 << 31)), L::splat(self.factor));
                L::store(words.as_mut_ptr(), residues.sub(L::splat(self.half), rest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{
        csprng::Csprng,
        modulus::find_primes,
        poly::{Coeff, Poly},
        ring::Ring,
    };

    use super::*;
    use crate::Level;

    const DEGREE: usize = 64;

    #[test]
    fn lifts_are_those_of_wide_integers() {
        let mut rng = Csprng::insecure_from_seed(6);
        for (bits, limbs) in [(14, 1), (26, 2), (29, 3), (31, 2), (32, 2), (23, 4)] {
            let base = Ring::new(DEGREE, &find_primes(DEGREE, bits, limbs));
            let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX - 1, u32::MAX];
            let words: Vec<u32> =
                edges.into_iter().chain(std::iter::repeat_with(|| rng.next_u32())).take(DEGREE - 3).collect();
            for divisor in [1, 2, 4096] {
                let lift = |&word: &u32| (u128::from(word) * base.rns().product() + (1 << 31)) >> 32;
                let lifts = LiftFractions::new(base.rns(), divisor as usize);
                let mut expected: Poly<Coeff> = base.zero();
                for (limb, p) in base.moduli().iter().enumerate() {
                    for (to, word) in expected.limb_mut(limb).iter_mut().zip(&words) {
                        *to = p.mul(base.rns().reduce(lift(word), limb), p.inverse(divisor));
                    }
                }
                for level in Level::ALL.into_iter().filter(|&level| level <= Level::detect()) {
                    let ring = ModRing::new(level, &base);
                    let mut lifted = vec![7; ring.words()];
                    lifts.apply(&ring, &words, &mut lifted);
                    assert!(lifted == expected.words(), "{level}, {limbs} x {bits} bits, 1/{divisor}");
                }
            }
        }
    }
}
