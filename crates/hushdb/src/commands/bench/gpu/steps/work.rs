//! What steps have to do at least: counts of bytes and operations, worked out.

use hush_cuda::ring::CudaRing;
use hush_math::gadget::Gadget;

use crate::commands::bench::gpu::Work;

/// Bytes of a word.
pub(super) const WORD: f64 = 4.0;
/// Operations on bytes of an entry of s8 and a word: a word has 4 bytes, and a multiply-add is 2.
const FOLD_OPS: f64 = 8.0;
/// Multiply-adds of a product modulo a prime: the product, and two for its reduction.
pub(super) const MODULAR: f64 = 3.0;

/// A fold of `entries` bytes by a batch.
pub(super) fn fold(entries: f64, batch: usize) -> Work {
    Work { bytes: entries, byte_ops: FOLD_OPS * batch as f64 * entries, ..Work::default() }
}

/// Multiply-adds of `count` transforms of N words: N / 2 butterflies in each of log2 N levels, a product modulo a prime each.
pub(super) fn transforms(count: f64, degree: usize) -> f64 {
    count * MODULAR * degree as f64 / 2.0 * f64::from(degree.ilog2())
}

/// Multiply-adds of `count` sums of `terms` products: one a term, and two for the reduction of the sum.
pub(super) fn sums(count: f64, terms: usize) -> f64 {
    count * (terms + 2) as f64
}

/// The ring modulo Q_1, counted.
pub(super) struct Counts {
    pub(super) degree: usize,
    pub(super) limbs: usize,
}

impl Counts {
    pub(super) fn new(ring: &CudaRing) -> Self {
        let kept = ring.context().kept();
        Self { degree: kept.degree(), limbs: kept.limbs() }
    }

    /// Words of a polynomial.
    pub(super) fn poly_words(&self) -> usize {
        self.limbs * self.degree
    }

    /// Bytes of `count` polynomials.
    pub(super) fn polys(&self, count: f64) -> f64 {
        count * WORD * self.poly_words() as f64
    }

    /// Multiply-adds of `count` polynomials that are decomposed by a gadget of l digits and multiplied: a transform back of each of
    /// L limbs, and a transform of l digits modulo each; L (1 + l) in all.
    pub(super) fn decompositions(&self, count: f64, gadget: &Gadget) -> f64 {
        transforms(count * (self.limbs * (1 + gadget.digits)) as f64, self.degree)
    }

    /// Multiply-adds of `count` external products: both halves are decomposed, and both halves of the result are sums of 2 l
    /// products in every slot.
    pub(super) fn external_products(&self, count: f64, gadget: &Gadget) -> f64 {
        let slots = count * 2.0 * self.poly_words() as f64;
        self.decompositions(2.0 * count, gadget) + sums(slots, 2 * gadget.digits)
    }

    /// `count` polynomials that are switched to at most 32 bits: a transform back of each limb, and L - 1 products modulo a prime a
    /// coefficient to put the limbs together. Residues are read; words are written, and go to the host.
    pub(super) fn switches(&self, count: f64) -> Work {
        let (words, limbs) = (count * self.degree as f64, self.limbs as f64);
        Work {
            bytes: self.polys(count) + WORD * words,
            word_ops: transforms(count * limbs, self.degree) + MODULAR * (limbs - 1.0) * words,
            copied: WORD * words,
            ..Work::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_definitions() {
        assert_eq!(transforms(1.0, 8), 3.0 * 12.0);
        let (counts, gadget) = (Counts { degree: 8, limbs: 2 }, Gadget::new(18, 2, 27));
        // Two halves by two limbs: 1 transform back, 2 of digits; 32 sums of 4 products.
        assert_eq!(counts.external_products(1.0, &gadget), 12.0 * 36.0 + 32.0 * 6.0);
        let work = fold(10.0, 3);
        assert_eq!((work.bytes, work.byte_ops), (10.0, 240.0));
    }
}
