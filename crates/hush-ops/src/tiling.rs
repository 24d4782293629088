//! The layout of a byte database: tiles of 32 rows x 64 columns, ordered for one streaming pass.
//!
//! A database of `rows x cols` bytes (read as s8) is stored as
//! `[group of 16 panels][chunk of 8 tiles][panel of 32 rows][tile of 64 columns][32 rows][64 bytes]`.
//! Rows are padded to 32 and columns to 64 with zero bytes; the last group and the last chunk are short, so
//! nothing else is padded. One layout serves every batch size and every CPU level (an AMX A-operand is a
//! `16 x 64`-byte half of a tile; VNNI and AVX2 read 64 bytes of one row), so another machine can serve a snapshot
//! without converting it. The order keeps a 16-KiB block of 32 rows x 512 columns contiguous. Within a group, all rows
//! of a chunk come before the next chunk, so that the query's chunk stays in cache.

use std::{ops::Range, sync::Arc};

use crate::OpsError;

/// The number of rows in a panel. Rows are padded to a multiple of it.
pub const PANEL_ROWS: usize = 32;
/// The number of columns in a tile. Columns are padded to a multiple of it.
pub const TILE_COLS: usize = 64;
/// The bytes in a tile.
pub const TILE_BYTES: usize = PANEL_ROWS * TILE_COLS;
/// The tiles in a chunk (the last chunk of a database may have fewer).
pub const CHUNK_TILES: usize = 8;
/// The panels in a group (the last group of a database may have fewer).
pub const GROUP_PANELS: usize = 16;
/// The rows in a full group.
pub const GROUP_ROWS: usize = GROUP_PANELS * PANEL_ROWS;

/// The shape of a tiled database and the position of every byte in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    rows: usize,
    cols: usize,
}

impl Tiling {
    /// Creates a tiling of `rows x cols` bytes.
    pub fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols }
    }

    /// Returns the tiling of a database that has these rows once for each of `queries` queries.
    pub fn times(self, queries: usize) -> Self {
        Self::new(queries * self.rows, self.cols)
    }

    /// Returns the rows of the database, without padding.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the columns (D0) of the database, without padding.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the rows with padding, a multiple of [`PANEL_ROWS`].
    pub fn padded_rows(&self) -> usize {
        self.rows.next_multiple_of(PANEL_ROWS)
    }

    /// Returns the columns with padding, a multiple of [`TILE_COLS`].
    pub fn padded_cols(&self) -> usize {
        self.cols.next_multiple_of(TILE_COLS)
    }

    /// Returns the bytes of the stored database.
    pub fn bytes(&self) -> usize {
        self.padded_rows() * self.padded_cols()
    }

    /// Returns the bytes of the stored database as a `u64`, for a table on another machine that may exceed this one's memory.
    pub fn stored_bytes(&self) -> u64 {
        self.padded_rows() as u64 * self.padded_cols() as u64
    }

    /// Returns the number of row groups.
    pub fn groups(&self) -> usize {
        self.padded_rows().div_ceil(GROUP_ROWS)
    }

    /// Returns the panels of group `group`: [`GROUP_PANELS`], or fewer for the last one.
    pub fn group_panels(&self, group: usize) -> usize {
        GROUP_PANELS.min(self.padded_rows() / PANEL_ROWS - group * GROUP_PANELS)
    }

    /// Returns the byte range of group `group` within the stored database.
    pub fn group_bytes(&self, group: usize) -> Range<usize> {
        let start = group * GROUP_ROWS * self.padded_cols();
        start..start + self.group_panels(group) * PANEL_ROWS * self.padded_cols()
    }

    /// Returns the tiles across a row.
    pub fn tiles(&self) -> usize {
        self.padded_cols() / TILE_COLS
    }

    /// Returns the number of column chunks.
    pub fn chunks(&self) -> usize {
        self.tiles().div_ceil(CHUNK_TILES)
    }

    /// Returns the tiles of chunk `chunk`: [`CHUNK_TILES`], or fewer for the last one.
    pub fn chunk_tiles(&self, chunk: usize) -> usize {
        CHUNK_TILES.min(self.tiles() - chunk * CHUNK_TILES)
    }

    /// Returns the offset of the byte at (`row`, `col`); the 64 bytes of a row within a tile are contiguous.
    pub fn offset(&self, row: usize, col: usize) -> usize {
        let panel = row / PANEL_ROWS;
        let group = panel / GROUP_PANELS;
        let panel = panel % GROUP_PANELS;
        let tile = col / TILE_COLS;
        let chunk = tile / CHUNK_TILES;
        let tile = tile % CHUNK_TILES;
        let chunk_start = chunk * CHUNK_TILES * TILE_BYTES * self.group_panels(group);
        let panel_start = panel * self.chunk_tiles(chunk) * TILE_BYTES;
        self.group_bytes(group).start
            + chunk_start
            + panel_start
            + tile * TILE_BYTES
            + (row % PANEL_ROWS) * TILE_COLS
            + col % TILE_COLS
    }

    /// Returns the stored byte range that contains `rows`: whole groups of rows.
    pub fn bytes_of_rows(&self, rows: &Range<usize>) -> Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        let last = (rows.end - 1) / GROUP_ROWS;
        self.group_bytes(rows.start / GROUP_ROWS).start..self.group_bytes(last).end
    }

    /// Returns the stored byte ranges that contain `columns`: whole chunks, one range for every group of rows.
    pub fn bytes_of_columns(&self, columns: &Range<usize>) -> Vec<Range<usize>> {
        if columns.is_empty() {
            return Vec::new();
        }
        let columns_of_chunk = CHUNK_TILES * TILE_COLS;
        let first = columns.start / columns_of_chunk * columns_of_chunk;
        let end = columns.end.next_multiple_of(columns_of_chunk).min(self.padded_cols());
        (0..self.groups())
            .map(|group| {
                let start = self.group_bytes(group).start;
                let rows = self.group_panels(group) * PANEL_ROWS;
                start + first * rows..start + end * rows
            })
            .collect()
    }

    /// Tiles a row-major `rows x cols` matrix (tests and small databases; large ones are written tile by tile).
    pub fn tile(&self, matrix: &[u8]) -> Vec<u8> {
        assert_eq!(matrix.len(), self.rows * self.cols);
        let mut out = vec![0; self.bytes()];
        for row in 0..self.rows {
            for col in (0..self.cols).step_by(TILE_COLS) {
                let run = TILE_COLS.min(self.cols - col);
                let at = self.offset(row, col);
                out[at..at + run].copy_from_slice(&matrix[row * self.cols + col..][..run]);
            }
        }
        out
    }
}

