//! Measured noise against its formulas.

mod column;
mod folds;
mod lwe;
mod measure;
mod pack;

use hush_he::{
    codec::{packed_bytes, unpack_words},
    params::RingParams,
};

/// Bits to which phases are decoded to measure their error, all that an answer has: steps of 2^-10 of a byte.
const PHASE_BITS: u32 = 18;

fn std(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

/// Returns a number modulo 256, from -128 to 128.
fn centred(x: f64) -> f64 {
    (x + 128.0).rem_euclid(256.0) - 128.0
}

/// Returns the polynomials of an answer of one plaintext or two: a, and a b of each.
fn halves(ring: &RingParams, answer: &[u8]) -> (Vec<u64>, Vec<Vec<u64>>) {
    let (degree, bits) = (ring.degree(), ring.response_bits());
    let words = |bytes: &[u8], bits| -> Vec<u64> { unpack_words(bytes, degree, bits).unwrap() };
    let (a, b) = answer.split_at(packed_bytes(degree, bits.a));
    (words(a, bits.a), b.chunks(packed_bytes(degree, bits.b)).map(|b| words(b, bits.b)).collect())
}
