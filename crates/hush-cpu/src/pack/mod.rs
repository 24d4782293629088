//! The steps between LWE and RLWE, implemented on the CPU.

use std::ops::Range;

use hush_ops::{
    OpsError,
    contract::{BatchWords, LweBatch, PackOps, RingOps, RlweBatch},
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    steps::{PackOnline, poly_bytes},
    tiling::TiledDb,
};

use crate::{Cpu, CpuRing, footprint::EXPANDED_QUERIES, ring};

mod add_folded;
mod lift_hint;
mod reinterpret_rlwe;
mod squares;

pub(crate) use self::squares::{SQUARE, Squares};

impl PackOps for Cpu {
    fn run_lift_hint(
        &self,
        ring: &CpuRing,
        hint: &BatchWords,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttTiledDb, OpsError> {
        lift_hint::lift_hint(self, ring, hint, n, shape, columns)
    }

    fn run_pack(
        &self,
        ring: &CpuRing,
        hint: &NttTiledDb,
        folded: &LweBatch,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let mut packed = self.run_rlwe_fold(ring, hint, selectors)?;
        add_folded::add_folded(self, ring, folded, shape, columns, &mut packed);
        Ok(packed)
    }

    fn run_add_rlwe(
        &self,
        ring: &CpuRing,
        sum: &mut RlweBatch,
        first: usize,
        part: &RlweBatch,
    ) -> Result<(), OpsError> {
        ring::add(&ring.kept, &mut sum.words[first * sum.ciphertext_words..], &part.words);
        Ok(())
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &CpuRing,
        packed: &RlweBatch,
        items: usize,
    ) -> Result<TiledDb, OpsError> {
        reinterpret_rlwe::reinterpret_rlwe(self, ring, packed, items)
    }
}

hush_ops::footprint!(Cpu: Pack, up to EXPANDED_QUERIES, |step, batch| batch * step.hint.fold_bytes());

hush_ops::footprint!(Cpu: PackOnline, |step, batch| {
    let &PackOnline { ring, hint, rows, parts } = step;
    batch * (size_of::<u32>() * rows + parts * hint.columns() * 2 * poly_bytes(&ring))
});

hush_ops::footprint!(Cpu: AddRlwe, |_, _| 0);
