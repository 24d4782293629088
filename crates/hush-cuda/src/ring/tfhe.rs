//! The steps of `tfhe`: a fold transforms a database of symbols (`databases/symbols.rs`), TLWE words are switched to RLWE
//! ciphertexts (`expand/private_key_switch.rs`), and a rotation turns ciphertexts (`turn.rs`).

use hush_he::entities::{RingSwitchKey, TlweWords};
use hush_ops::{
    OpsError,
    contract::{Expanded, RlweBatch, TfheOps},
    steps::poly_bytes,
    symbol_tiling::{SymbolDb, SymbolTiling},
};

use super::{
    CudaKeys, CudaRing, CudaSymbols, databases::symbols, expand::private_key_switch::private_key_switch, turn,
};
use crate::{Cuda, device::Buffer};

impl TfheOps for Cuda {
    type Symbols = CudaSymbols;

    fn symbol_tiling(&self, db: &CudaSymbols) -> SymbolTiling {
        db.tiling()
    }

    fn run_open_symbols(&self, _: &CudaRing, db: SymbolDb) -> Result<CudaSymbols, OpsError> {
        Ok(if self.symbols_on_host() {
            CudaSymbols::on_host(db)
        } else {
            CudaSymbols::upload(self.device(), &db)?
        })
    }

    fn run_symbol_fold(
        &self,
        ring: &CudaRing,
        db: &CudaSymbols,
        selectors: &[&RlweBatch<Buffer<u32>>],
    ) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
        symbols::symbol_fold(self, ring, db, selectors)
    }

    fn run_private_key_switch(
        &self,
        ring: &CudaRing,
        keys: &[&CudaKeys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
        private_key_switch(self, ring, keys, queries, rows)
    }

    fn run_turn(
        &self,
        ring: &CudaRing,
        batches: &[RlweBatch<Buffer<u32>>],
        power: usize,
    ) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
        turn::turn(self.device(), ring, batches, power)
    }

    fn ring_switch_key<'a>(&self, keys: &'a CudaKeys) -> Option<&'a RingSwitchKey> {
        keys.switch()
    }
}

hush_ops::footprint!(Cuda: RingSwitch, |step, batch| 2 * batch * poly_bytes(&step.ring));
