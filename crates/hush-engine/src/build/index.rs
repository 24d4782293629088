//! Layout of a table that is looked up by index.

use hush_cpu::Cpu;
use hush_ops::tiling::TILE_COLS;
use hush_protocol::{
    descriptor::Lookup,
    layout,
    slot::SlotFormat,
    table::{TableParams, TableShape},
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{DB_FILE, SnapshotWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::{BuildError, BuildOptions, Laid};
use crate::Progress;

/// Writes every record into its slot.
pub(super) fn lay_out(
    records: &SpooledRecords,
    options: &BuildOptions,
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Laid, BuildError> {
    let slot = SlotFormat::for_values(0, records.min_value_len(), records.max_value_len());
    let size = slot.slot_bytes();
    let protocol = options.protocol_for(records.len(), size);
    let shape = match options.columns {
        None => layout::index_shape(protocol, &options.lwe, records.len(), size),
        Some(columns) => {
            let columns = columns.clamp(1, records.len());
            TableShape { columns, blocks: records.len().div_ceil(columns), slot_bytes: size }
        }
    };
    let params = TableParams::new(protocol, options.lwe, shape)?;

    let mut db = writer.create_mapped(DB_FILE, shape.tiling().bytes())?;
    let tiles = TileWriter::new(shape.tiling(), db.bytes());
    let tiles_across = shape.tiling().tiles();
    progress.start("layout", records.len() as u64, "records");
    cpu.install(|| {
        (0..shape.blocks * tiles_across).into_par_iter().for_each(|task| {
            let (block, tile) = (task / tiles_across, task % tiles_across);
            let first = block * shape.columns + tile * TILE_COLS;
            let end = (first + TILE_COLS).min((block + 1) * shape.columns).min(records.len());
            let count = end.saturating_sub(first);
            let mut slots = vec![0; count * size];
            for (record, slot_bytes) in (first..end).zip(slots.chunks_exact_mut(size)) {
                slot.encode_into(&[], records.record(record).1, slot_bytes);
            }
            tiles.write(block * size, tile, &slots, size);
            progress.advance(count as u64);
        });
    });
    Ok(Laid { params, slot, lookup: Lookup::Index, db })
}
