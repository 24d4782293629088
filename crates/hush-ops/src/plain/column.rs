//! The steps of column packing without encryption: nothing is switched, and a plane of the entry that the power of X names is
//! taken as it is.

use std::sync::Arc;

use hush_he::{entities::ColumnMasks, params::RingContext};
use hush_math::poly::{Coeff, Poly};

use super::Plain;
use crate::{
    OpsError,
    contract::{
        BatchWords, ChainPolys, ChainedHint, ColumnOps, LweBatch, LweQueries, PACK_BYTES, PowerKeys,
        RlweBatch,
    },
    pack_shape::PackShape,
    reference::{column_shapes, lift_words, ring_shapes},
    tiling::TiledDb,
};

impl ColumnOps for Plain {
    type ChainPlan = ();
    type Chain = PackShape;

    fn open_masks(&self, _ring: &Arc<RingContext>, _masks: &ColumnMasks) -> Result<(), OpsError> {
        Ok(())
    }

    fn chain_batch(&self) -> usize {
        1
    }

    /// Zeros: without a secret, masks mean nothing.
    fn chain_hint(
        &self,
        ring: &Arc<RingContext>,
        (): &(),
        hints: &[&BatchWords],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        let chain = |hint: &&BatchWords| {
            let rows = column_shapes::check_chain_hint(ring, hint.len())?;
            let poly = vec![0; ring_shapes::poly_words(ring)];
            let columns = vec![0; rows * PACK_BYTES * ring.kept().degree()];
            Ok(ChainedHint { columns, digit: poly.clone(), mask: poly })
        };
        hints.iter().map(chain).collect()
    }

    fn open_chain(
        &self,
        ring: &Arc<RingContext>,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<PackShape, OpsError> {
        column_shapes::check_chain(ring, shape, &polys)?;
        Ok(*shape)
    }

    fn pack_columns(
        &self,
        ring: &Arc<RingContext>,
        columns: &TiledDb,
        shape: &PackShape,
        folded: LweBatch,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch, OpsError> {
        column_shapes::check_pack_columns(ring, shape, columns.tiling(), &folded, keys, conjugations)?;
        Ok(folded)
    }

    fn rgsw_power_fold(
        &self,
        ring: &Arc<RingContext>,
        shape: &PackShape,
        packed: &LweBatch,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch, OpsError> {
        column_shapes::check_power_fold(ring, shape, true, packed, powers)?;
        let (kept, ciphertext_words) = (ring.kept(), ring_shapes::ciphertext_words(ring));
        let plane_words = shape.planes() * ciphertext_words;
        let mut folded = vec![0; powers.bodies.len() * plane_words];
        let queries = packed.words.chunks_exact(shape.rows()).zip(powers.bodies);
        for ((words, &power), planes) in queries.zip(folded.chunks_exact_mut(plane_words)) {
            let entry = entry(ring, shape, power);
            for (plane, ciphertext) in planes.chunks_exact_mut(ciphertext_words).enumerate() {
                let column = entry * shape.planes() + plane;
                if column < shape.plaintexts() {
                    let b = kept.forward(lift_words(kept, &words[shape.plaintext_rows(column)]));
                    ciphertext[ciphertext_words / 2..].copy_from_slice(b.words());
                }
            }
        }
        Ok(RlweBatch { ciphertext_words, words: folded.into() })
    }
}

/// The entry that an RGSW ciphertext without encryption selects: the one row that meets the digit of b is `g X^power`.
fn entry(ring: &RingContext, shape: &PackShape, power: Option<&[Poly<Coeff>; 2]>) -> usize {
    let Some([_, monomial]) = power else { return 0 };
    let kept = ring.kept();
    let value = |at: usize| kept.rns().lift_centred(|limb| monomial.limb(limb)[at]);
    let at = (0..kept.degree()).max_by_key(|&at| value(at).unsigned_abs()).unwrap_or(0);
    let power = if value(at) < 0 { at + kept.degree() } else { at };
    power * shape.entries().next_power_of_two() / (2 * kept.degree())
}
