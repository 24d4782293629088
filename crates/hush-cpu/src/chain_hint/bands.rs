//! Bands: 16 neighbouring columns of a matrix of words, stored as rows so that each can be transformed.
//!
//! A band takes a cache line of every row of its matrix, and is transposed in squares of 16 x 16 words.

use std::mem::MaybeUninit;

use hush_ops::contract::PACK_BYTES;

use crate::{
    Level,
    pack::{SQUARE, Squares},
};

/// The number of columns of a band.
pub(super) const BAND: usize = SQUARE;
/// The number of bytes of a cache line.
const LINE: usize = BAND * PACK_BYTES;

/// The layout of matrices of N x N words and of their bands, 16 x N.
///
/// In both, rows are [`Bands::stride`] words apart. A line is left free, so that lines below each other do not share a set of a
/// cache.
#[derive(Clone, Copy)]
pub(super) struct Bands {
    squares: Squares,
    degree: usize,
}

impl Bands {
    /// Creates the layout for N = `degree`, a multiple of 16.
    pub(super) fn new(level: Level, degree: usize) -> Self {
        assert!(degree.is_multiple_of(BAND));
        Self { squares: Squares::of(level), degree }
    }

    /// Returns the number of words from a row to the next.
    pub(super) fn stride(self) -> usize {
        self.degree + BAND
    }

    /// Returns the number of words of a matrix.
    pub(super) fn matrix_words(self) -> usize {
        self.degree * self.stride()
    }

    /// Returns the number of words of a band.
    pub(super) fn band_words(self) -> usize {
        BAND * self.stride()
    }

    /// Copies columns `column .. column + 16` of `matrix` to the rows of `band`.
    pub(super) fn read(self, matrix: &[u32], column: usize, band: &mut [u32]) {
        for first in (0..self.degree).step_by(SQUARE) {
            self.read_square(&matrix[first * self.stride() + column..], self.stride(), &mut band[first..]);
        }
    }

    /// Reads like [`Bands::read`] from a matrix of rows of N words, whose last rows may be missing: they are zeros.
    pub(super) fn read_hint(self, hint: &[u32], column: usize, band: &mut [u32]) {
        let rows = hint.len() / self.degree;
        for first in (0..self.degree).step_by(SQUARE) {
            let band = &mut band[first..];
            let lines = rows.saturating_sub(first).min(SQUARE);
            if lines == SQUARE {
                self.read_square(&hint[first * self.degree + column..], self.degree, band);
                continue;
            }
            let mut square = [0; SQUARE * SQUARE];
            for (line, square) in (first..).zip(square.chunks_exact_mut(SQUARE).take(lines)) {
                square.copy_from_slice(&hint[line * self.degree + column..][..SQUARE]);
            }
            self.read_square(&square, SQUARE, band);
        }
    }

    /// Copies lines of `from`, `stride` words apart, to columns of `band`.
    fn read_square(self, from: &[u32], stride: usize, band: &mut [u32]) {
        let from = from[..(SQUARE - 1) * stride + SQUARE].as_ptr();
        let to = band[..(SQUARE - 1) * self.stride() + SQUARE].as_mut_ptr();
        // SAFETY: the lines are within the slices; the maker of the backend promised that the machine has the level.
        unsafe { (self.squares.transpose)(from, stride, to, self.stride()) };
    }

    /// Writes the rows of `band` to columns `column .. column + 16` of `matrix`, past the caches, as they are read much later. Call
    /// [`crate::kernels::end_stream`] after the last band.
    ///
    /// # Panics
    /// If `matrix` does not begin at a cache line, or `column` is no multiple of 16.
    pub(super) fn write(self, band: &[u32], matrix: &mut [u32], column: usize) {
        assert!(matrix.as_ptr().addr().is_multiple_of(LINE) && column.is_multiple_of(BAND));
        let span = (SQUARE - 1) * self.stride() + SQUARE;
        for first in (0..self.degree).step_by(SQUARE) {
            let from = band[first..][..span].as_ptr();
            let to = matrix[first * self.stride() + column..][..span].as_mut_ptr();
            // SAFETY: the lines are within the slices, and those of the matrix are cache lines; the maker of the backend promised
            // that the machine has the level.
            unsafe { (self.squares.stream)(from, self.stride(), to, self.stride()) };
        }
    }

