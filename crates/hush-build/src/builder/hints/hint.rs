//! The hint of a database, some rows at a time so that memory stays small.

use std::{ops::Range, path::Path, sync::Arc};

use hush_engine::Progress;
use hush_he::entities::PublicMatrix;
use hush_ops::{
    contract::{LweOps, WordStore},
    tiling::{GROUP_ROWS, TiledDb, Tiling},
};
use hush_store::snapshot::MappedFile;

use crate::builder::BuildError;

/// Rows of the hint computed in one step.
pub(crate) const STEP_ROWS: usize = 4 * GROUP_ROWS;

/// Where hints come from: a database on a backend.
pub(in crate::builder) struct HintSource<'a, B: LweOps> {
    pub(in crate::builder) backend: &'a B,
    pub(in crate::builder) db: B::Db,
    pub(in crate::builder) matrix: PublicMatrix,
    pub(in crate::builder) rows: usize,
}

impl<'a, B: LweOps> HintSource<'a, B> {
    /// Creates the database of `rows` rows in the file at `path`.
    pub(in crate::builder) fn open(
        backend: &'a B,
        matrix: PublicMatrix,
        rows: usize,
        path: &Path,
    ) -> Result<Self, BuildError> {
        let map = Arc::new(MappedFile::open(path)?);
        let db = TiledDb::new(Tiling::new(rows, matrix.cols()), map)?;
        Ok(Self { backend, db: backend.open_db(db)?, matrix, rows })
    }

    /// Returns the hint of whole groups of rows, computed at once.
    pub(in crate::builder) fn words(&self, rows: Range<usize>) -> Result<B::Words, BuildError> {
        Ok(self.backend.lwe_hint(&self.db, &self.matrix, rows)?)
    }

    /// Returns the hint of some rows, with zeros beyond the last one.
    pub(in crate::builder) fn hint(
        &self,
        rows: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<B::Words, BuildError> {
        let backend = self.backend;
        let n = self.matrix.n();
        let end = rows.end.min(self.rows);
        let mut steps = Vec::new();
        // A tile may lie beyond the last row as a whole.
        let first = (rows.start / GROUP_ROWS * GROUP_ROWS).min(end);
        for start in (first..end).step_by(STEP_ROWS) {
            progress.check()?;
            // Whole groups, of which only the rows asked for are kept.
            let step = start..(start + STEP_ROWS).min(self.rows);
            let hint = self.words(step.clone())?;
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

/// Steps in which the hint of so many rows is computed.
pub(in crate::builder) fn steps(rows: usize) -> usize {
    rows.div_ceil(STEP_ROWS)
}

/// Returns the rows of a step; the last one has fewer.
pub(in crate::builder) fn step_rows(rows: usize, step: usize) -> Range<usize> {
    step * STEP_ROWS..rows.min((step + 1) * STEP_ROWS)
}
