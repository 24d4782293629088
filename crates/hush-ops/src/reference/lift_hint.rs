//! A hint to evaluation form.

use std::ops::Range;

use hush_he::params::RingContext;

use super::ntt_db::ntt_db;
use crate::{
    OpsError,
    contract::round_word_up,
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
};

/// As [`crate::contract::PackOps::lift_hint`].
///
/// # Errors
/// [`OpsError::Shape`] if n is more than a tiling has rows.
pub(super) fn lift_hint(
    ring: &RingContext,
    hint: &[u32],
    n: usize,
    shape: &PackShape,
    columns: Range<usize>,
) -> Result<NttTiledDb, OpsError> {
    let tiling = NttTiling::new(shape.degree(), ring.kept().limbs(), n, columns.len())?;
    let first = shape.rows_of(columns.clone()).start;
    let mut polys = Vec::with_capacity(n * columns.len() * tiling.poly_words());
    for i in 0..n {
        for column in columns.clone() {
            let words = shape.plaintext_rows(column).map(|row| hint[(row - first) * n + i]);
            polys.extend(lift(ring, words));
        }
    }
    Ok(NttTiledDb::from_polys(tiling, &polys))
}

/// The polynomial of `words`, rounded to the plaintext modulus, in evaluation form.
pub(super) fn lift(ring: &RingContext, words: impl Iterator<Item = u32>) -> Vec<u32> {
    let bits = ring.params().plaintext_bits();
    let mut symbols: Vec<u32> = words.map(|word| round_word_up(word, bits)).collect();
    symbols.resize(ring.params().degree(), 0);
    ntt_db(ring, &symbols)
}
