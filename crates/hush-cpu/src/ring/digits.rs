//! From the residues of coefficients to their gadget digits.
//!
//! With h = (Q - 1) / 2, `x + h` is in `0..Q` for a centred x, and `x + offset` has the digits as its bits, each
//! 2^(w-1) too large ([`Gadget::offset`]). So h is added to the residues, Garner's algorithm gives the mixed-radix
//! digits of the sum, and `offset - h` is added to the binary value that they make up. Everything is exact, no digit
//! has a sign until 2^(w-1) is taken off modulo each prime.

use hush_math::{gadget::Gadget, rns::Rns};

use super::{
    montgomery::Montgomery,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};
use crate::Level;

/// Most limbs of a base.
const MAX_LIMBS: usize = 4;
/// Columns of 32 bits of a value; the last one has up to 64 bits.
const MAX_COLUMNS: usize = 3;
/// Coefficients that are worked on together.
const BLOCK: usize = 64;

/// Decomposes coefficients modulo the product Q of some primes by one gadget.
pub(super) struct Decomposer {
    gadget: Gadget,
    base: MixedRadix,
}

/// Constants of a base and of `offset - h`; see [`MixedRadix::block`] for their use.
#[derive(Clone, Copy, Default)]
struct MixedRadix {
    limbs: usize,
    columns: usize,
    moduli: [Montgomery; MAX_LIMBS],
    /// h mod p_0.
    first: u32,
    /// Row j: by what mixed digits i < j, and then residue j, are multiplied to give digit j; Montgomery forms.
    factors: [[u32; MAX_LIMBS]; MAX_LIMBS],
    /// What h adds to digit j, times 2^32.
    constants: [u32; MAX_LIMBS],
    /// Words of p_0 ... p_(j-1).
    radix: [[u32; MAX_COLUMNS]; MAX_LIMBS],
    /// `offset - h` in columns.
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
            base.offset[column] = if column + 1 < columns { word & LOW } else { word };
        }
        base.check(gadget);
        base
    }

    /// Checks that no sum of [`MixedRadix::block`] overflows.
    fn check(&self, gadget: Gadget) {
        let primes = self.moduli.map(|m| u128::from(m.p()));
        for j in 1..self.limbs {
            let factors: u128 = primes[..=j].iter().sum();
            assert!(factors * primes[j] < 1 << 64 && factors <= 2 << 32, "sums of {} products", j + 1);
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

    /// The columns of `x + offset` for `BLOCK` coefficients, whose residues are `degree` words apart. Bits of columns
    /// but the last above 32 are of no meaning.
    #[inline(always)]
    fn block<const LIMBS: usize>(self, residues: &[u32], degree: usize) -> [[u64; BLOCK]; MAX_COLUMNS] {
        let mut mixed = [[0u64; BLOCK]; LIMBS];
        let p = u64::from(self.moduli[0].p());
        for i in 0..BLOCK {
            let sum = u64::from(residues[i]) + u64::from(self.first);
            mixed[0][i] = sum.min(sum.wrapping_sub(p));
        }
        for j in 1..LIMBS {
            let (below, digits) = mixed.split_at_mut(j);
            let residues = &residues[j * degree..][..BLOCK];
            for i in 0..BLOCK {
                let mut sum = u64::from(residues[i]) * u64::from(self.factors[j][j]);
                sum = sum.wrapping_add(u64::from(self.constants[j]));
                for (m, below) in below.iter().enumerate() {
                    sum = sum.wrapping_add(below[i] * u64::from(self.factors[j][m]));
                }
                // At most 2 p by the check, and p of the reduction.
                digits[0][i] = u64::from(self.moduli[j].canonical::<2>(self.moduli[j].reduce_lazy(sum)));
            }
        }
        let mut columns = [[0u64; BLOCK]; MAX_COLUMNS];
        for column in 0..LIMBS.max(2) - 1 {
            for i in 0..BLOCK {
                let mut sum = self.offset[column];
                if column > 0 {
                    sum = sum.wrapping_add(columns[column - 1][i] >> 32);
                }
                for (j, digits) in mixed.iter().enumerate() {
                    sum = sum.wrapping_add(digits[i] * u64::from(self.radix[j][column]));
                }
                columns[column][i] = sum;
            }
        }
        columns
    }
}

/// The low word.
const LOW: u64 = u32::MAX as u64;

impl Decomposer {
    /// # Panics
    /// If there are more than four primes, or sums of products of them overflow (which those of no preset do).
    pub(super) fn new(rns: &Rns, gadget: Gadget) -> Self {
        Self { gadget, base: MixedRadix::new(rns, gadget) }
    }

    /// Digit k of coefficient `i`, plus 2^(w-1), becomes `digits[k * degree + i]`. `residues` is `limbs x degree`
    /// canonical words, `digits` as many polynomials as the gadget has digits.
    ///
    /// # Panics
    /// If lengths do not fit, or the degree is not a multiple of 64.
    pub(super) fn decompose(&self, level: Level, residues: &[u32], digits: &mut [u32]) {
        let degree = residues.len() / self.base.limbs;
        assert!(degree.is_multiple_of(BLOCK) && digits.len() == degree * self.gadget.digits);
        let (gadget, base) = (self.gadget, self.base);
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
    base: MixedRadix,
    residues: &'a [u32],
    digits: &'a mut [u32],
}

impl<const LIMBS: usize> VectorLoop for Decompose<'_, LIMBS> {
    // Plain loops, which the compiler vectorises: products of 64 bits have no use for the lanes of words.
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        let degree = self.residues.len() / LIMBS;
        let mask = (1u32 << self.gadget.width) - 1;
        let last = LIMBS.max(2) - 2;
        for start in (0..degree).step_by(BLOCK) {
            let columns = self.base.block::<LIMBS>(&self.residues[start..], degree);
            for (k, digits) in self.digits.chunks_exact_mut(degree).enumerate() {
                let bit = self.gadget.log2_factor(k);
                let column = (bit as usize / 32).min(last);
                let (shift, digits) = (bit - 32 * column as u32, &mut digits[start..][..BLOCK]);
                if column == last {
                    for i in 0..BLOCK {
                        digits[i] = (columns[column][i] >> shift) as u32 & mask;
                    }
                } else {
                    for i in 0..BLOCK {
                        let window = (columns[column][i] & LOW) | (columns[column + 1][i] << 32);
                        digits[i] = (window >> shift) as u32 & mask;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_he::params::RING_PRESETS;
    use hush_math::csprng::Csprng;

    use super::*;

    /// Residues of values at which digits carry, and of random ones.
    fn values(rns: &Rns, gadget: Gadget, count: usize) -> Vec<u128> {
        let (q, mut rng) = (rns.product(), Csprng::insecure_from_seed(4));
        let carries =
            (0..gadget.digits).flat_map(|k| [0, 1, 2].map(|by| (1u128 << gadget.log2_factor(k)) + 1 - by));
        let edges = [0, 1, 2, q / 2 - 1, q / 2, q / 2 + 1, q - 2, q - 1].into_iter().chain(carries);
        let edges = edges.flat_map(|x| [x, q - x % q]).map(|x| x % q);
        let random = std::iter::repeat_with(|| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()));
        edges.chain(random.map(|x| x % q)).take(count).collect()
    }

    #[test]
    fn digits_are_those_of_the_gadget() {
        for params in RING_PRESETS {
            let (full, kept) = (params.full_ring(), params.kept_ring());
            let full_gadgets = params.levels().iter().copied().chain([params.square_gadget()]);
            let cases = full_gadgets
                .map(|gadget| (full.rns(), gadget))
                .chain([(kept.rns(), params.fold_gadget()), (kept.rns(), params.pack_gadget())]);
            for (rns, gadget) in cases {
                let values = values(rns, gadget, 512);
                let residues: Vec<u32> = (0..rns.limbs())
                    .flat_map(|limb| values.iter().map(move |&x| rns.reduce(x, limb)))
                    .collect();
                let expected: Vec<u32> = (0..gadget.digits)
                    .flat_map(|k| values.iter().map(move |&x| gadget.digit(rns.centre(x), k)))
                    .map(|digit| (digit + (1 << (gadget.width - 1))) as u32)
                    .collect();
                for level in Level::ALL.into_iter().filter(|&level| level <= Level::detect()) {
                    let mut digits = vec![0; expected.len()];
                    Decomposer::new(rns, gadget).decompose(level, &residues, &mut digits);
                    assert!(digits == expected, "{level} {} {gadget:?}", params.name());
                }
            }
        }
    }
}
