//! A byte database in device memory: tiles of 256 rows x 128 columns, padded with zeros (`kernels/lwe_tiles.cuh`).

use std::ops::Range;

use hush_ops::{
    OpsError,
    tiling::{GROUP_ROWS, PANEL_ROWS, TiledDb, Tiling},
};

use crate::{
    Cuda,
    device::{Buffer, CudaError, Device, Launch, Slice},
};

/// The rows of a tile.
pub(super) const TILE_ROWS: usize = 256;
/// The columns of a tile.
pub(super) const TILE_COLS: usize = 128;
/// The bytes of a tile.
pub(super) const TILE_BYTES: usize = TILE_ROWS * TILE_COLS;
/// The bytes that a thread of `retile` and `reinterpret_lwe` writes.
const CHUNK_BYTES: usize = 16;
/// The threads of a block of these kernels.
const THREADS: usize = 256;
/// The blocks that write a tile.
const BLOCKS_A_TILE: u32 = (TILE_BYTES / CHUNK_BYTES / THREADS) as u32;

/// A byte database (s8) in device memory.
#[derive(Debug)]
pub struct CudaDb {
    rows: usize,
    cols: usize,
    tiles: Buffer<u8>,
}

impl CudaDb {
    /// Copies a database to the device, one group of 512 rows at a time.
    pub(super) fn open(device: &Device, db: &TiledDb) -> Result<Self, CudaError> {
        let tiling = db.tiling();
        let opened = Self::alloc(device, tiling.rows(), tiling.cols())?;
        if opened.tiles.is_empty() {
            return Ok(opened);
        }
        let staging = device.alloc::<u8>(tiling.group_bytes(0).len())?;
        for group in 0..tiling.groups() {
            let bytes = &db.bytes()[tiling.group_bytes(group)];
            let staged = staging.slice(..bytes.len());
            device.upload_into(bytes, &staged)?;
            let panels = tiling.group_panels(group);
            let first = group * GROUP_ROWS;
            let tiles = opened.row_tiles(first..first + panels * PANEL_ROWS);
            let blocks = (tiles.len() / TILE_BYTES) as u32;
            device.launch(
                "retile",
                Launch::grid([blocks, BLOCKS_A_TILE, 1], THREADS as u32),
                &[tiles.into(), staged.into(), (panels as u32).into(), (tiling.tiles() as u32).into()],
            )?;
        }
        Ok(opened)
    }

    /// Creates a database from the bytes of words, as `LweOps::reinterpret_lwe` (2) defines it. `words` is `queries x cols x
    /// items`.
    pub(super) fn reinterpret(
        device: &Device,
        words: &Buffer<u32>,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<Self, CudaError> {
        let made = Self::alloc(device, queries * items * digits, cols)?;
        let blocks = (made.tiles.len() / TILE_BYTES) as u32;
        device.launch(
            "reinterpret_lwe",
            Launch::grid([blocks, BLOCKS_A_TILE, 1], THREADS as u32),
            &[
                (&made.tiles).into(),
                words.into(),
                (queries as u32).into(),
                (items as u32).into(),
                (cols as u32).into(),
                (digits as u32).into(),
            ],
        )?;
        Ok(made)
    }

    /// Allocates memory for a database of the shape, to be written by the caller.
    pub(crate) fn alloc(device: &Device, rows: usize, cols: usize) -> Result<Self, CudaError> {
        let bytes = Self::bytes_for(Tiling::new(rows, cols));
        Ok(Self { rows, cols, tiles: device.alloc(bytes)? })
    }

    /// Returns the bytes of device memory that a database of the shape needs.
    pub fn bytes_for(tiling: Tiling) -> usize {
        tiling.rows().div_ceil(TILE_ROWS) * tiling.cols().div_ceil(TILE_COLS) * TILE_BYTES
    }

    /// Returns the shape without padding.
    pub(crate) fn tiling(&self) -> Tiling {
        Tiling::new(self.rows, self.cols)
    }

    /// Returns the number of tiles across a row.
    pub(super) fn k_tiles(&self) -> usize {
        self.cols.div_ceil(TILE_COLS)
    }

    /// Returns the bytes on the device, padding included.
    pub fn bytes_on_device(&self) -> usize {
        self.tiles.len()
    }

    /// Returns all tiles.
    pub(crate) fn bytes(&self) -> Slice<'_, u8> {
        self.tiles.slice(..)
    }

    /// Returns the tiles of some rows, the first of which begins a tile.
    pub(super) fn row_tiles(&self, rows: Range<usize>) -> Slice<'_, u8> {
        debug_assert!(rows.start.is_multiple_of(TILE_ROWS));
        let across = self.k_tiles() * TILE_BYTES;
        self.tiles.slice(rows.start / TILE_ROWS * across..rows.end.div_ceil(TILE_ROWS) * across)
    }
}

/// Checks that kernels can count rows and columns with 32 bits.
pub(super) fn check_countable(step: &'static str, rows: usize, cols: usize) -> Result<(), OpsError> {
    const MOST: usize = i32::MAX as usize;
    OpsError::check_shape(step, "number of rows", rows.min(MOST), rows)?;
    OpsError::check_shape(step, "number of columns", cols.min(MOST), cols)
}

hush_ops::footprint!(Cuda: ReinterpretLwe, |step, batch| CudaDb::bytes_for(step.db.times(batch)));
