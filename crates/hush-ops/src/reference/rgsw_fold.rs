//! (7) Fold the entries to one.

use hush_he::{
    algorithms::external_product,
    entities::{RgswCiphertext, RlweCiphertext},
    params::RingContext,
};
use hush_math::ring::Ring;

use super::ciphertexts::{add, batch, ciphertext, sub};
use crate::contract::RlweBatch;

/// As [`crate::contract::RingOps::rgsw_fold`], for one query; `index` says where an entry's plane is.
pub(super) fn rgsw_fold(
    ring: &RingContext,
    entries: &RlweBatch,
    count: usize,
    planes: usize,
    index: impl Fn(usize, usize) -> usize,
    bits: &[RlweBatch],
) -> RlweBatch {
    let plane = |plane: usize| {
        let entry = |entry| ciphertext(ring.kept(), entries.ciphertext(index(entry, plane)));
        fold_plane(ring, (0..count).map(entry).collect(), bits)
    };
    batch(ring.kept(), (0..planes).map(plane))
}

/// All rounds for one plane.
fn fold_plane(ring: &RingContext, mut entries: Vec<RlweCiphertext>, bits: &[RlweBatch]) -> RlweCiphertext {
    let (kept, gadget) = (ring.kept(), ring.params().fold_gadget());
    for bit in bits {
        let bit = rgsw(kept, bit);
        let fold = |pair: &[RlweCiphertext]| {
            let zero = || RlweCiphertext { a: kept.zero(), b: kept.zero() };
            let mut difference = pair.get(1).cloned().unwrap_or_else(zero);
            sub(kept, &mut difference, &pair[0]);
            let mut sum = external_product(kept, &bit, &difference, gadget);
            add(kept, &mut sum, &pair[0]);
            sum
        };
        entries = entries.chunks(2).map(fold).collect();
    }
    entries.remove(0)
}

/// The RGSW ciphertext whose rows are in `batch`.
fn rgsw(ring: &Ring, batch: &RlweBatch) -> RgswCiphertext {
    let rows: Vec<_> = (0..batch.count()).map(|row| ciphertext(ring, batch.ciphertext(row))).collect();
    let (bottom, top) = rows.split_at(rows.len() / 2);
    RgswCiphertext { bottom: bottom.to_vec(), top: top.to_vec() }
}
