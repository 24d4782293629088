//! The ring R_Q = Z_Q\[X\]/(X^N + 1) over an RNS base: scalar arithmetic, the reference for every backend.

use crate::{
    csprng::Csprng,
    modulus::Modulus,
    ntt::NttPlan,
    poly::{Coeff, Eval, Poly},
    rns::Rns,
};

/// The ring: its degree N, its primes, and the transform of each prime.
#[derive(Clone, Debug)]
pub struct Ring {
    degree: usize,
    rns: Rns,
    plans: Vec<NttPlan>,
}

impl Ring {
    /// Creates the ring of `degree` N modulo the product of `primes`.
    ///
    /// # Panics
    /// If N is not a power of two, if a prime is not 1 modulo 2N, or if [`Rns::new`] panics for `primes`.
    pub fn new(degree: usize, primes: &[u32]) -> Self {
        let plans = primes.iter().map(|&p| NttPlan::new(p, degree)).collect();
        Self { degree, rns: Rns::new(primes), plans }
    }

    /// Returns the degree N.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the number of primes.
    pub fn limbs(&self) -> usize {
        self.plans.len()
    }

    /// Returns the RNS base.
    pub fn rns(&self) -> &Rns {
        &self.rns
    }

    /// Returns the primes.
    pub fn moduli(&self) -> &[Modulus] {
        self.rns.moduli()
    }

    /// Returns the transform of each prime.
    pub fn plans(&self) -> &[NttPlan] {
        &self.plans
    }

    /// Returns the zero polynomial.
    pub fn zero<R>(&self) -> Poly<R> {
        Poly::zero(self.limbs(), self.degree)
    }

    /// Transforms coefficients to values.
    pub fn forward(&self, poly: Poly<Coeff>) -> Poly<Eval> {
        let mut words = poly.into_words();
        self.plans
            .iter()
            .zip(words.chunks_exact_mut(self.degree))
            .for_each(|(plan, limb)| plan.forward(limb));
        Poly::from_words(words, self.degree)
    }

    /// Transforms values to coefficients.
    pub fn inverse(&self, poly: Poly<Eval>) -> Poly<Coeff> {
        let mut words = poly.into_words();
        self.plans
            .iter()
            .zip(words.chunks_exact_mut(self.degree))
            .for_each(|(plan, limb)| plan.inverse(limb));
        Poly::from_words(words, self.degree)
    }

    /// Computes `x += y`.
    pub fn add<R>(&self, x: &mut Poly<R>, y: &Poly<R>) {
        self.zip(x, y, |p, x, y| p.add(x, y));
    }

    /// Computes `x -= y`.
    pub fn sub<R>(&self, x: &mut Poly<R>, y: &Poly<R>) {
        self.zip(x, y, |p, x, y| p.sub(x, y));
    }

    /// Computes `x *= y` slot by slot, which is the product of the polynomials.
    pub fn mul(&self, x: &mut Poly<Eval>, y: &Poly<Eval>) {
        self.zip(x, y, |p, x, y| p.mul(x, y));
    }

    /// Computes `sum += x * y`.
    pub fn mul_add(&self, sum: &mut Poly<Eval>, x: &Poly<Eval>, y: &Poly<Eval>) {
        for (limb, plan) in self.plans.iter().enumerate() {
            plan.mul_add(sum.limb_mut(limb), x.limb(limb), y.limb(limb));
        }
    }

    /// Computes `x *= 2^exponent`.
    pub fn mul_power_of_two<R>(&self, x: &mut Poly<R>, exponent: u32) {
        for (limb, p) in self.moduli().iter().enumerate() {
            let factor = p.pow(2, u64::from(exponent));
            x.limb_mut(limb).iter_mut().for_each(|word| *word = p.mul(*word, factor));
        }
    }

    /// Returns the polynomial with the given signed coefficients (words modulo 2^32, as samplers write them).
    ///
    /// # Panics
    /// If there are not exactly N coefficients.
    pub fn from_signed(&self, coefficients: &[u32]) -> Poly<Coeff> {
        assert_eq!(coefficients.len(), self.degree);
        // Allocate the final size at once: a vector that grows would leave copies of a secret behind.
        let mut words = Vec::with_capacity(self.limbs() * self.degree);
        for p in self.moduli() {
            words.extend(coefficients.iter().map(|&c| p.reduce_signed(i64::from(c as i32))));
        }
        Poly::from_words(words, self.degree)
    }

    /// Returns `X^-power = -X^(N - power)`, for a power from 1 to N.
    pub fn inverse_monomial(&self, power: usize) -> Poly<Eval> {
        let mut coefficients = vec![0; self.degree];
        coefficients[self.degree - power] = u32::MAX;
        self.forward(self.from_signed(&coefficients))
    }

