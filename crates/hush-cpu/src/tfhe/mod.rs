//! The steps of `tfhe`, level by level: symbols are transformed to evaluation form and at once summed, and rotations.

use hush_he::entities::{RingSwitchKey, TlweWords};
use hush_ops::{
    OpsError,
    contract::{Expanded, RlweBatch, TfheOps},
    steps::poly_bytes,
    symbol_tiling::{SymbolDb, SymbolTiling},
};

use crate::{
    Cpu,
    ring::{CpuKeys, CpuRing},
};

mod private_key_switch;
mod row_sums;
mod symbol_fold;
mod turn;
mod unpack;

impl TfheOps for Cpu {
    type Symbols = SymbolDb;

    fn symbol_tiling(&self, db: &SymbolDb) -> SymbolTiling {
        db.tiling()
    }

    fn run_open_symbols(&self, _: &CpuRing, db: SymbolDb) -> Result<SymbolDb, OpsError> {
        Ok(db)
    }

    fn run_symbol_fold(
        &self,
        ring: &CpuRing,
        db: &SymbolDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        Ok(symbol_fold::symbol_fold(self, ring, db, selectors))
    }

    fn run_private_key_switch(
        &self,
        ring: &CpuRing,
        keys: &[&CpuKeys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        let queries = queries.iter().zip(keys);
        Ok(queries
            .map(|(query, keys)| private_key_switch::private_key_switch(self, ring, keys, query, rows))
            .collect())
    }

    fn run_turn(
        &self,
        ring: &CpuRing,
        batches: &[RlweBatch],
        power: usize,
    ) -> Result<Vec<RlweBatch>, OpsError> {
        Ok(batches.iter().map(|batch| turn::turn(ring, batch, power)).collect())
    }

    fn ring_switch_key<'a>(&self, keys: &'a CpuKeys) -> Option<&'a RingSwitchKey> {
        keys.switch()
    }
}

hush_ops::footprint!(Cpu: RingSwitch, |step, batch| {
    // The ciphertext of a query three times (joined, copied, rescaled), and as numbers of 64 bits.
    batch * 2 * (3 * poly_bytes(&step.ring) + size_of::<u64>() * step.ring.degree())
});
