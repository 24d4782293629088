//! The reference backend: slow and obvious. It is the oracle that every fast backend equals bit for bit.

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use crate::{
    OpsError,
    contract::{BatchWords, HostMemory, LweBatch, LweOps, LweQueries},
    tiling::TiledDb,
};

pub mod band_solve;
mod chain_hint;
mod column;
pub mod column_shapes;
pub mod expand;
mod lwe_fold;
mod lwe_hint;
mod pack;
pub mod pack_shapes;
mod reinterpret_lwe;
mod ring;
pub mod ring_shapes;
pub mod rlwe_fold;
pub mod shapes;

pub use column::lift_words;
pub use pack::round_word_up;

/// Every step by its definition, on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl HostMemory for Reference {}

impl LweOps for Reference {
    type Db = TiledDb;

    fn open_db(&self, db: TiledDb) -> Result<TiledDb, OpsError> {
        Ok(db)
    }

    fn lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> Result<LweBatch, OpsError> {
        shapes::check_fold(db.tiling(), queries)?;
        Ok(lwe_fold::lwe_fold(db, queries))
    }

    fn lwe_hint(&self, db: &TiledDb, a: &PublicMatrix, rows: Range<usize>) -> Result<BatchWords, OpsError> {
        shapes::check_hint(db.tiling(), a, &rows)?;
        Ok(lwe_hint::lwe_hint(db, a, rows).into())
    }

    fn reinterpret_lwe(&self, words: &BatchWords, items: usize, digits: usize) -> Result<TiledDb, OpsError> {
        let cols = shapes::check_reinterpret(words.len(), items, digits)?;
        Ok(reinterpret_lwe::reinterpret_lwe(words, items, digits, cols))
    }
}
