//! Decryption of an answer.

use hush_math::{
    poly::{Coeff, Poly},
    ring::Ring,
};
use zeroize::Zeroizing;

use crate::{
    entities::RlweSecret,
    params::{ResponseBits, RingContext},
};

/// Decrypts symbols of `symbol_bits` bits from an answer `(a, b)` modulo `2^bits.a` and `2^bits.b`, with as many bits in a as in
/// b, or more: `round((a s + 2^(a - b) b) 2^symbol_bits / 2^a)`. `b` holds the coefficients at multiples of `stride`, or the
/// first of them.
///
/// Symbols have the bits of the plaintext modulus, or fewer: packed LWE ciphertexts are decoded straight to bytes, because the
/// low bits of their plaintexts are noise (`docs/explanation/protocols/exppack-s.md`).
///
/// Constant time in the secret and the symbols. Source: VIPIR appendix A.2, with halves of two widths.
pub fn decrypt_response(
    context: &RingContext,
    secret: &RlweSecret,
    a: &[u64],
    b: &[u64],
    bits: ResponseBits,
    stride: usize,
    symbol_bits: u32,
) -> Zeroizing<Vec<u32>> {
    let ring = context.full();
    let product = times_secret(ring, secret, a, bits.a);
    let rns = ring.rns();
    Zeroizing::new(
        b.iter()
            .enumerate()
            .map(|(i, &b): (usize, &u64)| {
                let product = rns.lift_centred(|limb| product.limb(limb)[i * stride]) as u64;
                rounded_phase(product, b, bits, symbol_bits)
            })
            .collect(),
    )
}

/// Returns the symbol of the phase `product + 2^(bits.a - bits.b) b`, where `product` is `a s` modulo 2^64.
pub(super) fn rounded_phase(product: u64, b: u64, bits: ResponseBits, symbol_bits: u32) -> u32 {
    let mask = (1u64 << bits.a) - 1;
    let phase = product.wrapping_add(b << (bits.a - bits.b)) & mask;
    let half = 1u64 << (bits.a - symbol_bits) >> 1;
    (((phase + half) & mask) >> (bits.a - symbol_bits)) as u32
}

/// Computes `a s` over the integers, a centred modulo `2^bits`. The ring's modulus must exceed twice the size of the result.
pub(super) fn times_secret(ring: &Ring, secret: &RlweSecret, a: &[u64], bits: u32) -> Zeroizing<Poly<Coeff>> {
    let residues = ring.moduli().iter().flat_map(|p| {
        // The shifts extend the sign, which centres a word.
        a.iter().map(move |&word| p.reduce_signed(((word << (64 - bits)) as i64) >> (64 - bits)))
    });
    let mut product = ring.forward(Poly::from_words(residues.collect(), ring.degree()));
    ring.mul(&mut product, &secret.eval(ring));
    Zeroizing::new(ring.inverse(product))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every modulus up to 8 bits, width of the second half, symbol, error within the margin, and product.
    #[test]
    fn every_symbol_decodes_up_to_its_margin() {
        let mut beyond = 0;
        for (a, b) in (1..=8u32).flat_map(|a| (1..=a).map(move |b| (a, b))) {
            let (modulus, dropped) = (1i64 << a, a - b);
            let sent = ResponseBits { a, b };
            for symbol_bits in 1..=b {
                let half = modulus >> symbol_bits >> 1;
                // The half that carries the message was rounded.
                let margin = half - (1 << dropped >> 1);
                for (symbol, product) in
                    (0..1i64 << symbol_bits).flat_map(|s| (0..modulus).map(move |p| (s, p)))
                {
                    for error in -half..half {
                        let phase = (symbol << (a - symbol_bits)) + error - product;
                        let word = (phase + (1 << dropped >> 1)).rem_euclid(modulus) >> dropped;
                        let decoded = rounded_phase(product as u64, word as u64, sent, symbol_bits);
                        if (-margin..margin).contains(&error) {
                            assert_eq!(
                                i64::from(decoded),
                                symbol,
                                "{a}, {b}, {symbol_bits}, {product}, {error}"
                            );
                        } else {
                            beyond += u32::from(i64::from(decoded) != symbol);
                        }
                    }
                }
            }
        }
        assert!(beyond > 0, "beyond the margin there are errors");
    }
}
