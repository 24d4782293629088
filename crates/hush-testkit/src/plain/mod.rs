//! The backend without encryption: a query is a plain selection vector, so a step only has to touch the columns
//! that the query selects. It tests a protocol's index arithmetic in microseconds.

mod column;
mod ring;

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use hush_ops::{
    OpsError,
    contract::{BatchWords, HostMemory, LweBatch, LweOps, LweQueries, Rounding, SentRows},
    reference::{PackByDefinition, Reference},
    tiling::{TiledDb, Tiling},
};

/// Index arithmetic only; the results equal [`Reference`]'s for every input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl HostMemory for Plain {}

/// A set without encryption has an LWE dimension of 1, so that the definitions cost little.
impl PackByDefinition for Plain {}

impl LweOps for Plain {
    type Db = TiledDb;

    fn open_db(&self, db: TiledDb) -> Result<TiledDb, OpsError> {
        Ok(db)
    }

    fn tiling(&self, db: &TiledDb) -> Tiling {
        db.tiling()
    }

    fn run_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> Result<LweBatch, OpsError> {
        let rows = db.tiling().rows();
        let mut words = vec![0u32; queries.batch() * rows];
        let nonzero = queries.words.iter().enumerate().filter(|&(_, &word)| word != 0);
        for (index, word) in nonzero {
            let (b, c) = (index / queries.cols, index % queries.cols);
            for (r, sum) in words[b * rows..][..rows].iter_mut().enumerate() {
                *sum = sum.wrapping_add((db.at(r, c) as u32).wrapping_mul(*word));
            }
        }
        Ok(LweBatch { rows, words: words.into() })
    }

    fn run_lwe_hint(
        &self,
        db: &TiledDb,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<BatchWords, OpsError> {
        Reference.run_lwe_hint(db, a, rows)
    }

    fn run_reinterpret_lwe(
        &self,
        words: &BatchWords,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<TiledDb, OpsError> {
        Reference.run_reinterpret_lwe(words, queries, items, digits, cols)
    }

    fn run_send_words(
        &self,
        words: &LweBatch,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Reference.run_send_words(words, sent, rounding)
    }
}
