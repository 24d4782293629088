//! The steps between LWE and RLWE.

use std::ops::Range;

use hush_ops::{
    OpsError,
    contract::{LweBatch, LweOps, PackOps, RingOps, RlweBatch, SentPoly},
    pack_shape::PackShape,
    steps::{PackOnline, RlweFold, poly_bytes},
};

use crate::{
    Cuda, CudaDb,
    device::{Buffer, Launch},
    ring::{self, CudaNttDb, CudaRing},
};

mod add_folded;
mod columns;
mod lift_hint;

pub(crate) use columns::PackColumns;
pub use lift_hint::lift_tile_bytes;

/// The threads of a block of `add_rlwe` and `reinterpret_rlwe`.
const THREADS: u32 = 256;
/// The blocks of `add_rlwe` for each multiprocessor.
const ADD_BLOCKS: u32 = 8;

impl PackOps for Cuda {
    fn run_lift_hint(
        &self,
        ring: &CudaRing,
        hint: &Buffer<u32>,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<CudaNttDb, OpsError> {
        lift_hint::lift_hint(self.device(), ring, hint, n, shape, columns)
    }

    fn run_pack(
        &self,
        ring: &CudaRing,
        hint: &CudaNttDb,
        folded: &LweBatch<Buffer<u32>>,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch<Buffer<u32>>],
    ) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
        let packed = self.run_rlwe_fold(ring, hint, selectors)?;
        let words: Vec<_> = packed.iter().map(|packed| &packed.words).collect();
        add_folded::add_folded(self.device(), ring, &folded.words, shape, columns, &words)?;
        Ok(packed)
    }

    fn run_add_rlwe(
        &self,
        ring: &CudaRing,
        sum: &mut RlweBatch<Buffer<u32>>,
        first: usize,
        part: &RlweBatch<Buffer<u32>>,
    ) -> Result<(), OpsError> {
        ring.kept().check_narrow()?;
        // Degrees are multiples of four words.
        let vectors = part.words.len() / 4;
        let blocks = vectors.div_ceil(THREADS as usize) as u32;
        let most = ADD_BLOCKS * self.device().info().multiprocessors;
        let onto = sum.words.slice(first * sum.ciphertext_words..);
        let args = [onto.into(), (&part.words).into(), ring.kept().view(), (vectors as u64).into()];
        Ok(self.device().launch("add_rlwe", Launch::new(blocks.min(most), THREADS), &args)?)
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &CudaRing,
        packed: &RlweBatch<Buffer<u32>>,
        items: usize,
    ) -> Result<CudaDb, OpsError> {
        let kept = ring.kept();
        let bits = ring.context().params().response_bits();
        let degree = kept.degree();
        let count = packed.count();
        let halves = SentPoly::halves(ring.context().params()).repeat(count);
        let switched = ring::switch(self.device(), kept, &[&packed.words], 0, &halves)?;
        let coefficients = count * degree.words();
        let switched = switched.slice(..).words();
        let words = self.device().alloc(switched.len())?;
        let numbers = [degree.log2(), bits.a, bits.b].map(Into::into);
        let args = [&[(&words).into(), switched.into()], &numbers[..], &[(coefficients as u64).into()]];
        self.device().launch("reinterpret_rlwe", Launch::cover(coefficients, THREADS), &args.concat())?;
        self.reinterpret_lwe(&words, 1, items, size_of::<u32>())
    }
}

hush_ops::footprint!(Cuda: Pack, |step, batch| {
    Self::footprint(&RlweFold { ring: step.ring, db: step.hint }, batch)
});

hush_ops::footprint!(Cuda: PackOnline, |step, batch| {
    let &PackOnline { ring, hint, rows, parts } = step;
    let fold = Self::footprint(&RlweFold { ring, db: hint }, 1);
    fold + batch * (3 * size_of::<u32>() * rows + 4 * parts * hint.columns() * poly_bytes(&ring))
});

hush_ops::footprint!(Cuda: AddRlwe, |_, _| {
    // The step works in place.
    0
});

hush_ops::footprint!(Cuda: ReinterpretRlwe, |step, batch| {
    // The bytes of both switched halves, and their words.
    batch * (2 * step.count * SentPoly::answer_bytes(&step.ring) + CudaDb::bytes_for(step.db))
});
