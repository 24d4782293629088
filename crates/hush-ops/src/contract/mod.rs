//! The steps that protocols are made of. A backend implements whole steps; a protocol calls nothing else.
//!
//! A step that can refuse its operands is two methods. The method with the step's name is provided: it checks the operands
//! ([`crate::check`]), once and alike for all backends, and calls the method that a backend implements, named `run_` and the step.
//! That one may rely on the checks, and gets what they counted. Its errors are those that no shape shows: a limit of the backend
//! ([`OpsError::Shape`] too), a device that fails, or what the data turns out to be. Only backends call `run_` methods. What a
//! check has to know of an operand that is opaque here, a small method of the trait says, like [`LweOps::tiling`] and
//! [`RingOps::context`].

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use crate::{
    OpsError, check,
    tiling::{TiledDb, Tiling},
};

mod batch_words;
mod column;
mod memory;
mod pack;
mod ring;
mod sent;
mod tfhe;

pub use batch_words::{BatchWords, LentWords};
pub use column::{
    BALANCED_HALVES, ChainPolys, ChainedHint, ColumnOps, PACK_BYTES, PowerKeys, key_words, lift_words,
};
pub use memory::{HostMemory, Memory, WordCopy, WordRange, WordStore};
pub use pack::{PackOps, switched_bytes};
pub use ring::{EntryOrder, Expanded, RLWE_POLYS, RingOps, RlweBatch, ciphertext_words, poly_words};
pub use sent::{Rounding, SentPoly, SentRows, pack_polys, round_word_up};
pub use tfhe::TfheOps;

/// A batch of LWE queries: `batch` vectors of `cols` words modulo 2^32, query after query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LweQueries {
    /// Words of one query (D0).
    pub cols: usize,
    /// `batch * cols` words; word `b * cols + c` is column `c` of query `b`.
    pub words: Vec<u32>,
}

impl LweQueries {
    /// Number of queries.
    pub fn batch(&self) -> usize {
        self.words.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Some of the queries.
    pub fn range(&self, queries: &Range<usize>) -> Self {
        let words = &self.words[queries.start * self.cols..queries.end * self.cols];
        Self { cols: self.cols, words: words.to_vec() }
    }

    /// The queries of a segment of `cols` columns: word `c` is the sum of the words `c + j * cols`. They are queries under the same
    /// secrets, of the wrapped vectors over the wrapped matrix. On the host, where queries come from: a word is added once for
    /// each segment, and is folded thousands of times.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if `cols` does not divide the columns.
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
    /// Words of one result.
    pub rows: usize,
    /// `batch * rows` words; word `b * rows + r` is row `r` of query `b`.
    pub words: W,
}

impl<W: WordStore> LweBatch<W> {
    /// Number of queries.
    pub fn batch(&self) -> usize {
        self.words.len().checked_div(self.rows).unwrap_or(0)
    }

    /// The words of one query, as a range of all.
    pub fn range(&self, query: usize) -> Range<usize> {
        query * self.rows..(query + 1) * self.rows
    }
}

/// The steps over LWE: what `frodo`, `simple` and `double` are made of, and where the others begin.
pub trait LweOps: Memory {
    /// A database as this backend holds it.
    type Db: Send + Sync;

    /// Takes a tiled database over.
    ///
    /// # Errors
    /// If the backend cannot hold it.
    fn open_db(&self, db: TiledDb) -> Result<Self::Db, OpsError>;

    /// The shape of a database.
    fn tiling(&self, db: &Self::Db) -> Tiling;

    /// (1) Fold the first dimension: `out[b] = db * query[b] mod 2^32`.
    ///
    /// | name      | shape        | unit             |
    /// |-----------|--------------|------------------|
    /// | `db`      | rows x D0    | s8               |
    /// | `queries` | B x D0       | u32, mod 2^32    |
    /// | returns   | B x rows     | u32, mod 2^32    |
    ///
    /// Error: std grows from sigma to `sigma * |row|_2 <= sigma * 128 * sqrt(D0)` (`hush_he::params::noise`).
    /// Cost: the database read once; `rows * D0 * B` multiply-adds of s8 x u32.
    /// Source: SimplePIR section 4; VIPIR section 3.2, step (1).
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the query length is not D0.
    fn lwe_fold(&self, db: &Self::Db, queries: &LweQueries) -> Result<LweBatch<Self::Words>, OpsError> {
        check::lwe::lwe_fold(self.tiling(db), queries)?;
        self.run_lwe_fold(db, queries)
    }

    /// Runs [`LweOps::lwe_fold`].
    fn run_lwe_fold(&self, db: &Self::Db, queries: &LweQueries) -> Result<LweBatch<Self::Words>, OpsError>;

    /// Hint of the rows in `rows`: `db[rows] * A mod 2^32`, row-major `rows.len() x n` words.
    ///
    /// `rows.start` is a multiple of [`crate::tiling::GROUP_ROWS`]; `rows.end` is one too, or the number of rows.
    /// Source: SimplePIR section 4, FrodoPIR section 4; VIPIR section 2.5.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if A has not D0 rows, or the range is not of that form.
    fn lwe_hint(&self, db: &Self::Db, a: &PublicMatrix, rows: Range<usize>) -> Result<Self::Words, OpsError> {
        check::lwe::lwe_hint(self.tiling(db), a, &rows)?;
        self.run_lwe_hint(db, a, rows)
    }

