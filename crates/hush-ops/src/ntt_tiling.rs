//! The layout of a database of ring elements in evaluation (NTT) form, ordered for one streaming pass.
//!
//! A database of `rows x columns` polynomials of degree N modulo some limbs is stored as little-endian canonical
//! residues of 32 bits, in the order
//! `[limb][group of 16 slots][tile of columns][slot of the group][row][column of the tile]`,
//! where a slot is a coefficient of the NTT. A tile has 16 columns; a database of at most 8 columns is one tile as
//! wide as the next power of two. Columns are padded to whole tiles with zeros; nothing else is padded. The fold of
//! the rows is a product of matrices modulo the limb, separate for every slot. A chunk (one limb, group and tile) is
//! contiguous, and its slots are read one after another. 16 rows of a slot in a tile of 16 columns are 1 KiB that serves
//! unchanged as an AMX B operand: row k holds 4 bytes of each column. With sixteen slots a group, the results of a chunk
//! are whole cache lines of the folded polynomials.

use std::{ops::Range, sync::Arc};

use crate::{OpsError, tiling::DbBytes};

/// The slots in a group. N is a multiple of it.
pub const GROUP_SLOTS: usize = 16;
/// The largest number of columns in a tile. All tiles of a database with more than 8 columns have this width.
pub const MAX_TILE_WIDTH: usize = 16;
/// The largest number of rows. A sum of the low 52 bits of this many products is below 2^63, which leaves the kernels one
/// bit to add the high parts.
pub const MAX_ROWS: usize = 2048;
/// The alignment of a database in memory, in bytes.
pub const ALIGNMENT: usize = 64;

/// The shape of a tiled database of ring elements and the position of every residue in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NttTiling {
    degree: usize,
    limbs: usize,
    rows: usize,
    columns: usize,
    tile_width: usize,
}

impl NttTiling {
    /// Creates a tiling of `rows x columns` polynomials of `degree` coefficients modulo each of `limbs` primes.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the degree is not a multiple of [`GROUP_SLOTS`], or there are more than [`MAX_ROWS`] rows.
    pub fn new(degree: usize, limbs: usize, rows: usize, columns: usize) -> Result<Self, OpsError> {
        let whole = degree / GROUP_SLOTS * GROUP_SLOTS;
        OpsError::check_shape("tiled NTT database", "degree", whole, degree)?;
        OpsError::check_shape("tiled NTT database", "number of rows", rows.min(MAX_ROWS), rows)?;
        let tile_width = columns.next_power_of_two().min(MAX_TILE_WIDTH);
        Ok(Self { degree, limbs, rows, columns, tile_width })
    }

    /// Returns the tiling of tile `tile` alone, with the same tile width: its chunks one after another.
    ///
    /// # Panics
    /// If `tile` is not below [`NttTiling::tiles`].
    pub fn single_tile(&self, tile: usize) -> Self {
        assert!(tile < self.tiles());
        Self { columns: self.tile_columns(tile).len(), ..*self }
    }

    /// Returns the slots of a polynomial (N).
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the number of limbs.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// Returns the number of rows (D0): the dimension that is folded.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns, without padding.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the residues of one polynomial, over all limbs.
    pub fn poly_words(&self) -> usize {
        self.limbs * self.degree
    }

    /// Returns the groups of slots in a polynomial modulo one limb.
    pub fn groups(&self) -> usize {
        self.degree / GROUP_SLOTS
    }

    /// Returns the columns of a tile, padding included: 1, 2, 4, 8 or 16.
    pub fn tile_width(&self) -> usize {
        self.tile_width
    }

    /// Returns the number of tiles.
    pub fn tiles(&self) -> usize {
        self.columns.div_ceil(self.tile_width)
    }

    /// Returns the columns of tile `tile`, without padding.
    pub fn tile_columns(&self, tile: usize) -> Range<usize> {
        tile * self.tile_width..self.columns.min((tile + 1) * self.tile_width)
    }

    /// Returns the words (of 4 bytes) of one chunk: a group of slots of a tile of columns, modulo one limb.
    pub fn chunk_words(&self) -> usize {
        GROUP_SLOTS * self.rows * self.tile_width
    }

