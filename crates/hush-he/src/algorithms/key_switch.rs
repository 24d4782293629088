//! Key switching and Subs.

use hush_math::{
    gadget::Gadget,
    poly::{Eval, Poly},
    ring::Ring,
};

use super::decompose;
use crate::entities::{KeySwitchKey, RlweCiphertext};

/// Returns a ciphertext of `a * old` under the new secret: `sum_k digit_k(a) key_k`.
///
/// Error: `sqrt(l N) B / sqrt(12) * sigma`, plus the rounded low bits times the old secret (`params::RingNoise`).
/// Source: Brakerski, Gentry and Vaikuntanathan, "(Leveled) fully homomorphic encryption without bootstrapping", section 3.
pub fn key_switch(ring: &Ring, a: &Poly<Eval>, key: &KeySwitchKey, gadget: Gadget) -> RlweCiphertext {
    let mut sum = RlweCiphertext { a: ring.zero(), b: ring.zero() };
    for (digit, row) in decompose(ring, a, gadget).iter().zip(&key.rows) {
        ring.mul_add(&mut sum.a, digit, &row.a);
        ring.mul_add(&mut sum.b, digit, &row.b);
    }
    sum
}

/// Returns a ciphertext of `m(X^exponent)` from one of `m` (Subs). `key` switches from `s(X^exponent)` to `s`.
///
/// Source: OnionPIRv2 section 3.3 and algorithm 2.
pub fn substitute(
    ring: &Ring,
    x: &RlweCiphertext,
    exponent: usize,
    key: &KeySwitchKey,
    gadget: Gadget,
) -> RlweCiphertext {
    let mut out = key_switch(ring, &ring.automorphism(&x.a, exponent), key, gadget);
    ring.add(&mut out.b, &ring.automorphism(&x.b, exponent));
    out
}
