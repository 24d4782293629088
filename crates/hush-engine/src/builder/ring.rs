//! The database of a table over rings: plaintexts, whitened, in evaluation form.

use std::sync::Arc;

use hush_cpu::{AlignedBuffer, Cpu};
use hush_he::params::RingContext;
use hush_math::csprng::Csprng;
use hush_ops::{contract::RingOps, ntt_tiling::NttTiling};
use hush_protocol::{descriptor::WhiteningSeed, ring_table::RingTable, whitening::Whitening};
use hush_store::{ntt_tiles::NttTileWriter, snapshot::MappedOutput};
use rayon::prelude::*;

use super::{BuildError, tile::write_tile};
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

/// Writes the database into `db` tile by tile: a tile is gathered in memory, since its chunks lie all over the file,
/// whose pages are dear to touch one by one. Memory: two tiles, `32 D0 limbs N` words. `fill` gets zeroed symbols and puts
/// the slot's there, as many as the plaintext has of it.
pub(super) fn write_db(
    table: &RingTable,
    db: &MappedOutput,
    cpu: &Cpu,
    progress: &dyn Progress,
    fill: &(dyn Fn(Place, &mut [u32]) + Sync),
) -> Result<WhiteningSeed, BuildError> {
    let mut seed = [0; 32];
    Csprng::from_os().fill_bytes(&mut seed);
    let plaintexts = Plaintexts { table, whitening: Whitening::new(table.ring(), seed), fill };
    let ring = cpu.open_ring(Arc::new(RingContext::new(*table.ring())))?;
    let tiling = table.tiling();
    progress.start("transform", (tiling.rows() * tiling.columns()) as u64, "plaintexts");
    let tiles = Tiles { tiling, plaintexts, cpu, ring, progress };
    let mut buffers = [(); 2].map(|()| AlignedBuffer::zeroed(tiling.bytes() / tiling.tiles()));
    cpu.install(|| {
        tiles.gather(0, &mut buffers[0])?;
        for tile in 0..tiling.tiles() {
            // Writing keeps one core busy in the kernel: the next tile is gathered meanwhile.
            let [first, second] = &mut buffers;
            let (full, free) = if tile % 2 == 0 { (first, second) } else { (second, first) };
            let next = || if tile + 1 < tiling.tiles() { tiles.gather(tile + 1, free) } else { Ok(()) };
            let (stored, gathered) =
                rayon::join(|| write_tile(db, tiling, tile, tiling.single_tile(tile), full), next);
            stored.and(gathered)?;
        }
        Ok::<_, BuildError>(())
    })?;
    Ok(WhiteningSeed(seed))
}

/// Gathers tiles of the database.
struct Tiles<'a> {
    tiling: NttTiling,
    plaintexts: Plaintexts<'a>,
    cpu: &'a Cpu,
    ring: <Cpu as RingOps>::Ring,
    progress: &'a dyn Progress,
}

impl Tiles<'_> {
    /// Fills `buffer` with the chunks of a tile, one after another.
    fn gather(&self, tile: usize, buffer: &mut [u8]) -> Result<(), BuildError> {
        let tiling = self.tiling;
        let columns = tiling.tile_columns(tile);
        let writer = NttTileWriter::new(tiling.single_tile(tile), buffer);
        let chunks = tiling.rows().div_ceil(TASK_ROWS);
        (0..chunks).into_par_iter().try_for_each(|chunk| {
            self.progress.check()?;
            let rows = chunk * TASK_ROWS..tiling.rows().min((chunk + 1) * TASK_ROWS);
            let places = rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column)));
            let mut symbols = vec![0; rows.len() * columns.len() * tiling.degree()];
            for ((row, column), plaintext) in places.zip(symbols.chunks_exact_mut(tiling.degree())) {
                self.plaintexts.write(row, column, plaintext);
            }
            writer.write(0, rows.clone(), &self.cpu.ntt_db(&self.ring, &symbols)?);
            self.progress.advance((rows.len() * columns.len()) as u64);
            Ok(())
        })
    }
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
