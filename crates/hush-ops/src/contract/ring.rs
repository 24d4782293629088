//! The steps over rings.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext},
    params::RingContext,
};
use hush_math::gadget::Gadget;

use super::{BatchWords, Memory, SentPoly, WordStore};
use crate::{
    OpsError,
    ntt_tiling::{NttTiledDb, NttTiling},
    reference::ByDefinition,
    steps,
};

/// The number of polynomials of an RLWE ciphertext (a, b).
pub const RLWE_POLYS: usize = 2;

/// Returns the words of a polynomial modulo Q_1.
pub fn poly_words(ring: &RingContext) -> usize {
    ring.kept().limbs() * ring.kept().degree()
}

/// Returns the words of a ciphertext modulo Q_1.
pub fn ciphertext_words(ring: &RingContext) -> usize {
    RLWE_POLYS * poly_words(ring)
}

/// A batch of RLWE ciphertexts in evaluation form, with canonical residues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RlweBatch<W = BatchWords> {
    /// The words of one ciphertext: two halves of `limbs * N`.
    pub ciphertext_words: usize,
    /// The words: `[ciphertext][a, b][limb][slot]`.
    pub words: W,
}

impl<W: WordStore> RlweBatch<W> {
    /// Returns the number of ciphertexts.
    pub fn count(&self) -> usize {
        self.words.len().checked_div(self.ciphertext_words).unwrap_or(0)
    }
}

impl RlweBatch {
    /// Returns ciphertext `index`: a, then b.
    pub fn ciphertext(&self, index: usize) -> &[u32] {
        &self.words[index * self.ciphertext_words..][..self.ciphertext_words]
    }
}

/// An expanded query, modulo Q_1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded<W = BatchWords> {
    /// A selector for every row: phase `Delta * coefficient`.
    pub selectors: RlweBatch<W>,
    /// An RGSW ciphertext of 2 l rows for every fold: first the rows multiplied by the digits of a (phase `bit g_k s`), then
    /// those multiplied by the digits of b (phase `bit g_k`).
    pub bits: Vec<RlweBatch<W>>,
}

/// The order of the ciphertexts that [`RingOps::rgsw_fold`] folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOrder {
    /// `[entry][plane]`: the order in which they are packed.
    EntryMajor,
    /// `[plane][entry]`: the order of the columns of a database of ring elements.
    PlaneMajor,
}

impl EntryOrder {
    /// Returns the index of plane `plane` of entry `entry` among the ciphertexts of `entries` entries of `planes` planes.
    pub fn index(self, entry: usize, plane: usize, entries: usize, planes: usize) -> usize {
        match self {
            Self::EntryMajor => entry * planes + plane,
            Self::PlaneMajor => plane * entries + entry,
        }
    }
}

/// The steps over rings, for `onion`.
///
/// A backend's [`RingOps::Ring`] holds its tables for one parameter set. The other operands must belong to that set.
pub trait RingOps: Memory {
    /// A parameter set with this backend's tables.
    type Ring: Send + Sync;
    /// A database in evaluation form in this backend's memory.
    type NttDb: Send + Sync;
    /// A client's evaluation keys in this backend's memory.
    type Keys: Send + Sync;

    /// Makes the tables of a parameter set.
    fn open_ring(&self, context: Arc<RingContext>) -> Result<Self::Ring, OpsError>;

