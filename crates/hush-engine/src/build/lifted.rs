//! The hint of a table whose answers are packed: computed, lifted to evaluation form and written tile by tile.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_ops::{contract::PackOps, reference::Reference, tiling::TiledDb};
use hush_protocol::{exppack_d, pack_table::PackTable, table::Protocol};
use hush_store::snapshot::{DB_FILE, FileEntry, LIFTED_FILE, MappedFile, SECOND_DB_FILE, SnapshotWriter};

use super::{
    BuildError,
    hint::{self, Source},
    tile::write_tile,
};
use crate::Progress;

/// Writes the lifted hint of the database that was written before, and with `exppack-d` the second database.
///
/// Memory: the hint of one tile of columns in both forms, for 16 columns of N = 4096 and n = 1280 0.9 GiB with two limbs and
/// 1.25 GiB with three (with `exppack-d` also the whole hint of the first fold).
pub(super) fn write<B: PackOps>(
    table: &PackTable,
    writer: &SnapshotWriter,
    backend: &B,
    progress: &dyn Progress,
    files: &mut Vec<FileEntry>,
) -> Result<(), BuildError> {
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = backend.open_db(TiledDb::new(table.tiling(), map)?)?;
    let source = if table.protocol() == Protocol::ExppackD {
        let words = hint::whole(backend, &db, &table.first_matrix(), table.rows(), progress)?;
        let second = exppack_d::second_db(&Reference, table, &words.into())?;
        let mut file = writer.create_mapped(SECOND_DB_FILE, second.bytes().len())?;
        file.bytes().copy_from_slice(second.bytes());
        files.push(file.finish()?);
        Source {
            backend,
            db: backend.open_db(second)?,
            matrix: table.second_matrix(),
            rows: table.second_hint_rows(),
        }
    } else {
        Source { backend, db, matrix: table.first_matrix(), rows: table.rows() }
    };
    let (tiling, shape) = (table.hint_tiling(), table.hint_shape());
    let lifted = writer.create_mapped(LIFTED_FILE, tiling.bytes())?;
    let ring = backend.open_ring(Arc::new(RingContext::new(*table.params().ring())))?;
    progress.start("hint", source.rows as u64, "rows");
    for tile in 0..tiling.tiles() {
        let columns = tiling.tile_columns(tile);
        let words = source.hint(shape.rows_of(columns.clone()), progress)?;
        let part = backend.lift_hint(&ring, &words, table.params().lwe().n(), &shape, columns)?;
        let part = backend.read_ntt_db(&ring, &part)?;
        write_tile(&lifted, tiling, tile, part.tiling(), part.bytes())?;
    }
    progress.start("sync", tiling.bytes() as u64, "bytes");
    files.push(lifted.finish()?);
    progress.advance(tiling.bytes() as u64);
    Ok(())
}
