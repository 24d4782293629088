//! The way from the digits of the chain to the pack columns.

use hush_ops::{OpsError, contract::PACK_BYTES};

use super::{Block, bands::BAND};
use crate::buffer;

impl Block<'_> {
    /// Rotates the digits back and transforms them. Row v then has, for every coefficient c of the key, `1/N` times the
    /// contribution of y_c to slot v of the sum.
    pub(super) fn collect_rows(&mut self) {
        let degree = self.degree;
        let level = self.ring.kept.level();
        let bands = self.bands;
        let (band, orbits) = self.scratch.split_at_mut(bands.band_words());
        let matrices = self.images.chunks_exact(bands.matrix_words());
        let matrices = matrices.zip(self.rows.chunks_exact_mut(bands.matrix_words()));
        for (limb, (images, matrix)) in self.ring.kept.limbs().iter().zip(matrices) {
            for first in (0..degree).step_by(BAND) {
                bands.read(images, first, band);
                let rows = matrix[first * bands.stride()..].chunks_exact_mut(bands.stride());
                for ((slot, rotated), row) in (first..).zip(band.chunks_exact(bands.stride())).zip(rows) {
                    let (half, a) = self.plan.orbits.place(slot);
                    for (c, rotated) in rotated[..degree].chunks_exact(degree / 2).enumerate() {
                        // The exponent is e e_v, and the inverse transform at 1/X is the transpose of evaluation.
                        let orbit = &mut orbits[(1 ^ half ^ c) * degree..][..degree / 2];
                        let (start, end) = rotated.split_at(degree / 2 - a);
                        orbit[a..].copy_from_slice(start);
                        orbit[..a].copy_from_slice(end);
                    }
                    let row = &mut row[..degree];
                    self.plan.orbits.to_slots(level, orbits, row);
                    limb.ntt.inverse(row, self.transform);
                }
            }
        }
    }

    /// Transforms columns and writes the balanced digits of their entries in the first `rows` rows: rows x 4N bytes.
    ///
    /// # Errors
    /// [`OpsError::PackColumns`] if an entry, in any row, has more than four digits.
    pub(super) fn collect_columns(&mut self, rows: usize) -> Result<Vec<u8>, OpsError> {
        let degree = self.degree;
        let level = self.ring.kept.level();
        let bands = self.bands;
        let bytes = rows * degree * PACK_BYTES;
        let mut columns: Vec<u8> = buffer::empty_vec(bytes);
        let room = &mut columns.spare_capacity_mut()[..bytes];
        let (residues, words) = self.scratch.split_at_mut(2 * bands.band_words());
        let mut fit = true;
        for column in (0..degree).step_by(BAND) {
            let matrices = self.rows.chunks_exact(bands.matrix_words());
            let matrices = matrices.zip(residues.chunks_exact_mut(bands.band_words()));
            for (limb, (matrix, band)) in self.ring.kept.limbs().iter().zip(matrices) {
                bands.read(matrix, column, band);
                for values in band.chunks_exact_mut(bands.stride()) {
                    limb.ntt.inverse(&mut values[..degree], self.transform);
                }
            }
            let (first, second) = residues.split_at(bands.band_words());
            let residues = first.chunks_exact(bands.stride()).zip(second.chunks_exact(bands.stride()));
            for (words, (first, second)) in words.chunks_exact_mut(bands.stride()).zip(residues) {
                let residues = [&first[..degree], &second[..degree]];
                fit &= self.plan.join.apply(level, residues, &mut words[..degree]);
            }
            bands.write_bytes(words, room, column);
        }
        // SAFETY: the bands are all columns of all rows.
        unsafe { columns.set_len(bytes) };
        if fit { Ok(columns) } else { Err(OpsError::PackColumns) }
    }
}
