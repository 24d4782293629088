//! The steps of `tfhe` by their definitions, on a backend's own steps over rings.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, RingSwitchKey, TlweWords},
    params::RingContext,
};
use hush_math::poly::{Eval, Poly};

use super::{PackByDefinition, private_key_switch::private_key_switch};
use crate::{
    OpsError,
    contract::{Expanded, RlweBatch, TfheOps},
    ntt_tiling::NttTiledDb,
    symbol_tiling::{SymbolDb, SymbolTiling},
};

impl<B: PackByDefinition> TfheOps for B {
    type Symbols = SymbolDb;

    fn symbol_tiling(&self, db: &SymbolDb) -> SymbolTiling {
        db.tiling()
    }

    fn run_open_symbols(&self, _: &Arc<RingContext>, db: SymbolDb) -> Result<SymbolDb, OpsError> {
        Ok(db)
    }

    fn run_symbol_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &SymbolDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let tiling = db.tiling();
        let places =
            (0..tiling.rows()).flat_map(|row| (0..tiling.columns()).map(move |column| (row, column)));
        let symbols: Vec<u32> =
            places.flat_map(|(row, column)| tiling.unpack(db.plaintext(row, column))).collect();
        let polys = self.run_ntt_db(ring, &symbols)?;
        let evaluated = tiling.evaluated(ring.kept().limbs())?;
        self.run_rlwe_fold(ring, &NttTiledDb::from_polys(evaluated, &polys), selectors)
    }

    fn run_private_key_switch(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        let switch = |(query, keys): (&TlweWords, &&EvaluationKeys)| {
            let keys = keys.private.as_ref().expect("keys of a set of TLWE words");
            private_key_switch(ring, keys, query, rows)
        };
        Ok(queries.iter().zip(keys).map(switch).collect())
    }

    fn run_turn(
        &self,
        ring: &Arc<RingContext>,
        batches: &[RlweBatch],
        power: usize,
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let both = |batch: &RlweBatch| {
            let words = [&batch.words[..], &turned(ring, &batch.words, power)].concat();
            RlweBatch { ciphertext_words: batch.ciphertext_words, words: words.into() }
        };
        Ok(batches.iter().map(both).collect())
    }

    fn ring_switch_key<'a>(&self, keys: &'a EvaluationKeys) -> Option<&'a RingSwitchKey> {
        keys.switch.as_ref()
    }
}

/// `X^-power` modulo Q_1, for a power from 1 to N.
pub fn negative_power(ring: &RingContext, power: usize) -> Poly<Eval> {
    let kept = ring.kept();
    let mut coefficients = vec![0; kept.degree()];
    // X^-power = -X^(N - power)
    coefficients[kept.degree() - power] = u32::MAX;
    kept.forward(kept.from_signed(&coefficients))
}

/// The polynomials of `words`, modulo Q_1 in evaluation form, times `X^-power`.
pub fn turned(ring: &RingContext, words: &[u32], power: usize) -> Vec<u32> {
    let (kept, monomial) = (ring.kept(), negative_power(ring, power));
    let turn = |words: &[u32]| {
        let mut poly: Poly<Eval> = Poly::from_words(words.to_vec(), kept.degree());
        kept.mul(&mut poly, &monomial);
        poly.into_words()
    };
    words.chunks_exact(kept.limbs() * kept.degree()).flat_map(turn).collect()
}
