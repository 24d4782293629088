//! External product of RGSW and RLWE.

use hush_math::{gadget::Gadget, ring::Ring};

use super::decompose;
use crate::entities::{RgswCiphertext, RlweCiphertext};

/// Returns a ciphertext of `m x` from one of x and an RGSW ciphertext of the bit m.
///
/// Error: m times that of x, plus `sqrt(l N) B / sqrt(12)` times the errors of the rows (`params::RingNoise`).
/// Source: VIPIR section 3.4, OnionPIRv2 section 2.2.
pub fn external_product(
    ring: &Ring,
    bit: &RgswCiphertext,
    x: &RlweCiphertext,
    gadget: Gadget,
) -> RlweCiphertext {
    let mut sum = RlweCiphertext { a: ring.zero(), b: ring.zero() };
    for (half, rows) in [(&x.a, &bit.bottom), (&x.b, &bit.top)] {
        for (digit, row) in decompose(ring, half, gadget).iter().zip(rows) {
            ring.mul_add(&mut sum.a, digit, &row.a);
            ring.mul_add(&mut sum.b, digit, &row.b);
        }
    }
    sum
}
