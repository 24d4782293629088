//! (3) Make N LWE ciphertexts one RLWE ciphertext: an `rlwe_fold` of the lifted hint, and the folded words on top of it.

use std::ops::Range;

use hush_he::params::RingContext;

use super::lift_hint::lift;
use crate::{
    contract::{LweBatch, RlweBatch, poly_words},
    pack_shape::PackShape,
};

/// Adds `(0, Delta G)` to the ciphertexts of all queries and columns, where G has a column's rounded words as coefficients.
pub(super) fn add_folded(
    ring: &RingContext,
    folded: &LweBatch,
    shape: &PackShape,
    columns: Range<usize>,
    packed: &mut [RlweBatch],
) {
    let (kept, poly) = (ring.kept(), poly_words(ring));
    let delta: Vec<u32> = (0..kept.limbs()).map(|limb| kept.rns().reduce(ring.delta(), limb)).collect();
    for (packed, words) in packed.iter_mut().zip(folded.words.chunks_exact(folded.rows)) {
        for (column, ciphertext) in columns.clone().zip(packed.words.chunks_exact_mut(2 * poly)) {
            let g = lift(ring, words[shape.plaintext_rows(column)].iter().copied());
            for (index, (b, g)) in ciphertext[poly..].iter_mut().zip(g).enumerate() {
                let limb = index / kept.degree();
                let p = kept.moduli()[limb];
                *b = p.add(*b, p.mul(g, delta[limb]));
            }
        }
    }
}
