//! The reference backend: slow and obvious. It is the oracle that every fast backend equals bit for bit.

use std::ops::Range;

use hush_he::entities::PublicMatrix;

use crate::{
    OpsError,
    contract::{BatchWords, HostMemory, LweBatch, LweOps, LweQueries},
    tiling::{TiledDb, Tiling},
};

mod band_solve;
mod chain_hint;
mod column;
pub mod expand;
mod lwe_fold;
mod lwe_hint;
mod pack;
mod reinterpret_lwe;
mod ring;
pub mod rlwe_fold;

/// Every step by its definition, on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl HostMemory for Reference {}

impl LweOps for Reference {
    type Db = TiledDb;

    fn open_db(&self, db: TiledDb) -> Result<TiledDb, OpsError> {
        Ok(db)
    }

    fn tiling(&self, db: &TiledDb) -> Tiling {
        db.tiling()
    }

    fn run_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> Result<LweBatch, OpsError> {
        Ok(lwe_fold::lwe_fold(db, queries))
    }

    fn run_lwe_hint(
        &self,
        db: &TiledDb,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<BatchWords, OpsError> {
        Ok(lwe_hint::lwe_hint(db, a, rows).into())
    }

    fn run_reinterpret_lwe(
        &self,
        words: &BatchWords,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<TiledDb, OpsError> {
        Ok(reinterpret_lwe::reinterpret_lwe(words, items, digits, cols))
    }
}
