//! The hint, computed a few row groups at a time so that progress shows and memory stays small.

use std::{ops::Range, path::Path, sync::Arc};

use hush_he::{
    codec::{pack_rounded, packed_bytes},
    entities::PublicMatrix,
};
use hush_ops::{
    contract::{LweOps, WordStore},
    reference::Reference,
    tiling::{GROUP_ROWS, TiledDb, Tiling},
};
use hush_protocol::{
    descriptor::BlobRef,
    facts::{HintPlan, SecondDb},
};
use hush_store::snapshot::{DB_FILE, FileEntry, HINT_FILE, MappedFile, SECOND_DB_FILE, SegmentWriter};

use super::BuildError;
use crate::Progress;

/// Rows of the hint computed in one step.
pub(crate) const STEP_ROWS: usize = 4 * GROUP_ROWS;

/// Writes the hint that clients download, a word at `bits` bits.
pub(super) fn write<B: LweOps>(
    source: &Source<'_, B>,
    bits: u32,
    writer: &SegmentWriter<'_>,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<BlobRef, BuildError> {
    let bytes = source.rows * packed_bytes(source.matrix.n(), bits);
    let mut hint = writer.create_mapped(HINT_FILE, bytes)?;
    let mut rest = hint.bytes();
    source.each_step(progress, |step| {
        let bytes = pack_rounded(step, bits);
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        head.copy_from_slice(&bytes);
        rest = tail;
    })?;
    let reference = BlobRef { blake3: hint.blob_hash()?, bytes: bytes as u64 };
    files.push(hint.finish()?);
    Ok(reference)
}

/// Where hints come from.
pub(super) struct Source<'a, B: LweOps> {
    pub(super) backend: &'a B,
    pub(super) db: B::Db,
    pub(super) matrix: PublicMatrix,
    pub(super) rows: usize,
}

impl<'a, B: LweOps> Source<'a, B> {
    /// The database that was written before.
    pub(super) fn first(
        backend: &'a B,
        plan: &HintPlan,
        writer: &SegmentWriter<'_>,
    ) -> Result<Self, BuildError> {
        Self::open(backend, plan, &writer.path(DB_FILE))
    }

    /// The database in the file at `path`.
    pub(super) fn open(backend: &'a B, plan: &HintPlan, path: &Path) -> Result<Self, BuildError> {
        let map = Arc::new(MappedFile::open(path)?);
        let db = TiledDb::new(Tiling::new(plan.rows, plan.matrix.cols()), map)?;
        Ok(Self { backend, db: backend.open_db(db)?, matrix: plan.matrix, rows: plan.rows })
    }

    /// The database that is made of the whole hint of this one, which is written.
    pub(super) fn second(
        self,
        second: &SecondDb,
        writer: &SegmentWriter<'_>,
        progress: &dyn Progress,
        files: &mut Vec<FileEntry>,
    ) -> Result<Self, BuildError> {
        let mut words = Vec::with_capacity(self.rows * self.matrix.n());
        self.each_step(progress, |step| words.extend_from_slice(step))?;
        let db = Reference.reinterpret_lwe(&words.into(), second.items, second.digits)?;
        let mut file = writer.create_mapped(SECOND_DB_FILE, db.bytes().len())?;
        file.bytes().copy_from_slice(db.bytes());
        files.push(file.finish()?);
        let rows = db.tiling().rows();
        Ok(Self { backend: self.backend, db: self.backend.open_db(db)?, matrix: second.matrix, rows })
    }

    /// All rows, some at a time.
    fn each_step(&self, progress: &dyn Progress, mut take: impl FnMut(&[u32])) -> Result<(), BuildError> {
        progress.start("hint", self.rows as u64, "rows");
        for start in (0..self.rows).step_by(STEP_ROWS) {
            progress.check()?;
            let end = self.rows.min(start + STEP_ROWS);
            let words = self.backend.lwe_hint(&self.db, &self.matrix, start..end)?;
            take(&self.backend.read(&words)?);
            progress.advance((end - start) as u64);
        }
        Ok(())
    }

    /// The hint of some rows, with zeros beyond the last one.
    pub(super) fn hint(&self, rows: Range<usize>, progress: &dyn Progress) -> Result<B::Words, BuildError> {
        let (backend, n) = (self.backend, self.matrix.n());
        let end = rows.end.min(self.rows);
        let mut steps = Vec::new();
        // A tile may lie beyond the last row as a whole.
        let first = (rows.start / GROUP_ROWS * GROUP_ROWS).min(end);
        for start in (first..end).step_by(STEP_ROWS) {
            progress.check()?;
            // Whole groups, of which only the rows asked for are kept.
            let step = start..(start + STEP_ROWS).min(self.rows);
            let hint = backend.lwe_hint(&self.db, &self.matrix, step.clone())?;
            let kept = step.start.max(rows.start)..step.end.min(end);
            steps.push((hint, (kept.start - step.start) * n..(kept.end - step.start) * n));
            progress.advance(kept.len() as u64);
        }
        let zeros = backend.keep(vec![0; (rows.end - end.max(rows.start)) * n])?;
        let mut parts: Vec<_> = steps.iter().map(|(hint, range)| (hint, range.clone())).collect();
        parts.push((&zeros, 0..zeros.len()));
        Ok(backend.join(&parts)?)
    }
}
