//! (3c) Packs LWE ciphertexts by keys of the query.

use hush_he::{algorithms::switch_to_power_of_two, params::RingContext};
use hush_math::poly::{Coeff, Poly};

use super::lwe_fold::lwe_fold;
use crate::{
    contract::{ChainPolys, LweBatch, LweQueries, poly_words},
    pack_shape::PackShape,
    tiling::TiledDb,
};

/// As [`crate::contract::ColumnOps::pack_columns`].
pub(super) fn pack_columns(
    ring: &RingContext,
    columns: &TiledDb,
    (shape, polys): &(PackShape, ChainPolys),
    mut folded: LweBatch,
    keys: &LweQueries,
    conjugations: &[&Poly<Coeff>],
) -> LweBatch {
    let switched = lwe_fold(columns, keys);
    folded.words.iter_mut().zip(&switched.words[..]).for_each(|(b, &part)| *b = b.wrapping_add(part));
    let kept = ring.kept();
    for (words, &z) in folded.words.chunks_exact_mut(shape.rows()).zip(conjugations) {
        let z = kept.forward(z.clone());
        for (column, digit) in polys.digits.chunks_exact(poly_words(ring)).enumerate() {
            let mut product = Poly::from_words(digit.to_vec(), kept.degree());
            kept.mul(&mut product, &z);
            let rounded = switch_to_power_of_two(kept, &kept.inverse(product), u32::BITS);
            for (b, word) in words[shape.plaintext_rows(column)].iter_mut().zip(rounded) {
                *b = b.wrapping_add(word as u32);
            }
        }
    }
    folded
}
