//! Digits of polynomials, their transforms, and the products with rows.
//!
//! ```text
//! for every limb:  values[row] = NTT(digit[row] - 2^(w-1));   sum[poly] = sum_row values[row] * rows[row][poly]
//! ```

use super::{
    gadget_rows::{GadgetRows, Sink},
    scratch::Scratch,
};
use crate::lanes::Lanes;
use crate::ring::{
    ModRing,
    arithmetic::{residues::Residues, words},
    tables::GadgetTables,
};

/// Replaces `scratch.coefficients` (a polynomial in evaluation form) by its coefficients, and writes their digits to
/// `scratch.digits`, from digit `first` on. Each digit is [`GadgetTables::half`] too large.
pub(in crate::ring) fn decompose(
    ring: &ModRing,
    gadget: &GadgetTables,
    scratch: &mut Scratch<'_>,
    first: usize,
) {
    ring.inverse(scratch.coefficients, scratch.transform);
    digits(ring, gadget, scratch.coefficients, &mut scratch.digits[first * ring.degree()..]);
}

/// Writes the digits of a polynomial in coefficient form to the first words of `to`. Each digit is [`GadgetTables::half`] too
/// large.
pub(in crate::ring) fn digits(ring: &ModRing, gadget: &GadgetTables, coefficients: &[u32], to: &mut [u32]) {
    gadget.decomposer.decompose(ring.level(), coefficients, &mut to[..gadget.digits * ring.degree()]);
}

/// Passes `sum_row digit[row] * rows[row][poly]` to `sink`, for the digits in `scratch.digits`, each `half` too large.
pub(in crate::ring) fn multiply(
    ring: &ModRing,
    rows: GadgetRows<'_>,
    half: u32,
    scratch: &mut Scratch<'_>,
    sink: &mut impl Sink,
) {
    let degree = ring.degree();
    let count = rows.rows();
    for (index, limb) in ring.limbs().iter().enumerate() {
        let values = &mut scratch.values[..count * degree];
        for (values, digits) in values.chunks_exact_mut(degree).zip(scratch.digits.chunks_exact(degree)) {
            words::centre_digits(ring, index, half, digits, values);
            limb.ntt.forward(values, scratch.transform);
        }
        rows.multiply(ring, index, values, sink);
    }
}

/// Adds the sums of [`multiply`] to `out`, polynomial after polynomial.
pub(in crate::ring) fn multiply_add(
    ring: &ModRing,
    rows: GadgetRows<'_>,
    half: u32,
    scratch: &mut Scratch<'_>,
    out: &mut [u32],
) {
    let degree = ring.degree();
    let poly_words = ring.words();
    multiply(ring, rows, half, scratch, &mut AddTo { degree, poly_words, out });
}

/// A sink that adds sums to polynomials.
struct AddTo<'a> {
    degree: usize,
    poly_words: usize,
    out: &'a mut [u32],
}

impl Sink for AddTo<'_> {
    #[inline(always)]
    unsafe fn put<L: Lanes>(
        &mut self,
        residues: Residues<L>,
        limb: usize,
        poly: usize,
        slot: usize,
        sum: L::Words,
    ) {
        let out = &mut self.out[poly * self.poly_words + limb * self.degree + slot..][..L::WIDTH];
        // SAFETY: the caller has the instruction set; `out` is a vector.
        unsafe { L::store(out.as_mut_ptr(), residues.add(L::load(out.as_ptr()), sum)) };
    }
}
