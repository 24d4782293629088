//! The steps over LWE.

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use super::{BatchWords, Memory, Rounding, SentRows, WordStore};
use crate::{
    OpsError,
    reference::ByDefinition,
    steps,
    tiling::{TiledDb, Tiling},
};

/// A batch of LWE queries: `batch` vectors of `cols` words modulo 2^32, query after query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LweQueries {
    /// The words of one query (D0).
    pub cols: usize,
    /// The words of all queries: word `b * cols + c` is column `c` of query `b`.
    pub words: Vec<u32>,
}

impl LweQueries {
    /// Returns the number of queries.
    pub fn batch(&self) -> usize {
        self.words.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Returns a copy of the queries in a range.
    pub fn range(&self, queries: &Range<usize>) -> Self {
        let words = &self.words[queries.start * self.cols..queries.end * self.cols];
        Self { cols: self.cols, words: words.to_vec() }
    }

    /// Wraps the queries for a segment of `cols` columns: word `c` becomes the sum of the words `c + j * cols`. The secrets stay
    /// the same, and the wrapped matrix belongs to the result. The host does this, where queries arrive: a word is added once for
    /// each segment and multiplied thousands of times in the fold.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if `cols` does not divide the columns of a query.
    pub fn wrapped(&self, cols: usize) -> Result<Self, OpsError> {
        let wraps = self.cols.checked_div(cols).unwrap_or(0);
        OpsError::check_shape("wrap", "columns of a query", wraps * cols, self.cols)?;
        let mut words = Vec::with_capacity(self.batch() * cols);
        for query in self.words.chunks_exact(self.cols.max(1)) {
            let (head, rest) = query.split_at(cols);
            let first = words.len();
            words.extend_from_slice(head);
            for more in rest.chunks_exact(cols) {
                words[first..].iter_mut().zip(more).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
            }
        }
        Ok(Self { cols, words })
    }
}

/// The result of a fold: `batch` vectors of `rows` words modulo 2^32, query after query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LweBatch<W = BatchWords> {
    /// The words of one result.
    pub rows: usize,
    /// The words of all results: word `b * rows + r` is row `r` of query `b`.
    pub words: W,
}

impl<W: WordStore> LweBatch<W> {
    /// Returns the number of queries.
    pub fn batch(&self) -> usize {
        self.words.len().checked_div(self.rows).unwrap_or(0)
    }

    /// Returns the range of the words of one query.
    pub fn range(&self, query: usize) -> Range<usize> {
        query * self.rows..(query + 1) * self.rows
    }
}

/// The steps over LWE: all steps of `frodo`, `simple` and `double`, and the first steps of the other protocols.
pub trait LweOps: Memory {
    /// A database in this backend's memory.
    type Db: Send + Sync;

    /// Loads a tiled database.
    fn open_db(&self, db: TiledDb) -> Result<Self::Db, OpsError>;

    /// Returns the shape of a database.
    fn tiling(&self, db: &Self::Db) -> Tiling;

    /// Folds the first dimension (step 1): `out[b] = db * query[b] mod 2^32`.
    ///
    /// | name      | shape        | unit             |
    /// |-----------|--------------|------------------|
    /// | `db`      | rows x D0    | s8               |
    /// | `queries` | B x D0       | u32, mod 2^32    |
    /// | returns   | B x rows     | u32, mod 2^32    |
    ///
    /// Error: the standard deviation grows from sigma to `sigma * |row|_2 <= sigma * 128 * sqrt(D0)` (`hush_he::params::noise`).
    /// Cost: one pass over the database; `rows * D0 * B` multiply-adds of s8 x u32.
    /// Source: SimplePIR section 4; VIPIR section 3.2, step (1).
    fn lwe_fold(&self, db: &Self::Db, queries: &LweQueries) -> Result<LweBatch<Self::Words>, OpsError> {
        self.called(steps::lwe_fold::check(self.tiling(db), queries)?);
        self.run_lwe_fold(db, queries)
    }

    /// Runs [`LweOps::lwe_fold`].
    fn run_lwe_fold(&self, db: &Self::Db, queries: &LweQueries) -> Result<LweBatch<Self::Words>, OpsError>;

