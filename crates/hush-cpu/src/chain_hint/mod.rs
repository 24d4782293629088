//! The step [`hush_ops::contract::ColumnOps::chain_hint`]: a hint becomes pack columns, by transforms in two dimensions, the chain
//! of key switches, and transforms in two dimensions back.
//!
//! With `h_i(X) = sum_j round(h_ij Q / 2^32) X^j`, the polynomials of the hint are `h_i(1/X)`, and
//! `A_e[v] = (1/N) sum_i psi^(i e_v) h_i(psi^(-e e_v))`. So the values of h are needed at all pairs of slots, a row for each
//! slot v.
//!
//! In the order of [`hush_math::orbits::Orbits`], the values `A_e[v]` for `e = +-g^k`, g =
//! [`hush_he::algorithms::ROTATION`], are both halves of this row, *rotated* by the place of v. The rows are rotated while they
//! are in cache. A transposition then gives all `A_e`, which the chain reads in sequence and replaces by its digits. On the way
//! back, rows are rotated the other way, and again the slots are those of 1/X.
//!
//! Every matrix is crossed by bands of 16 columns ([`bands`]), which squares of 16 x 16 words transpose.

use hush_ops::{OpsError, contract::ChainedHint};

mod bands;
mod chain;
mod collect;
mod entries;
mod orbit;
mod plan;
mod spread;
#[cfg(test)]
mod tests;

pub use self::plan::ChainPlan;

use self::bands::Bands;
use crate::{Cpu, CpuRing};

/// Computes [`hush_ops::contract::ColumnOps::chain_hint`] for one hint, on the calling thread if it is one of the backend's, else
/// on one of those.
///
/// # Errors
/// [`OpsError::PackColumns`] if an entry has more than four digits.
pub(crate) fn chain_hint(
    cpu: &Cpu,
    ring: &CpuRing,
    plan: &ChainPlan,
    hint: &[u32],
) -> Result<ChainedHint, OpsError> {
    let kept = &ring.kept;
    let degree = ring.kept.degree();
    let bands = Bands::new(cpu.level(), degree);
    let words = kept.limbs().len() * bands.matrix_words();
    cpu.install(|| {
        let mut buffer = cpu.ring_buffers().take(2 * words);
        let (rows_of_slots, rest) = buffer.split_at_mut(words);
        let images = &mut rest[..words];
        let chained = cpu.with_workspace(|workspace| {
            let (scratch, transform) = workspace.ring_buffers(3 * bands.band_words(), kept.transform_words());
            let mut block =
                Block { ring, plan, degree, bands, rows: rows_of_slots, images, scratch, transform };
            block.chain(hint)
        });
        cpu.ring_buffers().give_back(buffer);
        chained
    })
}

/// The state of one hint on one thread.
struct Block<'a> {
    ring: &'a CpuRing,
    plan: &'a ChainPlan,
    /// N.
    degree: usize,
    bands: Bands,
    /// For each limb, a matrix whose row v belongs to slot v: first over the columns of the hint, at last over those of the key.
    rows: &'a mut [u32],
    /// For each limb, a matrix whose row `c N/2 + k` is `A_e` for `e = (-1)^c g^k`, and later the digit that meets the key's image
    /// under X^e.
    images: &'a mut [u32],
    /// Scratch memory of three bands.
    scratch: &'a mut [u32],
    /// Scratch memory for transforms.
    transform: &'a mut [u64],
}

impl Block<'_> {
    /// Runs all phases.
    fn chain(&mut self, hint: &[u32]) -> Result<ChainedHint, OpsError> {
        self.spread_columns(hint);
        self.spread_rows();
        let (digit, mask) = self.switch();
        self.collect_rows();
        let columns = self.collect_columns(hint.len() / self.degree)?;
        Ok(ChainedHint { columns, digit, mask })
    }
}
