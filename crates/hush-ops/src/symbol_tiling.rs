//! The layout of a database of ring elements as symbols: as long as the records, and transformed at the time of a fold.
//!
//! A database of `rows x columns` plaintexts of N symbols of k bits is stored column after column, and each column row after row.
//! A plaintext is `W = N k / 32` little-endian words. Word w holds the symbols `w, w + W, w + 2 W, ..`, lowest bits first, so
//! that one shift turns a vector of words into a vector of symbols.

use std::{ops::Range, sync::Arc};

use crate::{OpsError, ntt_tiling::NttTiling, tiling::DbBytes};

/// The bits of a word: a multiple of the bits of a symbol.
const WORD_BITS: u32 = u32::BITS;

/// The shape of a database of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTiling {
    degree: usize,
    bits: u32,
    rows: usize,
    columns: usize,
}

impl SymbolTiling {
    /// Creates the shape of `rows x columns` plaintexts of `degree` symbols of `bits` bits.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if a word is not a whole number of symbols, or a plaintext not a whole number of words.
    pub fn new(degree: usize, bits: u32, rows: usize, columns: usize) -> Result<Self, OpsError> {
        let step = "symbol database";
        let whole = if bits > 0 && WORD_BITS.is_multiple_of(bits) { bits } else { 1 };
        OpsError::check_shape(step, "bits of a symbol", whole as usize, bits as usize)?;
        let symbols = (WORD_BITS / bits) as usize;
        OpsError::check_shape(step, "degree", degree / symbols * symbols, degree)?;
        Ok(Self { degree, bits, rows, columns })
    }

    /// Returns the symbols of a plaintext (N).
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the bits of a symbol.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of rows (D0): the dimension that is folded.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the words of a plaintext.
    pub fn plaintext_words(&self) -> usize {
        self.degree * self.bits as usize / WORD_BITS as usize
    }

    /// Returns the bytes of a plaintext.
    pub fn plaintext_bytes(&self) -> usize {
        size_of::<u32>() * self.plaintext_words()
    }

    /// Returns the bytes of the stored database.
    pub fn bytes(&self) -> usize {
        self.plaintext_bytes() * self.rows * self.columns
    }

    /// Returns the bytes of the stored database as a `u64`, for a table on another machine that may exceed this one's memory.
    pub fn stored_bytes(&self) -> u64 {
        self.plaintext_bytes() as u64 * self.rows as u64 * self.columns as u64
    }

    /// Returns the tiling of the largest part when the columns are divided into `parts` parts.
    pub fn part(&self, parts: usize) -> Self {
        self.of_columns(self.columns.div_ceil(parts))
    }

    /// Returns the tiling of `columns` columns.
    pub fn of_columns(&self, columns: usize) -> Self {
        Self { columns, ..*self }
    }

    /// Returns the tiling of the same database in evaluation form, modulo `limbs` primes. Fails like [`NttTiling::new`].
    pub fn evaluated(&self, limbs: usize) -> Result<NttTiling, OpsError> {
        NttTiling::new(self.degree, limbs, self.rows, self.columns)
    }

    /// Returns the position of a plaintext, in bytes.
    pub fn offset(&self, row: usize, column: usize) -> usize {
        (column * self.rows + row) * self.plaintext_bytes()
    }

    /// Returns the stored byte range of each range of columns.
    pub fn bytes_of_columns(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        ranges.iter().map(|range| self.offset(0, range.start)..self.offset(0, range.end)).collect()
    }

    /// Packs the symbols of a plaintext into `out`, ignoring bits above the width of a symbol.
    ///
    /// # Panics
    /// If there are not N symbols, or `out` is not as long as a plaintext.
    pub fn pack(&self, symbols: &[u32], out: &mut [u8]) {
        assert_eq!((symbols.len(), out.len()), (self.degree, self.plaintext_bytes()));
        let words = self.plaintext_words();
        let mask = u32::MAX >> (WORD_BITS - self.bits);
        for (at, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            let shifts = (0..WORD_BITS).step_by(self.bits as usize);
            let parts = symbols[at..].iter().step_by(words).zip(shifts);
            *out = parts.fold(0, |word, (symbol, shift)| word | (symbol & mask) << shift).to_le_bytes();
        }
    }

    /// Returns the symbols of a plaintext.
    ///
    /// # Panics
    /// If `bytes` is not as long as a plaintext.
    pub fn unpack(&self, bytes: &[u8]) -> Vec<u32> {
        assert_eq!(bytes.len(), self.plaintext_bytes());
        let words = bytes.as_chunks().0;
        let mask = u32::MAX >> (WORD_BITS - self.bits);
        let shifts = (0..WORD_BITS).step_by(self.bits as usize);
        shifts
            .flat_map(|shift| words.iter().map(move |&word| u32::from_le_bytes(word) >> shift & mask))
            .collect()
    }
}

