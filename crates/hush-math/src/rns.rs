//! The residue number system: integers modulo Q = p_0 p_1 ... as residues modulo the primes (limbs).

use crate::modulus::Modulus;

/// The largest number of primes in a base.
pub const MAX_LIMBS: usize = 8;

/// A base of distinct primes with Q < 2^126. Its methods neither branch on a value nor index memory by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rns {
    moduli: Vec<Modulus>,
    product: u128,
    /// The weights of the mixed-radix digits: `radix[j]` = p_0 ... p_(j-1).
    radix: Vec<u128>,
    /// The weights modulo the primes: `radix_mod[j][i]` = `radix[i]` mod p_j, for i < j.
    radix_mod: Vec<Vec<u32>>,
    /// The inverse of `radix[j]` modulo p_j, for every j.
    radix_inverse: Vec<u32>,
    /// 2^64 mod p_j, for every j.
    word: Vec<u32>,
}

impl Rns {
    /// Creates the base of `primes`.
    ///
    /// # Panics
    /// If a prime is not an odd prime below [`crate::modulus::MODULUS_LIMIT`] or occurs twice, if the product reaches 2^126, or
    /// if there are more than [`MAX_LIMBS`] primes.
    pub fn new(primes: &[u32]) -> Self {
        assert!(primes.len() <= MAX_LIMBS, "{} primes, at most {MAX_LIMBS}", primes.len());
        let moduli: Vec<Modulus> = primes.iter().map(|&p| Modulus::new(p)).collect();
        let mut radix = vec![1u128];
        for &p in primes {
            let next = radix[radix.len() - 1].checked_mul(u128::from(p)).filter(|&q| q < 1 << 126);
            radix.push(next.expect("the product of the primes is below 2^126"));
        }
        let product = radix.pop().expect("at least the empty product");
        let modulo = |value: u128, p: &Modulus| (value % u128::from(p.value())) as u32;
        let radix_inverse = moduli.iter().zip(&radix).map(|(p, &r)| {
            let residue = modulo(r, p);
            assert!(residue != 0, "the primes are distinct");
            p.inverse(residue)
        });
        let radix_inverse = radix_inverse.collect();
        let radix_mod = moduli.iter().enumerate();
        let radix_mod = radix_mod.map(|(j, p)| radix[..j].iter().map(|&r| modulo(r, p)).collect()).collect();
        let word = moduli.iter().map(|p| modulo(1 << 64, p)).collect();
        Self { moduli, product, radix, radix_mod, radix_inverse, word }
    }

    /// Returns the primes.
    pub fn moduli(&self) -> &[Modulus] {
        &self.moduli
    }

    /// Returns the number of primes.
    pub fn limbs(&self) -> usize {
        self.moduli.len()
    }

    /// Returns Q.
    pub fn product(&self) -> u128 {
        self.product
    }

    /// Returns the bits of Q.
    pub fn bits(&self) -> u32 {
        u128::BITS - self.product.leading_zeros()
    }

    /// Returns the integer in `0..Q` whose residue modulo prime `j` is `residue(j)`, which must be canonical.
    ///
    /// Source: Garner's algorithm (HAC 14.71).
    #[inline]
    pub fn lift(&self, residue: impl Fn(usize) -> u32) -> u128 {
        let mut digits = [0u32; MAX_LIMBS];
        let mut value = 0;
        for (j, p) in self.moduli.iter().enumerate() {
            let below = self.radix_mod[j].iter().zip(&digits);
            let known =
                below.fold(0, |sum, (&r, &digit)| p.add(sum, p.reduce(u64::from(r) * u64::from(digit))));
            digits[j] = p.mul(p.sub(residue(j), known), self.radix_inverse[j]);
            value += self.radix[j] * u128::from(digits[j]);
        }
        value
    }

    /// Returns the representative in `-Q/2..Q/2` of the value that [`Rns::lift`] returns.
    #[inline]
    pub fn lift_centred(&self, residue: impl Fn(usize) -> u32) -> i128 {
        self.centre(self.lift(residue))
    }

    /// Returns the representative of `value` (in `0..Q`) that is in `-Q/2..Q/2`.
    #[inline]
    pub fn centre(&self, value: u128) -> i128 {
        let above = (self.product / 2).wrapping_sub(value) >> 127; // 1 if value > Q / 2
        value.wrapping_sub(self.product & above.wrapping_neg()) as i128
    }

    /// Returns `value mod p_limb`.
    #[inline]
    pub fn reduce(&self, value: u128, limb: usize) -> u32 {
        let p = &self.moduli[limb];
        let high = p.reduce(u64::from(p.reduce((value >> 64) as u64)) * u64::from(self.word[limb]));
        p.add(high, p.reduce(value as u64))
    }

    /// Returns `value mod p_limb` for a signed value.
    #[inline]
    pub fn reduce_signed(&self, value: i128, limb: usize) -> u32 {
        let negative = (value >> 127) as u32;
        let magnitude = self.reduce(value.unsigned_abs(), limb);
        (magnitude & !negative) | (self.moduli[limb].neg(magnitude) & negative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{csprng::Csprng, modulus::find_primes};

    fn bases() -> Vec<Rns> {
        let wide = find_primes(4096, 31, 4);
        let mixed = [find_primes(2048, 32, 1), find_primes(2048, 21, 1)].concat();
        vec![Rns::new(&wide), Rns::new(&wide[..3]), Rns::new(&mixed), Rns::new(&wide[..1])]
    }

    #[test]
    fn lift_inverts_reduce() {
        let mut rng = Csprng::insecure_from_seed(1);
        for rns in bases() {
            let q = rns.product();
            let random =
                (0..200).map(|_| (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) % q);
            for value in random.chain([0, 1, q / 2, q / 2 + 1, q - 1]) {
                let residues: Vec<u32> = (0..rns.limbs()).map(|limb| rns.reduce(value, limb)).collect();
                for (residue, p) in residues.iter().zip(rns.moduli()) {
                    assert_eq!(u128::from(*residue), value % u128::from(p.value()));
                }
                assert_eq!(rns.lift(|limb| residues[limb]), value);
                let centred = rns.lift_centred(|limb| residues[limb]);
                assert_eq!(centred.rem_euclid(q as i128) as u128, value);
                assert!(centred.unsigned_abs() <= q / 2);
                let signed: Vec<u32> =
                    (0..rns.limbs()).map(|limb| rns.reduce_signed(centred, limb)).collect();
                assert_eq!(signed, residues);
            }
        }
    }
}
