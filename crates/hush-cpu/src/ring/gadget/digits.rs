//! The gadget digits of coefficients, computed from their residues.
//!
//! ```text
//! v_0 = x_0 + h mod p_0;   v_j = (x_j + h - v_0 - v_1 p_0 - ..) / (p_0 .. p_(j-1)) mod p_j          (Garner)
//! value = v_0 + v_1 p_0 + v_2 p_0 p_1 + ..  + (offset - h);   digit k = bits of value, minus 2^(w-1)
//! ```
//!
//! With h = (Q - 1) / 2, `x + h` is in `0..Q` for a centred x, and `x + offset` has the digits as its bits, each
//! 2^(w-1) too large ([`Gadget::offset`]). Everything is exact, and no digit has a sign until 2^(w-1) is subtracted modulo each
//! prime.

use hush_math::{gadget::Gadget, rns::Rns};

use crate::{
    Level,
    lanes::Lanes,
    ring::arithmetic::{
        montgomery::Montgomery,
        residues::Residues,
        vector_loop::{self, VectorLoop},
    },
};

/// The most limbs of a base.
const MAX_LIMBS: usize = 4;
/// The most columns of 32 bits of a value; the last column has 64 bits.
const MAX_COLUMNS: usize = 3;
/// The number of coefficients that counts are multiples of: the widest vector.
const BLOCK: usize = 16;

/// The decomposition of coefficients modulo the product Q of some primes by one gadget.
pub(crate) struct Decomposer {
    gadget: Gadget,
    base: MixedRadix,
}

/// Constants of a base and of `offset - h`; see [`MixedRadix::words`] for their use.
#[derive(Default)]
struct MixedRadix {
    limbs: usize,
    columns: usize,
    moduli: [Montgomery; MAX_LIMBS],
    /// The value h mod p_0.
    first: u32,
    /// Row j: the factors of mixed digits i < j, and then of residue j, that give digit j; Montgomery forms.
    factors: [[u32; MAX_LIMBS]; MAX_LIMBS],
    /// The contribution of h to digit j, times 2^32.
    constants: [u32; MAX_LIMBS],
    /// The words of p_0 ... p_(j-1).
    radix: [[u32; MAX_COLUMNS]; MAX_LIMBS],
    /// The value `offset - h` in columns.
    offset: [u64; MAX_COLUMNS],
}

impl MixedRadix {
    fn new(rns: &Rns, gadget: Gadget) -> Self {
        let limbs = rns.limbs();
        assert!((1..=MAX_LIMBS).contains(&limbs), "a base of 1 to {MAX_LIMBS} primes");
        // Two limbs make up one column of 64 bits.
        let columns = limbs.max(2) - 1;
        let half = rns.product() / 2;
        let mut base = Self { limbs, columns, first: rns.reduce(half, 0), ..Self::default() };
        let mut radix = 1u128;
        for (j, modulus) in rns.moduli().iter().enumerate() {
            let montgomery = Montgomery::new(*modulus);
            let inverse = modulus.inverse(rns.reduce(radix, j));
            let mut weight = 1u128;
            for i in 0..j {
                base.factors[j][i] =
                    montgomery.form(modulus.neg(modulus.mul(rns.reduce(weight, j), inverse)));
                weight *= u128::from(rns.moduli()[i].value());
            }
            base.factors[j][j] = montgomery.form(inverse);
            base.constants[j] = montgomery.form(modulus.mul(rns.reduce(half, j), inverse));
            base.moduli[j] = montgomery;
            base.radix[j] = std::array::from_fn(|column| (radix >> (32 * column)) as u32);
            radix = weight * u128::from(modulus.value());
        }
        let offset = gadget.offset().wrapping_sub(half);
        for column in 0..columns {
            let word = (offset >> (32 * column)) as u64;
            base.offset[column] = if column + 1 < columns { word & u64::from(u32::MAX) } else { word };
        }
        base.check(gadget);
        base
    }

    /// Checks that no sum of [`MixedRadix::words`] overflows.
    fn check(&self, gadget: Gadget) {
        let primes = self.moduli.map(|m| u128::from(m.p()));
        for j in 1..self.limbs {
            let factors: u128 = primes[..=j].iter().sum();
            let exact = primes[j] < 1 << 31 && factors < 2 << 32 && factors * primes[j] < 1 << 64;
            assert!(exact, "sums of {} products", j + 1);
        }
        for column in 0..self.columns - 1 {
            let products = (0..self.limbs).map(|j| primes[j] * u128::from(self.radix[j][column]));
            assert!(products.sum::<u128>() < (1 << 64) - (1 << 34), "column {column}");
        }
        assert!(
            gadget.log2_factor(gadget.digits) as usize <= 32 * (self.columns + 1),
            "values fit the columns"
        );
    }

    /// Computes the words of `x + offset` for a vector of coefficients, whose residues are `degree` words apart.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`, and a vector must be readable for every limb.
    #[inline(always)]
    unsafe fn words<L: Lanes, const LIMBS: usize>(
        &self,
        residues: *const u32,
        degree: usize,
    ) -> [L::Words; MAX_COLUMNS + 2] {
        // SAFETY: the caller promises so.
        unsafe {
            let first = Residues::<L>::new(self.moduli[0]);
            let mut mixed = [first.add(L::load(residues), L::splat(self.first)); LIMBS];
            for j in 1..LIMBS {
                let residue = L::load(residues.add(j * degree));
                let mut sum = L::mul_splat(residue, L::splat(self.factors[j][j]));
                sum = L::add_wide(sum, L::splat_wide(u64::from(self.constants[j])));
                for i in 0..j {
                    sum = L::add_wide(sum, L::mul_splat(mixed[i], L::splat(self.factors[j][i])));
                }
                mixed[j] = Residues::<L>::new(self.moduli[j]).reduce_sum(sum);
            }
            let mut words = [L::splat(0); MAX_COLUMNS + 2];
            let mut carry = L::widen(mixed[0]);
            for column in 0..LIMBS.max(2) - 1 {
                let mut sum = L::add_wide(carry, L::splat_wide(self.offset[column]));
                for j in 1..LIMBS {
                    sum = L::add_wide(sum, L::mul_splat(mixed[j], L::splat(self.radix[j][column])));
                }
                words[column] = L::low(sum);
                words[column + 1] = L::high(sum);
                carry = L::shift_down(sum);
            }
            words
        }
    }
}

