//! The rows of a second fold that are computed from answers of the first: a database that depends on the queries.

use hush_he::entities::PublicMatrix;
use hush_ops::{
    OpsError,
    contract::{LweBatch, LweOps, LweQueries, WordRange, WordStore},
};

/// The rows of all queries of a batch, in one database (M2), which is folded once and multiplied once. A query uses only
/// its own rows of the fold. The other rows cost B / n of the hint (B is the number of queries), while B databases would
/// cost B launches and as many short products.
pub(crate) struct OnlineRows<W> {
    /// The number of rows of a query.
    rows: usize,
    /// `M2 * q2`: a word for every row of all queries.
    folded: LweBatch<W>,
    /// The hint `M2 * A2`.
    hint: W,
    n: usize,
}

impl<W: WordStore> OnlineRows<W> {
    /// Computes the rows of at least one query. `answers` are the queries' words of the first fold. A block has `items`
    /// words, and a word is cut into `digits` bytes.
    pub(crate) fn new<B: LweOps<Words = W>>(
        backend: &B,
        answers: &LweBatch<W>,
        (items, digits): (usize, usize),
        second: &LweQueries,
        matrix: &PublicMatrix,
    ) -> Result<Self, OpsError> {
        let queries = second.batch();
        let rows = items * digits;
        let db = backend.reinterpret_lwe(&answers.words, queries, items, digits)?; //    (2): M2
        let folded = backend.lwe_fold(&db, second)?; //                                  (1) over M2
        let hint = backend.lwe_hint(&db, matrix, 0..queries * rows)?;
        Ok(Self { rows, folded, hint, n: matrix.n() })
    }

    /// Returns the folded words of a query's own rows.
    pub(crate) fn words(&self, query: usize) -> WordRange<'_, W> {
        let first = self.folded.range(query).start + query * self.rows;
        (&self.folded.words, first..first + self.rows)
    }

    /// Returns the hint of a query's own rows.
    pub(crate) fn hint(&self, query: usize) -> WordRange<'_, W> {
        let words = self.rows * self.n;
        (&self.hint, query * words..(query + 1) * words)
    }

    /// Returns the hints of all queries.
    pub(crate) fn into_hints(self) -> LweBatch<W> {
        LweBatch { rows: self.rows * self.n, words: self.hint }
    }
}
