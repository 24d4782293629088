//! The steps of column packing.

use hush_he::entities::ColumnMasks;
use hush_math::poly::{Coeff, Poly};
use hush_ops::{
    OpsError,
    contract::{ChainPolys, ChainedHint, ColumnOps, LweBatch, LweQueries, PowerKeys, RlweBatch},
    pack_shape::PackShape,
};

use crate::{
    Cuda, CudaDb,
    device::{Buffer, MAX_GRID},
    ring::CudaRing,
};

mod chain;
mod chain_hint;
mod interleaved;
mod pack_columns;
mod pair_kernel;
mod plan;
mod rgsw_power_fold;
mod terms;
mod views;

pub use chain::CudaChain;
pub use plan::ChainPlan;

impl ColumnOps for Cuda {
    type ChainPlan = ChainPlan;
    type Chain = CudaChain;

    fn open_masks(&self, ring: &CudaRing, masks: &ColumnMasks) -> Result<ChainPlan, OpsError> {
        ChainPlan::new(self.device(), ring, masks)
    }

    fn chain_batch(&self) -> usize {
        chain_hint::chain_batch(self.device())
    }

    fn run_chain_hint(
        &self,
        ring: &CudaRing,
        plan: &ChainPlan,
        hints: &[&Buffer<u32>],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        let mut chained = Vec::with_capacity(hints.len());
        // Parts have about the same size: a chain takes the same time, however many chains run beside it.
        let parts = hints.len().div_ceil(chain_hint::most_at_once(self.device()));
        for hints in hints.chunks(hints.len().div_ceil(parts.max(1)).max(1)) {
            chained.extend(chain_hint::chain_hints(self.device(), ring, plan, hints)?);
        }
        Ok(chained)
    }

    fn run_open_chain(
        &self,
        ring: &CudaRing,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<CudaChain, OpsError> {
        CudaChain::new(self.device(), ring, *shape, &polys)
    }

    fn chain_shape(&self, chain: &CudaChain) -> PackShape {
        *chain.shape()
    }

    fn has_masks(&self, chain: &CudaChain) -> bool {
        chain.has_masks()
    }

    fn run_pack_columns(
        &self,
        ring: &CudaRing,
        columns: &CudaDb,
        chain: &CudaChain,
        folded: LweBatch<Buffer<u32>>,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch<Buffer<u32>>, OpsError> {
        let queries = conjugations.len();
        OpsError::check_shape("pack_columns", "queries", queries.min(MAX_GRID[1]), queries)?;
        self.add_lwe_fold(columns, keys, &folded.words.slice(..))?;
        pack_columns::add_products(self.device(), ring, chain, &folded.words, conjugations)?;
        Ok(folded)
    }

    fn run_rgsw_power_fold(
        &self,
        ring: &CudaRing,
        chain: &CudaChain,
        packed: &LweBatch<Buffer<u32>>,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch<Buffer<u32>>, OpsError> {
        rgsw_power_fold::rgsw_power_fold(self.device(), ring, chain, &packed.words, powers)
    }
}
