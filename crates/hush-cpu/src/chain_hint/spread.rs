//! The way from the hint to its images under all automorphisms.

use super::{Block, bands::BAND};
use crate::kernels::end_stream;

impl Block<'_> {
    /// Lifts the hint, divides it by N and transforms its columns. Row v then has, for every column j of the hint,
    /// `(1/N) sum_i psi^(i e_v) h_ij`.
    pub(super) fn spread_columns(&mut self, hint: &[u32]) {
        let degree = self.degree;
        let level = self.ring.kept.level();
        let bands = self.bands;
        let (words, values) = self.scratch.split_at_mut(bands.band_words());
        let values = &mut values[..bands.band_words()];
        for column in (0..degree).step_by(BAND) {
            bands.read_hint(hint, column, words);
            let limbs = self.ring.kept.limbs().iter().zip(&self.plan.lifts);
            for ((limb, lift), matrix) in limbs.zip(self.rows.chunks_exact_mut(bands.matrix_words())) {
                let rows = words.chunks_exact(bands.stride()).zip(values.chunks_exact_mut(bands.stride()));
                for (words, values) in rows {
                    let values = &mut values[..degree];
                    lift.apply(level, &words[..degree], values);
                    limb.ntt.forward(values, self.transform);
                }
                bands.write(values, matrix, column);
            }
        }
        end_stream();
    }

    /// Transforms the rows and rotates them. Column v of the images is then `A_e[v]` for all e.
    pub(super) fn spread_rows(&mut self) {
        let degree = self.degree;
        let level = self.ring.kept.level();
        let bands = self.bands;
        let (band, row) = self.scratch.split_at_mut(bands.band_words());
        let row = &mut row[..degree];
        let matrices = self.rows.chunks_exact(bands.matrix_words());
        let matrices = matrices.zip(self.images.chunks_exact_mut(bands.matrix_words()));
        for (limb, (matrix, images)) in self.ring.kept.limbs().iter().zip(matrices) {
            for first in (0..degree).step_by(BAND) {
                for (slot, rotated) in (first..).zip(band.chunks_exact_mut(bands.stride())) {
                    // A copy is transformed: in place, the matrix would be written back to memory for nothing.
                    row.copy_from_slice(&matrix[slot * bands.stride()..][..degree]);
                    limb.ntt.forward(row, self.transform);
                    let (half, a) = self.plan.orbits.place(slot);
                    for (c, rotated) in rotated[..degree].chunks_exact_mut(degree / 2).enumerate() {
                        // The exponent is -e e_v.
                        self.plan.orbits.rotate(level, row, (1 ^ half ^ c, a), rotated);
                    }
                }
                bands.write(band, images, first);
            }
        }
        end_stream();
    }
}
