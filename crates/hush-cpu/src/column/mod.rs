//! The steps of column packing, implemented on the CPU.

use hush_he::entities::ColumnMasks;
use hush_math::poly::{Coeff, Poly};
use hush_ops::{
    OpsError,
    contract::{BatchWords, ChainPolys, ChainedHint, ColumnOps, LweBatch, LweQueries, PowerKeys, RlweBatch},
    pack_shape::PackShape,
    tiling::TiledDb,
};
use rayon::prelude::*;

use crate::{ChainPlan, Cpu, CpuRing, chain_hint};

mod chain;
mod pack_columns;
mod rgsw_power_fold;

pub use chain::CpuChain;

impl ColumnOps for Cpu {
    type ChainPlan = ChainPlan;
    type Chain = CpuChain;

    fn open_masks(&self, ring: &CpuRing, masks: &ColumnMasks) -> Result<ChainPlan, OpsError> {
        Ok(ChainPlan::new(ring, masks))
    }

    /// Returns one hint a thread.
    fn chain_batch(&self) -> usize {
        self.threads()
    }

    fn run_chain_hint(
        &self,
        ring: &CpuRing,
        plan: &ChainPlan,
        hints: &[&BatchWords],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        self.install(|| {
            hints
                .par_iter()
                .with_max_len(1)
                .map(|hint: &&BatchWords| chain_hint::chain_hint(self, ring, plan, hint))
                .collect()
        })
    }

    fn run_open_chain(
        &self,
        ring: &CpuRing,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<CpuChain, OpsError> {
        Ok(CpuChain::new(self, ring, *shape, &polys))
    }

    fn chain_shape(&self, chain: &CpuChain) -> PackShape {
        *chain.shape()
    }

    fn has_masks(&self, chain: &CpuChain) -> bool {
        chain.has_masks()
    }

    fn run_pack_columns(
        &self,
        ring: &CpuRing,
        columns: &TiledDb,
        chain: &CpuChain,
        mut folded: LweBatch,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch, OpsError> {
        pack_columns::pack_columns(self, ring, columns, chain, &mut folded, keys, conjugations);
        Ok(folded)
    }

    fn run_rgsw_power_fold(
        &self,
        ring: &CpuRing,
        chain: &CpuChain,
        packed: &LweBatch,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch, OpsError> {
        Ok(rgsw_power_fold::rgsw_power_fold(self, ring, chain, packed, powers))
    }
}
