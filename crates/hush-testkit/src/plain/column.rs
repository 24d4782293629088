//! The steps of column packing without encryption: nothing is switched, and a plane of the entry that the power of X names is
//! taken as it is.

use std::sync::Arc;

use hush_he::{entities::ColumnMasks, params::RingContext};
use hush_math::poly::{Coeff, Poly};

use super::Plain;
use hush_ops::{
    OpsError,
    contract::{
        BatchWords, ChainPolys, ChainedHint, ColumnOps, LweBatch, LweQueries, PACK_BYTES, PowerKeys,
        RlweBatch, ciphertext_words, lift_words, poly_words,
    },
    pack_shape::PackShape,
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
    fn run_chain_hint(
        &self,
        ring: &Arc<RingContext>,
        (): &(),
        hints: &[&BatchWords],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        let poly = vec![0; poly_words(ring)];
        let chain = |hint: &&BatchWords| ChainedHint {
            columns: vec![0; PACK_BYTES * hint.len()],
            digit: poly.clone(),
            mask: poly.clone(),
        };
        Ok(hints.iter().map(chain).collect())
    }

    fn run_open_chain(
        &self,
        _ring: &Arc<RingContext>,
        shape: &PackShape,
        _polys: ChainPolys,
    ) -> Result<PackShape, OpsError> {
        Ok(*shape)
    }

    fn chain_shape(&self, shape: &PackShape) -> PackShape {
        *shape
    }

    fn has_masks(&self, _shape: &PackShape) -> bool {
        true
    }

    fn run_pack_columns(
        &self,
        _ring: &Arc<RingContext>,
        _columns: &TiledDb,
        _shape: &PackShape,
        folded: LweBatch,
        _keys: &LweQueries,
        _conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch, OpsError> {
        Ok(folded)
    }

    fn run_rgsw_power_fold(
        &self,
        ring: &Arc<RingContext>,
        shape: &PackShape,
        packed: &LweBatch,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch, OpsError> {
        let (kept, ciphertext_words) = (ring.kept(), ciphertext_words(ring));
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
