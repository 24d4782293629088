//! Rounding of coefficients to powers of two that fit a word, in vectors.
//!
//! With x = v_0 + v_1 p_0 + v_2 p_0 p_1 + ... in the mixed radix of the primes, the rounding
//! `r_j = floor(2^b (x mod p_0 ... p_j) / (p_0 ... p_j) + 1/2)` follows from the one before:
//! `r_j = floor((2^b v_j + (p_j - 1) / 2 + r_(j-1)) / p_j)`, since p_j is odd and a floor of a floor is one floor. A
//! remainder modulo p_j makes the division exact, and modulo 2^32 an exact division is a product with the inverse of p_j. So
//! every step is exact.

use crate::lanes::Lanes;
use hush_math::rns::Rns;

use crate::ring::{
    ModRing,
    arithmetic::{
        montgomery::Montgomery,
        residues::Residues,
        vector_loop::{self, VectorLoop},
    },
};

/// The number of bits of a word. The roundings r_j are at most `2^b`, and all but the last must fit.
const MAX_BITS: u32 = 32;
/// The most limbs of a base.
const MAX_LIMBS: usize = 4;

/// The function `round(x 2^bits / Q) mod 2^bits`, half up, for x in `0..Q`.
pub(crate) struct NarrowSwitch {
    bits: u32,
    /// The value 2^bits modulo 2^32.
    low_power: u32,
    limbs: Vec<LimbStep>,
}

/// The constants modulo one prime p_j.
struct LimbStep {
    montgomery: Montgomery,
    /// The factors of mixed digits i < j, and then of residue j, that give digit j; Montgomery forms.
    factors: Vec<u32>,
    /// The values 2^bits, 1 and (p - 1) / 2; Montgomery forms.
    power: u32,
    one: u32,
    half: u32,
}

impl NarrowSwitch {
    /// Creates the switch; `None` if results or sums of products do not fit.
    pub(in crate::ring) fn new(ring: &ModRing, rns: &Rns, bits: u32) -> Option<Self> {
        let primes: Vec<u32> = ring.limbs().iter().map(|limb| limb.montgomery.p()).collect();
        // A sum is at most 2^33 p for a prime below 2^31, and 2^32 p + p for the first one.
        let exact = primes.iter().map(|&p| u64::from(p)).sum::<u64>() < 1 << 33
            && primes[1..].iter().all(|&p| p < 1 << 31);
        // The value r_0 is below 2^32 in any case, since p_0 is.
        let fits = bits < MAX_BITS || bits == MAX_BITS && primes.len() <= 2;
        if !fits || primes.len() > MAX_LIMBS || !exact {
            return None;
        }
        let limbs = ring.limbs().iter().enumerate().map(|(j, limb)| {
            let montgomery = limb.montgomery;
            let modulus = rns.moduli()[j];
            let mut radix = 1;
            let weights = primes[..j].iter().map(|&p| {
                let weight = radix;
                radix = modulus.mul(radix, modulus.reduce(u64::from(p)));
                weight
            });
            let weights: Vec<u32> = weights.collect();
            let inverse = modulus.inverse(radix);
            let negative = weights.iter().map(|&weight| modulus.neg(modulus.mul(weight, inverse)));
            LimbStep {
                montgomery,
                factors: negative.chain([inverse]).map(|factor| montgomery.form(factor)).collect(),
                power: montgomery.form(modulus.reduce(1 << bits)),
                one: montgomery.form(1),
                half: montgomery.form(modulus.value() / 2),
            }
        });
        Some(Self { bits, low_power: (1u64 << bits) as u32, limbs: limbs.collect() })
    }

    /// Computes the results for the coefficients whose residues are `words`, in place of their first residues.
    pub(in crate::ring) fn apply<'a>(&self, ring: &ModRing, words: &'a mut [u32]) -> &'a [u32] {
        let degree = ring.degree();
        assert_eq!(words.len(), ring.words());
        vector_loop::run(ring.level(), Round { switch: self, degree, words });
        &words[..degree]
    }

    /// Computes the results modulo 2^32 for a vector of coefficients, whose residues are `degree` words apart.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`, and a vector must be readable for every limb.
    #[inline(always)]
    unsafe fn round<L: Lanes>(&self, residues: *const u32, degree: usize) -> L::Words {
        // SAFETY: the caller promises so.
        unsafe {
            let mut mixed = [L::splat(0); MAX_LIMBS];
            let mut rounded = L::splat(0);
            for (j, limb) in self.limbs.iter().enumerate() {
                let modulo = Residues::<L>::new(limb.montgomery);
                let mut sum = L::mul_splat(L::load(residues.add(j * degree)), L::splat(limb.factors[j]));
                for (&digit, &factor) in mixed[..j].iter().zip(&limb.factors) {
                    sum = L::add_wide(sum, L::mul_splat(digit, L::splat(factor)));
                }
                let digit = modulo.reduce_sum(sum);
                let sum = L::add_wide(
                    L::mul_splat(digit, L::splat(limb.power)),
                    L::mul_splat(rounded, L::splat(limb.one)),
                );
                let rest = modulo.reduce_sum(L::add_wide(sum, L::splat_wide(u64::from(limb.half))));
                let shifted = L::mul_low(digit, L::splat(self.low_power));
                let half = L::splat(limb.montgomery.p() / 2);
                let multiple = L::sub(L::add(L::add(shifted, half), rounded), rest);
                rounded = L::mul_low(multiple, L::splat(limb.montgomery.inverse()));
                mixed[j] = digit;
            }
            rounded
        }
    }
}

struct Round<'a> {
    switch: &'a NarrowSwitch,
    degree: usize,
    words: &'a mut [u32],
}

impl VectorLoop for Round<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let mask = u32::MAX >> (u32::BITS - self.switch.bits);
        for i in (0..self.degree).step_by(L::WIDTH) {
            let words = self.words[i..].as_mut_ptr();
            // SAFETY: the caller has the instruction set. A degree is whole vectors, and there are as many polynomials
            // as limbs.
            unsafe {
                let rounded = self.switch.round::<L>(words, self.degree);
                L::store(words, L::bits(rounded, L::splat(0), 0, mask));
            }
        }
    }
}