    /// Applies X -> X^`exponent` (`exponent` odd) to a polynomial in evaluation form: a permutation of the slots.
    pub fn automorphism(&self, x: &Poly<Eval>, exponent: usize) -> Poly<Eval> {
        let from = slot_permutation(self.degree, exponent);
        // Allocate the final size at once: a vector that grows would leave copies of a secret behind.
        let mut words = Vec::with_capacity(self.limbs() * self.degree);
        for limb in 0..self.limbs() {
            words.extend(from.iter().map(|&slot| x.limb(limb)[slot as usize]));
        }
        Poly::from_words(words, self.degree)
    }

    /// Returns a uniform polynomial from a *public* generator: words are masked to the prime's bits, and those not below the
    /// prime are rejected. Both representations of a uniform polynomial are uniform, so the caller may choose either.
    pub fn expand_uniform<R>(&self, rng: &mut Csprng) -> Poly<R> {
        let mut words = Vec::with_capacity(self.limbs() * self.degree);
        let mut buffer = [0u32; 256];
        for (limb, p) in self.moduli().iter().enumerate() {
            let mask = u32::MAX >> (32 - p.bits());
            while words.len() < (limb + 1) * self.degree {
                rng.fill_u32(&mut buffer);
                let accepted = buffer.iter().map(|word| word & mask).filter(|&word| word < p.value());
                words.extend(accepted.take((limb + 1) * self.degree - words.len()));
            }
        }
        Poly::from_words(words, self.degree)
    }

    fn zip<R>(&self, x: &mut Poly<R>, y: &Poly<R>, op: impl Fn(&Modulus, u32, u32) -> u32) {
        for (limb, p) in self.moduli().iter().enumerate() {
            for (x, &y) in x.limb_mut(limb).iter_mut().zip(y.limb(limb)) {
                *x = op(p, *x, y);
            }
        }
    }
}

/// Returns the permutation of slots from `a` to `a(X^exponent)`: slot `i` of `a(X^exponent)` is slot `result[i]` of `a`.
///
/// Slot `i` holds the value at psi^e with e = 2 reverse(i) + 1, and a(X^k) at psi^e equals a at psi^(k e).
pub fn slot_permutation(degree: usize, exponent: usize) -> Vec<u32> {
    let bits = degree.trailing_zeros();
    let reverse = |i: usize| if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) };
    (0..degree)
        .map(|i: usize| {
            let power = (2 * reverse(i) + 1) * exponent % (2 * degree);
            reverse(power / 2) as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulus::find_primes;

    fn ring(degree: usize) -> Ring {
        let primes = [find_primes(degree, 32, 1), find_primes(degree, 21, 1), find_primes(degree, 30, 1)];
        Ring::new(degree, &primes.concat())
    }

    #[test]
    fn products_are_negacyclic() {
        let ring = ring(64);
        let x: Poly<Coeff> = ring.expand_uniform(&mut Csprng::insecure_from_seed(1));
        // Multiplying by X^63 shifts and negates.
        let mut monomial = vec![0; 64];
        monomial[63] = 1;
        let mut product = ring.forward(ring.from_signed(&monomial));
        ring.mul(&mut product, &ring.forward(x.clone()));
        let product = ring.inverse(product);
        for (limb, p) in ring.moduli().iter().enumerate() {
            assert_eq!(product.limb(limb)[63], x.limb(limb)[0]);
            assert!((0..63).all(|i| product.limb(limb)[i] == p.neg(x.limb(limb)[i + 1])));
        }
    }

    #[test]
    fn automorphisms_act_on_coefficients() {
        for (degree, exponent) in [(16, 17), (64, 33), (64, 3), (2048, 9), (4096, 4097)] {
            let ring = ring(degree);
            let x: Poly<Coeff> = ring.expand_uniform(&mut Csprng::insecure_from_seed(2));
            let image = ring.inverse(ring.automorphism(&ring.forward(x.clone()), exponent));
            for (limb, p) in ring.moduli().iter().enumerate() {
                for (i, &coefficient) in x.limb(limb).iter().enumerate() {
                    let to = i * exponent % (2 * degree);
                    let expected = if to < degree { coefficient } else { p.neg(coefficient) };
                    assert_eq!(image.limb(limb)[to % degree], expected);
                }
            }
        }
    }

    #[test]
    fn uniform_polynomials_are_canonical_and_reproducible() {
        let ring = ring(256);
        let sample =
            |stream| ring.expand_uniform::<Eval>(&mut Csprng::public("hushdb v1 test", b"seed", stream));
        assert_eq!(sample(1), sample(1));
        assert_ne!(sample(1), sample(2));
        for (limb, p) in ring.moduli().iter().enumerate() {
            let mean = sample(1).limb(limb).iter().map(|&w| f64::from(w)).sum::<f64>() / 256.0;
            assert!(sample(1).limb(limb).iter().all(|&word| word < p.value()));
            assert!((mean / f64::from(p.value()) - 0.5).abs() < 0.1);
        }
    }
}
