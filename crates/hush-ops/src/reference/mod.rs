//! The reference backend: slow and obvious, a file for each step. It is the oracle that every fast backend equals bit for bit.
//! The folder is flat with more than fifteen files, because a step is found by its name.

use std::{ops::Range, sync::Arc};

use hush_he::{
    entities::{ColumnMasks, EvaluationKeys, PublicMatrix, RlweCiphertext},
    params::RingContext,
};
use hush_math::poly::{Coeff, Poly};

use crate::{
    OpsError,
    contract::{
        BandSystem, BatchWords, ChainPolys, ChainedHint, ColumnOps, EntryOrder, Expanded, FilterOps,
        HostMemory, LweBatch, LweOps, LweQueries, Memory, PackOps, PowerKeys, RingOps, RlweBatch, Rounding,
        SentPoly, SentRows, ciphertext_words,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    tiling::{TiledDb, Tiling},
};

mod add_rlwe;
mod band_solve;
mod chain_hint;
mod ciphertexts;
pub mod expand;
mod lift_hint;
mod lwe_fold;
mod lwe_hint;
mod mod_switch;
mod ntt_db;
mod pack;
mod pack_columns;
mod pack_pairs;
pub mod private_key_switch;
mod reinterpret_lwe;
mod reinterpret_rlwe;
mod rgsw_fold;
mod rgsw_power_fold;
pub mod rlwe_fold;
pub mod tfhe;

/// Every step by its definition, on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl HostMemory for Reference {}

impl FilterOps for Reference {
    fn run_band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError> {
        band_solve::band_solve(system, values, size, slots)
    }

    fn run_band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError> {
        band_solve::band_solve(system, values, size, slots)
    }
}

impl LweOps for Reference {
    type Db = TiledDb;

    fn open_db(&self, db: TiledDb) -> Result<TiledDb, OpsError> {
        Ok(db)
    }

    fn tiling(&self, db: &TiledDb) -> Tiling {
        db.tiling()
    }

    fn run_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> Result<LweBatch, OpsError> {
        Ok(lwe_fold::lwe_fold(db, queries))
    }

    fn run_lwe_hint(
        &self,
        db: &TiledDb,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<BatchWords, OpsError> {
        Ok(lwe_hint::lwe_hint(db, a, rows).into())
    }

    fn run_reinterpret_lwe(
        &self,
        words: &BatchWords,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<TiledDb, OpsError> {
        Ok(reinterpret_lwe::reinterpret_lwe(words, queries, items, digits, cols))
    }

    fn run_send_words(
        &self,
        words: &LweBatch,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok((0..words.batch()).map(|query| rounding.pack(&words.words[words.range(query)], sent)).collect())
    }
}

impl RingOps for Reference {
    type Ring = Arc<RingContext>;
    type NttDb = NttTiledDb;
    type Keys = EvaluationKeys;

    fn open_ring(&self, context: Arc<RingContext>) -> Result<Arc<RingContext>, OpsError> {
        Ok(context)
    }

    fn context<'a>(&self, ring: &'a Arc<RingContext>) -> &'a RingContext {
        ring
    }

    fn ntt_tiling(&self, db: &NttTiledDb) -> NttTiling {
        db.tiling()
    }

    fn run_open_ntt_db(&self, _ring: &Arc<RingContext>, db: NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db)
    }

    fn read_ntt_db(&self, _ring: &Arc<RingContext>, db: &NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db.clone())
    }

    fn run_open_evaluation_keys(
        &self,
        _ring: &Arc<RingContext>,
        keys: EvaluationKeys,
    ) -> Result<EvaluationKeys, OpsError> {
        Ok(keys)
    }

    fn run_ntt_db(&self, ring: &Arc<RingContext>, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        Ok(ntt_db::ntt_db(ring, symbols))
    }

    fn run_expand(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        let queries = queries.iter().zip(keys);
        Ok(queries.map(|(query, keys)| expand::expand(ring, keys, query, rows, folds)).collect())
    }

    fn run_rlwe_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &NttTiledDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let ciphertext_words = ciphertext_words(ring);
        let selectors: Vec<&[u32]> = selectors.iter().map(|batch| &batch.words[..]).collect();
        let folded = rlwe_fold::rlwe_fold(ring.kept().moduli(), db, &selectors);
        Ok(folded.into_iter().map(|words| RlweBatch { ciphertext_words, words: words.into() }).collect())
    }

    fn run_rgsw_fold(
        &self,
        ring: &Arc<RingContext>,
        entries: &[&RlweBatch],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch]],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let index = |entry, plane| order.index(entry, plane, count, planes);
        let queries = entries.iter().zip(bits);
        let fold = |(entries, bits): (&&RlweBatch, &&[RlweBatch])| {
            rgsw_fold::rgsw_fold(ring, entries, count, planes, index, bits)
        };
        Ok(queries.map(fold).collect())
    }

    fn run_pack_pairs(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        batches: &[&RlweBatch],
        pairs: usize,
    ) -> Result<Vec<BatchWords>, OpsError> {
        let batches = batches.iter().zip(keys);
        Ok(batches.map(|(batch, keys)| pack_pairs::pack_pairs(ring, keys, batch, pairs)).collect())
    }

    fn run_mod_switch(
        &self,
        ring: &Arc<RingContext>,
        polys: &[&BatchWords],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok(polys.iter().map(|polys| mod_switch::mod_switch(ring, polys, first, sent)).collect())
    }
}

