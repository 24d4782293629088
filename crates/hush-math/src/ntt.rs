//! The negacyclic number-theoretic transform: products in Z_p\[X\]/(X^d + 1) for a power of two d.

use crate::modulus::Modulus;

/// The multipliers of a transform with their Shoup companions, in the order in which the stages use them.
#[derive(Clone, Debug)]
pub struct Twiddles {
    /// The multipliers: entry `m + i` belongs to block `i` in the stage of `m` blocks; entry 0 is unused.
    pub factors: Vec<u32>,
    /// The Shoup companion `floor(factor * 2^32 / p)` of each factor.
    pub shoup: Vec<u32>,
}

impl Twiddles {
    /// Computes the powers of `root` in bit-reversed order.
    fn new(modulus: Modulus, root: u32, degree: usize) -> Self {
        let mut factors = vec![0; degree];
        let mut power = 1;
        for i in 0..degree {
            factors[reverse_bits(i, degree)] = power;
            power = modulus.mul(power, root);
        }
        let shoup = factors.iter().map(|&factor| modulus.shoup(factor)).collect();
        Self { factors, shoup }
    }
}

/// The tables of a transform for one modulus p and one degree d.
///
/// [`NttPlan::forward`] evaluates at the odd powers of a primitive 2d-th root psi: slot `i` holds the value at
/// `psi^(2 reverse(i) + 1)`, where `reverse` reverses the `log2 d` bits of `i`.
///
/// Source: Longa and Naehrig, "Speeding up the Number Theoretic Transform for Faster Ideal Lattice-Based
/// Cryptography", algorithms 1 and 2.
#[derive(Clone, Debug)]
pub struct NttPlan {
    modulus: Modulus,
    degree: usize,
    forward: Twiddles,
    inverse: Twiddles,
    /// 1/d modulo p and its Shoup companion.
    scale: (u32, u32),
}

impl NttPlan {
    /// Creates a plan for polynomials of `degree` coefficients modulo `modulus`.
    ///
    /// # Panics
    /// If `modulus` is not a prime below [`crate::modulus::MODULUS_LIMIT`] that is 1 modulo `2 * degree`, or `degree` is not a
    /// power of two. [`crate::modulus::find_primes`] returns such primes.
    pub fn new(modulus: u32, degree: usize) -> Self {
        let modulus = Modulus::new(modulus);
        let psi = modulus.primitive_root(2 * degree);
        let scale = modulus.inverse(modulus.reduce(degree as u64));
        Self {
            modulus,
            degree,
            forward: Twiddles::new(modulus, psi, degree),
            inverse: Twiddles::new(modulus, modulus.inverse(psi), degree),
            scale: (scale, modulus.shoup(scale)),
        }
    }

    /// Returns the modulus.
    pub fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// Returns the number of coefficients.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the multipliers of the forward transform (Cooley-Tukey butterflies).
    pub fn forward_twiddles(&self) -> &Twiddles {
        &self.forward
    }

    /// Returns the multipliers of the inverse transform (Gentleman-Sande butterflies), without the factor 1/d.
    pub fn inverse_twiddles(&self) -> &Twiddles {
        &self.inverse
    }

    /// Returns 1/d modulo p, and its Shoup companion.
    pub fn inverse_scale(&self) -> (u32, u32) {
        self.scale
    }

