//! Gadget decomposition of a polynomial.

use hush_math::{
    gadget::Gadget,
    poly::{Eval, Poly},
    ring::Ring,
};

/// Returns the balanced digits of the centred coefficients of `poly`, each digit a polynomial in evaluation form.
///
/// Cost: one inverse transform, and one forward transform for every digit (each of all limbs).
/// Source: OnionPIRv2 section 2.1 (the gadget); `Gadget` describes how digits are balanced.
pub fn decompose(ring: &Ring, poly: &Poly<Eval>, gadget: Gadget) -> Vec<Poly<Eval>> {
    let coefficients = ring.inverse(poly.clone());
    let centred: Vec<i128> =
        (0..ring.degree()).map(|i| ring.rns().lift_centred(|limb| coefficients.limb(limb)[i])).collect();
    (0..gadget.digits)
        .map(|k: usize| {
            let words: Vec<u32> = centred.iter().map(|&x| gadget.digit(x, k) as u32).collect();
            ring.forward(ring.from_signed(&words))
        })
        .collect()
}