/// The bytes of a database: a memory map, or memory.
pub type DbBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A byte database in tiled layout, cheap to clone.
#[derive(Clone)]
pub struct TiledDb {
    tiling: Tiling,
    bytes: DbBytes,
}

impl TiledDb {
    /// Creates a database of shape `tiling` from stored bytes.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the length differs from [`Tiling::bytes`].
    pub fn new(tiling: Tiling, bytes: DbBytes) -> Result<Self, OpsError> {
        OpsError::check_shape(
            "tiled database",
            "byte length",
            tiling.bytes(),
            bytes.as_ref().as_ref().len(),
        )?;
        Ok(Self { tiling, bytes })
    }

    /// Creates a database from a row-major matrix (tests and small databases).
    pub fn from_matrix(rows: usize, cols: usize, matrix: &[u8]) -> Self {
        let tiling = Tiling::new(rows, cols);
        Self { tiling, bytes: Arc::new(tiling.tile(matrix)) }
    }

    /// Returns the shape.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// Returns all stored bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref().as_ref()
    }

    /// Returns a database of some rows with all columns. The bytes are shared if the rows are whole groups (or end with the last
    /// row), and copied otherwise.
    ///
    /// # Panics
    /// If the rows are not in the database.
    pub fn rows(&self, rows: Range<usize>) -> Self {
        let Tiling { rows: all, cols } = self.tiling;
        assert!(rows.start <= rows.end && rows.end <= all, "rows of the database");
        let is_whole = |row: usize| row.is_multiple_of(GROUP_ROWS) || row == all;
        if !is_whole(rows.start) || !is_whole(rows.end) {
            return self.copied(rows, 0..cols);
        }
        let tiling = Tiling::new(rows.len(), cols);
        let start = rows.start * self.tiling.padded_cols();
        let bytes = Arc::new(Slice { bytes: self.bytes.clone(), range: start..start + tiling.bytes() });
        Self { tiling, bytes: if rows.is_empty() { Arc::new([]) } else { bytes } }
    }

    /// Returns a database of some columns with all rows. The bytes are copied unless `columns` are all columns.
    ///
    /// # Panics
    /// If the columns are not in the database, or the first is not the first of a tile.
    pub fn columns(&self, columns: Range<usize>) -> Self {
        let Tiling { rows, cols } = self.tiling;
        assert!(columns.start <= columns.end && columns.end <= cols, "columns of the database");
        if columns == (0..cols) { self.clone() } else { self.copied(0..rows, columns) }
    }

    fn copied(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(columns.start.is_multiple_of(TILE_COLS), "the first column begins a tile");
        let from = self.tiling;
        let tiling = Tiling::new(rows.len(), columns.len());
        let mut bytes = vec![0; tiling.bytes()];
        for row in 0..tiling.rows {
            for col in (0..tiling.cols).step_by(TILE_COLS) {
                let run = TILE_COLS.min(tiling.cols - col);
                let at = from.offset(rows.start + row, columns.start + col);
                let to = tiling.offset(row, col);
                bytes[to..to + run].copy_from_slice(&self.bytes()[at..at + run]);
            }
        }
        Self { tiling, bytes: Arc::new(bytes) }
    }

    /// Returns the byte at (`row`, `col`), as the s8 that the steps read.
    pub fn at(&self, row: usize, col: usize) -> i8 {
        self.bytes()[self.tiling.offset(row, col)] as i8
    }
}

