//! The steps of table look-ups in the manner of TFHE: the steps of `tfhe` beyond those over rings.

use std::sync::Arc;

use hush_he::{
    algorithms::ring_switch,
    entities::{EvaluationKeys, RingSwitchKey, TlweWords},
    params::RingContext,
};
use rayon::prelude::*;

use super::{EntryOrder, Expanded, RingOps, RlweBatch, WordStore, ciphertext_words, poly_words};
use crate::{
    OpsError,
    reference::ByDefinition,
    steps,
    symbol_tiling::{SymbolDb, SymbolTiling},
};

/// The steps of `tfhe`.
pub trait TfheOps: RingOps {
    /// A database of symbols in this backend's memory.
    type Symbols: Send + Sync;

    /// Returns the shape of a database.
    fn symbol_tiling(&self, db: &Self::Symbols) -> SymbolTiling;

    /// Loads a database of symbols.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if its degree or bits of a symbol are not those of the set, or a kept prime has more than 31 bits.
    fn open_symbols(&self, ring: &Self::Ring, db: SymbolDb) -> Result<Self::Symbols, OpsError> {
        steps::symbol_fold::check_db("open_symbols", self.context(ring), db.tiling())?;
        self.run_open_symbols(ring, db)
    }

    /// Runs [`TfheOps::open_symbols`].
    fn run_open_symbols(&self, ring: &Self::Ring, db: SymbolDb) -> Result<Self::Symbols, OpsError>;

