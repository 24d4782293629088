//! The hint of a table whose answers are packed: computed, lifted to evaluation form and written tile by tile.

use std::sync::Arc;

use hush_he::params::{RingContext, RingParams};
use hush_ops::{contract::PackOps, ntt_tiling::NttTiling, pack_shape::PackShape};
use hush_store::snapshot::{FileEntry, LIFTED_FILE, SegmentWriter};

use super::{BuildError, hint::Source, tile::write_tile};
use crate::Progress;

/// Writes the lifted hint of a database, whose rows are packed as `shape` says.
///
/// Memory: the hint of one tile of columns in both forms, for 16 columns of N = 4096 and n = 1280 0.9 GiB with two limbs and
/// 1.25 GiB with three.
pub(super) fn write<B: PackOps>(
    source: &Source<'_, B>,
    params: &RingParams,
    shape: &PackShape,
    writer: &SegmentWriter<'_>,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let (backend, n) = (source.backend, source.matrix.n());
    let tiling = NttTiling::new(params.degree(), params.kept_limbs(), n, shape.plaintexts())?;
    let lifted = writer.create_mapped(LIFTED_FILE, tiling.bytes())?;
    let ring = backend.open_ring(Arc::new(RingContext::new(*params)))?;
    progress.start("hint", source.rows as u64, "rows");
    for tile in 0..tiling.tiles() {
        let columns = tiling.tile_columns(tile);
        let words = source.hint(shape.rows_of(columns.clone()), progress)?;
        let part = backend.lift_hint(&ring, &words, n, shape, columns)?;
        let part = backend.read_ntt_db(&ring, &part)?;
        write_tile(&lifted, tiling, tile, part.tiling(), part.bytes())?;
    }
    progress.start("sync", tiling.bytes() as u64, "bytes");
    files.push(lifted.finish()?);
    progress.advance(tiling.bytes() as u64);
    Ok(())
}
