//! (1) Fold the first dimension.

use crate::{
    contract::{LweBatch, LweQueries},
    tiling::TiledDb,
};

/// `out[b][r] = sum_c db[r][c] * query[b][c] mod 2^32`.
pub(super) fn lwe_fold(db: &TiledDb, queries: &LweQueries) -> LweBatch {
    let (rows, cols) = (db.tiling().rows(), db.tiling().cols());
    let mut words = vec![0u32; queries.batch() * rows];
    for r in 0..rows {
        for c in 0..cols {
            let byte = db.at(r, c) as u32;
            for b in 0..queries.batch() {
                let sum = &mut words[b * rows + r];
                *sum = sum.wrapping_add(byte.wrapping_mul(queries.words[b * cols + c]));
            }
        }
    }
    LweBatch { rows, words: words.into() }
}
