//! The database of a table over rings: plaintexts, whitened, in evaluation form.

use std::sync::Arc;

use hush_cpu::{AlignedBuffer, Cpu};
use hush_he::params::RingContext;
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::RingOps,
    ntt_tiling::{GROUP_SLOTS, NttTiling, TILE_COLUMNS},
};
use hush_protocol::{descriptor::WhiteningSeed, ring_table::RingTable, whitening::Whitening};
use hush_store::{
    ntt_tiles::NttTileWriter,
    snapshot::{DB_FILE, MappedOutput, SnapshotWriter},
};
use rayon::prelude::*;

use super::BuildError;
use crate::Progress;

/// Rows that one task writes, so that it stays in the cache.
const TASK_ROWS: usize = 4;

/// A part of a slot that lies in one plaintext.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) block: usize,
    pub(super) row: usize,
    pub(super) plane: usize,
}

/// Writes the database tile by tile: a tile is gathered in memory, since its chunks lie all over the file, whose pages are
/// dear to touch one by one. `fill` gets zeroed symbols and puts the slot's there, as many as the plaintext has of it.
pub(super) fn write_db(
    table: &RingTable,
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
    fill: &(dyn Fn(Place, &mut [u32]) + Sync),
) -> Result<(MappedOutput, WhiteningSeed), BuildError> {
    let mut seed = [0; 32];
    Csprng::from_os().fill_bytes(&mut seed);
    let plaintexts = Plaintexts { table, whitening: Whitening::new(table.ring(), seed), fill };
    let ring = cpu.open_ring(Arc::new(RingContext::new(*table.ring())));
    let tiling = table.tiling();
    let db = writer.create_mapped(DB_FILE, tiling.bytes())?;
    progress.start("transform", (tiling.rows() * tiling.columns()) as u64, "plaintexts");
    let mut buffer = AlignedBuffer::<u8>::zeroed(tiling.bytes() / tiling.tiles());
    for tile in 0..tiling.tiles() {
        let columns = tiling.tile_columns(tile);
        // The tile by itself, in memory: its chunks are as in the database, one after another.
        let own = NttTiling::new(tiling.degree(), tiling.limbs(), tiling.rows(), columns.len())?;
        let tiles = NttTileWriter::new(own, &mut buffer);
        let chunks = tiling.rows().div_ceil(TASK_ROWS);
        cpu.install(|| {
            (0..chunks).into_par_iter().try_for_each(|chunk| -> Result<(), BuildError> {
                let rows = chunk * TASK_ROWS..tiling.rows().min((chunk + 1) * TASK_ROWS);
                let places = rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column)));
                let mut symbols = vec![0; rows.len() * columns.len() * tiling.degree()];
                for ((row, column), plaintext) in places.zip(symbols.chunks_exact_mut(tiling.degree())) {
                    plaintexts.write(row, column, plaintext);
                }
                tiles.write(0, rows.clone(), &cpu.ntt_db(&ring, &symbols)?);
                progress.advance((rows.len() * columns.len()) as u64);
                Ok(())
            })
        })?;
        cpu.install(|| {
            let chunk_bytes = size_of::<u32>() * tiling.chunk_words();
            buffer.par_chunks_exact(chunk_bytes).enumerate().try_for_each(|(index, chunk)| {
                let (limb, group) = (index / tiling.groups(), index % tiling.groups());
                let at = tiling.offset(limb, group * GROUP_SLOTS, 0, tile * TILE_COLUMNS);
                Ok::<_, BuildError>(db.write_at(size_of::<u32>() * at, chunk)?)
            })
        })?;
    }
    Ok((db, WhiteningSeed(seed)))
}

struct Plaintexts<'a> {
    table: &'a RingTable,
    whitening: Whitening,
    fill: &'a (dyn Fn(Place, &mut [u32]) + Sync),
}

impl Plaintexts<'_> {
    /// Writes the plaintext of `row` in database column `column` over zeros: the slots of all lanes, or a plane of one
    /// slot.
    fn write(&self, row: usize, column: usize, plaintext: &mut [u32]) {
        let (degree, size) = (self.table.ring().degree(), self.table.slot_symbols());
        let (plane, entry) = (column / self.table.entries(), column % self.table.entries());
        let length = (size - plane * degree).min(degree);
        for (lane, symbols) in plaintext.chunks_exact_mut(length).take(self.table.lanes()).enumerate() {
            let block = entry * self.table.lanes() + lane;
            if block < self.table.shape().blocks {
                (self.fill)(Place { block, row, plane }, symbols);
            }
        }
        self.whitening.add_to(row, column, plaintext);
    }
}