/// A database of symbols, or some of its columns. Cheap to clone.
#[derive(Clone)]
pub struct SymbolDb {
    /// The shape of the columns in this value.
    tiling: SymbolTiling,
    /// The columns of the stored bytes that are in this value, in order.
    columns: Vec<Range<usize>>,
    bytes: DbBytes,
}

impl SymbolDb {
    /// Creates a database of shape `tiling` from stored bytes. Fails with [`OpsError::Shape`] if their length is not
    /// [`SymbolTiling::bytes`].
    pub fn new(tiling: SymbolTiling, bytes: DbBytes) -> Result<Self, OpsError> {
        OpsError::check_shape("symbol database", "byte length", tiling.bytes(), (*bytes).as_ref().len())?;
        let all = 0..tiling.columns;
        Ok(Self { tiling, columns: vec![all], bytes })
    }

    /// Creates a database from symbols in the order `[row][column][symbol]` (tests and small databases).
    ///
    /// # Panics
    /// If the number of symbols is not that of `tiling`.
    pub fn from_symbols(tiling: SymbolTiling, symbols: &[u32]) -> Self {
        assert_eq!(symbols.len(), tiling.rows * tiling.columns * tiling.degree);
        let mut bytes = vec![0; tiling.bytes()];
        for (index, symbols) in symbols.chunks_exact(tiling.degree).enumerate() {
            let at = tiling.offset(index / tiling.columns, index % tiling.columns);
            tiling.pack(symbols, &mut bytes[at..at + tiling.plaintext_bytes()]);
        }
        Self::new(tiling, Arc::new(bytes)).expect("as long as the tiling says")
    }

    /// Returns the shape.
    pub fn tiling(&self) -> SymbolTiling {
        self.tiling
    }

    /// Returns all bytes as they are stored, even if this value has only some of the columns.
    pub fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// Returns the bytes of a plaintext.
    ///
    /// # Panics
    /// If the row or the column is not below its number.
    pub fn plaintext(&self, row: usize, column: usize) -> &[u8] {
        &self.bytes()[self.tiling.offset(row, self.stored(column))..][..self.tiling.plaintext_bytes()]
    }

    /// Returns the bytes of a column, row after row.
    ///
    /// # Panics
    /// If the column is not below the number of columns.
    pub fn column(&self, column: usize) -> &[u8] {
        let stored = self.stored(column);
        &self.bytes()[self.tiling.offset(0, stored)..self.tiling.offset(0, stored + 1)]
    }

    /// Returns the stored column number of a column of this value.
    fn stored(&self, column: usize) -> usize {
        let mut rest = column;
        for range in &self.columns {
            if rest < range.len() {
                return range.start + rest;
            }
            rest -= range.len();
        }
        panic!("column {column} of {}", self.tiling.columns)
    }

    /// Returns a database of the columns of some ranges, one after another, which shares the bytes.
    ///
    /// # Panics
    /// If a range is not within the database's columns, or if this value does not have all columns.
    pub fn columns(&self, ranges: &[Range<usize>]) -> Self {
        assert_eq!(self.columns[..], [0..self.tiling.columns], "a part of a whole");
        assert!(ranges.iter().all(|range| range.end <= self.tiling.columns));
        let columns = ranges.iter().map(Range::len).sum();
        Self {
            tiling: SymbolTiling { columns, ..self.tiling },
            columns: ranges.to_vec(),
            bytes: self.bytes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_where_they_were_put() {
        for bits in [1, 2, 4, 8, 16, 32] {
            let tiling = SymbolTiling::new(64, bits, 3, 5).unwrap();
            assert_eq!(tiling.bytes(), 3 * 5 * 8 * bits as usize);
            let mask = u32::MAX >> (32 - bits);
            let symbols: Vec<u32> = (0..3 * 5 * 64u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            let db = SymbolDb::from_symbols(tiling, &symbols);
            let part = db.columns(&[3..5, 0..1]);
            assert_eq!(part.tiling(), SymbolTiling::new(64, bits, 3, 3).unwrap());
            for (index, expected) in symbols.chunks_exact(64).enumerate() {
                let row = index / 5;
                let column = index % 5;
                let expected: Vec<u32> = expected.iter().map(|symbol| symbol & mask).collect();
                assert_eq!(tiling.unpack(db.plaintext(row, column)), expected);
                if let Some(to) = [3, 4, 0].iter().position(|&from| from == column) {
                    assert_eq!(tiling.unpack(part.plaintext(row, to)), expected);
                }
            }
        }
    }

    #[test]
    fn wrong_shapes_are_refused() {
        assert!(SymbolTiling::new(64, 3, 1, 1).is_err());
        assert!(SymbolTiling::new(64, 0, 1, 1).is_err());
        assert!(SymbolTiling::new(60, 4, 1, 1).is_err());
        let tiling = SymbolTiling::new(64, 4, 1, 1).unwrap();
        assert!(SymbolDb::new(tiling, Arc::new(vec![0; 31])).is_err());
    }
}
