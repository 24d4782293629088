//! The steps between LWE and RLWE without encryption. A set without encryption has an LWE dimension of 1, so that the
//! definitions cost little as they are.

use std::{ops::Range, sync::Arc};

use hush_he::params::RingContext;

use super::Plain;
use crate::{
    OpsError,
    contract::{BatchWords, LweBatch, PackOps, RlweBatch},
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    reference::Reference,
    tiling::TiledDb,
};

impl PackOps for Plain {
    fn run_lift_hint(
        &self,
        ring: &Arc<RingContext>,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        Reference.run_lift_hint(ring, hint, n, shape, columns)
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
        Reference.run_pack(ring, hint, folded, shape, columns, selectors)
    }

    fn run_add_rlwe(
        &self,
        ring: &Arc<RingContext>,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        Reference.run_add_rlwe(ring, sum, first, part)
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &Arc<RingContext>,
        packed: &RlweBatch,
        items: usize,
    ) -> Result<TiledDb, OpsError> {
        Reference.run_reinterpret_rlwe(ring, packed, items)
    }
}
