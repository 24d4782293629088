//! The database of a table over rings: whitened plaintexts, in evaluation form or as symbols.

use std::sync::Arc;

use hush_cpu::{AlignedBuffer, Cpu};
use hush_engine::Progress;
use hush_he::params::RingContext;
use hush_math::csprng::Csprng;
use hush_ops::{contract::RingOps, ntt_tiling::NttTiling};
use hush_protocol::{descriptor::WhiteningSeed, facts::DbForm, ring_table::RingTable, whitening::Whitening};
use hush_store::{ntt_tiles::NttTileWriter, snapshot::MappedOutput};
use rayon::prelude::*;

use super::tile::write_tile;
use crate::builder::BuildError;

/// The rows that one task writes: few enough to stay in the cache.
const TASK_ROWS: usize = 4;

/// The position of the part of a slot that lies in one plaintext.
#[derive(Clone, Copy)]
pub(in crate::builder) struct SymbolPlace {
    pub(in crate::builder) block: usize,
    pub(in crate::builder) row: usize,
    pub(in crate::builder) plane: usize,
}

/// Writes the database into `db` and returns its whitening seed. `fill` gets zeroed symbols, and writes the symbols of the slot's
/// part into them.
pub(in crate::builder) fn write_db(
    table: &RingTable,
    db: &MappedOutput,
    cpu: &Cpu,
    progress: &dyn Progress,
    fill: &(dyn Fn(SymbolPlace, &mut [u32]) + Sync),
) -> Result<WhiteningSeed, BuildError> {
    let mut seed = [0; 32];
    Csprng::from_os().fill_bytes(&mut seed);
    let plaintexts = Plaintexts { table, whitening: Whitening::new(table.ring(), seed), fill };
    match table.form() {
        DbForm::Evaluation => write_tiles(plaintexts, db, cpu, progress)?,
        DbForm::Symbols => write_symbols(&plaintexts, db, cpu, progress)?,
    }
    Ok(WhiteningSeed(seed))
}

/// Writes plaintexts in evaluation form, tile by tile. A tile is gathered in memory, because its chunks lie all over the file, and
/// touching the file's pages one by one is slow. Memory: two tiles, `32 D0 limbs N` words.
fn write_tiles(
    plaintexts: Plaintexts<'_>,
    db: &MappedOutput,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<(), BuildError> {
    let table = plaintexts.table;
    let ring = cpu.open_ring(Arc::new(RingContext::new(*table.ring())))?;
    let tiling = table.tiling();
    progress.start("transform", (tiling.rows() * tiling.columns()) as u64, "plaintexts");
    let tiles = Tiles { tiling, plaintexts, cpu, ring, progress };
    let mut buffers = [(); 2].map(|()| AlignedBuffer::zeroed(tiling.bytes() / tiling.tiles()));
    cpu.install(|| {
        tiles.gather(0, &mut buffers[0])?;
        for tile in 0..tiling.tiles() {
            // Writing keeps one core busy in the kernel. The next tile is gathered at the same time.
            let [first, second] = &mut buffers;
            let (full, free) = if tile % 2 == 0 { (first, second) } else { (second, first) };
            let (stored, gathered) = rayon::join(
                || write_tile(db, tiling, tile, tiling.single_tile(tile), full),
                || if tile + 1 < tiling.tiles() { tiles.gather(tile + 1, free) } else { Ok(()) },
            );
            stored.and(gathered)?;
        }
        Ok::<_, BuildError>(())
    })
}

/// Writes plaintexts as symbols, column by column.
fn write_symbols(
    plaintexts: &Plaintexts<'_>,
    db: &MappedOutput,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<(), BuildError> {
    let tiling = plaintexts.table.symbol_tiling();
    progress.start("symbols", (tiling.rows() * tiling.columns()) as u64, "plaintexts");
    cpu.install(|| {
        (0..tiling.columns()).into_par_iter().try_for_each(|column| {
            progress.check()?;
            let mut symbols = vec![0; tiling.degree()];
            let bytes = tiling.plaintext_bytes();
            let mut packed = vec![0; tiling.rows() * bytes];
            for (row, packed) in packed.chunks_exact_mut(bytes).enumerate() {
                symbols.fill(0);
                plaintexts.write(row, column, &mut symbols);
                tiling.pack(&symbols, packed);
            }
            db.write_at(tiling.offset(0, column), &packed)?;
            progress.advance(tiling.rows() as u64);
            Ok(())
        })
    })
}

/// The tiles of a database, gathered in memory.
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
    fill: &'a (dyn Fn(SymbolPlace, &mut [u32]) + Sync),
}

impl Plaintexts<'_> {
    /// Writes the plaintext of `row` in database column `column` over zeros: the slots of all lanes, or a plane of one
    /// slot.
    fn write(&self, row: usize, column: usize, plaintext: &mut [u32]) {
        let lanes = self.table.lanes();
        let stride = self.table.stride();
        let plane = column / self.table.entries();
        let entry = column % self.table.entries();
        let length = self.table.plane_symbols(plane);
        let mut apart = vec![0; if stride > 1 { length } else { 0 }];
        for lane in 0..lanes {
            let block = entry * lanes + lane;
            if block >= self.table.shape().blocks {
                break;
            }
            let place = SymbolPlace { block, row, plane };
            if stride == 1 {
                (self.fill)(place, &mut plaintext[lane * length..][..length]);
                continue;
            }
            apart.fill(0);
            (self.fill)(place, &mut apart);
            for (coefficient, &symbol) in self.table.coefficients(lane, plane).zip(&apart) {
                plaintext[coefficient] = symbol;
            }
        }
        self.whitening.add_to(row, column, plaintext);
    }
}
