//! The lift of words, as fractions of 2^32, to the same fractions of Q.
//!
//! With `rest = b Q + 2^31 mod 2^32`, the rounded lift is `(b Q + 2^31 - rest) / 2^32`, an integer. Modulo a prime of Q the
//! first term vanishes, so only one Montgomery reduction is left.

use hush_math::{modulus::Modulus, rns::Rns};

use super::arithmetic::{
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
};
use crate::{
    Level,
    lanes::{Lanes, MAX_WIDTH},
};

/// The lift of words b to `round(b Q / 2^32) / divisor`, half up, modulo one prime of Q.
#[derive(Clone, Copy)]
pub(crate) struct LiftFractions {
    montgomery: Montgomery,
    /// The value Q modulo 2^32.
    product: u32,
    /// The factor `1 / divisor`.
    factor: u32,
    /// The value `2^31 / 2^32 / divisor`.
    half: u32,
}

impl LiftFractions {
    /// Creates the lifts modulo the primes of `rns`, the base of the ring. The divisor must be no multiple of a prime.
    pub(crate) fn of_limbs(rns: &Rns, divisor: usize) -> Vec<Self> {
        let product = rns.product() as u32;
        rns.moduli()
            .iter()
            .map(|p: &Modulus| {
                let montgomery = Montgomery::new(*p);
                let factor = p.inverse(p.reduce(divisor as u64));
                Self { montgomery, product, factor, half: montgomery.mul(1 << 31, factor) }
            })
            .collect()
    }

    /// Lifts words to the first `residues`, of which there are as many or more. The others become zero.
    pub(crate) fn apply(self, level: Level, words: &[u32], residues: &mut [u32]) {
        let (whole, last) = words.as_chunks::<MAX_WIDTH>();
        let (lifted, rest) = residues.split_at_mut(whole.len() * MAX_WIDTH);
        vector_loop::run(level, LiftLoop { lift: self, words: whole.as_flattened(), residues: lifted });
        rest.fill(0);
        if !last.is_empty() {
            let mut words = [0; MAX_WIDTH];
            let mut lifted = [0; MAX_WIDTH];
            words[..last.len()].copy_from_slice(last);
            vector_loop::run(level, LiftLoop { lift: self, words: &words, residues: &mut lifted });
            rest[..last.len()].copy_from_slice(&lifted[..last.len()]);
        }
    }
}

/// The loop over whole vectors.
struct LiftLoop<'a> {
    lift: LiftFractions,
    words: &'a [u32],
    residues: &'a mut [u32],
}

impl VectorLoop for LiftLoop<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let LiftFractions { montgomery, product, factor, half } = self.lift;
        let words = self.words.chunks_exact(L::WIDTH);
        for (to, words) in self.residues.chunks_exact_mut(L::WIDTH).zip(words) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(montgomery);
                let product = L::mul_low(L::load(words.as_ptr()), L::splat(product));
                let rest = residues.mul_splat(L::add(product, L::splat(1 << 31)), L::splat(factor));
                L::store(to.as_mut_ptr(), residues.sub(L::splat(half), rest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, modulus::find_primes};

    use super::*;

    #[test]
    fn lifts_are_those_of_wide_integers() {
        let mut rng = Csprng::insecure_from_seed(6);
        let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX - 1, u32::MAX];
        let words: Vec<u32> =
            edges.into_iter().chain(std::iter::repeat_with(|| rng.next_u32())).take(500).collect();
        let same_bits = [(14, 1), (26, 2), (29, 3), (31, 2), (32, 2), (23, 4)];
        let same_bits = same_bits.map(|(bits, limbs)| find_primes(64, bits, limbs));
        let unequal = [31, 21].map(|bits| find_primes(64, bits, 1)[0]).to_vec();
        for primes in same_bits.into_iter().chain([unequal]) {
            let rns = Rns::new(&primes);
            for (divisor, (limb, p)) in [1, 2, 2048]
                .into_iter()
                .flat_map(|divisor| rns.moduli().iter().enumerate().map(move |p| (divisor, p)))
            {
                let lift = LiftFractions::of_limbs(&rns, divisor)[limb];
                let inverse = p.inverse(p.reduce(divisor as u64));
                let expected = words.iter().map(|&word| {
                    let lifted = (u128::from(word) * rns.product() + (1 << 31)) >> 32;
                    p.mul(rns.reduce(lifted, limb), inverse)
                });
                let expected: Vec<u32> = expected.collect();
                for level in Level::usable() {
                    for count in [0, 1, 15, 16, 17, 256, 500] {
                        let mut residues = vec![7; 512];
                        lift.apply(level, &words[..count], &mut residues);
                        assert!(residues[..count] == expected[..count], "{level}, {primes:?}, 1/{divisor}");
                        assert!(residues[count..].iter().all(|&residue| residue == 0), "{level}, {count}");
                    }
                }
            }
        }
    }
}
