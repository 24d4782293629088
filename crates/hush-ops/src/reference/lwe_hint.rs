//! The hint of SimplePIR: the database times the public matrix.

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use crate::tiling::TiledDb;

/// `out[r][i] = sum_c db[r][c] * A[c][i] mod 2^32` for the rows `r` in `rows`.
pub(super) fn lwe_hint(db: &TiledDb, a: &PublicMatrix, rows: Range<usize>) -> Vec<u32> {
    let n = a.n();
    let mut out = vec![0u32; rows.len() * n];
    let mut a_row = vec![0u32; n];
    for c in 0..a.cols() {
        a.row_into(c, &mut a_row);
        for (r, out_row) in rows.clone().zip(out.chunks_exact_mut(n.max(1))) {
            let byte = db.at(r, c) as u32;
            for i in 0..n {
                out_row[i] = out_row[i].wrapping_add(byte.wrapping_mul(a_row[i]));
            }
        }
    }
    out
}
