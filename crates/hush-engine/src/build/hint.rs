//! The hint, computed a few row groups at a time so that progress shows and memory stays small.

use std::{ops::Range, sync::Arc};

use hush_he::{codec::pack_rounded, entities::PublicMatrix};
use hush_ops::{
    contract::{LweOps, WordStore},
    reference::Reference,
    tiling::{GROUP_ROWS, TiledDb},
};
use hush_protocol::{descriptor::BlobRef, double, lwe_table::LweTable, table::Protocol};
use hush_store::snapshot::{DB_FILE, FileEntry, HINT_FILE, MappedFile, SECOND_DB_FILE, SnapshotWriter};

use super::BuildError;
use crate::Progress;

/// Rows of the hint computed in one step.
pub(crate) const STEP_ROWS: usize = 4 * GROUP_ROWS;

/// Writes the hint of the database that was written before, and with DoublePIR the second database.
pub(super) fn write<B: LweOps>(
    table: &LweTable,
    writer: &SnapshotWriter,
    backend: &B,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<BlobRef, BuildError> {
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = backend.open_db(TiledDb::new(table.tiling(), map)?)?;
    let mut hint = writer.create_mapped(HINT_FILE, table.hint_bytes())?;
    let matrix = table.first_matrix();
    if table.protocol() == Protocol::Double {
        let words = whole(backend, &db, &matrix, table.rows(), progress)?;
        let second = double::second_db(&Reference, table, &words.into())?;
        let mut file = writer.create_mapped(SECOND_DB_FILE, second.bytes().len())?;
        file.bytes().copy_from_slice(second.bytes());
        files.push(file.finish()?);
        packed(backend, &backend.open_db(second)?, &table.second_matrix(), table, hint.bytes(), progress)?;
    } else {
        packed(backend, &db, &matrix, table, hint.bytes(), progress)?;
    }
    let reference = BlobRef { blake3: hint.blob_hash()?, bytes: table.hint_bytes() as u64 };
    files.push(hint.finish()?);
    Ok(reference)
}

/// The whole hint as words (DoublePIR's first one, which never travels).
pub(super) fn whole<B: LweOps>(
    backend: &B,
    db: &B::Db,
    a: &PublicMatrix,
    rows: usize,
    progress: &dyn Progress,
) -> Result<Vec<u32>, BuildError> {
    let mut words = Vec::with_capacity(rows * a.n());
    each_step(backend, db, a, rows, progress, |step| words.extend_from_slice(step))?;
    Ok(words)
}

/// The hint as it travels, written to `out`.
fn packed<B: LweOps>(
    backend: &B,
    db: &B::Db,
    a: &PublicMatrix,
    params: &LweTable,
    out: &mut [u8],
    progress: &dyn Progress,
) -> Result<(), BuildError> {
    let mut rest = out;
    each_step(backend, db, a, params.hint_rows(), progress, |step| {
        let bytes = pack_rounded(step, params.widths().hint);
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        head.copy_from_slice(&bytes);
        rest = tail;
    })
}

fn each_step<B: LweOps>(
    backend: &B,
    db: &B::Db,
    a: &PublicMatrix,
    rows: usize,
    progress: &dyn Progress,
    mut take: impl FnMut(&[u32]),
) -> Result<(), BuildError> {
    progress.start("hint", rows as u64, "rows");
    for start in (0..rows).step_by(STEP_ROWS) {
        progress.check()?;
        let end = rows.min(start + STEP_ROWS);
        take(&backend.read(&backend.lwe_hint(db, a, start..end)?)?);
        progress.advance((end - start) as u64);
    }
    Ok(())
}

/// Where hints come from.
pub(super) struct Source<'a, B: LweOps> {
    pub(super) backend: &'a B,
    pub(super) db: B::Db,
    pub(super) matrix: PublicMatrix,
    pub(super) rows: usize,
}

impl<B: LweOps> Source<'_, B> {
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
