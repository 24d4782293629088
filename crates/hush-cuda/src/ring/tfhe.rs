//! The steps of `tfhe`: a fold transforms a database of symbols (`databases/symbols.rs`), and a rotation turns ciphertexts
//! (`turn.rs`).

use hush_he::entities::{RingSwitchKey, TlweWords};
use hush_ops::{
    OpsError,
    contract::{Expanded, Memory, RlweBatch, TfheOps},
    steps::{poly_bytes, private_key_switch::on_host},
    symbol_tiling::{SymbolDb, SymbolTiling},
};

use super::{CudaKeys, CudaRing, CudaSymbols, databases::symbols, turn};
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

    /// Runs on the host, as the step exists only for comparison.
    fn run_private_key_switch(
        &self,
        ring: &CudaRing,
        keys: &[&CudaKeys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
        let kept = |batch: RlweBatch| {
            let words = self.keep(batch.words.to_vec())?;
            Ok(RlweBatch { ciphertext_words: batch.ciphertext_words, words })
        };
        queries
            .iter()
            .zip(keys)
            .map(|(query, keys): (&TlweWords, &&CudaKeys)| {
                let keys = keys.private().expect("keys of a set of TLWE words");
                let Expanded { selectors, bits } = on_host(ring.context(), keys, query, rows);
                let bits = bits.into_iter().map(kept).collect::<Result<_, OpsError>>()?;
                Ok(Expanded { selectors: kept(selectors)?, bits })
            })
            .collect()
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

hush_ops::footprint!(Cuda: PrivateKeySwitch, |step, batch| {
    4 * batch * step.folds * step.ring.fold_gadget().digits * poly_bytes(&step.ring)
});

hush_ops::footprint!(Cuda: RingSwitch, |step, batch| 2 * batch * poly_bytes(&step.ring));
