//! Digits of polynomials, their transforms, and the products with rows.

use super::{ModRing, gadget_rows::GadgetRows, scratch::Scratch, tables::GadgetTables, words};

/// Replaces `scratch.coefficients` (a polynomial in evaluation form) by its coefficients, and writes their digits to
/// `scratch.digits`, from digit `first` on; each is [`GadgetTables::half`] too large.
pub(super) fn decompose(ring: &ModRing, gadget: &GadgetTables, scratch: &mut Scratch<'_>, first: usize) {
    let degree = ring.degree();
    for (limb, words) in ring.limbs().iter().zip(scratch.coefficients.chunks_exact_mut(degree)) {
        limb.ntt.inverse(words, scratch.transform);
    }
    let digits = &mut scratch.digits[first * degree..][..gadget.digits * degree];
    gadget.decomposer.decompose(ring.level(), scratch.coefficients, digits);
}

/// `out[poly] += sum_row digit[row] * rows[row][poly]` for the digits in `scratch.digits`, each `half` too large.
pub(super) fn multiply_add(
    ring: &ModRing,
    rows: GadgetRows<'_>,
    half: u32,
    scratch: &mut Scratch<'_>,
    out: &mut [u32],
) {
    let (degree, count) = (ring.degree(), rows.rows());
    for (index, limb) in ring.limbs().iter().enumerate() {
        let values = &mut scratch.values[..count * degree];
        for (values, digits) in values.chunks_exact_mut(degree).zip(scratch.digits.chunks_exact(degree)) {
            words::centre_digits(ring, index, half, digits, values);
            limb.ntt.forward(values, scratch.transform);
        }
        rows.multiply_add(ring, index, values, &mut out[index * degree..], ring.words());
    }
}