    /// Folds a database of symbols (steps 5 and 6 at once): [`RingOps::rlwe_fold`] of the evaluation forms ([`RingOps::ntt_db`]),
    /// which are recomputed for every batch.
    ///
    /// | name        | shape               | unit                          |
    /// |-------------|---------------------|-------------------------------|
    /// | `db`        | rows (D0) x columns | plaintexts, symbols           |
    /// | `selectors` | B x rows            | RLWE modulo Q_1               |
    /// | returns     | B x columns         | RLWE modulo Q_1               |
    ///
    /// Error: that of [`RingOps::rlwe_fold`]. Cost: one pass over the database; a transform a plaintext and limb, shared by a
    /// batch; two products of words an entry and query. Source: PPIR folds trivial ciphertexts of the table, which have the
    /// table's symbols.
    fn symbol_fold(
        &self,
        ring: &Self::Ring,
        db: &Self::Symbols,
        selectors: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError> {
        self.called(steps::symbol_fold::check(self.context(ring), self.symbol_tiling(db), selectors)?);
        self.run_symbol_fold(ring, db, selectors)
    }

    /// Runs [`TfheOps::symbol_fold`].
    fn run_symbol_fold(
        &self,
        ring: &Self::Ring,
        db: &Self::Symbols,
        selectors: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError>;

    /// Rotates the ciphertexts of each query by `X^-r`, where r is the integer of the encrypted bits, the lowest first. Bit k
    /// folds x with `X^(-2^k) x`, so that coefficient r of the message comes first in the end.
    ///
    /// | name          | shape                | unit                                                            |
    /// |---------------|----------------------|-----------------------------------------------------------------|
    /// | `ciphertexts` | B x count            | RLWE modulo Q_1                                                 |
    /// | `bits`        | B x folds x 2 l rows | RLWE modulo Q_1: an RGSW ciphertext a bit ([`super::Expanded`]) |
    /// | returns       | B x count            | RLWE modulo Q_1                                                 |
    ///
    /// Error and cost: those of one fold of [`RingOps::rgsw_fold`] for every bit. Source: TFHE (Chillotti et al.) section 4, blind
    /// rotation, with powers of two as exponents.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if queries differ in their number of ciphertexts or of bits, or if there are more bits than log2 N.
    fn rotate(
        &self,
        ring: &Self::Ring,
        ciphertexts: &[&RlweBatch<Self::Words>],
        bits: &[&[RlweBatch<Self::Words>]],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError> {
        let step = steps::rotate::check(self.context(ring), ciphertexts, bits)?;
        self.called(step);
        let mut rotated = ciphertexts
            .iter()
            .map(|batch: &&RlweBatch<Self::Words>| {
                let words = self.join(&[(&batch.words, 0..batch.words.len())])?;
                Ok(RlweBatch { ciphertext_words: batch.ciphertext_words, words })
            })
            .collect::<Result<Vec<_>, OpsError>>()?;
        for fold in 0..if step.count == 0 { 0 } else { step.bits } {
            let pairs = self.run_turn(ring, &rotated, 1 << fold)?;
            let round: Vec<_> = bits.iter().map(|bits| &bits[fold..=fold]).collect();
            let pairs: Vec<_> = pairs.iter().collect();
            rotated = self.run_rgsw_fold(ring, &pairs, 2, step.count, EntryOrder::EntryMajor, &round)?;
        }
        Ok(rotated)
    }

    /// Returns, for each query, its ciphertexts, then the same ciphertexts times `X^-power`, for [`TfheOps::rotate`].
    fn run_turn(
        &self,
        ring: &Self::Ring,
        batches: &[RlweBatch<Self::Words>],
        power: usize,
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError>;

    /// Switches TLWE words to selectors and RGSW ciphertexts, each with the keys of its client (private key switching).
    ///
    /// | name      | shape                         | unit                                                    |
    /// |-----------|-------------------------------|---------------------------------------------------------|
    /// | `queries` | B                             | words modulo `2^bits`: rows, then digits of every fold  |
    /// | returns   | B x (`rows` and `folds` RGSW) | RLWE modulo Q_1                                         |
    ///
    /// The words of the mask and the body are centred. A top row, or a selector, is `sum_i a_i key_i + b x` with `b x` in the
    /// half b; a bottom row uses the other key and has `b x` in the half a. Then the dropped prime is divided out.
    ///
    /// Error: [`hush_he::params::RingNoise`], fields `selector`, `top`, `bottom`. Cost of a query: for every row, n ciphertexts
    /// times a digit each. Source: PPIR algorithm 2.
    fn private_key_switch(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        queries: &[TlweWords],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Self::Words>>, OpsError> {
        let step = steps::private_key_switch::check(self.context(ring), keys.len(), queries, rows, folds)?;
        self.called(step);
        self.run_private_key_switch(ring, keys, queries, rows)
    }

    /// Runs [`TfheOps::private_key_switch`].
    fn run_private_key_switch(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded<Self::Words>>, OpsError>;

    /// Switches the first ciphertext of each query to the small ring of the set, with the keys of its client, and to the widths
    /// of an answer, by [`ring_switch`](hush_he::algorithms::ring_switch()). All backends do this on the host.
    ///
    /// | name          | shape                      | unit                                                 |
    /// |---------------|----------------------------|------------------------------------------------------|
    /// | `ciphertexts` | B x 1 or more              | RLWE modulo Q_1                                      |
    /// | returns       | B x (rank + 1) x small N   | below `2^bits`, in natural order of the coefficients |
    fn ring_switch(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        ciphertexts: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<Vec<Vec<u64>>>, OpsError> {
        let context = self.context(ring);
        self.called(steps::ring_switch::check(context, keys.len(), ciphertexts)?);
        let firsts: Vec<_> =
            ciphertexts.iter().map(|batch| (&batch.words, 0..ciphertext_words(context))).collect();
        let joined = self.join(&firsts)?;
        let words = self.read(&joined)?;
        let keys: Vec<_> = keys.iter().map(|keys| self.ring_switch_key(keys)).collect();
        Ok(words
            .par_chunks_exact(ciphertext_words(context))
            .zip(&keys)
            .map(|(words, key): (&[u32], &Option<&RingSwitchKey>)| {
                let (a, b) = words.split_at(poly_words(context));
                let key = key.expect("the keys are those of a set that has one");
                ring_switch(context, key, a.to_vec(), b.to_vec())
            })
            .collect())
    }

    /// Returns the part of a client's keys that [`TfheOps::ring_switch`] needs; `None` in sets without a small ring.
    fn ring_switch_key<'a>(&self, keys: &'a Self::Keys) -> Option<&'a RingSwitchKey>;
}

impl<B: ByDefinition> TfheOps for B {
    type Symbols = SymbolDb;

    fn symbol_tiling(&self, db: &SymbolDb) -> SymbolTiling {
        db.tiling()
    }

    fn run_open_symbols(&self, _: &Arc<RingContext>, db: SymbolDb) -> Result<SymbolDb, OpsError> {
        Ok(db)
    }

    fn run_symbol_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &SymbolDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        self.run_rlwe_fold(ring, &steps::symbol_fold::evaluated(ring, db)?, selectors)
    }

    fn run_private_key_switch(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        Ok(queries
            .iter()
            .zip(keys)
            .map(|(query, keys): (&TlweWords, &&EvaluationKeys)| {
                let keys = keys.private.as_ref().expect("keys of a set of TLWE words");
                steps::private_key_switch::reference(ring, keys, query, rows)
            })
            .collect())
    }

    fn run_turn(
        &self,
        ring: &Arc<RingContext>,
        batches: &[RlweBatch],
        power: usize,
    ) -> Result<Vec<RlweBatch>, OpsError> {
        Ok(batches.iter().map(|batch| steps::rotate::turn(ring, batch, power)).collect())
    }

    fn ring_switch_key<'a>(&self, keys: &'a EvaluationKeys) -> Option<&'a RingSwitchKey> {
        keys.switch.as_ref()
    }
}