    /// Returns the words of all tiles of one group of slots modulo one limb, which are contiguous.
    pub fn group_words(&self) -> usize {
        self.tiles() * self.chunk_words()
    }

    /// Returns the stored byte ranges that contain some ranges of columns: whole tiles, for each range once in every group of
    /// slots.
    pub fn bytes_of_columns(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let tile_bytes = size_of::<u32>() * self.chunk_words();
        let group_bytes = size_of::<u32>() * self.group_words();
        let tiles = |range: &Range<usize>| range.start / self.tile_width..range.end.div_ceil(self.tile_width);
        let tiles: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).map(tiles).collect();
        (0..self.limbs * self.groups())
            .flat_map(|group: usize| {
                tiles.iter().map(move |tiles: &Range<usize>| {
                    group * group_bytes + tiles.start * tile_bytes
                        ..group * group_bytes + tiles.end * tile_bytes
                })
            })
            .collect()
    }

    /// Returns the bytes of the stored database.
    pub fn bytes(&self) -> usize {
        size_of::<u32>() * self.limbs * self.groups() * self.group_words()
    }

    /// Returns the bytes of the stored database as a `u64`, for a table on another machine that may exceed this one's memory.
    pub fn stored_bytes(&self) -> u64 {
        let columns = self.tiles() as u64 * self.tile_width as u64;
        size_of::<u32>() as u64 * self.poly_words() as u64 * self.rows as u64 * columns
    }

    /// Returns the bytes that a query needs for a fold of the rows: a ciphertext of two polynomials for every row (a selector)
    /// and for every column (a result).
    pub fn fold_bytes(&self) -> usize {
        (self.rows + self.columns) * 2 * size_of::<u32>() * self.poly_words()
    }

    /// Returns the position, in words, of the residue of (`row`, `column`) at `slot` modulo limb number `limb`. The columns
    /// of a tile are contiguous, and so are the rows of a slot.
    pub fn offset(&self, limb: usize, slot: usize, row: usize, column: usize) -> usize {
        (limb * self.groups() + slot / GROUP_SLOTS) * self.group_words()
            + column / self.tile_width * self.chunk_words()
            + (slot % GROUP_SLOTS * self.rows + row) * self.tile_width
            + column % self.tile_width
    }

    /// Tiles polynomials in the order `[row][column][limb][slot]` (tests and small databases; large ones are written
    /// tile by tile).
    ///
    /// # Panics
    /// If the number of words is not that of `rows x columns` polynomials.
    pub fn tile(&self, polys: &[u32]) -> Vec<u8> {
        assert_eq!(polys.len(), self.rows * self.columns * self.poly_words());
        let mut out = vec![0; self.bytes()];
        for (poly, words) in polys.chunks_exact(self.poly_words().max(1)).enumerate() {
            let row = poly / self.columns;
            let column = poly % self.columns;
            for (word, residue) in words.iter().enumerate() {
                let at = 4 * self.offset(word / self.degree, word % self.degree, row, column);
                out[at..at + 4].copy_from_slice(&residue.to_le_bytes());
            }
        }
        out
    }
}

/// A tiled database of ring elements, cheap to clone.
#[derive(Clone)]
pub struct NttTiledDb {
    tiling: NttTiling,
    bytes: DbBytes,
}

impl NttTiledDb {
    /// Creates a database of shape `tiling` from stored bytes. Residues must be canonical: others give wrong results.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the length differs from [`NttTiling::bytes`], or a database that is not empty does not
    /// begin at a multiple of [`ALIGNMENT`] bytes.
    pub fn new(tiling: NttTiling, bytes: DbBytes) -> Result<Self, OpsError> {
        let step = "tiled NTT database";
        let stored: &[u8] = bytes.as_ref().as_ref();
        OpsError::check_shape(step, "byte length", tiling.bytes(), stored.len())?;
        let misaligned = if stored.is_empty() { 0 } else { stored.as_ptr().addr() % ALIGNMENT };
        OpsError::check_shape(step, "bytes beyond an aligned address", 0, misaligned)?;
        Ok(Self { tiling, bytes })
    }

