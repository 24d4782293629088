//! The step `lwe_fold` (1): fold the first dimension.

use super::*;

/// The shape of `lwe_fold` (1) of a byte database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweFold {
    /// The database: rows x D0.
    pub db: Tiling,
}

/// The shape of `lwe_fold` (1) of a database that has separate rows for each query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldOnline {
    /// The rows of one query: rows x D0.
    pub db: Tiling,
}

impl StepKind for LweFold {
    fn scans(&self) -> bool {
        true
    }

    fn work(&self, batch: usize) -> Work {
        fold(self.db, batch as f64)
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let db = make.operands.db(backend, self.db)?;
        let queries = random_queries(self.db.cols(), make.batch);
        Ok(Box::new(move || backend.lwe_fold(&db, &queries).map(drop)))
    }
}

impl StepKind for FoldOnline {
    fn work(&self, batch: usize) -> Work {
        fold(self.db.times(batch), batch as f64)
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        LweFold { db: self.db.times(make.batch) }.sample(make)
    }
}

/// Checks that `queries` are whole queries of one word for each database column.
pub(crate) fn check(db: Tiling, queries: &LweQueries) -> Result<LweFold, OpsError> {
    let step = "lwe_fold";
    OpsError::check_shape(step, "query length", db.cols(), queries.cols)?;
    OpsError::check_shape(step, "words of all queries", queries.batch() * queries.cols, queries.words.len())?;
    Ok(LweFold { db })
}

/// Returns `out[b][r] = sum_c db[r][c] * query[b][c] mod 2^32`.
pub(crate) fn reference(db: &TiledDb, queries: &LweQueries) -> LweBatch {
    let rows = db.tiling().rows();
    let cols = db.tiling().cols();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_another_length_are_refused() {
        let tiling = Tiling::new(10, 100);
        let queries = |cols, words| LweQueries { cols, words: vec![0; words] };
        assert!(check(tiling, &queries(100, 300)).is_ok());
        assert!(check(tiling, &queries(100, 0)).is_ok());
        assert!(check(tiling, &queries(99, 99)).is_err());
        assert!(check(tiling, &queries(100, 150)).is_err());
    }
}
