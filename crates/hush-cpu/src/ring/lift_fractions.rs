//! Words as fractions of 2^32, lifted to the same fractions of Q.
//!
//! With `rest = b Q + 2^31 mod 2^32`, the rounded lift is `(b Q + 2^31 - rest) / 2^32`, an integer. Modulo a prime of Q the
//! first term vanishes, so that a reduction of Montgomery is all that there is to do.

use hush_math::rns::Rns;

use super::{
    mod_ring::Limb,
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};
use crate::Level;

/// The lift of words b to `round(b Q / 2^32) / divisor` modulo the primes of Q, half up.
#[derive(Clone, Copy)]
pub(crate) struct LiftFractions {
    /// Q modulo 2^32.
    product: u32,
    divisor: u32,
}

impl LiftFractions {
    /// The divisor is no multiple of a prime.
    pub(crate) fn new(rns: &Rns, divisor: u32) -> Self {
        Self { product: rns.product() as u32, divisor }
    }

    /// Lifts whole multiples of 16 words modulo the prime of `limb`, in place.
    pub(crate) fn apply(self, level: Level, limb: &Limb, words: &mut [u32]) {
        let (montgomery, modulus) = (limb.montgomery, limb.ntt.plan().modulus());
        let factor = modulus.inverse(modulus.reduce(u64::from(self.divisor)));
        let half = montgomery.mul(1 << 31, factor);
        vector_loop::run(level, LiftLoop { montgomery, product: self.product, factor, half, words });
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
    use hush_math::{csprng::Csprng, modulus::find_primes, ring::Ring};

    use super::*;
    use crate::ring::ModRing;

    const DEGREE: usize = 64;

    #[test]
    fn lifts_are_those_of_wide_integers() {
        let mut rng = Csprng::insecure_from_seed(6);
        for (bits, limbs) in [(14, 1), (26, 2), (29, 3), (31, 2), (32, 2), (23, 4)] {
            let base = Ring::new(DEGREE, &find_primes(DEGREE, bits, limbs));
            let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX - 1, u32::MAX];
            let words: Vec<u32> =
                edges.into_iter().chain(std::iter::repeat_with(|| rng.next_u32())).take(DEGREE).collect();
            for divisor in [1, 2, 4096] {
                let lift = |&word: &u32| (u128::from(word) * base.rns().product() + (1 << 31)) >> 32;
                let lifts = LiftFractions::new(base.rns(), divisor);
                for (limb, p) in base.moduli().iter().enumerate() {
                    let factor = p.inverse(divisor);
                    let expected: Vec<u32> =
                        words.iter().map(|word| p.mul(base.rns().reduce(lift(word), limb), factor)).collect();
                    for level in Level::ALL.into_iter().filter(|&level| level <= Level::detect()) {
                        let ring = ModRing::new(level, &base);
                        let mut lifted = words.clone();
                        lifts.apply(level, &ring.limbs()[limb], &mut lifted);
                        assert!(lifted == expected, "{level}, {limbs} x {bits} bits, 1/{divisor}");
                    }
                }
            }
        }
    }
}
