//! The steps over rings.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};
use hush_ops::{
    OpsError,
    contract::{EntryOrder, Expanded, RingOps, RlweBatch, SentPoly},
    ntt_tiling::{NttTiledDb, NttTiling},
};

use super::{CudaKeys, CudaNttDb, CudaRing, expand, mod_switch, ntt_db, pack_pairs, rgsw_fold, rlwe_fold};
use crate::{Cuda, device::Buffer};

/// A batch of ciphertexts on the device.
type Batch = RlweBatch<Buffer<u32>>;

impl RingOps for Cuda {
    type Ring = CudaRing;
    type NttDb = CudaNttDb;
    type Keys = CudaKeys;

    fn open_ring(&self, context: Arc<RingContext>) -> Result<CudaRing, OpsError> {
        CudaRing::new(self.device(), context)
    }

    fn context<'a>(&self, ring: &'a CudaRing) -> &'a RingContext {
        ring.context()
    }

    fn ntt_tiling(&self, db: &CudaNttDb) -> NttTiling {
        db.tiling()
    }

    fn run_open_ntt_db(&self, _ring: &CudaRing, db: NttTiledDb) -> Result<CudaNttDb, OpsError> {
        Ok(CudaNttDb::upload(self.device(), &db)?)
    }

    fn read_ntt_db(&self, _ring: &CudaRing, db: &CudaNttDb) -> Result<NttTiledDb, OpsError> {
        db.download(self.device())
    }

    fn run_open_evaluation_keys(&self, _ring: &CudaRing, keys: EvaluationKeys) -> Result<CudaKeys, OpsError> {
        Ok(CudaKeys::upload(self.device(), keys)?)
    }

    fn run_ntt_db(&self, ring: &CudaRing, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        ntt_db::ntt_db(self, ring, symbols)
    }

    fn run_expand(
        &self,
        ring: &CudaRing,
        keys: &[&CudaKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
        expand::expand(self, ring, keys, queries, rows, folds)
    }

    fn run_rlwe_fold(
        &self,
        ring: &CudaRing,
        db: &CudaNttDb,
        selectors: &[&Batch],
    ) -> Result<Vec<Batch>, OpsError> {
        rlwe_fold::rlwe_fold(self, ring, db, selectors)
    }

    fn run_rgsw_fold(
        &self,
        ring: &CudaRing,
        entries: &[&Batch],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[Batch]],
    ) -> Result<Vec<Batch>, OpsError> {
        rgsw_fold::rgsw_fold(self, ring, entries, count, planes, order, bits)
    }

    fn run_pack_pairs(
        &self,
        ring: &CudaRing,
        keys: &[&CudaKeys],
        batches: &[&Batch],
        pairs: usize,
    ) -> Result<Vec<Buffer<u32>>, OpsError> {
        pack_pairs::pack_pairs(self, ring, keys, batches, pairs)
    }

    fn run_mod_switch(
        &self,
        ring: &CudaRing,
        polys: &[&Buffer<u32>],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        mod_switch::mod_switch(self, ring, polys, first, sent)
    }
}