    /// Runs [`LweOps::lwe_hint`].
    fn run_lwe_hint(
        &self,
        db: &Self::Db,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<Self::Words, OpsError>;

    /// (2) Make LWE words of a batch a new byte database. Word `c * items + i` of query b is rounded to its top `8 * digits` bits,
    /// and its byte `k` (least significant first) goes to row `(b * items + i) * digits + k`, column `c`.
    ///
    /// | name    | shape                      | unit          |
    /// |---------|----------------------------|---------------|
    /// | `words` | B x cols x items           | u32, mod 2^32 |
    /// | returns | B * items * digits x cols  | s8            |
    ///
    /// Rounding: `(w + 2^(31 - 8 digits)) >> (32 - 8 digits)`, modulo `2^(8 digits)`.
    /// Source: DoublePIR (SimplePIR section 5); VIPIR section 3.2, step (2).
    ///
    /// # Errors
    /// [`OpsError::Shape`] if there are no queries, `words` is not `B * cols * items` long or `digits` is not 1..=4.
    fn reinterpret_lwe(
        &self,
        words: &Self::Words,
        queries: usize,
        items: usize,
        digits: usize,
    ) -> Result<Self::Db, OpsError> {
        let cols = check::lwe::reinterpret_lwe(words.len(), queries, items, digits)?;
        self.run_reinterpret_lwe(words, queries, items, digits, cols)
    }

    /// Runs [`LweOps::reinterpret_lwe`], which makes `cols` columns.
    fn run_reinterpret_lwe(
        &self,
        words: &Self::Words,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<Self::Db, OpsError>;

    /// Rounds the words of an answer and packs them: what is sent of each query, one piece after another.
    ///
    /// | name      | shape             | unit                                                |
    /// |-----------|-------------------|-----------------------------------------------------|
    /// | `words`   | B x rows          | u32, mod 2^32                                       |
    /// | `sent`    | pieces            | some rows, and the width that they are rounded to   |
    /// | returns   | B x all pieces    | bytes as they travel, every piece of whole bytes    |
    ///
    /// Error: half a unit of the width. Cost: the words read once. Only bytes leave the backend, and those of a batch at once.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if there are not whole queries, rows are not among them, or a width is not 1..=32.
    fn send_words(
        &self,
        words: &LweBatch<Self::Words>,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        check::lwe::send_words(words, sent)?;
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

/// A banded 0/1 system over Z_2^8 or Z_2^32, the linear algebra of the `band` key filter.
///
/// Row `i` has the coefficients `coeffs[i]` (bit `j` of the 256, little-endian words) at the slots
/// `starts[i] + j`, `j < width`; bit 0 is set. Rows are sorted by start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandSystem {
    /// Number of unknown slots.
    pub slots: usize,
    /// Band width w, 1 to 256.
    pub width: usize,
    /// First slot of each row, ascending, at most `slots - width`.
    pub starts: Vec<u32>,
    /// The 0/1 coefficients of each row.
    pub coeffs: Vec<[u64; 4]>,
}

/// All steps: what a backend of every protocol has.
pub trait Steps: PackOps + ColumnOps + TfheOps {}

impl<B: PackOps + ColumnOps + TfheOps> Steps for B {}

/// The offline steps of the key filters.
pub trait FilterOps: Send + Sync {
    /// Solve for the slots: `sum_j coeff[i][j] * slots[starts[i] + j] = values[i]`, byte by byte modulo 256.
    ///
    /// `values` is `rows x size` bytes in row order, `slots` receives `slots x size` bytes. Free slots are 0, so
    /// the solution is unique and the same on every backend. Source: Dietzfelbinger and Walzer, "Efficient Gauss elimination for
    /// near-quadratic matrices with one short random block per row, with applications"; over Z_2^8 here.
    ///
    /// # Errors
    /// [`OpsError::Singular`] if the rows are dependent; [`OpsError::Shape`] if a length is wrong.
    fn band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError> {
        check::filter::band_solve(system, values, size, slots)?;
        self.run_band_solve(system, values, size, slots)
    }

    /// Runs [`FilterOps::band_solve`].
    fn run_band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError>;

    /// As [`FilterOps::band_solve`], word by word modulo 2^32: `values` is `rows x size` words, `slots` receives
    /// `slots x size` words. The solution is one modulo 2^k for every k <= 32 as well. Source: as there.
    ///
    /// # Errors
    /// [`OpsError::Singular`] if the rows are dependent, which does not depend on the modulus;
    /// [`OpsError::Shape`] if a length is wrong.
    fn band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError> {
        check::filter::band_solve(system, values, size, slots)?;
        self.run_band_solve_words(system, values, size, slots)
    }

    /// Runs [`FilterOps::band_solve_words`].
    fn run_band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError>;
}
