//! A backend that notes which steps of the contract are called, with the shapes of their operands, and has the reference do them.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use hush_he::{
    entities::{ColumnMasks, EvaluationKeys, PublicMatrix, RingSwitchKey, RlweCiphertext, TlweWords},
    params::RingContext,
};
use hush_math::poly::{Coeff, Poly};
use hush_ops::{
    OpsError,
    contract::{
        ChainPolys, ChainedHint, ColumnOps, EntryOrder, Expanded, HostMemory, LweBatch, LweOps, LweQueries,
        Memory, PackOps, PowerKeys, RingOps, RlweBatch, Rounding, SentPoly, SentRows, TfheOps, WordStore,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    path::StepShape,
    reference::Reference,
    symbol_tiling::{SymbolDb, SymbolTiling},
    tiling::{TiledDb, Tiling},
};

type Words = <Reference as Memory>::Words;
type Db = <Reference as LweOps>::Db;
type Ring = <Reference as RingOps>::Ring;
type NttDb = <Reference as RingOps>::NttDb;
type Keys = <Reference as RingOps>::Keys;
type Symbols = <Reference as TfheOps>::Symbols;
type Chain = <Reference as ColumnOps>::Chain;
type ChainPlan = <Reference as ColumnOps>::ChainPlan;
type Ciphertexts = Result<Vec<RlweBatch<Words>>, OpsError>;

/// Notes the steps of one query.
#[derive(Default)]
pub(crate) struct Recorder {
    steps: Mutex<Vec<StepShape>>,
    /// Whether pairs were packed that are not switched yet.
    has_pairs: AtomicBool,
}

impl Recorder {
    /// Returns what was called since the last time.
    pub(crate) fn take(&self) -> Vec<StepShape> {
        std::mem::take(&mut self.steps.lock().unwrap())
    }

    fn note(&self, shape: StepShape) {
        self.steps.lock().unwrap().push(shape);
    }
}

impl HostMemory for Recorder {}

impl LweOps for Recorder {
    type Db = Db;

    fn open_db(&self, db: TiledDb) -> Result<Db, OpsError> {
        Reference.open_db(db)
    }

    fn tiling(&self, db: &Db) -> Tiling {
        Reference.tiling(db)
    }

    fn run_lwe_fold(&self, db: &Db, queries: &LweQueries) -> Result<LweBatch<Words>, OpsError> {
        self.note(StepShape::LweFold { db: self.tiling(db) });
        Reference.run_lwe_fold(db, queries)
    }

    fn run_lwe_hint(&self, db: &Db, a: &PublicMatrix, rows: Range<usize>) -> Result<Words, OpsError> {
        self.note(StepShape::LweHint { db: self.tiling(db), matrix: *a.shape(), parts: 1 });
        Reference.run_lwe_hint(db, a, rows)
    }

    fn run_reinterpret_lwe(
        &self,
        words: &Words,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<Db, OpsError> {
        let db = Reference.run_reinterpret_lwe(words, queries, items, digits, cols)?;
        self.note(StepShape::ReinterpretLwe { words: words.len(), db: self.tiling(&db) });
        Ok(db)
    }

    fn run_send_words(
        &self,
        words: &LweBatch<Words>,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        let bytes = Reference.run_send_words(words, sent, rounding)?;
        let rows = sent.iter().map(|sent| sent.rows.len()).sum();
        self.note(StepShape::SendWords { rows, bytes: bytes[0].len() });
        Ok(bytes)
    }
}

impl RingOps for Recorder {
    type Ring = Ring;
    type NttDb = NttDb;
    type Keys = Keys;

    fn open_ring(&self, context: Arc<RingContext>) -> Result<Ring, OpsError> {
        Reference.open_ring(context)
    }

    fn context<'a>(&self, ring: &'a Ring) -> &'a RingContext {
        Reference.context(ring)
    }

    fn ntt_tiling(&self, db: &NttDb) -> NttTiling {
        Reference.ntt_tiling(db)
    }

    fn run_open_ntt_db(&self, ring: &Ring, db: NttTiledDb) -> Result<NttDb, OpsError> {
        Reference.run_open_ntt_db(ring, db)
    }

    fn read_ntt_db(&self, ring: &Ring, db: &NttDb) -> Result<NttTiledDb, OpsError> {
        Reference.read_ntt_db(ring, db)
    }

    fn run_open_evaluation_keys(&self, ring: &Ring, keys: EvaluationKeys) -> Result<Keys, OpsError> {
        Reference.run_open_evaluation_keys(ring, keys)
    }

    fn run_ntt_db(&self, ring: &Ring, symbols: &[u32]) -> Result<Vec<u32>, OpsError> {
        Reference.run_ntt_db(ring, symbols)
    }

    fn run_expand(
        &self,
        ring: &Ring,
        keys: &[&Keys],
        queries: &[RlweCiphertext],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Words>>, OpsError> {
        self.note(StepShape::Expand { ring: *self.context(ring).params(), rows, folds });
        Reference.run_expand(ring, keys, queries, rows, folds)
    }

    fn run_rlwe_fold(&self, ring: &Ring, db: &NttDb, selectors: &[&RlweBatch<Words>]) -> Ciphertexts {
        self.note(StepShape::RlweFold { ring: *self.context(ring).params(), db: self.ntt_tiling(db) });
        Reference.run_rlwe_fold(ring, db, selectors)
    }

    fn run_rgsw_fold(
        &self,
        ring: &Ring,
        entries: &[&RlweBatch<Words>],
        count: usize,
        planes: usize,
        order: EntryOrder,
        bits: &[&[RlweBatch<Words>]],
    ) -> Ciphertexts {
        let ring_params = *self.context(ring).params();
        self.note(StepShape::RgswFold { ring: ring_params, entries: count, planes, parts: 1 });
        Reference.run_rgsw_fold(ring, entries, count, planes, order, bits)
    }

    fn run_pack_pairs(
        &self,
        ring: &Ring,
        keys: &[&Keys],
        batches: &[&RlweBatch<Words>],
        pairs: usize,
    ) -> Result<Vec<Words>, OpsError> {
        self.note(StepShape::Respond { ring: *self.context(ring).params(), plaintexts: 2 * pairs });
        self.has_pairs.store(pairs > 0, Ordering::Relaxed);
        Reference.run_pack_pairs(ring, keys, batches, pairs)
    }

    fn run_mod_switch(
        &self,
        ring: &Ring,
        polys: &[&Words],
        first: usize,
        sent: &[SentPoly],
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        // Plaintexts of pairs are noted already; all others are two polynomials each.
        if !self.has_pairs.swap(false, Ordering::Relaxed) {
            let plaintexts = sent.len() / 2;
            self.note(StepShape::Respond { ring: *self.context(ring).params(), plaintexts });
        }
        Reference.run_mod_switch(ring, polys, first, sent)
    }
}

impl PackOps for Recorder {
    fn run_lift_hint(
        &self,
        ring: &Ring,
        hint: &Words,
        n: usize,
        shape: &PackShape,
        columns: Range<usize>,
    ) -> Result<NttDb, OpsError> {
        let ring_params = *self.context(ring).params();
        self.note(StepShape::LiftHint { ring: ring_params, n, columns: columns.len(), parts: 1 });
        Reference.run_lift_hint(ring, hint, n, shape, columns)
    }

    fn run_pack(
        &self,
        ring: &Ring,
        hint: &NttDb,
        folded: &LweBatch<Words>,
        shape: &PackShape,
        columns: Range<usize>,
        selectors: &[&RlweBatch<Words>],
    ) -> Ciphertexts {
        let ring_params = *self.context(ring).params();
        self.note(StepShape::Pack { ring: ring_params, hint: self.ntt_tiling(hint), shape: *shape });
        Reference.run_pack(ring, hint, folded, shape, columns, selectors)
    }

    fn run_add_rlwe(
        &self,
        ring: &Ring,
        sum: &mut RlweBatch<Words>,
        first: usize,
        part: &RlweBatch<Words>,
    ) -> Result<(), OpsError> {
        self.note(StepShape::AddRlwe { ring: *self.context(ring).params(), count: part.count() });
        Reference.run_add_rlwe(ring, sum, first, part)
    }

    fn run_reinterpret_rlwe(
        &self,
        ring: &Ring,
        packed: &RlweBatch<Words>,
        items: usize,
    ) -> Result<Db, OpsError> {
        let db = Reference.run_reinterpret_rlwe(ring, packed, items)?;
        let (ring, count) = (*self.context(ring).params(), packed.count());
        self.note(StepShape::ReinterpretRlwe { ring, count, db: self.tiling(&db) });
        Ok(db)
    }
}

impl ColumnOps for Recorder {
    type ChainPlan = ChainPlan;
    type Chain = Chain;

    fn open_masks(&self, ring: &Ring, masks: &ColumnMasks) -> Result<ChainPlan, OpsError> {
        Reference.open_masks(ring, masks)
    }

    fn chain_batch(&self) -> usize {
        Reference.chain_batch()
    }

    fn run_chain_hint(
        &self,
        ring: &Ring,
        plan: &ChainPlan,
        hints: &[&Words],
    ) -> Result<Vec<ChainedHint>, OpsError> {
        Reference.run_chain_hint(ring, plan, hints)
    }

    fn run_open_chain(&self, ring: &Ring, shape: &PackShape, polys: ChainPolys) -> Result<Chain, OpsError> {
        Reference.run_open_chain(ring, shape, polys)
    }

    fn chain_shape(&self, chain: &Chain) -> PackShape {
        Reference.chain_shape(chain)
    }

    fn has_masks(&self, chain: &Chain) -> bool {
        Reference.has_masks(chain)
    }

    fn run_pack_columns(
        &self,
        ring: &Ring,
        columns: &Db,
        chain: &Chain,
        folded: LweBatch<Words>,
        keys: &LweQueries,
        conjugations: &[&Poly<Coeff>],
    ) -> Result<LweBatch<Words>, OpsError> {
        let shape = self.chain_shape(chain);
        let ring_params = *self.context(ring).params();
        self.note(StepShape::PackColumns { ring: ring_params, columns: self.tiling(columns), shape });
        Reference.run_pack_columns(ring, columns, chain, folded, keys, conjugations)
    }

    fn run_rgsw_power_fold(
        &self,
        ring: &Ring,
        chain: &Chain,
        packed: &LweBatch<Words>,
        powers: PowerKeys<'_>,
    ) -> Result<RlweBatch<Words>, OpsError> {
        let shape = self.chain_shape(chain);
        self.note(StepShape::RgswPowerFold { ring: *self.context(ring).params(), shape });
        Reference.run_rgsw_power_fold(ring, chain, packed, powers)
    }
}

impl TfheOps for Recorder {
    type Symbols = Symbols;

    fn symbol_tiling(&self, db: &Symbols) -> SymbolTiling {
        Reference.symbol_tiling(db)
    }

    fn run_open_symbols(&self, ring: &Ring, db: SymbolDb) -> Result<Symbols, OpsError> {
        Reference.run_open_symbols(ring, db)
    }

    fn run_symbol_fold(&self, ring: &Ring, db: &Symbols, selectors: &[&RlweBatch<Words>]) -> Ciphertexts {
        let ring_params = *self.context(ring).params();
        self.note(StepShape::SymbolFold { ring: ring_params, db: self.symbol_tiling(db), parts: 1 });
        Reference.run_symbol_fold(ring, db, selectors)
    }

    fn rotate(
        &self,
        ring: &Ring,
        ciphertexts: &[&RlweBatch<Words>],
        bits: &[&[RlweBatch<Words>]],
    ) -> Ciphertexts {
        let (ring_params, count) = (*self.context(ring).params(), ciphertexts[0].count());
        self.note(StepShape::Rotate { ring: ring_params, count, bits: bits[0].len() });
        Reference.rotate(ring, ciphertexts, bits)
    }

    fn run_turn(
        &self,
        ring: &Ring,
        batches: &[RlweBatch<Words>],
        power: usize,
    ) -> Result<Vec<RlweBatch<Words>>, OpsError> {
        Reference.run_turn(ring, batches, power)
    }

    fn private_key_switch(
        &self,
        ring: &Ring,
        keys: &[&Keys],
        queries: &[TlweWords],
        rows: usize,
        folds: usize,
    ) -> Result<Vec<Expanded<Words>>, OpsError> {
        self.note(StepShape::PrivateKeySwitch { ring: *self.context(ring).params(), rows, folds });
        Reference.private_key_switch(ring, keys, queries, rows, folds)
    }

    fn run_private_key_switch(
        &self,
        ring: &Ring,
        keys: &[&Keys],
        queries: &[TlweWords],
        rows: usize,
    ) -> Result<Vec<Expanded<Words>>, OpsError> {
        Reference.run_private_key_switch(ring, keys, queries, rows)
    }

    fn ring_switch_key<'a>(&self, keys: &'a Keys) -> Option<&'a RingSwitchKey> {
        Reference.ring_switch_key(keys)
    }

    fn ring_switch(
        &self,
        ring: &Ring,
        keys: &[&Keys],
        ciphertexts: &[&RlweBatch<Words>],
    ) -> Result<Vec<Vec<Vec<u64>>>, OpsError> {
        self.note(StepShape::RingSwitch { ring: *self.context(ring).params() });
        Reference.ring_switch(ring, keys, ciphertexts)
    }
}
