//! The steps of `tfhe`: a database of symbols is held in evaluation form, as one that is stored so; a ciphertext is turned on the
//! host, since a query has one or two.

use hush_he::entities::{RingSwitchKey, TlweWords};
use hush_ops::{
    OpsError,
    contract::{Expanded, Memory, RingOps, RlweBatch, TfheOps},
    ntt_tiling::NttTiledDb,
    reference::{private_key_switch::private_key_switch, tfhe::turned},
    symbol_tiling::{SymbolDb, SymbolTiling},
};

use super::{CudaKeys, CudaNttDb, CudaRing};
use crate::{Cuda, device::Buffer};

/// A database of symbols on the device.
pub struct CudaSymbols {
    tiling: SymbolTiling,
    evaluated: CudaNttDb,
}

impl TfheOps for Cuda {
    type Symbols = CudaSymbols;

    fn symbol_tiling(&self, db: &CudaSymbols) -> SymbolTiling {
        db.tiling
    }

    /// The evaluation form goes through the memory of the host.
    fn run_open_symbols(&self, ring: &CudaRing, db: SymbolDb) -> Result<CudaSymbols, OpsError> {
        let tiling = db.tiling();
        let evaluated = tiling.evaluated(ring.context().kept().limbs())?;
        let mut polys = Vec::with_capacity(evaluated.bytes() / size_of::<u32>());
        for row in 0..tiling.rows() {
            let of_column = |column| tiling.unpack(db.plaintext(row, column));
            let symbols: Vec<u32> = (0..tiling.columns()).flat_map(of_column).collect();
            polys.extend(self.run_ntt_db(ring, &symbols)?);
        }
        let db = NttTiledDb::from_polys(evaluated, &polys);
        Ok(CudaSymbols { tiling, evaluated: self.run_open_ntt_db(ring, db)? })
    }

    fn run_symbol_fold(
        &self,
        ring: &CudaRing,
        db: &CudaSymbols,
        selectors: &[&RlweBatch<Buffer<u32>>],
    ) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
        self.run_rlwe_fold(ring, &db.evaluated, selectors)
    }

    /// On the host: it is there for comparison.
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
        let switch = |(query, keys): (&TlweWords, &&CudaKeys)| {
            let keys = keys.private().expect("keys of a set of TLWE words");
            let Expanded { selectors, bits } = private_key_switch(ring.context(), keys, query, rows);
            let bits = bits.into_iter().map(kept).collect::<Result<_, OpsError>>()?;
            Ok(Expanded { selectors: kept(selectors)?, bits })
        };
        queries.iter().zip(keys).map(switch).collect()
    }

    fn run_turn(
        &self,
        ring: &CudaRing,
        batch: &RlweBatch<Buffer<u32>>,
        power: usize,
    ) -> Result<RlweBatch<Buffer<u32>>, OpsError> {
        let words = self.read(&batch.words)?;
        let both = [&words[..], &turned(ring.context(), &words, power)].concat();
        Ok(RlweBatch { ciphertext_words: batch.ciphertext_words, words: self.keep(both)? })
    }

    fn ring_switch_key<'a>(&self, keys: &'a CudaKeys) -> Option<&'a RingSwitchKey> {
        keys.switch()
    }
}
