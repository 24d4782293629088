//! The layout of a table that is looked up by index.

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_ops::tiling::TILE_COLS;
use hush_protocol::{
    descriptor::Lookup, facts::Database, layout, slot::SlotFormat, symbols::to_symbols, table::TableShape,
};
use hush_store::{
    snapshot::{DB_FILE, MappedOutput, SegmentWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::ring::{self, SymbolPlace};
use crate::builder::{BuildError, LaidTable, Written, shape::plan::Plan};

/// Writes every record into its slot.
pub(in crate::builder) fn lay_out(
    records: &SpooledRecords,
    plan: &Plan,
    writer: &SegmentWriter<'_>,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<LaidTable, BuildError> {
    let slot = plan.slot;
    let params = plan.params.clone();
    let shape = params.facts().shape;
    let (db, whitening) = match params.database() {
        Database::Bytes(_) => (write_bytes(records, slot, shape, writer, cpu, progress)?, None),
        Database::Slots => (write_slots(records, slot, shape, writer, progress)?, None),
        Database::Plaintexts(table) => {
            let fill = |place: SymbolPlace, symbols: &mut [u32]| {
                let index = layout::index_at(&shape, place.block, place.row);
                if index >= records.len() {
                    return;
                }
                let plane_bytes = table.ring().plaintext_bytes();
                let start = plane_bytes * place.plane;
                let mut bytes = vec![0; plane_bytes.min(slot.slot_bytes() - start)];
                slot.encode_part(&[], records.record(index).1, start, &mut bytes);
                to_symbols(&bytes, table.ring().plaintext_bits(), symbols);
            };
            let db = writer.create_mapped(DB_FILE, table.content().bytes() as usize)?;
            let seed = ring::write_db(&table, &db, cpu, progress, &fill)?;
            (db, Some(seed))
        }
    };
    Ok(LaidTable { params, slot, lookup: Lookup::Index, base: Written { db, whitening }, beside: Vec::new() })
}

/// Writes the slots one after another.
fn write_slots(
    records: &SpooledRecords,
    slot: SlotFormat,
    shape: TableShape,
    writer: &SegmentWriter<'_>,
    progress: &dyn Progress,
) -> Result<MappedOutput, BuildError> {
    let size = slot.slot_bytes();
    let mut db = writer.create_mapped(DB_FILE, shape.blocks * shape.columns * size)?;
    progress.start("layout", records.len() as u64, "records");
    for (index, bytes) in db.bytes().chunks_exact_mut(size).take(records.len()).enumerate() {
        progress.check()?;
        slot.encode_into(&[], records.record(index).1, bytes);
        progress.advance(1);
    }
    Ok(db)
}

/// Writes a byte database.
fn write_bytes(
    records: &SpooledRecords,
    slot: SlotFormat,
    shape: TableShape,
    writer: &SegmentWriter<'_>,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<MappedOutput, BuildError> {
    let size = slot.slot_bytes();
    let tiling = shape.byte_tiling();
    let mut db = writer.create_mapped(DB_FILE, tiling.bytes())?;
    let tiles = TileWriter::new(tiling, db.bytes());
    let tiles_across = tiling.tiles();
    progress.start("layout", records.len() as u64, "records");
    cpu.install(|| {
        (0..shape.blocks * tiles_across).into_par_iter().try_for_each(|task| {
            progress.check()?;
            let block = task / tiles_across;
            let tile = task % tiles_across;
            let first = layout::index_at(&shape, block, tile * TILE_COLS);
            let end = (first + TILE_COLS).min(layout::index_at(&shape, block + 1, 0)).min(records.len());
            let count = end.saturating_sub(first);
            let mut slots = vec![0; count * size];
            for (record, slot_bytes) in (first..end).zip(slots.chunks_exact_mut(size)) {
                slot.encode_into(&[], records.record(record).1, slot_bytes);
            }
            tiles.write(block * size, tile, &slots, size);
            progress.advance(count as u64);
            Ok::<_, BuildError>(())
        })
    })?;
    Ok(db)
}