/// A backend on the host whose steps between LWE and RLWE, and those of `tfhe`, are their definitions, on its own steps over rings.
pub trait PackByDefinition:
    LweOps<Db = TiledDb>
    + RingOps<Ring = Arc<RingContext>, NttDb = NttTiledDb, Keys = EvaluationKeys>
    + Memory<Words = BatchWords>
{
}

impl PackByDefinition for Reference {}

impl<B: PackByDefinition> PackOps for B {
    fn run_lift_hint(
        &self,
        ring: &Arc<RingContext>,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        lift_hint::lift_hint(ring, hint, n, shape, columns)
    }

    fn run_pack(
        &self,
        ring: &Arc<RingContext>,
        hint: &NttTiledDb,
        folded: &LweBatch,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let mut packed = self.run_rlwe_fold(ring, hint, selectors)?;
        pack::add_folded(ring, folded, shape, columns, &mut packed);
        Ok(packed)
    }

    fn run_add_rlwe(
        &self,
        ring: &Arc<RingContext>,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        add_rlwe::add_rlwe(ring, sum, first, part);
        Ok(())
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &Arc<RingContext>,
        packed: &RlweBatch,
        items: usize,
    ) -> Result<TiledDb, OpsError> {
        Ok(reinterpret_rlwe::reinterpret_rlwe(ring, packed, items))
    }
}

impl ColumnOps for Reference {
    type ChainPlan = ColumnMasks;
    type Chain = (PackShape, ChainPolys);

    fn open_masks(&self, _ring: &Arc<RingContext>, masks: &ColumnMasks) -> Result<ColumnMasks, OpsError> {
        Ok(masks.clone())
    }

    fn chain_batch(&self) -> usize {
        1
    }

    fn run_chain_hint(
        &self,
        ring: &Arc<RingContext>,
        masks: &ColumnMasks,
        hints: &[&BatchWords],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        hints.iter().map(|hint| chain_hint::chain_hint(ring, masks, hint)).collect()
    }

    fn run_open_chain(
        &self,
        _ring: &Arc<RingContext>,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<Self::Chain, OpsError> {
        Ok((*shape, polys))
    }

    fn chain_shape(&self, (shape, _): &Self::Chain) -> PackShape {
        *shape
    }

    fn has_masks(&self, (_, polys): &Self::Chain) -> bool {
        !polys.masks.is_empty()
    }

    fn run_pack_columns(
        &self,
        ring: &Arc<RingContext>,
        columns: &TiledDb,
        chain: &Self::Chain,
        folded: LweBatch,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch, OpsError> {
        Ok(pack_columns::pack_columns(ring, columns, chain, folded, keys, conjugations))
    }

    fn run_rgsw_power_fold(
        &self,
        ring: &Arc<RingContext>,
        chain: &Self::Chain,
        packed: &LweBatch,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch, OpsError> {
        Ok(rgsw_power_fold::rgsw_power_fold(ring, chain, packed, powers))
    }
}
