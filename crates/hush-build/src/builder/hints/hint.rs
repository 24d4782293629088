//! The hint of a database, computed some rows at a time to bound the memory.

use std::{ops::Range, path::Path, sync::Arc};

use hush_engine::Progress;
use hush_he::entities::PublicMatrix;
use hush_ops::{
    contract::{LweOps, WordStore},
    tiling::{GROUP_ROWS, TiledDb, Tiling},
};
use hush_store::snapshot::MappedFile;

use crate::builder::BuildError;

/// The rows of the hint that are computed in one step.
pub(crate) const STEP_ROWS: usize = 4 * GROUP_ROWS;

/// A database on a backend, with the public matrix by which its hint is computed.
pub(in crate::builder) struct HintSource<'a, B: LweOps> {
    pub(in crate::builder) backend: &'a B,
    pub(in crate::builder) db: B::Db,
    pub(in crate::builder) matrix: PublicMatrix,
    pub(in crate::builder) rows: usize,
}

impl<'a, B: LweOps> HintSource<'a, B> {
    /// Opens the database of `rows` rows in the file at `path` on `backend`.
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

    /// Returns the hint of `rows`, which have to be whole groups, computed in one call.
    pub(in crate::builder) fn words(&self, rows: Range<usize>) -> Result<B::Words, BuildError> {
        Ok(self.backend.lwe_hint(&self.db, &self.matrix, rows)?)
    }

    /// Returns the hint of `rows`, with zeros for rows beyond the last one of the database. Reports the rows to `progress`.
    pub(in crate::builder) fn hint(
        &self,
        rows: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<B::Words, BuildError> {
        let backend = self.backend;
        let n = self.matrix.n();
        let end = rows.end.min(self.rows);
        let mut steps = Vec::new();
        // All rows of a tile may lie beyond the last row of the database.
        let first = (rows.start / GROUP_ROWS * GROUP_ROWS).min(end);
        for start in (first..end).step_by(STEP_ROWS) {
            progress.check()?;
            // Whole groups are computed, and only the requested rows are kept.
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

/// Returns the number of steps in which the hint of `rows` rows is computed.
pub(in crate::builder) fn steps(rows: usize) -> usize {
    rows.div_ceil(STEP_ROWS)
}

/// Returns the rows of a step; the last one has fewer.
pub(in crate::builder) fn step_rows(rows: usize, step: usize) -> Range<usize> {
    step * STEP_ROWS..rows.min((step + 1) * STEP_ROWS)
}
