//! The hint of SimplePIR: the database times the public matrix.

use super::*;

/// The shape of `lwe_hint` of a database that belongs to one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweHint {
    /// The database: rows x columns.
    pub db: Tiling,
    /// The public matrix: columns x n.
    pub matrix: MatrixShape,
    /// The parts of the rows, processed one after another.
    pub parts: usize,
}

impl StepKind for LweHint {
    /// Counts a fold with the n columns of the matrix as vectors. The matrix is expanded from its seed, so it is not read.
    fn work(&self, batch: usize) -> Work {
        fold(self.db, (batch * self.matrix.n()) as f64)
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let db = self.db.times(make.batch);
        let rows = 0..db.rows();
        let db = make.operands.db(backend, db)?;
        let matrix = PublicMatrix::new(PublicSeed([1; 32]), self.matrix);
        Ok(Box::new(move || backend.lwe_hint(&db, &matrix, rows.clone()).map(drop)))
    }
}

/// Checks that A has a row for every database column, and that `rows` starts at a group and ends at a group or the last row.
pub(crate) fn check(db: Tiling, a: &PublicMatrix, rows: &Range<usize>) -> Result<LweHint, OpsError> {
    let step = "lwe_hint";
    OpsError::check_shape(step, "rows of A", db.cols(), a.cols())?;
    let end = rows.end.min(db.rows());
    OpsError::check_shape(step, "end of the row range", end, rows.end)?;
    let start = rows.start.min(end);
    OpsError::check_shape(step, "start of the row range", start / GROUP_ROWS * GROUP_ROWS, rows.start)?;
    let whole = if end == db.rows() { end } else { end / GROUP_ROWS * GROUP_ROWS };
    OpsError::check_shape(step, "end of the row range", whole, rows.end)?;
    Ok(LweHint { db, matrix: *a.shape(), parts: 1 })
}

/// Returns `out[r][i] = sum_c db[r][c] * A[c][i] mod 2^32` for the rows `r` in `rows`.
pub(crate) fn reference(db: &TiledDb, a: &PublicMatrix, rows: Range<usize>) -> Vec<u32> {
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

#[cfg(test)]
mod tests {
    use hush_he::entities::{MatrixDomain, MatrixStructure};

    use super::*;

    #[test]
    fn row_ranges_are_whole_groups() {
        let tiling = Tiling::new(1300, 100);
        let matrix = |cols| {
            let shape = MatrixShape::new(MatrixDomain::First, MatrixStructure::Plain, cols, 8);
            PublicMatrix::new(PublicSeed([1; 32]), shape)
        };
        for good in [0..512, 512..1024, 0..1300, 1024..1300, 0..0, 512..512, 1024..1024] {
            assert!(check(tiling, &matrix(100), &good).is_ok(), "{good:?}");
        }
        for (start, end) in [(1, 512), (0, 511), (0, 1301), (512, 2048), (512, 0), (1536, 1300), (2048, 2048)]
        {
            let bad = start..end;
            assert!(check(tiling, &matrix(100), &bad).is_err(), "{bad:?}");
        }
        assert!(check(tiling, &matrix(99), &(0..512)).is_err());
    }
}
