//! The two children of a node, and the monomial that one of them is multiplied by.

use super::{ModRing, arithmetic::residues::Residues, gadget::gadget_rows::Sink};
use crate::lanes::Lanes;

/// The number of slots that share a factor in the tables of level 4. Lower levels have a factor a slot.
const SHARED: usize = 16;

/// The monomial X^(-2^level) in evaluation form.
///
/// Slot `i` holds the value at psi^e with e = 2 reverse(i) + 1, so `2^level` slots from an aligned one on have the same
/// value.
pub(super) struct Monomial {
    /// The number of slots that share a factor: 1, or at least 16.
    run: usize,
    /// `[limb][slot / run]`, in Montgomery form.
    factors: Vec<u32>,
}

impl Monomial {
    pub(super) fn new(ring: &ModRing, level: usize) -> Self {
        let degree = ring.degree();
        let run = if 1 << level < SHARED { 1 } else { 1 << level };
        let mut factors = Vec::with_capacity(ring.words() / run);
        for limb in ring.limbs() {
            // X^(-2^level) = -X^(N - 2^level)
            let mut values = vec![0; degree];
            values[degree - (1 << level)] = limb.montgomery.p() - 1;
            limb.ntt.plan().forward(&mut values);
            factors.extend(values.into_iter().step_by(run).map(|value| limb.montgomery.form(value)));
        }
        Self { run, factors }
    }

    /// Creates the sink that takes the sums c' for a node c, and makes `even = c + c'` and `node = (c - c') X^(-2^level)` of them.
    /// The half b of `even` initially holds a summand of c'.
    pub(super) fn children<'a>(
        &'a self,
        ring: &ModRing,
        even: &'a mut [u32],
        node: &'a mut [u32],
    ) -> Children<'a> {
        let degree = ring.degree();
        let poly_words = ring.words();
        let shift = self.run.trailing_zeros();
        Children { factors: &self.factors, shift, degree, poly_words, even, node }
    }
}

/// The sink of [`Monomial::children`].
pub(super) struct Children<'a> {
    factors: &'a [u32],
    /// The binary logarithm of the number of slots that share a factor.
    shift: u32,
    degree: usize,
    poly_words: usize,
    even: &'a mut [u32],
    node: &'a mut [u32],
}

impl Sink for Children<'_> {
    #[inline(always)]
    unsafe fn put<L: Lanes>(
        &mut self,
        residues: Residues<L>,
        limb: usize,
        poly: usize,
        slot: usize,
        sum: L::Words,
    ) {
        let at = limb * self.degree + slot;
        let even = self.even[poly * self.poly_words + at..][..L::WIDTH].as_mut_ptr();
        let node = self.node[poly * self.poly_words + at..][..L::WIDTH].as_mut_ptr();
        let factors = &self.factors[at >> self.shift..];
        // SAFETY: the caller has the instruction set; the slices are vectors.
        unsafe {
            let image = if poly == 0 { sum } else { residues.add(sum, L::load(even)) };
            let words = L::load(node);
            L::store(even, residues.add(words, image));
            let difference = residues.sub(words, image);
            let odd = match self.shift {
                0 => residues.mul(difference, L::load(factors[..L::WIDTH].as_ptr())),
                _ => residues.mul_splat(difference, L::splat(factors[0])),
            };
            L::store(node, odd);
        }
    }
}
