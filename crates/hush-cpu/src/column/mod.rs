//! The steps of column packing.

use hush_he::entities::ColumnMasks;
use hush_math::poly::{Eval, Poly};
use hush_ops::{
    OpsError,
    contract::{ChainPolys, ChainedHint, ColumnOps, LweBatch, LweQueries, RlweBatch},
    pack_shape::PackShape,
    reference::Reference,
};
use std::sync::Arc;

use crate::{Cpu, CpuRing};

impl ColumnOps for Cpu {
    type ChainPlan = ColumnMasks;
    type Chain = (PackShape, ChainPolys);

    fn open_masks(&self, _ring: &CpuRing, masks: &ColumnMasks) -> ColumnMasks {
        masks.clone()
    }

    fn chain_hint(&self, ring: &CpuRing, plan: &ColumnMasks, hint: &[u32]) -> Result<ChainedHint, OpsError> {
        Reference.chain_hint(&Arc::new(ring.context().clone()), plan, hint)
    }

    fn open_chain(
        &self,
        ring: &CpuRing,
        shape: &PackShape,
        polys: ChainPolys,
    ) -> Result<Self::Chain, OpsError> {
        Reference.open_chain(&Arc::new(ring.context().clone()), shape, polys)
    }

    fn pack_columns(
        &self,
        ring: &CpuRing,
        columns: &Self::Db,
        chain: &Self::Chain,
        folded: LweBatch,
        keys: &LweQueries,
        conjugations: &[&Poly<Eval>],
    ) -> Result<LweBatch, OpsError> {
        Reference.pack_columns(&Arc::new(ring.context().clone()), columns, chain, folded, keys, conjugations)
    }

    fn rgsw_power_fold(
        &self,
        ring: &CpuRing,
        chain: &Self::Chain,
        packed: &LweBatch,
        powers: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        Reference.rgsw_power_fold(&Arc::new(ring.context().clone()), chain, packed, powers)
    }
}
