//! Writes polynomials into a tiled database of ring elements, from many threads.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use hush_ops::ntt_tiling::{GROUP_SLOTS, MAX_TILE_WIDTH, NttTiling};

/// A tiled database of ring elements being filled. Polynomials go in by tiles of columns, from any thread.
///
/// The residues are shared as relaxed atomic words, which compile to plain stores. Writers of different tiles or rows never touch
/// the same word. If a caller got that wrong, the result would be wrong residues, not undefined behaviour.
pub struct NttTileWriter<'a> {
    tiling: NttTiling,
    words: RowWords<'a>,
}

/// The database as the largest words that lie within one row.
enum RowWords<'a> {
    /// Words of one residue, for tiles of one column.
    Single(&'a [AtomicU32]),
    /// Words of two residues: of two neighbouring columns.
    Pairs(&'a [AtomicU64]),
}

impl<'a> NttTileWriter<'a> {
    /// Creates a writer into `bytes`.
    ///
    /// # Panics
    /// If the length is not that of the tiling, or the bytes are not aligned to 8 (a memory map is).
    pub fn new(tiling: NttTiling, bytes: &'a mut [u8]) -> Self {
        assert_eq!(bytes.len(), tiling.bytes());
        // SAFETY of both: an atomic word has the size and validity of its bytes. The exclusive borrow of the bytes lasts as long
        // as the shared one of the result, and all words have one size. `align_to_mut` splits the bytes where alignment requires
        // it; the assertion below checks that it does not.
        let (head, words, tail) = if tiling.tile_width() == 1 {
            // SAFETY: see above.
            let (head, words, tail) = unsafe { bytes.align_to_mut() };
            (head, RowWords::Single(words), tail)
        } else {
            // SAFETY: see above.
            let (head, words, tail) = unsafe { bytes.align_to_mut() };
            (head, RowWords::Pairs(words), tail)
        };
        assert!(head.is_empty() && tail.is_empty(), "an aligned buffer");
        Self { tiling, words }
    }

    /// Returns the shape of the database.
    pub fn tiling(&self) -> NttTiling {
        self.tiling
    }

    /// Writes the polynomials of `rows` in the columns of tile `tile`. `polys` are canonical residues in the order
    /// `[row of rows][real column of the tile][limb][slot]`. Padding columns become zeros.
    ///
    /// Writing many rows at a time is fastest: the database is written in runs of 4 bytes for each row and column of a tile.
    ///
    /// # Panics
    /// If the tile or rows are outside the database, or the number of polynomials differs.
    pub fn write(&self, tile: usize, rows: Range<usize>, polys: &[u32]) {
        let columns = self.tiling.tile_columns(tile);
        assert!(!columns.is_empty() && rows.end <= self.tiling.rows());
        assert_eq!(polys.len(), rows.len() * columns.len() * self.tiling.poly_words());
        let poly_words = self.tiling.poly_words();
        for first in (0..poly_words).step_by(GROUP_SLOTS) {
            let limb = first / self.tiling.degree();
            let slot = first % self.tiling.degree();
            for (row, polys) in rows.clone().zip(polys.chunks_exact(columns.len() * poly_words)) {
                let mut block = [[0u32; GROUP_SLOTS]; MAX_TILE_WIDTH];
                for (line, poly) in block.iter_mut().zip(polys.chunks_exact(poly_words)) {
                    line.copy_from_slice(&poly[first..first + GROUP_SLOTS]);
                }
                self.write_block(self.tiling.offset(limb, slot, row, columns.start), &block);
            }
        }
    }

    /// Writes a group of slots of a row of a tile. `at` is the index of the first slot's residue in the database.
    fn write_block(&self, at: usize, block: &[[u32; GROUP_SLOTS]; MAX_TILE_WIDTH]) {
        let rows = self.tiling.rows();
        let width = self.tiling.tile_width();
        for slot in 0..GROUP_SLOTS {
            match self.words {
                RowWords::Single(words) => words[at + slot * rows].store(block[0][slot].to_le(), Relaxed),
                RowWords::Pairs(words) => {
                    let line = &words[(at + slot * rows * width) / 2..][..width / 2];
                    for (word, pair) in line.iter().zip(block.chunks_exact(2)) {
                        let [low, high] = [pair[0][slot], pair[1][slot]];
                        word.store((u64::from(low) | u64::from(high) << 32).to_le(), Relaxed);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_definition() {
        for (degree, limbs, rows, columns, step) in
            [(64, 2, 5, 40, 2), (32, 3, 16, 16, 16), (16, 2, 33, 17, 16)]
                .into_iter()
                .chain((1..10).map(|columns| (32, 2, 7, columns, 3)))
        {
            let tiling = NttTiling::new(degree, limbs, rows, columns).expect("whole groups");
            let words = tiling.poly_words();
            let polys: Vec<u32> =
                (0..rows * columns * words).map(|i| (i as u32).wrapping_mul(2_654_435_769)).collect();
            let mut stored = vec![u64::MAX; tiling.bytes() / 8];
            // SAFETY: plain data of the same size.
            let bytes = unsafe { stored.align_to_mut::<u8>().1 };
            let writer = NttTileWriter::new(tiling, bytes);
            for tile in 0..tiling.tiles() {
                let real = tiling.tile_columns(tile);
                for first in (0..rows).step_by(step) {
                    let run = first..rows.min(first + step);
                    let part = run.clone().flat_map(|row| {
                        polys[(row * columns + real.start) * words..][..real.len() * words].to_vec()
                    });
                    writer.write(tile, run, &part.collect::<Vec<_>>());
                }
            }
            assert_eq!(bytes, tiling.tile(&polys), "N = {degree}, {limbs} limbs, {rows} x {columns}");
        }
    }
}
