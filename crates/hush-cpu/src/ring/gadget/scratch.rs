//! Scratch memory of the gadget products, from a thread's workspace.

use crate::{
    ring::{ModRing, tables::CpuRing},
    workspace::Workspace,
};

/// Memory for one gadget product, with arbitrary content.
pub(crate) struct Scratch<'a> {
    /// Scratch memory of one polynomial.
    pub(in crate::ring) coefficients: &'a mut [u32],
    /// The unsigned digits, a polynomial of one limb for each row.
    pub(in crate::ring) digits: &'a mut [u32],
    /// The transforms of the digits modulo one limb.
    pub(in crate::ring) values: &'a mut [u32],
    /// Two polynomials.
    pub(crate) pair: &'a mut [u32],
    /// Scratch memory for transforms.
    pub(crate) transform: &'a mut [u64],
}

impl<'a> Scratch<'a> {
    /// Takes scratch memory for products with at most `rows` rows, and `words` words for other uses.
    pub(in crate::ring) fn new(
        workspace: &'a mut Workspace,
        ring: &ModRing,
        rows: usize,
        words: usize,
    ) -> (Self, &'a mut [u32]) {
        let degree = ring.degree();
        let poly = ring.words();
        let (buffer, transform) =
            workspace.ring_buffers(3 * poly + 2 * rows * degree + words, ring.transform_words());
        let (coefficients, buffer) = buffer.split_at_mut(poly);
        let (pair, buffer) = buffer.split_at_mut(2 * poly);
        let (digits, buffer) = buffer.split_at_mut(rows * degree);
        let (values, rest) = buffer.split_at_mut(rows * degree);
        (Self { coefficients, digits, values, pair, transform }, rest)
    }
}

/// Returns the most rows that meet the digits of a query's expansion.
pub(in crate::ring) fn expand_rows(ring: &CpuRing) -> usize {
    ring.levels.iter().map(|level| level.gadget.digits).fold(ring.square.digits, usize::max)
}

#[cfg(test)]
mod tests {
    use hush_math::{modulus::find_primes, ring::Ring};

    use super::*;
    use crate::Level;

    #[test]
    fn transforms_of_every_degree_have_room() {
        for degree in [256, 1024, 2048, 4096, 8192] {
            let ring = ModRing::new(Level::detect(), &Ring::new(degree, &find_primes(degree, 31, 2)));
            let mut workspace = Workspace::new();
            let (scratch, _) = Scratch::new(&mut workspace, &ring, 1, 0);
            for limb in ring.limbs() {
                let values = &mut scratch.digits[..degree];
                (0..).zip(&mut *values).for_each(|(i, value)| *value = i);
                limb.ntt.forward(values, scratch.transform);
                limb.ntt.inverse(values, scratch.transform);
                assert!((0..).zip(values).all(|(i, value)| *value == i), "degree {degree}");
            }
        }
    }
}
