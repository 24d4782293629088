//! Operands for timing steps. Their values are arbitrary, because the time of a step does not depend on them.

use std::{error::Error, sync::Arc};

use hush_he::{
    algorithms::{generate_keys, open_keys},
    entities::{EvaluationKeys, RingSecrets},
    params::{RingContext, RingParams},
};
use hush_math::csprng::Csprng;

use super::StepShape;
use crate::{
    OpsError,
    contract::{LweBatch, LweQueries, Memory, RLWE_POLYS, RlweBatch, Steps, ciphertext_words, poly_words},
    ntt_tiling::NttTiling,
    symbol_tiling::SymbolTiling,
    tiling::Tiling,
};

/// A step that can be run repeatedly.
pub type Run<'a> = Box<dyn FnMut() -> Result<(), OpsError> + 'a>;

/// A step with its operands, or the error that prevented it.
pub type Made<'a> = Result<Run<'a>, Box<dyn Error>>;

/// The source of the long operands of steps.
pub trait Operands<B: Steps> {
    /// Returns a byte database.
    fn db(&self, backend: &B, tiling: Tiling) -> Result<B::Db, Box<dyn Error>>;

    /// Returns a database in evaluation form.
    fn ntt_db(&self, backend: &B, ring: &B::Ring, tiling: NttTiling) -> Result<B::NttDb, Box<dyn Error>>;

    /// Returns a database of symbols of the set `set`.
    fn symbols(
        &self,
        backend: &B,
        ring: &B::Ring,
        set: RingParams,
        tiling: SymbolTiling,
    ) -> Result<B::Symbols, Box<dyn Error>>;

    /// Returns the words of `count` polynomials modulo Q_1, below their primes.
    fn polys(&self, backend: &B, ring: &B::Ring, count: usize) -> Result<B::Words, Box<dyn Error>>;

    /// Creates the step of `shape` for `batch` queries.
    fn step<'b>(&self, backend: &'b B, shape: &StepShape, batch: usize) -> Made<'b>
    where
        Self: Sized,
    {
        shape.sample(&Maker { operands: self, backend, batch })
    }
}

type Batch<B> = Result<RlweBatch<<B as Memory>::Words>, Box<dyn Error>>;
type Batches<B> = Result<Vec<RlweBatch<<B as Memory>::Words>>, Box<dyn Error>>;

/// A factory of steps for a batch on a backend.
pub struct Maker<'o, 'b, B> {
    pub(super) operands: &'o dyn Operands<B>,
    pub(super) backend: &'b B,
    pub(super) batch: usize,
}

impl<'b, B: Steps> Maker<'_, 'b, B> {
    /// Opens an RLWE set on the backend.
    pub(super) fn open(&self, params: &RingParams) -> Result<OpenRing<'b, B>, OpsError> {
        let context = Arc::new(RingContext::new(*params));
        let ring = self.backend.open_ring(context.clone())?;
        Ok(OpenRing { backend: self.backend, context, ring })
    }

    /// Creates `count` ciphertexts.
    pub(super) fn ciphertexts(&self, on: &OpenRing<'b, B>, count: usize) -> Batch<B> {
        let words = self.operands.polys(self.backend, &on.ring, RLWE_POLYS * count)?;
        Ok(RlweBatch { ciphertext_words: ciphertext_words(&on.context), words })
    }

    /// Creates `count` ciphertexts for each query.
    pub(super) fn of_each(&self, on: &OpenRing<'b, B>, count: usize) -> Batches<B> {
        (0..self.batch).map(|_| self.ciphertexts(on, count)).collect()
    }

    /// Creates the RGSW ciphertexts of `bits` bits.
    pub(super) fn bits(&self, on: &OpenRing<'b, B>, bits: usize) -> Batches<B> {
        let rows = 2 * on.context.params().fold_gadget().digits;
        (0..bits).map(|_| self.ciphertexts(on, rows)).collect()
    }

    /// Creates the words of a fold of `rows` rows for each of `batch` queries.
    pub(super) fn folded(&self, rows: usize, batch: usize) -> Result<LweBatch<B::Words>, OpsError> {
        Ok(LweBatch { rows, words: self.backend.keep(random_words(rows * batch))? })
    }

    /// Turns a step of one query into a step of the batch.
    pub(super) fn one_by_one(&self, mut run: impl FnMut() -> Result<(), OpsError> + 'b) -> Run<'b> {
        let batch = self.batch;
        Box::new(move || (0..batch).try_for_each(|_| run()))
    }
}

/// An RLWE set, opened on a backend.
pub(super) struct OpenRing<'b, B: Steps> {
    pub(super) backend: &'b B,
    pub(super) context: Arc<RingContext>,
    pub(super) ring: B::Ring,
}

impl<B: Steps> OpenRing<'_, B> {
    /// Creates a client's secrets and keys.
    pub(super) fn key_material(&self) -> Result<(RingSecrets, EvaluationKeys), Box<dyn Error>> {
        let seed = [1; 32];
        let context = &*self.context;
        let secrets = RingSecrets::from_seed(context.params(), &seed);
        let keys = generate_keys(context, &secrets, &seed);
        let keys = open_keys(context, &keys.seed, &keys.words)?;
        Ok((secrets, keys))
    }

    /// Creates a client's keys and loads them on the backend.
    pub(super) fn keys(&self) -> Result<B::Keys, Box<dyn Error>> {
        Ok(self.backend.open_evaluation_keys(&self.ring, self.key_material()?.1)?)
    }
}

/// Returns the words of `polys` polynomials modulo Q_1, below their primes.
pub fn residues(context: &RingContext, polys: usize) -> Vec<u32> {
    let kept = context.kept();
    let mut words = random_words(polys * poly_words(context));
    for (limb, words) in words.chunks_mut(kept.degree()).enumerate() {
        let p = kept.moduli()[limb % kept.limbs()];
        words.iter_mut().for_each(|word| *word = p.reduce(u64::from(*word)));
    }
    words
}

/// Returns random queries.
pub fn random_queries(cols: usize, batch: usize) -> LweQueries {
    LweQueries { cols, words: random_words(batch * cols) }
}

/// The number of random words. Longer operands repeat them, which affects no step.
const STRETCH: usize = 1 << 20;

/// Returns pseudo-random words, the same ones in every call.
pub fn random_words(count: usize) -> Vec<u32> {
    let mut words = vec![0; count];
    let (random, rest) = words.split_at_mut(STRETCH.min(count));
    Csprng::insecure_from_seed(1).fill_u32(random);
    rest.chunks_mut(STRETCH).for_each(|chunk| chunk.copy_from_slice(&random[..chunk.len()]));
    words
}