    /// Writes the rows of `band` to columns `column .. column + 16` of rows of N words, the low bytes of a word first. Writes as
    /// many rows as `room` holds.
    pub(super) fn write_bytes(self, band: &[u32], room: &mut [MaybeUninit<u8>], column: usize) {
        let row_bytes = self.degree * PACK_BYTES;
        for (first, rows) in (0..).step_by(SQUARE).zip(room.chunks_mut(SQUARE * row_bytes)) {
            let mut square = [0u32; SQUARE * SQUARE];
            let from = band[first..][..(SQUARE - 1) * self.stride() + SQUARE].as_ptr();
            // SAFETY: the lines are within the arrays; the maker of the backend promised that the machine has the level.
            unsafe { (self.squares.transpose)(from, self.stride(), square.as_mut_ptr(), SQUARE) };
            for (row, words) in rows.chunks_exact_mut(row_bytes).zip(square.chunks_exact(SQUARE)) {
                let to = row[column * PACK_BYTES..][..LINE].as_mut_ptr().cast::<u8>();
                // SAFETY: the words have this many bytes, and their low bytes first on this architecture.
                unsafe { to.copy_from_nonoverlapping(words.as_ptr().cast(), LINE) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuffer;

    #[test]
    fn bands_are_columns() {
        let degree = 64;
        let column = 32;
        for level in Level::usable() {
            let bands = Bands::new(level, degree);
            let mut matrix = AlignedBuffer::<u32>::zeroed(bands.matrix_words());
            (0..).zip(&mut *matrix).for_each(|(i, word)| *word = i);
            let mut band = vec![0; bands.band_words()];
            bands.read(&matrix, column, &mut band);
            for (row, i) in (0..BAND).flat_map(|row| (0..degree).map(move |i| (row, i))) {
                let expected = i * bands.stride() + column + row;
                assert_eq!(band[row * bands.stride() + i], expected as u32, "{level}");
            }
            let before = matrix.to_vec();
            matrix.fill(0);
            bands.write(&band, &mut matrix, column);
            for (at, &word) in matrix.iter().enumerate() {
                let inside = (column..column + BAND).contains(&(at % bands.stride()));
                assert_eq!(word, if inside { before[at] } else { 0 }, "{level}");
            }
        }
    }

    #[test]
    fn missing_rows_are_zeros_and_left_out() {
        let degree = 64;
        let column = 48;
        for (level, rows) in Level::ALL.iter().flat_map(|&level| [0, 1, 16, 37, 64].map(|rows| (level, rows)))
        {
            if level.require().is_err() {
                continue;
            }
            let bands = Bands::new(level, degree);
            let hint: Vec<u32> = (1..).take(rows * degree).collect();
            let mut band = vec![7; bands.band_words()];
            bands.read_hint(&hint, column, &mut band);
            for (row, i) in (0..BAND).flat_map(|row| (0..degree).map(move |i| (row, i))) {
                let expected = hint.get(i * degree + column + row).copied().unwrap_or(0);
                assert_eq!(band[row * bands.stride() + i], expected, "{level}, {rows} rows");
            }
            let mut bytes = vec![MaybeUninit::new(9u8); rows * degree * PACK_BYTES];
            bands.write_bytes(&band, &mut bytes, column);
            for (at, word) in bytes.chunks_exact(PACK_BYTES).enumerate() {
                // SAFETY: initialised above.
                let word = u32::from_le_bytes(std::array::from_fn(|k| unsafe { word[k].assume_init() }));
                let inside = (column..column + BAND).contains(&(at % degree));
                assert_eq!(word, if inside { hint[at] } else { 0x0909_0909 }, "{level}, {rows} rows");
            }
        }
    }
}
