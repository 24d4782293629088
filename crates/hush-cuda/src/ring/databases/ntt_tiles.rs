//! Databases in evaluation form on the device. `kernels/ntt_tiles.cuh` describes their layout.

use std::sync::Arc;

use hush_ops::{
    OpsError,
    ntt_tiling::{ALIGNMENT, GROUP_SLOTS, NttTiledDb, NttTiling},
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    device::{Arg, Buffer, CudaError, Device, Launch, MAX_GRID, Slice},
    squares::{launch_squares, squares},
};

/// The rows of a tile.
pub const TILE_ROWS: usize = 32;
/// The largest number of columns of a tile.
pub(in crate::ring) const MAX_WIDTH: usize = 64;
/// The largest number of columns for [`CudaNttDb::write_rows`]: padded to whole tiles, they are the third dimension of a grid.
pub(crate) const MAX_POLY_COLUMNS: usize = MAX_GRID[2] / MAX_WIDTH * MAX_WIDTH;
/// The bytes of a database in flight between layouts at once, for more than one group of slots.
pub const STAGING_BYTES: usize = 64 << 20;

/// A database of ring elements in evaluation form, on a device.
#[derive(Debug)]
pub struct CudaNttDb {
    tiling: NttTiling,
    log_width: u32,
    words: Buffer<u32>,
}

/// The struct `NttTiles` of `kernels/ntt_tiles.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
pub(in crate::ring) struct NttTiles {
    chunks: u64,
    rows: u32,
    row_tiles: u32,
    columns: u32,
    tiles: u32,
    log_width: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<NttTiles>() == 32);

impl CudaNttDb {
    /// Allocates memory for a database of the shape, to be written by the caller.
    pub(crate) fn alloc(device: &Device, tiling: NttTiling) -> Result<Self, CudaError> {
        let words = device.alloc(Self::bytes_for(tiling) / size_of::<u32>())?;
        Ok(Self { tiling, log_width: tile_width(tiling.columns()).ilog2(), words })
    }

    /// Returns the bytes of device memory that a database of the shape needs.
    pub fn bytes_for(tiling: NttTiling) -> usize {
        let columns = tiling.columns().next_multiple_of(tile_width(tiling.columns()));
        size_of::<u32>() * tiling.poly_words() * tiling.rows().next_multiple_of(TILE_ROWS) * columns
    }

    /// Uploads a database from the host.
    ///
    /// # Errors
    /// [`CudaError`] if the device has no memory for it, or fails.
    pub fn upload(device: &Device, host: &NttTiledDb) -> Result<Self, CudaError> {
        let db = Self::alloc(device, host.tiling())?;
        let group_bytes = 4 * host.tiling().group_words();
        if group_bytes == 0 {
            return Ok(db);
        }
        let groups = (STAGING_BYTES / group_bytes).max(1);
        for (index, bytes) in host.bytes().chunks(groups * group_bytes).enumerate() {
            let staging = device.upload(bytes)?;
            let points = bytes.len() / group_bytes * GROUP_SLOTS;
            db.retile(device, "ntt_tiles_from_host", &staging, index * groups * GROUP_SLOTS, points)?;
        }
        Ok(db)
    }

    /// Downloads the database. Fails with [`OpsError::Backend`] if the database is on another device, or `device` fails or has no
    /// memory for the transfer.
    pub fn download(&self, device: &Device) -> Result<NttTiledDb, OpsError> {
        let group_bytes = 4 * self.tiling.group_words();
        let mut host = Lines::zeroed(self.tiling.bytes());
        if group_bytes == 0 {
            return NttTiledDb::new(self.tiling, Arc::new(host));
        }
        let groups = (STAGING_BYTES / group_bytes).max(1);
        for (index, bytes) in host.bytes_mut().chunks_mut(groups * group_bytes).enumerate() {
            let staging = device.zeroed::<u8>(bytes.len())?;
            let points = bytes.len() / group_bytes * GROUP_SLOTS;
            self.retile(device, "ntt_tiles_to_host", &staging, index * groups * GROUP_SLOTS, points)?;
            bytes.copy_from_slice(&device.download(&staging.slice(..))?);
        }
        NttTiledDb::new(self.tiling, Arc::new(host))
    }

