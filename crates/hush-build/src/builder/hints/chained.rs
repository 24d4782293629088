//! The pack columns of column packing: the hint of each plaintext, key-switched to one ciphertext.

use std::{ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_engine::{Progress, Quiet};
use hush_he::{
    entities::{ColumnMasks, PublicSeed},
    params::{ColumnParams, RingContext},
};
use hush_ops::{
    contract::{ChainedHint, ColumnOps, Steps},
    pack_shape::PackShape,
};
use hush_protocol::colpack_s::round_masks;
use prost::bytes::Bytes;
use rayon::prelude::*;

use super::{hint::HintSource, pack_noise, pieces::Worker, plaintext_files::content};
use crate::builder::BuildError;

/// A worker that computes the pack columns of a database's plaintexts.
///
/// Memory: some 150 MiB for each plaintext that the backend computes at once. The CPU computes one on each thread.
pub(in crate::builder) struct ChainedWorker<'a, B: ColumnOps> {
    params: ColumnParams,
    shape: PackShape,
    /// The bits of a coefficient of the masks that clients download, if they do.
    mask_bits: Option<u32>,
    source: HintSource<'a, B>,
    ring: B::Ring,
    plan: B::ChainPlan,
    /// The threads for work on the host.
    cpu: &'a Cpu,
}

impl<'a, B: ColumnOps> ChainedWorker<'a, B> {
    pub(in crate::builder) fn open(
        source: HintSource<'a, B>,
        params: &ColumnParams,
        shape: &PackShape,
        mask_bits: Option<u32>,
        seed: PublicSeed,
        cpu: &'a Cpu,
    ) -> Result<Self, BuildError> {
        let context = Arc::new(RingContext::new(*params.ring()));
        let masks = ColumnMasks::new(&context, &seed);
        let ring = source.backend.open_ring(context)?;
        let plan = source.backend.open_masks(&ring, &masks)?;
        Ok(Self { params: *params, shape: *shape, mask_bits, source, ring, plan, cpu })
    }

    /// Returns the hint of each of `plaintexts`. The hints are computed together, because the rows are neighbours.
    fn hints(&self, plaintexts: Range<usize>, progress: &dyn Progress) -> Result<Vec<B::Words>, BuildError> {
        let shape = &self.shape;
        let n = self.params.lwe().n();
        let rows = shape.rows_of(plaintexts.clone());
        let all = self.source.hint(rows.clone(), &Quiet(progress))?;
        plaintexts
            .map(|plaintext| {
                let own = shape.plaintext_rows(plaintext);
                let words = (own.start - rows.start) * n..(own.end - rows.start) * n;
                Ok(self.source.backend.join(&[(&all, words)])?)
            })
            .collect()
    }
}

impl<B: Steps> Worker for ChainedWorker<'_, B> {
    fn at_once(&self) -> usize {
        self.source.backend.chain_batch()
    }

    fn contents(&self, plaintexts: Range<usize>, progress: &dyn Progress) -> Result<Vec<Bytes>, BuildError> {
        let backend = self.source.backend;
        let hints = self.hints(plaintexts.clone(), progress)?;
        let chained = backend.chain_hint(&self.ring, &self.plan, &hints.iter().collect::<Vec<_>>())?;
        let sent = |bits, chained: &ChainedHint| round_masks(backend, &self.ring, chained.mask.clone(), bits);
        let masks = chained.iter().map(|chained| self.mask_bits.map(|bits| sent(bits, chained)).transpose());
        let masks: Vec<_> = masks.collect::<Result<_, _>>()?;
        let numbered: Vec<_> = plaintexts.zip(chained).zip(masks).collect();
        self.cpu.install(|| {
            numbered
                .into_par_iter()
                .with_max_len(1)
                .map(|((plaintext, chained), mask): ((usize, ChainedHint), Option<Vec<u8>>)| {
                    if !pack_noise::is_bounded(self.params.ring(), &chained.columns) {
                        return Err(BuildError::PackColumns { plaintext });
                    }
                    Ok(content(chained, mask.as_deref()).into())
                })
                .collect()
        })
    }
}