impl Decomposer {
    /// # Panics
    /// If there are more than four primes, or sums of their products overflow (which happens for no preset).
    pub(in crate::ring) fn new(rns: &Rns, gadget: Gadget) -> Self {
        Self { gadget, base: MixedRadix::new(rns, gadget) }
    }

    /// Writes digit k of coefficient `i`, plus 2^(w-1), to `digits[k * degree + i]`. `residues` is `limbs x degree`
    /// canonical words, and `digits` has as many polynomials as the gadget has digits.
    ///
    /// # Panics
    /// If lengths do not fit, or the degree is not a multiple of 16.
    pub(crate) fn decompose(&self, level: Level, residues: &[u32], digits: &mut [u32]) {
        let degree = residues.len() / self.base.limbs;
        assert!(degree.is_multiple_of(BLOCK) && digits.len() == degree * self.gadget.digits);
        let gadget = self.gadget;
        let base = &self.base;
        match self.base.limbs {
            1 => vector_loop::run(level, Decompose::<1> { gadget, base, residues, digits }),
            2 => vector_loop::run(level, Decompose::<2> { gadget, base, residues, digits }),
            3 => vector_loop::run(level, Decompose::<3> { gadget, base, residues, digits }),
            _ => vector_loop::run(level, Decompose::<4> { gadget, base, residues, digits }),
        }
    }
}

struct Decompose<'a, const LIMBS: usize> {
    gadget: Gadget,
    base: &'a MixedRadix,
    residues: &'a [u32],
    digits: &'a mut [u32],
}

impl<const LIMBS: usize> VectorLoop for Decompose<'_, LIMBS> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let degree = self.residues.len() / LIMBS;
        let mask = (1u32 << self.gadget.width) - 1;
        for i in (0..degree).step_by(L::WIDTH) {
            // SAFETY: the caller has the instruction set; vectors end before each limb does.
            unsafe {
                let words = self.base.words::<L, LIMBS>(self.residues[i..].as_ptr(), degree);
                for k in 0..self.gadget.digits {
                    let bit = self.gadget.log2_factor(k);
                    let low = bit as usize / 32;
                    let shift = bit % 32;
                    let digit = L::bits(words[low], words[low + 1], shift, mask);
                    L::store(self.digits[k * degree + i..][..L::WIDTH].as_mut_ptr(), digit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_he::params::{COLUMN_PRESETS, PACK_PRESETS, RING_PRESETS};
    use hush_math::csprng::Csprng;

    use super::*;

    /// Returns values at which digits carry, and random ones.
    fn values(rns: &Rns, gadget: Gadget, count: usize) -> Vec<u128> {
        let q = rns.product();
        let mut rng = Csprng::insecure_from_seed(4);
        let carries =
            (0..gadget.digits).flat_map(|k| [0, 1, 2].map(|by| (1u128 << gadget.log2_factor(k)) + 1 - by));
        let edges = [0, 1, 2, q / 2 - 1, q / 2, q / 2 + 1, q - 2, q - 1].into_iter().chain(carries);
        let edges = edges.flat_map(|x| [x, q - x % q]).map(|x| x % q);
        let random = std::iter::repeat_with(|| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()));
        edges.chain(random.map(|x| x % q)).take(count).collect()
    }

    #[test]
    fn digits_are_those_of_the_gadget() {
        let packing = PACK_PRESETS.map(|pack| *pack.ring()).into_iter();
        let columns = COLUMN_PRESETS.map(|columns| *columns.ring()).into_iter();
        for params in RING_PRESETS.into_iter().chain(packing).chain(columns) {
            let full = params.full_ring();
            let kept = params.kept_ring();
            let full_gadgets = params.levels().iter().copied().chain([params.square_gadget()]);
            let cases = full_gadgets
                .map(|gadget| (full.rns(), gadget))
                .chain([(kept.rns(), params.fold_gadget()), (kept.rns(), params.pack_gadget())])
                .filter(|(_, gadget)| *gadget != Gadget::NONE);
            for (rns, gadget) in cases {
                let values = values(rns, gadget, 512);
                let residues: Vec<u32> = (0..rns.limbs())
                    .flat_map(|limb| values.iter().map(move |&x| rns.reduce(x, limb)))
                    .collect();
                let expected: Vec<u32> = (0..gadget.digits)
                    .flat_map(|k| values.iter().map(move |&x| gadget.digit(rns.centre(x), k)))
                    .map(|digit| (digit + (1 << (gadget.width - 1))) as u32)
                    .collect();
                for level in Level::usable() {
                    let mut digits = vec![0; expected.len()];
                    Decomposer::new(rns, gadget).decompose(level, &residues, &mut digits);
                    assert!(digits == expected, "{level} {} {gadget:?}", params.name());
                }
            }
        }
    }
}
