//! The steps over rings.

use std::{ops::Range, sync::Arc};

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::RingContext,
};
use hush_ops::{
    OpsError,
    contract::{EntryOrder, Expanded, RingOps, RlweBatch},
    ntt_tiling::NttTiledDb,
};

use super::{CudaKeys, CudaNttDb, CudaRing};
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

    fn open_ntt_db(&self, ring: &CudaRing, db: NttTiledDb) -> Result<CudaNttDb, OpsError> {
        super::open_ntt_db(self, ring, &db)
    }

    fn read_ntt_db(&self, ring: &CudaRing, db: &CudaNttDb) -> Result<NttTiledDb, OpsError> {
        super::read_ntt_db(self, ring, db)
    }

    fn open_evaluation_keys(&self, ring: &CudaRing, keys: EvaluationKeys) -> Result<CudaKeys, OpsError> {
        super::open_evaluation_keys(self, ring, &keys)
    }

    fn ntt_db(&self, ring: &CudaRing, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        super::ntt_db(self, ring, symbols)
    }

    fn expand(
        &self,
        ring: &CudaRing,
        keys: &[&CudaKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
        super::expand(self, ring, keys, queries, rows, folds)
    }

    fn rlwe_fold(
        &self,
        ring: &CudaRing,
        db: &CudaNttDb,
        selectors: &[&Batch],
    ) -> Result<Vec<Batch>, OpsError> {
        super::rlwe_fold(self, ring, db, selectors)
    }

    fn rgsw_fold(
        &self,
        ring: &CudaRing,
        entries: &[&Batch],
        planes: usize,
        order: EntryOrder,
        bits: &[&[Batch]],
    ) -> Result<Vec<Batch>, OpsError> {
        super::rgsw_fold(self, ring, entries, planes, order, bits)
    }

    fn pack_pairs(
        &self,
        ring: &CudaRing,
        keys: &[&CudaKeys],
        batches: &[&Batch],
    ) -> Result<Vec<Buffer<u32>>, OpsError> {
        super::pack_pairs(self, ring, keys, batches)
    }

    fn mod_switch(
        &self,
        ring: &CudaRing,
        polys: &[&Buffer<u32>],
        which: Range<usize>,
        bits: &[u32],
    ) -> Result<Vec<Vec<Vec<u64>>>, OpsError> {
        super::mod_switch(self, ring, polys, which, bits)
    }
}