    /// Creates a database from polynomials in the order `[row][column][limb][slot]` (tests and small databases).
    ///
    /// # Panics
    /// If the number of words is not that of the polynomials of `tiling`.
    pub fn from_polys(tiling: NttTiling, polys: &[u32]) -> Self {
        let bytes = AlignedBytes::new(&tiling.tile(polys));
        Self::new(tiling, Arc::new(bytes)).expect("aligned bytes of the tiling's length")
    }

    /// Returns the shape.
    pub fn tiling(&self) -> NttTiling {
        self.tiling
    }

    /// Returns all stored bytes, which begin at a multiple of [`ALIGNMENT`] bytes unless they are empty.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref().as_ref()
    }

    /// Returns a database of the columns of some ranges, one after another. The bytes are copied unless the range is all columns.
    ///
    /// # Panics
    /// If a range is not within the database's columns.
    pub fn columns(&self, ranges: &[Range<usize>]) -> Self {
        let from = self.tiling;
        if *ranges == [0..from.columns] {
            return self.clone();
        }
        let columns: Vec<usize> = ranges.iter().cloned().flatten().collect();
        let tiling = NttTiling::new(from.degree, from.limbs, from.rows, columns.len()).expect("as before");
        let mut bytes = vec![0; tiling.bytes()];
        for (limb, slot) in (0..from.limbs).flat_map(|limb| (0..from.degree).map(move |slot| (limb, slot))) {
            for (row, (to, &column)) in
                (0..from.rows).flat_map(|row| columns.iter().enumerate().map(move |c| (row, c)))
            {
                let at = 4 * from.offset(limb, slot, row, column);
                let to = 4 * tiling.offset(limb, slot, row, to);
                bytes[to..to + 4].copy_from_slice(&self.bytes()[at..at + 4]);
            }
        }
        Self { tiling, bytes: Arc::new(AlignedBytes::new(&bytes)) }
    }

    /// Returns the residue of (`row`, `column`) at `slot` modulo limb number `limb`.
    pub fn at(&self, limb: usize, slot: usize, row: usize, column: usize) -> u32 {
        let at = 4 * self.tiling.offset(limb, slot, row, column);
        let bytes = &self.bytes()[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

impl AsRef<[u8]> for NttTiledDb {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// A byte string that begins at a multiple of [`ALIGNMENT`].
struct AlignedBytes {
    padded: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    fn new(bytes: &[u8]) -> Self {
        let mut padded = vec![0; bytes.len() + ALIGNMENT - 1];
        let start = padded.as_ptr().addr().next_multiple_of(ALIGNMENT) - padded.as_ptr().addr();
        padded[start..start + bytes.len()].copy_from_slice(bytes);
        Self { padded, start, len: bytes.len() }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.padded[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_residues_of_their_columns() {
        let tiling = NttTiling::new(32, 2, 3, 20).unwrap();
        let polys: Vec<u32> = (0..3 * 20 * tiling.poly_words() as u32).collect();
        let db = NttTiledDb::from_polys(tiling, &polys);
        for ranges in [&[0..20][..], &[0..3, 17..20], &[5..6], &[4..4]] {
            let (part, columns) = (db.columns(ranges), ranges.iter().cloned().flatten().collect::<Vec<_>>());
            assert_eq!(part.tiling(), NttTiling::new(32, 2, 3, columns.len()).unwrap());
            for (to, column) in columns.into_iter().enumerate() {
                for (limb, slot, row) in [(0, 0, 0), (1, 31, 2), (0, 17, 1)] {
                    assert_eq!(part.at(limb, slot, row, to), db.at(limb, slot, row, column));
                }
            }
        }
    }

    #[test]
    fn all_bytes_of_columns_are_named() {
        let tiling = NttTiling::new(32, 2, 3, 37).unwrap();
        for ranges in [&[0..37][..], &[0..3, 17..20], &[5..6], &[16..32], &[4..4]] {
            let named = tiling.bytes_of_columns(ranges);
            for column in ranges.iter().cloned().flatten() {
                for (limb, slot, row) in [(0, 0, 0), (1, 31, 2), (0, 17, 1)] {
                    let at = 4 * tiling.offset(limb, slot, row, column);
                    assert!(named.iter().any(|range| range.contains(&at)));
                }
            }
            assert!(named.iter().all(|range| range.end <= tiling.bytes()));
        }
        assert_eq!(
            tiling.bytes_of_columns(&[5..6]).iter().map(Range::len).sum::<usize>(),
            tiling.bytes() / 3
        );
    }

    #[test]
    fn every_residue_has_its_own_place() {
        for (degree, limbs, rows, columns) in [
            (16, 1, 1, 1),
            (32, 2, 3, 17),
            (64, 3, 16, 32),
            (16, 2, 5, 0),
            (32, 2, 3, 2),
            (32, 1, 5, 3),
            (16, 2, 4, 7),
            (16, 1, 3, 9),
        ] {
            let tiling = NttTiling::new(degree, limbs, rows, columns).expect("whole groups");
            let mut seen = vec![false; tiling.bytes() / 4];
            for limb in 0..limbs {
                for slot in 0..degree {
                    for row in 0..rows {
                        for column in 0..tiling.tiles() * tiling.tile_width() {
                            let at = tiling.offset(limb, slot, row, column);
                            assert!(!std::mem::replace(&mut seen[at], true));
                        }
                    }
                }
            }
            assert!(seen.iter().all(|&s| s));
        }
    }

    #[test]
    fn residues_are_found_where_they_were_put() {
        for (columns, padded) in [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16), (17, 32)] {
            let tiling = NttTiling::new(32, 2, 3, columns).expect("whole groups");
            assert_eq!(tiling.bytes(), 4 * 3 * padded * 64);
            let polys: Vec<u32> = (0..(3 * columns * tiling.poly_words()) as u32)
                .map(|i| i.wrapping_mul(77_777).wrapping_add(1))
                .collect();
            let db = NttTiledDb::from_polys(tiling, &polys);
            for (index, &residue) in polys.iter().enumerate() {
                let poly = index / 64;
                let word = index % 64;
                assert_eq!(db.at(word / 32, word % 32, poly / columns, poly % columns), residue);
            }
            assert!((columns..padded).all(|column| db.at(1, 31, 2, column) == 0), "padding");
        }
    }

    #[test]
    fn a_single_tile_is_as_wide_as_in_its_database() {
        let tiling = NttTiling::new(32, 2, 3, 17).expect("whole groups");
        let tile = tiling.single_tile(1);
        assert_eq!((tile.columns(), tile.tiles(), tile.tile_width()), (1, 1, 16));
        assert_eq!(tile.chunk_words(), tiling.chunk_words());
        assert_eq!(tile.bytes(), tiling.bytes() / 2);
        let narrow = NttTiling::new(32, 2, 3, 5).expect("whole groups");
        assert_eq!(narrow.single_tile(0), narrow);
    }

    #[test]
    fn wrong_shapes_are_refused() {
        assert!(NttTiling::new(24, 1, 1, 1).is_err());
        assert!(NttTiling::new(16, 1, MAX_ROWS + 1, 1).is_err());
        let tiling = NttTiling::new(16, 1, 2, 3).expect("whole groups");
        let aligned = |len: usize| AlignedBytes::new(&vec![0; len]);
        assert!(NttTiledDb::new(tiling, Arc::new(aligned(tiling.bytes()))).is_ok());
        assert!(NttTiledDb::new(tiling, Arc::new(aligned(tiling.bytes() - 4))).is_err());
        let mut shifted = aligned(tiling.bytes() + 4);
        (shifted.start, shifted.len) = (shifted.start + 4, shifted.len - 4);
        assert!(NttTiledDb::new(tiling, Arc::new(shifted)).is_err());
        let empty = NttTiling::new(16, 1, 0, 3).expect("whole groups");
        assert!(NttTiledDb::new(empty, Arc::new(Vec::new())).is_ok());
    }
}
