//! The hint that clients download: words packed at the number of bits with which they travel.

use std::ops::Range;

use hush_engine::Progress;
use hush_he::codec::pack_rounded;
use hush_ops::contract::LweOps;
use hush_store::snapshot::MappedOutput;
use prost::bytes::Bytes;

use super::{
    hint::{HintSource, step_rows, steps},
    pieces::{Pieces, Worker},
};
use crate::builder::BuildError;

/// The file of a hint of `rows` rows of `row_bytes` bytes, written in steps of consecutive rows.
pub(in crate::builder) struct HintFile<'a> {
    pub(in crate::builder) file: &'a MappedOutput,
    pub(in crate::builder) rows: usize,
    pub(in crate::builder) row_bytes: usize,
}

impl HintFile<'_> {
    fn place(&self, step: usize) -> Range<usize> {
        let rows = step_rows(self.rows, step);
        rows.start * self.row_bytes..rows.end * self.row_bytes
    }
}

impl Pieces for HintFile<'_> {
    fn count(&self) -> usize {
        steps(self.rows)
    }

    fn units(&self, step: usize) -> u64 {
        step_rows(self.rows, step).len() as u64
    }

    fn bytes(&self, step: usize) -> usize {
        self.place(step).len()
    }

    fn write(&self, step: usize, content: &[u8]) -> Result<(), BuildError> {
        Ok(self.file.write_at(self.place(step).start, content)?)
    }

    fn read(&self, step: usize, take: &mut dyn FnMut(&[u8])) {
        take(&self.file.as_bytes()[self.place(step)]);
    }
}

/// A worker that computes steps of rows. At 32 bits a word is not rounded, and written little-endian.
pub(in crate::builder) struct DownloadWorker<'a, B: LweOps> {
    pub(in crate::builder) source: HintSource<'a, B>,
    /// The bits of a word.
    pub(in crate::builder) bits: u32,
}

impl<B: LweOps> Worker for DownloadWorker<'_, B> {
    fn contents(&self, steps: Range<usize>, progress: &dyn Progress) -> Result<Vec<Bytes>, BuildError> {
        steps
            .map(|step| {
                progress.check()?;
                let words = self.source.words(step_rows(self.source.rows, step))?;
                let content = pack_rounded(&self.source.backend.read(&words)?, self.bits);
                Ok(content.into())
            })
            .collect()
    }
}
