//! The conversion of residues of a column entry to its balanced digits.
//!
//! Half a base is added for every digit, modulo Q. The sum, in `0..Q`, is below 2^32 if and only if the centred entry has four
//! digits. Its bytes are then these digits, each half a base too large.

use hush_math::modulus::Modulus;
use hush_ops::contract::BALANCED_HALVES;

use crate::{
    Level,
    lanes::{Lanes, MAX_WIDTH},
    ring::{
        Montgomery, Residues,
        vector_loop::{self, VectorLoop},
    },
};

/// The constants that join residues modulo two primes p_0 and p_1.
///
/// With r the residues of `factor x +` [`BALANCED_HALVES`], the sum is `r_0 + p_0 ((r_1 - r_0) / p_0 mod p_1)`. Source: Garner's
/// algorithm (HAC 14.71).
pub(super) struct EntryJoin {
    moduli: [Montgomery; 2],
    /// `factor` and [`BALANCED_HALVES`] modulo p_0; the first in Montgomery form.
    first: [u32; 2],
    /// `factor / p_0`, `-1 / p_0` and `halves / p_0` modulo p_1, for the halves [`BALANCED_HALVES`]; Montgomery forms.
    second: [u32; 3],
}

impl EntryJoin {
    /// Creates the constants for entries that are `factor` times the values of the residues.
    ///
    /// # Panics
    /// If a prime is not below 2^31.
    pub(super) fn new([p0, p1]: [Modulus; 2], factor: u64) -> Self {
        assert!(p0.bits() < 32 && p1.bits() < 32, "sums of two products fit");
        let moduli = [p0, p1].map(Montgomery::new);
        let inverse = p1.inverse(p1.reduce(u64::from(p0.value())));
        let second = [
            p1.mul(p1.reduce(factor), inverse),
            p1.neg(inverse),
            p1.mul(p1.reduce(u64::from(BALANCED_HALVES)), inverse),
        ];
        Self {
            moduli,
            first: [moduli[0].form(p0.reduce(factor)), p0.reduce(u64::from(BALANCED_HALVES))],
            second: second.map(|word| moduli[1].form(word)),
        }
    }

    /// Joins whole multiples of 16 residues to words. Returns whether all entries have four digits.
    pub(super) fn apply(&self, level: Level, residues: [&[u32]; 2], words: &mut [u32]) -> bool {
        let mut fit = true;
        vector_loop::run(level, JoinLoop { join: self, residues, words, fit: &mut fit });
        fit
    }
}

struct JoinLoop<'a> {
    join: &'a EntryJoin,
    residues: [&'a [u32]; 2],
    words: &'a mut [u32],
    fit: &'a mut bool,
}

impl VectorLoop for JoinLoop<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let EntryJoin { moduli, first: [factor, halves], second: [next, minus, constant] } = *self.join;
        let residues = self.residues[0].chunks_exact(L::WIDTH).zip(self.residues[1].chunks_exact(L::WIDTH));
        let mut counts = [0; MAX_WIDTH];
        // SAFETY: the caller has the instruction set; chunks are a vector.
        unsafe {
            let [p0, p1] = moduli.map(|montgomery| Residues::<L>::new(montgomery));
            let mut misfits = L::splat(0);
            for (to, (first, second)) in self.words.chunks_exact_mut(L::WIDTH).zip(residues) {
                let low = p0.mul_splat(L::load(first.as_ptr()), L::splat(factor));
                let low = p0.add(low, L::splat(halves));
                let sum = L::add_wide(
                    L::mul_splat(L::load(second.as_ptr()), L::splat(next)),
                    L::mul_splat(low, L::splat(minus)),
                );
                let digit = p1.reduce_sum(L::add_wide(sum, L::splat_wide(u64::from(constant))));
                let value = L::add_wide(L::widen(low), L::mul_splat(digit, L::splat(moduli[0].p())));
                misfits = L::add(misfits, L::min(L::high(value), L::splat(1)));
                L::store(to.as_mut_ptr(), L::low(value));
            }
            L::store(counts.as_mut_ptr(), misfits);
        }
        // Flipping the highest bit of a byte subtracts half a base from it.
        self.words.iter_mut().for_each(|word| *word ^= BALANCED_HALVES);
        *self.fit = counts == [0; MAX_WIDTH];
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, rns::Rns};

    use super::*;

    #[test]
    fn entries_become_balanced_digits() {
        let primes = [67_104_769, 67_084_289];
        let rns = Rns::new(&primes);
        let factor = 2048;
        let moduli = primes.map(Modulus::new);
        let join = EntryJoin::new(moduli, factor);
        let lowest = -0x8080_8080i64;
        let highest = 0x7f7f_7f7f;
        let mut rng = Csprng::insecure_from_seed(1);
        let mut entries = vec![0, 1, -1, 127, 128, -128, -129, lowest, lowest + 1, highest - 1, highest];
        entries.resize_with(256, || i64::from(rng.next_u32() as i32) / 2);
        let half = (rns.product() / 2) as i64;
        let misfits = [lowest - 1, highest + 1, half, -half, 1 << 40, -(1 << 50)];
        for misfit in misfits.map(Some).into_iter().chain([None]) {
            let mut entries = entries.clone();
            entries[133] = misfit.unwrap_or(entries[133]);
            let residues = moduli.map(|p| {
                let inverse = p.inverse(p.reduce(factor));
                entries.iter().map(|&x| p.mul(p.reduce_signed(x), inverse)).collect::<Vec<u32>>()
            });
            for level in Level::usable() {
                let mut words = vec![0; entries.len()];
                let fit = join.apply(level, [&residues[0], &residues[1]], &mut words);
                assert_eq!(fit, misfit.is_none(), "{level} {misfit:?}");
                for (&entry, word) in entries.iter().zip(words).filter(|_| fit) {
                    let digits = word.to_le_bytes().map(|byte| i64::from(byte as i8));
                    assert_eq!(digits.iter().rev().fold(0, |sum, digit| 256 * sum + digit), entry, "{level}");
                }
            }
        }
    }
}
