//! RLWE encryption.

use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
    ring::Ring,
    samplers::GaussianTable,
};
use zeroize::Zeroizing;

use crate::params::RingParams;

/// Returns the second half of an RLWE ciphertext of `message` with mask `a` under `secret`: `b = -a s + e + message`.
///
/// Without `errors` it does not encrypt: for tests only. `a` must be uniform and used once under a secret. Constant time in
/// secret, error and message.
pub(super) fn encrypt_rlwe(
    ring: &Ring,
    secret: &Poly<Eval>,
    a: &Poly<Eval>,
    message: &Poly<Eval>,
    errors: Option<&GaussianTable>,
    rng: &mut Csprng,
) -> Poly<Coeff> {
    // The product `a s` without an error reveals the secret, so it is wiped.
    let mut product = Zeroizing::new(a.clone());
    ring.mul(&mut product, secret);
    let mut b = message.clone();
    ring.sub(&mut b, &product);
    let mut b = ring.inverse(b);
    if let Some(errors) = errors {
        let mut error = Zeroizing::new(vec![0; ring.degree()]);
        errors.add_to(rng, &mut error);
        ring.add(&mut b, &Zeroizing::new(ring.from_signed(&error)));
    }
    b
}

/// Returns the error table of a parameter set; `None` without encryption.
pub(super) fn error_table(params: &RingParams) -> Option<GaussianTable> {
    (!params.is_plain()).then(|| GaussianTable::new(params.error_std()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{INSECURE_RING_PLAIN, ONION_S};

    /// Encrypts zero under a set, and returns the mean of the squares of the error's coefficients.
    fn mean_square(params: &RingParams) -> f64 {
        let ring = params.full_ring();
        let rng = &mut Csprng::insecure_from_seed(5);
        let secret: Vec<u32> = (0..ring.degree() as u32).map(|place| (place % 3).wrapping_sub(1)).collect();
        let secret = ring.forward(ring.from_signed(&secret));
        let mut a = ring.expand_uniform(rng);
        let mut error = encrypt_rlwe(&ring, &secret, &a, &ring.zero(), error_table(params).as_ref(), rng);
        ring.mul(&mut a, &secret);
        ring.add(&mut error, &ring.inverse(a));
        let prime = i64::from(ring.moduli()[0].value());
        let centred = error
            .limb(0)
            .iter()
            .map(|&word| i64::from(word))
            .map(|word| if word > prime / 2 { word - prime } else { word });
        centred.map(|error| (error * error) as f64).sum::<f64>() / ring.degree() as f64
    }

    #[test]
    fn a_fresh_ciphertext_has_the_error_of_its_set() {
        let [expected, found] = [ONION_S.error_std().powi(2), mean_square(&ONION_S)];
        // The mean of 2048 squares has a standard deviation of 1/32 of it.
        assert!((found / expected - 1.0).abs() < 6.0 / 32.0, "{found} for {expected}");
        assert_eq!(mean_square(&INSECURE_RING_PLAIN), 0.0);
    }
}
