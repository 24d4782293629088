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
