//! External products of RGSW and RLWE ciphertexts, by the gadget of the folds.
//!
//! ```text
//! rgsw [x] (a, b) = sum_j digit_j(a) row_j + sum_j digit_j(b) row_(l + j)        (l digits; first rows meet a)
//! ```

use hush_math::poly::{Eval, Poly};
use hush_ops::contract::RlweBatch;

use super::{
    gadget_product,
    gadget_rows::{self, GadgetRows, RowShape},
    scratch::Scratch,
};
use crate::{ring::tables::CpuRing, workspace::Workspace};

/// An RGSW ciphertext, laid out for products.
#[derive(Clone, Copy)]
pub(crate) struct RgswRows<'a>(GadgetRows<'a>);

impl<'a> RgswRows<'a> {
    /// Returns the words of an RGSW ciphertext.
    pub(crate) fn words(ring: &CpuRing) -> usize {
        Self::shape(ring).words(&ring.kept)
    }

    /// Lays out an RGSW ciphertext, whose first rows meet the digits of a, in `words`, of [`RgswRows::words`].
    pub(crate) fn lay_out(ring: &CpuRing, rgsw: &RlweBatch, words: &'a mut [u32]) -> Self {
        let shape = Self::shape(ring);
        let poly_words = ring.kept.words();
        gadget_rows::lay_out(&ring.kept, shape, words, |row, poly| {
            &rgsw.ciphertext(row)[poly * poly_words..][..poly_words]
        });
        Self(GadgetRows::new(shape, words))
    }

    /// Lays out an RGSW ciphertext of two rows, whose halves a and b are separate, in `words`, of [`RgswRows::words`].
    pub(crate) fn lay_out_halves(
        ring: &CpuRing,
        masks: &[Poly<Eval>; 2],
        bodies: &[u32],
        words: &'a mut [u32],
    ) -> Self {
        let shape = Self::shape(ring);
        let poly_words = ring.kept.words();
        gadget_rows::lay_out(&ring.kept, shape, words, |row, poly| match poly {
            0 => masks[row].words(),
            _ => &bodies[row * poly_words..][..poly_words],
        });
        Self(GadgetRows::new(shape, words))
    }

    /// Returns scratch memory for the products, and `words` words for other uses.
    pub(crate) fn scratch<'s>(
        ring: &CpuRing,
        workspace: &'s mut Workspace,
        words: usize,
    ) -> (Scratch<'s>, &'s mut [u32]) {
        Scratch::new(workspace, &ring.kept, Self::shape(ring).rows, words)
    }

    /// Computes `x = rgsw [x] x` for a ciphertext x in coefficient form. The result is in evaluation form.
    pub(crate) fn multiply(self, ring: &CpuRing, scratch: &mut Scratch<'_>, x: &mut [u32]) {
        let kept = &ring.kept;
        let gadget = &ring.fold;
        let digits = scratch.digits.chunks_exact_mut(gadget.digits * kept.degree());
        for (half, digits) in x.chunks_exact(kept.words()).zip(digits) {
            gadget_product::digits(kept, gadget, half, digits);
        }
        x.fill(0);
        self.multiply_add(ring, scratch, x);
    }

    /// Adds the product with the ciphertext whose digits are in `scratch.digits` to `sum`, in evaluation form.
    pub(crate) fn multiply_add(self, ring: &CpuRing, scratch: &mut Scratch<'_>, sum: &mut [u32]) {
        gadget_product::multiply_add(&ring.kept, self.0, ring.fold.half, scratch, sum);
    }

    fn shape(ring: &CpuRing) -> RowShape {
        RowShape { rows: 2 * ring.fold.digits, polys: 2 }
    }
}
