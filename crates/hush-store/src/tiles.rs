//! Writes slots into a tiled byte database, from many threads.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use hush_ops::tiling::{TILE_COLS, Tiling};

/// A tiled database being filled. Slots go in by columns of tiles, from any thread.
///
/// The bytes are shared as relaxed atomic words, which compile to plain stores. Writers of different tiles never touch the same
/// word. If a caller got that wrong, the result would be wrong bytes, not undefined behaviour.
pub struct TileWriter<'a> {
    tiling: Tiling,
    words: &'a [AtomicU64],
}

impl<'a> TileWriter<'a> {
    /// Creates a writer into `bytes`, whose padding must be zero: it is never written.
    ///
    /// # Panics
    /// If the length is not that of the tiling, or the bytes are not aligned to 8 (a memory map is).
    pub fn new(tiling: Tiling, bytes: &'a mut [u8]) -> Self {
        assert_eq!(bytes.len(), tiling.bytes());
        // SAFETY: AtomicU64 has the size and validity of eight bytes. The result's shared borrow is derived from the exclusive
        // borrow of the bytes and lasts as long, so that nothing else reads or writes them. `align_to_mut` splits the bytes where
        // alignment requires it; the assertion below checks that it does not.
        let (head, words, tail) = unsafe { bytes.align_to_mut::<AtomicU64>() };
        assert!(head.is_empty() && tail.is_empty(), "an aligned buffer");
        Self { tiling, words }
    }

    /// Returns the shape of the database.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// Writes whole rows, one after another, starting at `first_row`. The database must have whole tiles of columns.
    ///
    /// # Panics
    /// If the last tile is not whole, or the rows are outside the database.
    pub fn write_rows(&self, first_row: usize, rows: &[u8]) {
        let cols = self.tiling.cols();
        assert!(cols.is_multiple_of(TILE_COLS) && rows.len().is_multiple_of(cols));
        assert!(first_row + rows.len() / cols <= self.tiling.rows());
        for (row, bytes) in (first_row..).zip(rows.chunks_exact(cols)) {
            for (tile, run) in bytes.chunks_exact(TILE_COLS).enumerate() {
                let at = self.tiling.offset(row, tile * TILE_COLS) / 8;
                for (word, value) in self.words[at..at + TILE_COLS / 8].iter().zip(run.as_chunks().0) {
                    word.store(u64::from_le_bytes(*value), Relaxed);
                }
            }
        }
    }

    /// Returns the present content of whole rows, one after another. The database must have whole tiles of columns.
    ///
    /// # Panics
    /// If the last tile is not whole, or the rows are outside the database.
    pub fn read_rows(&self, rows: Range<usize>) -> Vec<u8> {
        assert!(self.tiling.cols().is_multiple_of(TILE_COLS) && rows.end <= self.tiling.rows());
        let mut bytes = Vec::with_capacity(rows.len() * self.tiling.cols());
        for row in rows {
            for col in (0..self.tiling.cols()).step_by(TILE_COLS) {
                let at = self.tiling.offset(row, col) / 8;
                for word in &self.words[at..at + TILE_COLS / 8] {
                    bytes.extend(word.load(Relaxed).to_le_bytes());
                }
            }
        }
        bytes
    }

    /// Writes slots in the columns of tile `tile`. `slots` holds up to 64 slots of `size` bytes, one after another. Byte `i` of a
    /// slot goes to row `first_row + i`.
    ///
    /// # Panics
    /// If the rows or columns are outside the database.
    pub fn write(&self, first_row: usize, tile: usize, slots: &[u8], size: usize) {
        let count = slots.len() / size;
        let first_col = tile * TILE_COLS;
        assert!(count <= TILE_COLS && count * size == slots.len());
        assert!(first_row + size <= self.tiling.rows() && first_col + count <= self.tiling.cols());
        let mut run = [0u64; TILE_COLS];
        for rows in (0..size).step_by(8) {
            let width = 8.min(size - rows);
            // Eight rows of 64 columns: column group g of row r is word `8 r + g`.
            for group in 0..count.div_ceil(8) {
                let mut block = [0u64; 8];
                for (lane, word) in block.iter_mut().enumerate().take(count - (8 * group).min(count)) {
                    let at = (8 * group + lane) * size + rows;
                    let mut bytes = [0; 8];
                    bytes[..width].copy_from_slice(&slots[at..at + width]);
                    *word = u64::from_le_bytes(bytes);
                }
                transpose(&mut block);
                for (row, word) in block.into_iter().enumerate() {
                    run[8 * row + group] = word;
                }
            }
            for row in 0..width {
                let at = self.tiling.offset(first_row + rows + row, first_col) / 8;
                for (word, value) in self.words[at..at + 8].iter().zip(&run[8 * row..]) {
                    word.store(*value, Relaxed);
                }
            }
        }
    }
}

/// Transposes an 8 x 8 matrix of bytes, with one row in each word.
fn transpose(m: &mut [u64; 8]) {
    for (distance, mask) in
        [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)]
    {
        let shift = 8 * distance;
        for i in (0..8).filter(|i| i & distance == 0) {
            let swap = ((m[i] >> shift) ^ m[i + distance]) & mask;
            m[i] ^= swap << shift;
            m[i + distance] ^= swap;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_definition() {
        for (size, cols, blocks) in
            [(1, 1, 3), (3, 12, 2), (14, 70, 5), (9, 64, 1), (40, 130, 33), (1032, 65, 2)]
        {
            let tiling = Tiling::new(size * blocks, cols);
            let slot = |block: usize, col: usize, byte: usize| (block * 31 + col * 7 + byte * 3) as u8;
            let mut matrix = Vec::new();
            for row in 0..tiling.rows() {
                matrix.extend((0..cols).map(|col| slot(row / size, col, row % size)));
            }
            let mut words = vec![0u64; tiling.bytes() / 8];
            // SAFETY: plain data of the same size.
            let bytes = unsafe { words.align_to_mut::<u8>().1 };
            let writer = TileWriter::new(tiling, bytes);
            for block in 0..blocks {
                for tile in 0..tiling.tiles() {
                    let columns = tile * TILE_COLS..cols.min((tile + 1) * TILE_COLS);
                    let slots: Vec<u8> =
                        columns.flat_map(|col| (0..size).map(move |byte| slot(block, col, byte))).collect();
                    writer.write(block * size, tile, &slots, size);
                }
            }
            assert_eq!(bytes, tiling.tile(&matrix), "{size} x {cols} x {blocks}");
        }
    }

    #[test]
    fn whole_rows_land_where_the_definition_has_them() {
        let tiling = Tiling::new(700, 640);
        let matrix: Vec<u8> = (0..700 * 640).map(|i: usize| (i * 7 + i / 640) as u8).collect();
        let mut words = vec![0u64; tiling.bytes() / 8];
        // SAFETY: u64 has no padding.
        let bytes = unsafe { words.align_to_mut::<u8>().1 };
        let writer = TileWriter::new(tiling, bytes);
        for (first, last) in [(0, 513), (513, 514), (514, 700)] {
            writer.write_rows(first, &matrix[first * 640..last * 640]);
            assert_eq!(writer.read_rows(first..last), matrix[first * 640..last * 640]);
        }
        assert_eq!(bytes, tiling.tile(&matrix));
    }
}
