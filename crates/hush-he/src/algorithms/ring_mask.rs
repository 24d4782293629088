//! The product `-A s` for a ring-structured A: one product in Z\[X\]/(X^d + 1) for every ring element of A.

use hush_math::{
    modulus::{Modulus, find_primes},
    ntt::NttPlan,
};
use zeroize::Zeroizing;

use crate::entities::{MatrixStructure, PublicMatrix};

/// The bits of the two primes, whose product exceeds twice `2^31 * n * max|s|` for every preset.
const PRIME_BITS: u32 = 31;

/// Writes `-A s mod 2^32` to `out` (`a.cols()` words). The result is exact: with A's words centred, every coefficient is
/// below `2^31 * n * max|s| < p0 p1 / 2` in size, so its residues modulo two primes determine it.
///
/// # Panics
/// If A is not ring-structured.
pub(super) fn ring_mask_into(a: &PublicMatrix, secret: &[u32], out: &mut [u32]) {
    let MatrixStructure::Ring { degree } = a.structure() else { panic!("a ring-structured matrix") };
    let primes = find_primes(degree, PRIME_BITS, 2);
    let plans = [NttPlan::new(primes[0], degree), NttPlan::new(primes[1], degree)];
    let secret_values = plans.each_ref().map(|plan| {
        let mut values = Zeroizing::new(centred_residues(plan.modulus(), secret));
        values.chunks_exact_mut(degree).for_each(|poly| plan.forward(poly));
        values
    });
    let lift = Lift::new(plans[0].modulus(), plans[1].modulus());

    let mut alpha = vec![0; a.n()];
    for (block, out) in out.chunks_mut(degree).enumerate() {
        a.ring_block_into(block, &mut alpha);
        let [r0, r1] = [0, 1].map(|i| {
            // The product without its error reveals the secret, so it is wiped.
            let mut sum = Zeroizing::new(vec![0; degree]);
            let mut values = centred_residues(plans[i].modulus(), &alpha);
            for (alpha, secret) in values.chunks_exact_mut(degree).zip(secret_values[i].chunks_exact(degree))
            {
                plans[i].forward(alpha);
                plans[i].mul_add(&mut sum, alpha, secret);
            }
            plans[i].inverse(&mut sum);
            sum
        });
        for ((word, &r0), &r1) in out.iter_mut().zip(r0.iter()).zip(r1.iter()) {
            *word = lift.word(r0, r1).wrapping_neg();
        }
    }
}

/// Reduces words modulo 2^32, read as i32, modulo p. Free of branches, since secrets pass through it.
fn centred_residues(p: Modulus, words: &[u32]) -> Vec<u32> {
    // 2^31 <= 2p for a 31-bit p, so w + 2p is positive and below 2^33.
    let offset = 2 * i64::from(p.value());
    words.iter().map(|&w| p.reduce((i64::from(w as i32) + offset) as u64)).collect()
}

/// The conversion from residues modulo two primes to a centred integer, modulo 2^32.
struct Lift {
    p0: Modulus,
    p1: Modulus,
    /// `1 / p1 mod p0`.
    p1_inverse: u32,
}

impl Lift {
    fn new(p0: Modulus, p1: Modulus) -> Self {
        Self { p0, p1, p1_inverse: p0.inverse(p1.value()) }
    }

    /// Returns the integer in `[-p0 p1 / 2, p0 p1 / 2)` with these residues, modulo 2^32. Needs `p0 > p1`.
    fn word(&self, r0: u32, r1: u32) -> u32 {
        let product = u64::from(self.p0.value()) * u64::from(self.p1.value());
        let quotient = self.p0.mul(self.p0.sub(r0, r1), self.p1_inverse);
        let x = u64::from(r1) + u64::from(self.p1.value()) * u64::from(quotient);
        let negative = ((product / 2).wrapping_sub(x) >> 63).wrapping_neg();
        x.wrapping_sub(product & negative) as u32
    }
}

#[cfg(test)]
mod tests {
    use hush_math::csprng::Csprng;

    use super::*;
    use crate::{
        algorithms::encrypt_lwe::inner_product,
        entities::{MatrixDomain, MatrixShape, PublicSeed},
    };

    #[test]
    fn equals_the_matrix_by_its_definition() {
        let mut rng = Csprng::insecure_from_seed(5);
        for (degree, n, cols) in [(256, 1280, 700), (8, 24, 50), (2048, 2048, 2100), (1, 3, 4)] {
            let shape = MatrixShape::new(MatrixDomain::First, MatrixStructure::Ring { degree }, cols, n);
            let a = PublicMatrix::new(PublicSeed([1; 32]), shape);
            for extreme in [false, true] {
                let secret: Vec<u32> =
                    (0..n).map(|_| if extreme { 1 } else { (rng.next_u32() % 3).wrapping_sub(1) }).collect();
                let mut out = vec![0; cols];
                ring_mask_into(&a, &secret, &mut out);
                let mut row = vec![0; n];
                for (col, &word) in out.iter().enumerate() {
                    a.row_into(col, &mut row);
                    assert_eq!(
                        word,
                        inner_product(&row, &secret).wrapping_neg(),
                        "column {col}, d = {degree}"
                    );
                }
            }
        }
    }
}