    /// Launches a kernel that converts the groups of slots in `staging` between this layout and that of the host.
    fn retile(
        &self,
        device: &Device,
        kernel: &'static str,
        staging: &Buffer<u8>,
        first_point: usize,
        points: usize,
    ) -> Result<(), CudaError> {
        let view = self.view();
        let launch = Launch::grid([points as u32 * view.tiles, view.row_tiles, 1], 256);
        let width = self.tiling.tile_width() as u32;
        device.launch(
            kernel,
            launch,
            &[self.arg(&view), staging.into(), width.into(), (first_point as u32).into()],
        )
    }

    /// Writes rows from row `first` on: whole tiles of rows, or all that are left. `polys` is `[row][column][limb][slot]`, with
    /// at most [`MAX_POLY_COLUMNS`] columns.
    pub(crate) fn write_rows(
        &self,
        device: &Device,
        polys: &Buffer<u32>,
        first: usize,
        rows: usize,
    ) -> Result<(), CudaError> {
        debug_assert!(first.is_multiple_of(TILE_ROWS) && self.tiling.columns() <= MAX_POLY_COLUMNS);
        let view = self.view();
        let points = self.tiling.poly_words();
        let row_tiles = rows.div_ceil(TILE_ROWS) as u32;
        let launch = launch_squares([squares(points), row_tiles, self.padded_columns() as u32]);
        let numbers = [first / TILE_ROWS, points].map(|number| (number as u32).into());
        let args = [&[self.arg(&view), polys.into()], &numbers[..]].concat();
        device.launch("ntt_tiles_from_polys", launch, &args)
    }

    /// Returns the shape.
    pub fn tiling(&self) -> NttTiling {
        self.tiling
    }

    /// Returns all residues, padding included.
    pub(crate) fn residues(&self) -> Slice<'_, u32> {
        self.words.slice(..)
    }

    /// Returns the columns of a tile.
    pub(in crate::ring) fn width(&self) -> usize {
        1 << self.log_width
    }

    /// Returns the columns, padded to whole tiles.
    pub(in crate::ring) fn padded_columns(&self) -> usize {
        self.tiling.columns().next_multiple_of(self.width())
    }

    /// Returns the number of tiles of rows.
    pub(in crate::ring) fn row_tiles(&self) -> usize {
        self.tiling.rows().div_ceil(TILE_ROWS)
    }

    /// Returns the view of the database as a kernel argument.
    pub(in crate::ring) fn arg<'a>(&self, view: &'a NttTiles) -> Arg<'a> {
        Arg::of(view).pointing_into(&self.words.slice(..))
    }

    /// Returns the view of the database for kernels.
    pub(in crate::ring) fn view(&self) -> NttTiles {
        NttTiles {
            chunks: self.words.slice(..).address(),
            rows: self.tiling.rows() as u32,
            row_tiles: self.row_tiles() as u32,
            columns: self.tiling.columns() as u32,
            tiles: (self.padded_columns() / self.width()) as u32,
            log_width: self.log_width,
            reserved: 0,
        }
    }
}

/// Returns the columns of a tile: the most for which padding makes at most 5/4 of the columns that tiles of 16 columns have.
fn tile_width(columns: usize) -> usize {
    let least = columns.next_power_of_two().min(16);
    [MAX_WIDTH, 32]
        .into_iter()
        .find(|&width: &usize| columns.next_multiple_of(width) * 4 <= columns.next_multiple_of(least) * 5)
        .unwrap_or(least)
}

/// A byte string on the host that begins at a multiple of [`ALIGNMENT`].
struct Lines {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

impl Lines {
    fn zeroed(len: usize) -> Self {
        Self { lines: vec![Line([0; _]); len.div_ceil(ALIGNMENT)], len }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.lines.as_mut_bytes()[..self.len]
    }
}

impl AsRef<[u8]> for Lines {
    fn as_ref(&self) -> &[u8] {
        &self.lines.as_bytes()[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_wide_where_that_pads_little() {
        for (columns, width) in [
            (1, 1),
            (2, 2),
            (3, 4),
            (5, 8),
            (8, 8),
            (9, 16),
            (17, 32),
            (33, 16),
            (48, 16),
            (49, 64),
            (64, 64),
            (65, 32),
            (80, 32),
            (96, 32),
            (128, 64),
            (256, 64),
            (257, 64),
        ] {
            assert_eq!(tile_width(columns), width, "{columns}");
        }
    }
}