    /// Returns the parameter set.
    fn context<'a>(&self, ring: &'a Self::Ring) -> &'a RingContext;

    /// Returns the shape of a database.
    fn ntt_tiling(&self, db: &Self::NttDb) -> NttTiling;

    /// Loads a tiled database.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if its degree or limbs are not those of R modulo Q_1.
    fn open_ntt_db(&self, ring: &Self::Ring, db: NttTiledDb) -> Result<Self::NttDb, OpsError> {
        steps::rlwe_fold::check_db(self.context(ring), db.tiling())?;
        self.run_open_ntt_db(ring, db)
    }

    /// Runs [`RingOps::open_ntt_db`].
    fn run_open_ntt_db(&self, ring: &Self::Ring, db: NttTiledDb) -> Result<Self::NttDb, OpsError>;

    /// Copies a database to the host in the layout of a file, which [`RingOps::open_ntt_db`] loads. Padding is zeros.
    fn read_ntt_db(&self, ring: &Self::Ring, db: &Self::NttDb) -> Result<NttTiledDb, OpsError>;

    /// Loads a client's keys.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the number of keys, rows or words is not that of the parameter set.
    fn open_evaluation_keys(&self, ring: &Self::Ring, keys: EvaluationKeys) -> Result<Self::Keys, OpsError> {
        check_keys(self.context(ring), &keys)?;
        self.run_open_evaluation_keys(ring, keys)
    }

    /// Runs [`RingOps::open_evaluation_keys`].
    fn run_open_evaluation_keys(
        &self,
        ring: &Self::Ring,
        keys: EvaluationKeys,
    ) -> Result<Self::Keys, OpsError>;

    /// Transforms plaintexts to evaluation form (step 5, offline).
    ///
    /// | name      | shape          | unit                                              |
    /// |-----------|----------------|---------------------------------------------------|
    /// | `symbols` | plaintexts x N | below t = 2^k; lifted centred to `-t/2..t/2`      |
    /// | returns   | plaintexts x limbs x N | evaluation form modulo the kept primes    |
    ///
    /// Cost: a transform a plaintext and limb. The centred lift keeps the noise free of a common offset.
    /// Source: VIPIR section 3.2, step (5).
    fn ntt_db(&self, ring: &Self::Ring, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        steps::ntt_db::check(self.context(ring), symbols)?;
        self.run_ntt_db(ring, symbols)
    }

    /// Runs [`RingOps::ntt_db`].
    fn run_ntt_db(&self, ring: &Self::Ring, symbols: &[u32]) -> Result<Vec<u32>, OpsError>;

    /// Expands queries into selectors and RGSW ciphertexts, each with the keys of its client.
    ///
    /// | name      | shape                         | unit                                            |
    /// |-----------|-------------------------------|-------------------------------------------------|
    /// | `queries` | B                             | RLWE modulo Q_e                                 |
    /// | returns   | B x (`rows` and `folds` RGSW) | RLWE modulo Q_1                                 |
    ///
    /// 1. A binary tree of h levels, one Subs a node: level j maps a node c to `c + c'` and `(c - c') X^(-2^j)`,
    ///    `c' = Subs(c, N / 2^j + 1)`. Leaf v is coefficient reverse(v) of the query times `2^h`; only nodes above a
    ///    wanted leaf are computed.
    /// 2. The key for s^2 makes the bottom rows of RGSW ciphertexts: `(a', b') = KS(a)`, `a' += b`.
    /// 3. The dropped prime is divided out.
    ///
    /// Error: [`hush_he::params::RingNoise`], fields `leaf`, `selector`, `bottom`. Cost of a query: `leaves + h` Subs of
    /// `limbs (1 + l)` transforms each. Source: OnionPIRv2 section 3.3, algorithms 2 and 3
    /// (`docs/explanation/protocols/onion.md` has the misprint of algorithm 2); this project added dropping a prime after the
    /// expansion.
    fn expand(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Self::Words>>, OpsError> {
        self.called(steps::expand::check(self.context(ring), keys.len(), queries, rows, folds)?);
        self.run_expand(ring, keys, queries, rows, folds)
    }

    /// Runs [`RingOps::expand`].
    fn run_expand(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Self::Words>>, OpsError>;

    /// Folds the first dimension (step 6): `out[q][column] = sum_row db[row][column] * selectors[q][row]`.
    ///
    /// | name        | shape              | unit                          |
    /// |-------------|--------------------|-------------------------------|
    /// | `db`        | rows (D0) x columns | plaintexts, evaluation form  |
    /// | `selectors` | B x rows           | RLWE modulo Q_1               |
    /// | returns     | B x columns        | RLWE modulo Q_1               |
    ///
    /// Error: `sqrt(D0 N) t / sqrt(12)` times that of a selector (`RingNoise::first`). Cost: one pass over the database;
    /// two products of words an entry and query. Source: VIPIR section 3.2, step (6) (RowSel).
    fn rlwe_fold(
        &self,
        ring: &Self::Ring,
        db: &Self::NttDb,
        selectors: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError> {
        self.called(steps::rlwe_fold::check(self.context(ring), self.ntt_tiling(db), selectors)?);
        self.run_rlwe_fold(ring, db, selectors)
    }

    /// Runs [`RingOps::rlwe_fold`].
    fn run_rlwe_fold(
        &self,
        ring: &Self::Ring,
        db: &Self::NttDb,
        selectors: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError>;

    /// Folds the entries of each query to one, plane by plane (step 7): `out[j] = x[2j] + bit (x[2j+1] - x[2j])`, the lowest bit
    /// of the index first.
    ///
    /// | name      | shape                | unit                                                            |
    /// |-----------|----------------------|-----------------------------------------------------------------|
    /// | `entries` | B x entries x planes | RLWE modulo Q_1, in the order that `order` says                 |
    /// | `bits`    | B x folds x 2 l rows | RLWE modulo Q_1: an RGSW ciphertext a fold ([`Expanded::bits`]) |
    /// | returns   | B x planes           | RLWE modulo Q_1                                                 |
    ///
    /// The number of entries is 1 to `2^folds`. If a round has an odd number, zero stands in for the missing entry.
    ///
    /// Error: each fold adds `RingNoise::fold`. Cost of a plane: `entries - 1` external products (and one for every odd end) of
    /// `2 limbs (1 + l)` transforms each. Source: VIPIR section 3.2, step (7) (ColTor); OnionPIRv2 section 3.4 for one
    /// bit a fold; PPIR algorithms 3 to 6 are the same with other block sizes.
    fn rgsw_fold(
        &self,
        ring: &Self::Ring,
        entries: &[&RlweBatch<Self::Words>],
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch<Self::Words>]],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError> {
        let step = steps::rgsw_fold::check(self.context(ring), entries, planes, bits)?;
        self.called(step);
        self.run_rgsw_fold(ring, entries, step.entries, planes, order, bits)
    }

    /// Runs [`RingOps::rgsw_fold`] for `count` entries a query.
    fn run_rgsw_fold(
        &self,
        ring: &Self::Ring,
        entries: &[&RlweBatch<Self::Words>],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch<Self::Words>]],
    ) -> Result<Vec<RlweBatch<Self::Words>>, OpsError>;

    /// Packs the ciphertexts 2i and 2i + 1 of each query into three polynomials `a, b_0, b_1` with phases `b_j + a s_j`, with the
    /// keys of its client. If the number of ciphertexts is odd, the last one is left out.
    ///
    /// | name      | shape                                  | unit                              |
    /// |-----------|----------------------------------------|-----------------------------------|
    /// | `batches` | B x count                              | RLWE modulo Q_1                   |
    /// | returns   | B x count / 2 x 3 x limbs x N words    | evaluation form modulo Q_1        |
    ///
    /// Error: `RingNoise::pack`. Cost of a pair: `2 limbs (1 + l)` transforms. Source: this project, after SpiralPack (Menon, Wu).
    ///
    /// # Errors
    /// [`OpsError::Shape`] if there are not as many keys as batches, if batches differ in their number of whole ciphertexts, or
    /// if the set does not pack pairs ([`hush_he::params::RingParams::packs_pairs`]).
    fn pack_pairs(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        batches: &[&RlweBatch<Self::Words>],
    ) -> Result<Vec<Self::Words>, OpsError> {
        let step = steps::pack_pairs::check(self.context(ring), keys.len(), batches)?;
        self.called(step);
        self.run_pack_pairs(ring, keys, batches, step.plaintexts / 2)
    }

    /// Runs [`RingOps::pack_pairs`] for `pairs` pairs a query.
    fn run_pack_pairs(
        &self,
        ring: &Self::Ring,
        keys: &[&Self::Keys],
        batches: &[&RlweBatch<Self::Words>],
        pairs: usize,
    ) -> Result<Vec<Self::Words>, OpsError>;

    /// Switches polynomials modulo Q_1 to powers of two, `round(c 2^bits / Q_1) mod 2^bits`, half up, and packs them: for each
    /// query, the bytes of its polynomials, one polynomial after another.
    ///
    /// | name    | shape                        | unit                                                             |
    /// |---------|------------------------------|------------------------------------------------------------------|
    /// | `polys` | B x polynomials x limbs x N  | evaluation form modulo Q_1                                       |
    /// | `first` |                              | the first of each of `polys` that is sent                        |
    /// | `sent`  | polynomials from it on       | a width, 1 to 48, and some coefficients                          |
    /// | returns | B x `sent`                   | bytes as they travel, every polynomial of whole bytes            |
    ///
    /// Error: `sqrt(N / 18)` of the new a, and half a unit of b (`RingNoise::response`). Source: OnionPIRv2 section 3.4, VIPIR
    /// appendix D.5; a power of two in place of a prime. Only bytes leave the backend, those of a batch at once.
    fn mod_switch(
        &self,
        ring: &Self::Ring,
        polys: &[&Self::Words],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        self.called(steps::mod_switch::check(self.context(ring), polys, first, sent)?);
        self.run_mod_switch(ring, polys, first, sent)
    }

    /// Runs [`RingOps::mod_switch`].
    fn run_mod_switch(
        &self,
        ring: &Self::Ring,
        polys: &[&Self::Words],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError>;
}

/// Returns an error unless the keys have the rows and limbs of the parameter set.
fn check_keys(ring: &RingContext, keys: &EvaluationKeys) -> Result<(), OpsError> {
    let step = "open_evaluation_keys";
    let params = ring.params();
    let words = ring.full().limbs() * ring.full().degree();
    let check = |key: &KeySwitchKey, gadget: Gadget| {
        OpsError::check_shape(step, "rows of a key", gadget.digits, key.rows.len())?;
        key.rows.iter().try_for_each(|row| {
            OpsError::check_shape(
                step,
                "words of a row",
                2 * words,
                row.a.words().len() + row.b.words().len(),
            )
        })
    };
    OpsError::check_shape(step, "levels", params.levels().len(), keys.levels.len())?;
    keys.levels.iter().zip(params.levels()).try_for_each(|(key, gadget)| check(key, *gadget))?;
    check(&keys.square, params.square_gadget())?;
    keys.pack.iter().try_for_each(|rows| {
        OpsError::check_shape(step, "rows of a packing key", params.pack_gadget().digits, rows.len())?;
        rows.iter().try_for_each(|row| {
            let words = row.a.words().len() + row.b.iter().map(|b| b.words().len()).sum::<usize>();
            OpsError::check_shape(step, "words of a packing row", 3 * poly_words(ring), words)
        })
    })
}

impl<B: ByDefinition> RingOps for B {
    type Ring = Arc<RingContext>;
    type NttDb = NttTiledDb;
    type Keys = EvaluationKeys;

    fn open_ring(&self, context: Arc<RingContext>) -> Result<Arc<RingContext>, OpsError> {
        Ok(context)
    }

    fn context<'a>(&self, ring: &'a Arc<RingContext>) -> &'a RingContext {
        ring
    }

    fn ntt_tiling(&self, db: &NttTiledDb) -> NttTiling {
        db.tiling()
    }

    fn run_open_ntt_db(&self, _ring: &Arc<RingContext>, db: NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db)
    }

    fn read_ntt_db(&self, _ring: &Arc<RingContext>, db: &NttTiledDb) -> Result<NttTiledDb, OpsError> {
        Ok(db.clone())
    }

    fn run_open_evaluation_keys(
        &self,
        _ring: &Arc<RingContext>,
        keys: EvaluationKeys,
    ) -> Result<EvaluationKeys, OpsError> {
        Ok(keys)
    }

    fn run_ntt_db(&self, ring: &Arc<RingContext>, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        Ok(steps::ntt_db::reference(ring, symbols))
    }

    fn run_expand(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded>, OpsError> {
        let queries = queries.iter().zip(keys);
        Ok(queries.map(|(query, keys)| self.define_expand(ring, keys, query, rows, folds)).collect())
    }

    fn run_rlwe_fold(
        &self,
        ring: &Arc<RingContext>,
        db: &NttTiledDb,
        selectors: &[&RlweBatch],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        Ok(selectors.iter().map(|selectors| self.define_rlwe_fold(ring, db, selectors)).collect())
    }

    fn run_rgsw_fold(
        &self,
        ring: &Arc<RingContext>,
        entries: &[&RlweBatch],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch]],
    ) -> Result<Vec<RlweBatch>, OpsError> {
        let index = |entry, plane| order.index(entry, plane, count, planes);
        let queries = entries.iter().zip(bits);
        Ok(queries
            .map(|(entries, bits): (&&RlweBatch, &&[RlweBatch])| {
                self.define_rgsw_fold(ring, entries, count, planes, index, bits)
            })
            .collect())
    }

    fn run_pack_pairs(
        &self,
        ring: &Arc<RingContext>,
        keys: &[&EvaluationKeys],
        batches: &[&RlweBatch],
        pairs: usize,
    ) -> Result<Vec<BatchWords>, OpsError> {
        let batches = batches.iter().zip(keys);
        Ok(batches.map(|(batch, keys)| self.define_pack_pairs(ring, keys, batch, pairs)).collect())
    }

    fn run_mod_switch(
        &self,
        ring: &Arc<RingContext>,
        polys: &[&BatchWords],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok(polys.iter().map(|polys| steps::mod_switch::reference(ring, polys, first, sent)).collect())
    }
}