    /// Computes the hint of some rows: `db[rows] * A mod 2^32`, row-major `rows.len() x n` words.
    ///
    /// `rows.start` is a multiple of [`crate::tiling::GROUP_ROWS`]; `rows.end` is a multiple too, or the number of rows.
    /// Source: SimplePIR section 4, FrodoPIR section 4; VIPIR section 2.5.
    fn lwe_hint(&self, db: &Self::Db, a: &PublicMatrix, rows: Range<usize>) -> Result<Self::Words, OpsError> {
        self.called(steps::lwe_hint::check(self.tiling(db), a, &rows)?);
        self.run_lwe_hint(db, a, rows)
    }

    /// Runs [`LweOps::lwe_hint`].
    fn run_lwe_hint(
        &self,
        db: &Self::Db,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<Self::Words, OpsError>;

    /// Turns the LWE words of a batch into a new byte database (step 2). Word `c * items + i` of query b is rounded to its top
    /// `8 * digits` bits. Its byte `k` (least significant first) goes to row `(b * items + i) * digits + k`, column `c`.
    ///
    /// | name    | shape                      | unit          |
    /// |---------|----------------------------|---------------|
    /// | `words` | B x cols x items           | u32, mod 2^32 |
    /// | returns | B * items * digits x cols  | s8            |
    ///
    /// Rounding: `(w + 2^(31 - 8 digits)) >> (32 - 8 digits)`, modulo `2^(8 digits)`.
    /// Source: DoublePIR (SimplePIR section 5); VIPIR section 3.2, step (2).
    fn reinterpret_lwe(
        &self,
        words: &Self::Words,
        queries: usize,
        items: usize,
        digits: usize,
    ) -> Result<Self::Db, OpsError> {
        let step = steps::reinterpret_lwe::check(words.len(), queries, items, digits)?;
        self.called(step);
        self.run_reinterpret_lwe(words, queries, items, digits, step.db.cols())
    }

    /// Runs [`LweOps::reinterpret_lwe`], whose result has `cols` columns.
    fn run_reinterpret_lwe(
        &self,
        words: &Self::Words,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<Self::Db, OpsError>;

    /// Rounds and packs the words of an answer: for each query, the bytes of its pieces, one piece after another.
    ///
    /// | name      | shape             | unit                                                |
    /// |-----------|-------------------|-----------------------------------------------------|
    /// | `words`   | B x rows          | u32, mod 2^32                                       |
    /// | `sent`    | pieces            | some rows, and the width that they are rounded to   |
    /// | returns   | B x all pieces    | bytes as they travel, every piece of whole bytes    |
    ///
    /// Error: half a unit of the width. Cost: one pass over the words. Only bytes leave the backend, those of a batch at once.
    fn send_words(
        &self,
        words: &LweBatch<Self::Words>,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        self.called(steps::send_words::check(words, sent)?);
        self.run_send_words(words, sent, rounding)
    }

    /// Runs [`LweOps::send_words`].
    fn run_send_words(
        &self,
        words: &LweBatch<Self::Words>,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError>;
}

impl<B: ByDefinition> LweOps for B {
    type Db = TiledDb;

    fn open_db(&self, db: TiledDb) -> Result<TiledDb, OpsError> {
        Ok(db)
    }

    fn tiling(&self, db: &TiledDb) -> Tiling {
        db.tiling()
    }

    fn run_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> Result<LweBatch, OpsError> {
        Ok(self.define_lwe_fold(db, queries))
    }

    fn run_lwe_hint(
        &self,
        db: &TiledDb,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<BatchWords, OpsError> {
        Ok(steps::lwe_hint::reference(db, a, rows).into())
    }

    fn run_reinterpret_lwe(
        &self,
        words: &BatchWords,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<TiledDb, OpsError> {
        Ok(steps::reinterpret_lwe::reference(words, queries, items, digits, cols))
    }

    fn run_send_words(
        &self,
        words: &LweBatch,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok(steps::send_words::reference(words, sent, rounding))
    }
}
