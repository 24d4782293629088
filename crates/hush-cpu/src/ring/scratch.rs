//! Scratch memory of the gadget products, from a thread's workspace.

use super::{ModRing, tables::CpuRing};
use crate::workspace::Workspace;

/// Memory for one gadget product, with whatever was left in it.
pub(super) struct Scratch<'a> {
    /// A polynomial.
    pub(super) coefficients: &'a mut [u32],
    /// The unsigned digits, a polynomial of one limb for each row.
    pub(super) digits: &'a mut [u32],
    /// Their transforms modulo one limb.
    pub(super) values: &'a mut [u32],
    /// Two polynomials.
    pub(super) pair: &'a mut [u32],
    /// For transforms.
    pub(super) transform: &'a mut [u64],
}

impl<'a> Scratch<'a> {
    /// Scratch memory for products with at most `rows` rows, and `words` words for other uses.
    pub(super) fn new(
        workspace: &'a mut Workspace,
        ring: &ModRing,
        rows: usize,
        words: usize,
    ) -> (Self, &'a mut [u32]) {
        let (degree, poly) = (ring.degree(), ring.words());
        let (buffer, transform) = workspace.ring_buffers(3 * poly + 2 * rows * degree + words, degree);
        let (coefficients, buffer) = buffer.split_at_mut(poly);
        let (pair, buffer) = buffer.split_at_mut(2 * poly);
        let (digits, buffer) = buffer.split_at_mut(rows * degree);
        let (values, rest) = buffer.split_at_mut(rows * degree);
        (Self { coefficients, digits, values, pair, transform }, rest)
    }
}

/// Most rows that meet the digits of a query's expansion.
pub(super) fn expand_rows(ring: &CpuRing) -> usize {
    ring.levels.iter().map(|level| level.gadget.digits).fold(ring.square.digits, usize::max)
}