impl AsRef<[u8]> for TiledDb {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// A range of the bytes of a database.
struct Slice {
    bytes: DbBytes,
    range: Range<usize>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.bytes.as_ref().as_ref()[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_bytes_of_their_rows_and_columns() {
        let rows = 1300;
        let cols = 200;
        let matrix: Vec<u8> = (0..rows * cols).map(|index| (index % 251) as u8).collect();
        let db = TiledDb::from_matrix(rows, cols, &matrix);
        let equal = |part: &TiledDb, first_row: usize, first_col: usize| {
            let rows = part.tiling().rows();
            let cols = part.tiling().cols();
            let all = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
            all.into_iter().all(|(row, col)| part.at(row, col) == db.at(first_row + row, first_col + col))
                && part.bytes().len() == part.tiling().bytes()
        };
        for (start, end) in
            [(0, 1300), (0, 512), (512, 1300), (1024, 1300), (3, 700), (1299, 1300), (5, 5), (1300, 1300)]
        {
            let part = db.rows(start..end);
            assert_eq!(part.tiling(), Tiling::new(end - start, cols));
            assert!(equal(&part, start, 0), "{start}..{end}");
        }
        for (start, end) in [(0, 200), (0, 64), (64, 200), (128, 129), (64, 64)] {
            let part = db.columns(start..end);
            assert_eq!(part.tiling(), Tiling::new(rows, end - start));
            assert!(equal(&part, 0, start), "{start}..{end}");
        }
    }

    #[test]
    fn all_bytes_of_rows_and_columns_are_named() {
        for (rows, cols) in [(1, 1), (33, 65), (513, 577), (1100, 1300)] {
            let tiling = Tiling::new(rows, cols);
            let mut cuts = vec![0, 1, 40, 512, 513, 600, 1024, 1100, rows.min(cols)];
            cuts.retain(|&cut| cut <= rows.min(cols));
            for (start, end) in
                cuts.iter().flat_map(|&start| cuts.iter().map(move |&end| (start, end.max(start))))
            {
                let named = tiling.bytes_of_rows(&(start..end));
                let of_rows = (start..end).flat_map(|row| (0..cols).map(move |col| (row, col)));
                assert!(of_rows.into_iter().all(|(row, col)| named.contains(&tiling.offset(row, col))));
                assert!(named.len() <= (end - start + 2 * GROUP_ROWS) * tiling.padded_cols());
                let named = tiling.bytes_of_columns(&(start..end));
                let is_named = |at| named.iter().any(|range| range.contains(&at));
                let of_columns = (0..rows).step_by(7).flat_map(|row| (start..end).map(move |col| (row, col)));
                assert!(of_columns.into_iter().all(|(row, col)| is_named(tiling.offset(row, col))));
                assert!(named.iter().all(|range| range.end <= tiling.bytes()));
            }
        }
    }

    #[test]
    fn every_byte_has_its_own_place() {
        for (rows, cols) in [(1, 1), (32, 64), (33, 65), (512, 512), (513, 577), (1100, 1300), (70, 5000)] {
            let tiling = Tiling::new(rows, cols);
            let mut seen = vec![false; tiling.bytes()];
            for row in 0..tiling.padded_rows() {
                for col in 0..tiling.padded_cols() {
                    assert!(!std::mem::replace(&mut seen[tiling.offset(row, col)], true));
                }
            }
            assert!(seen.iter().all(|&s| s));
        }
    }
}
