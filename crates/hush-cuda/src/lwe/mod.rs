//! The steps over LWE.
//!
//! All folds are one product: a database of bytes (s8, [`CudaDb`]) times words modulo 2^32 in tiles of their bytes ([`queries`]).
//! The device's kernel adds the product to words in device memory ([`fold`]). The hint is the fold of the columns of A
//! ([`matrix`]).

use std::ops::Range;

use hush_he::entities::PublicMatrix;
use hush_ops::{
    OpsError,
    contract::{LweBatch, LweOps, LweQueries, Rounding, SentRows},
    steps::LweFold,
    tiling::{TiledDb, Tiling},
};

use crate::{
    Cuda,
    device::{Buffer, Slice},
};

mod fold;
mod matrix;
mod plan;
mod queries;
mod send_words;
mod tiles;

use fold::ResultStrides;
pub(crate) use matrix::PreparedMatrices;
pub use matrix::matrix_bytes;
pub use plan::FoldKernel;
pub use queries::PreparedQueries;
pub use tiles::CudaDb;

/// Returns the bytes of `batch` vectors of `cols` words: unprepared, and prepared for a fold.
pub(crate) fn query_bytes(batch: usize, cols: usize) -> usize {
    size_of::<u32>() * batch * cols + PreparedQueries::bytes_for(batch, cols)
}

impl LweOps for Cuda {
    type Db = CudaDb;

    fn open_db(&self, db: TiledDb) -> Result<CudaDb, OpsError> {
        tiles::check_countable("open_db", db.tiling().rows(), db.tiling().cols())?;
        Ok(CudaDb::open(self.device(), &db)?)
    }

    fn tiling(&self, db: &CudaDb) -> Tiling {
        db.tiling()
    }

    fn run_lwe_fold(&self, db: &CudaDb, queries: &LweQueries) -> Result<LweBatch<Buffer<u32>>, OpsError> {
        let rows = db.tiling().rows();
        let words = self.device().zeroed(queries.batch() * rows)?;
        self.add_lwe_fold(db, queries, &words.slice(..))?;
        Ok(LweBatch { rows, words })
    }

    fn run_lwe_hint(
        &self,
        db: &CudaDb,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<Buffer<u32>, OpsError> {
        let n = a.n();
        let hint = self.device().zeroed(rows.len() * n)?;
        if !hint.is_empty() {
            let columns = self.matrices.prepare(self.device(), self.suited_fold_kernel(), a)?;
            let strides = ResultStrides { query: 1, row: n };
            fold::add_fold(self.device(), db, rows, &columns, &hint.slice(..), strides)?;
        }
        Ok(hint)
    }

    fn run_reinterpret_lwe(
        &self,
        words: &Buffer<u32>,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<CudaDb, OpsError> {
        tiles::check_countable("reinterpret_lwe", queries * items * digits, cols)?;
        Ok(CudaDb::reinterpret(self.device(), words, queries, items, digits, cols)?)
    }

    fn run_send_words(
        &self,
        words: &LweBatch<Buffer<u32>>,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok(send_words::send_words(self.device(), words, sent, rounding)?)
    }
}

impl Cuda {
    /// Adds the fold of `db` to `onto` (`[query][row]`), modulo 2^32.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if a query is not D0 words long, or `onto` does not have a word for every query and row.
    pub(crate) fn add_lwe_fold(
        &self,
        db: &CudaDb,
        queries: &LweQueries,
        onto: &Slice<'_, u32>,
    ) -> Result<(), OpsError> {
        self.add_prepared_fold(db, &self.prepare_queries(queries, None)?, onto)
    }

    /// Uploads queries and prepares them for folds by `kernel`, which the device must support, or by its fastest kernel.
    pub fn prepare_queries(
        &self,
        queries: &LweQueries,
        kernel: Option<FoldKernel>,
    ) -> Result<PreparedQueries, OpsError> {
        let kernel = kernel.unwrap_or_else(|| self.suited_fold_kernel());
        Ok(PreparedQueries::upload(self.device(), kernel, queries)?)
    }

    /// Adds the fold of `db` by prepared queries to `onto` (`[query][row]`), modulo 2^32.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if a query is not D0 words long, or `onto` does not have a word for every query and row.
    pub fn add_prepared_fold(
        &self,
        db: &CudaDb,
        queries: &PreparedQueries,
        onto: &Slice<'_, u32>,
    ) -> Result<(), OpsError> {
        let rows = db.tiling().rows();
        OpsError::check_shape("lwe_fold", "words of a query", db.tiling().cols(), queries.cols())?;
        OpsError::check_shape("lwe_fold", "number of result words", queries.batch() * rows, onto.len())?;
        let strides = ResultStrides { query: rows, row: 1 };
        Ok(fold::add_fold(self.device(), db, 0..rows, queries, onto, strides)?)
    }

    /// Frees memory that is kept for later: the memory pool of the device, and prepared matrices. The next hint that needs a
    /// matrix prepares it again.
    pub fn release_unused(&self) {
        self.matrices.forget();
        self.device().release_unused();
    }

    fn suited_fold_kernel(&self) -> FoldKernel {
        self.fold_kernel.unwrap_or_else(|| FoldKernel::of(self.device().info()))
    }
}

hush_ops::footprint!(Cuda: LweFold, |step, batch| {
    let db = step.db;
    query_bytes(batch, db.cols()) + size_of::<u32>() * batch * db.rows()
});

hush_ops::footprint!(Cuda: FoldOnline, |step, batch| {
    let all = LweFold { db: step.db.times(batch) };
    // Each query first has the words of all queries' rows. The query's own rows are then copied.
    Self::footprint(&all, batch) + size_of::<u32>() * batch * step.db.rows()
});

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use crate::device::{Device, Emulation};

    use super::*;

    #[test]
    fn folds_are_added() {
        let cuda = Cuda::new(Device::emulated(Emulation::default()));
        let db = cuda.open_db(TiledDb::from_matrix(3, 2, &[1, 2, 3, 4, 0xff, 6])).unwrap();
        let queries = LweQueries { cols: 2, words: vec![10, 100, 0, 1] };
        let onto = cuda.device().upload(&[0u32, 1, 2, u32::MAX, 4, 5]).unwrap();
        cuda.add_lwe_fold(&db, &queries, &onto.slice(..)).unwrap();
        assert_eq!(cuda.device().download(&onto.slice(..)).unwrap(), [210, 431, 592, 1, 8, 11]);
        let refused = cuda.add_lwe_fold(&db, &queries, &onto.slice(..5));
        assert!(matches!(refused, Err(OpsError::Shape { .. })));
        let longer = cuda.prepare_queries(&LweQueries { cols: 3, words: vec![0; 6] }, None).unwrap();
        let refused = cuda.add_prepared_fold(&db, &longer, &onto.slice(..));
        assert!(matches!(refused, Err(OpsError::Shape { .. })));
    }
}
