//! The steps between LWE and RLWE.

use std::ops::Range;

use hush_ops::{
    OpsError,
    contract::{BatchWords, LweBatch, PackOps, RingOps, RlweBatch},
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    reference::pack_shapes,
    tiling::TiledDb,
};

use crate::{Cpu, CpuRing, ring};

mod add_folded;
mod lift_hint;
mod reinterpret_rlwe;
mod squares;

pub(crate) use self::squares::{SQUARE, Squares, end_stream};

impl PackOps for Cpu {
    fn lift_hint(
        &self,
        ring: &CpuRing,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        pack_shapes::check_lift(ring.context(), hint.len(), n, shape, &columns)?;
        lift_hint::lift_hint(self, ring, hint, n, shape, columns)
    }

    fn pack(
        &self,
        ring: &CpuRing,
        hint: &NttTiledDb,
        folded: &LweBatch,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        pack_shapes::check_pack(ring.context(), hint.tiling(), folded, shape, &columns, selectors)?;
        let mut packed = self.rlwe_fold(ring, hint, selectors)?;
        add_folded::add_folded(self, ring, folded, shape, columns, &mut packed);
        Ok(packed)
    }

    fn add_rlwe(
        &self,
        ring: &CpuRing,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        pack_shapes::check_add(ring.context(), sum, first, part)?;
        ring::add(&ring.kept, &mut sum.words[first * sum.ciphertext_words..], &part.words);
        Ok(())
    }

    fn reinterpret_rlwe(
        &self,
        ring: &CpuRing,
        packed: &RlweBatch,
        planes: usize,
    ) -> Result<TiledDb, OpsError> {
        let items = pack_shapes::check_reinterpret(ring.context(), packed, planes)?;
        reinterpret_rlwe::reinterpret_rlwe(self, ring, packed, items)
    }
}
