//! The steps over rings, level by level: transforms ([`crate::ntt`]), digits, products with rows of keys, and loops
//! over words. They are written once for the vectors of all levels.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};
use hush_ops::{
    OpsError,
    contract::{BatchWords, EntryOrder, Expanded, RingOps, RlweBatch, SentPoly, ciphertext_words},
    ntt_tiling::{NttTiledDb, NttTiling},
};

use crate::{Cpu, rlwe_fold};

mod arithmetic;
mod automorphism;
mod drop_prime;
mod expand;
mod gadget;
mod keys;
mod lift;
mod lift_fractions;
mod mod_ring;
mod mod_switch;
mod monomial;
mod ntt_db;
mod pack_pairs;
mod rgsw_fold;
mod spectrum;
mod tables;

pub(crate) use self::{
    arithmetic::{
        montgomery::Montgomery,
        residues::Residues,
        vector_loop::{self, VectorLoop, run},
        words::{add, add_scaled, centre_digits, montgomery_form, multiply},
    },
    gadget::{external_product::RgswRows, scratch::Scratch},
    lift::Lift,
    lift_fractions::LiftFractions,
    mod_ring::{Limb, ModRing},
    mod_switch::{PowerSwitch, switched},
    spectrum::{place, spectrum},
};

pub use self::{keys::CpuKeys, tables::CpuRing};

impl RingOps for Cpu {
    type Ring = CpuRing;
    type NttDb = NttTiledDb;
    type Keys = CpuKeys;

    fn open_ring(&self, context: Arc<RingContext>) -> Result<CpuRing, OpsError> {
        Ok(CpuRing::new(self.level(), context))
    }

    fn context<'a>(&self, ring: &'a CpuRing) -> &'a RingContext {
        ring.context()
    }

    fn ntt_tiling(&self, db: &NttTiledDb) -> NttTiling {
        db.tiling()
    }

    fn run_open_ntt_db(&self, _ring: &CpuRing, db: NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db)
    }

    fn read_ntt_db(&self, _ring: &CpuRing, db: &NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db.clone())
    }

    fn run_open_evaluation_keys(&self, ring: &CpuRing, keys: EvaluationKeys) -> Result<CpuKeys, OpsError> {
        Ok(CpuKeys::new(ring, keys))
    }

    fn run_ntt_db(&self, ring: &CpuRing, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        Ok(ntt_db::ntt_db(self, ring, symbols))
    }

    fn run_expand(
        &self,
        ring: &CpuRing,
        keys: &[&CpuKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        let queries = queries.iter().zip(keys);
        Ok(queries.map(|(query, keys)| expand::expand(self, ring, keys, query, (rows, folds))).collect())
    }

    fn run_rlwe_fold(
        &self,
        ring: &CpuRing,
        db: &NttTiledDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let ciphertext_words = ciphertext_words(ring.context());
        let selectors: Vec<&[u32]> = selectors.iter().map(|batch| &batch.words[..]).collect();
        let folded = rlwe_fold::rlwe_fold(self, ring.context().kept().moduli(), db, &selectors);
        Ok(folded.into_iter().map(|words| RlweBatch { ciphertext_words, words: words.into() }).collect())
    }

    fn run_rgsw_fold(
        &self,
        ring: &CpuRing,
        entries: &[&RlweBatch],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch]],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let queries = entries.iter().zip(bits);
        Ok(queries
            .map(|(entries, bits): (&&RlweBatch, &&[RlweBatch])| {
                rgsw_fold::rgsw_fold(self, ring, &rgsw_fold::Planes { entries, count, planes, order }, bits)
            })
            .collect())
    }

    fn run_pack_pairs(
        &self,
        ring: &CpuRing,
        keys: &[&CpuKeys],
        batches: &[&RlweBatch],
        pairs: usize,
    ) -> Result<Vec<BatchWords>, OpsError> {
        Ok(pack_pairs::pack_pairs(self, ring, keys, batches, pairs))
    }

    fn run_mod_switch(
        &self,
        ring: &CpuRing,
        polys: &[&BatchWords],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok(mod_switch::mod_switch(self, ring, polys, first, sent))
    }
}