    /// Transforms coefficients in natural order to values in bit-reversed order, in place. Input and output are canonical.
    /// Source: Longa and Naehrig, algorithm 1.
    ///
    /// # Panics
    /// If `values` is not `degree` long.
    pub fn forward(&self, values: &mut [u32]) {
        assert_eq!(values.len(), self.degree);
        let p = self.modulus;
        let mut blocks = 1;
        let mut half = self.degree / 2;
        while half > 0 {
            for (i, block) in values.chunks_exact_mut(2 * half).enumerate() {
                let w = self.forward.factors[blocks + i];
                let w_shoup = self.forward.shoup[blocks + i];
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let product = p.mul_shoup(*y, w, w_shoup);
                    (*x, *y) = (p.add(*x, product), p.sub(*x, product));
                }
            }
            blocks *= 2;
            half /= 2;
        }
    }

    /// Transforms values in bit-reversed order to coefficients in natural order, in place; the inverse of
    /// [`NttPlan::forward`]. Input and output are canonical. Source: Longa and Naehrig, algorithm 2.
    ///
    /// # Panics
    /// If `values` is not `degree` long.
    pub fn inverse(&self, values: &mut [u32]) {
        assert_eq!(values.len(), self.degree);
        let p = self.modulus;
        let mut blocks = self.degree / 2;
        let mut half = 1;
        while blocks > 0 {
            for (i, block) in values.chunks_exact_mut(2 * half).enumerate() {
                let w = self.inverse.factors[blocks + i];
                let w_shoup = self.inverse.shoup[blocks + i];
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let difference = p.sub(*x, *y);
                    (*x, *y) = (p.add(*x, *y), p.mul_shoup(difference, w, w_shoup));
                }
            }
            blocks /= 2;
            half *= 2;
        }
        for value in values {
            *value = p.mul_shoup(*value, self.scale.0, self.scale.1);
        }
    }

    /// Computes `sum[i] += a[i] * b[i] mod p`: adds the product of two polynomials in evaluation form to `sum`.
    ///
    /// # Panics
    /// If a slice is not `degree` long.
    pub fn mul_add(&self, sum: &mut [u32], a: &[u32], b: &[u32]) {
        assert!(sum.len() == self.degree && a.len() == self.degree && b.len() == self.degree);
        let p = self.modulus;
        for ((sum, &a), &b) in sum.iter_mut().zip(a).zip(b) {
            *sum = p.add(*sum, p.mul(a, b));
        }
    }
}

/// Returns `index` with its `log2 size` bits reversed.
fn reverse_bits(index: usize, size: usize) -> usize {
    index.reverse_bits().checked_shr(usize::BITS - size.trailing_zeros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{csprng::Csprng, modulus::find_primes};

    fn random(rng: &mut Csprng, plan: &NttPlan) -> Vec<u32> {
        (0..plan.degree()).map(|_| rng.next_u32() % plan.modulus().value()).collect()
    }

    fn schoolbook(plan: &NttPlan, a: &[u32], b: &[u32]) -> Vec<u32> {
        let p = plan.modulus();
        let d = plan.degree();
        let mut out = vec![0; d];
        for i in 0..d {
            for j in 0..d {
                let product = p.mul(a[i], b[j]);
                let slot = &mut out[(i + j) % d];
                *slot = if i + j < d { p.add(*slot, product) } else { p.sub(*slot, product) };
            }
        }
        out
    }

    #[test]
    fn products_match_schoolbook() {
        let mut rng = Csprng::insecure_from_seed(1);
        for degree in [1, 2, 4, 8, 64, 256, 512] {
            for bits in [14, 30, 31, 32] {
                let plan = NttPlan::new(find_primes(degree, bits, 1)[0], degree);
                let a = random(&mut rng, &plan);
                let b = random(&mut rng, &plan);
                let mut fa = a.clone();
                let mut fb = b.clone();
                plan.forward(&mut fa);
                plan.forward(&mut fb);
                let mut product = vec![0; degree];
                plan.mul_add(&mut product, &fa, &fb);
                plan.inverse(&mut product);
                assert_eq!(product, schoolbook(&plan, &a, &b), "degree {degree}, {bits} bits");
            }
        }
    }

    #[test]
    fn extremes_round_trip() {
        for (degree, bits) in [(1, 31), (2, 31), (256, 32), (2048, 32), (4096, 31), (8192, 32)] {
            let plan = NttPlan::new(find_primes(degree, bits, 1)[0], degree);
            let top = plan.modulus().value() - 1;
            for pattern in [vec![0; degree], vec![top; degree], (0..degree as u32).collect()] {
                let mut values = pattern.clone();
                plan.forward(&mut values);
                plan.inverse(&mut values);
                assert_eq!(values, pattern);
            }
        }
    }

    #[test]
    fn slots_are_the_documented_points() {
        let plan = NttPlan::new(find_primes(16, 20, 1)[0], 16);
        let p = plan.modulus();
        let psi = p.primitive_root(32);
        let coefficients = random(&mut Csprng::insecure_from_seed(2), &plan);
        let mut values = coefficients.clone();
        plan.forward(&mut values);
        for (i, &value) in values.iter().enumerate() {
            let point = p.pow(psi, 2 * reverse_bits(i, 16) as u64 + 1);
            let horner = coefficients.iter().rev().fold(0, |sum, &c| p.add(p.mul(sum, point), c));
            assert_eq!(value, horner, "slot {i}");
        }
    }
}
