//! The steps over rings. Operands are any residues, not only what clients would send: the reference is defined on all.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, RlweCiphertext},
    params::{RingContext, RingParams},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{BatchWords, EntryOrder, Expanded, RingOps, RlweBatch, SentPoly},
    ntt_tiling::{NttTiledDb, NttTiling},
    reference::Reference,
};

use super::{Kept, Residues, assert_same_words};

/// How much of each step is done.
#[derive(Clone, Copy, Debug)]
pub struct RingShape {
    /// Rows of the database.
    pub rows: usize,
    /// Folds of a query.
    pub folds: usize,
    /// Entries that are folded, at most 2^folds.
    pub entries: usize,
    /// Planes of an entry.
    pub planes: usize,
    /// Queries of a batch, each of a client of its own.
    pub queries: usize,
}

impl RingShape {
    /// Columns of the database: 1 to 9, so that the cases of a backend have tiles of several widths.
    fn columns(&self) -> usize {
        1 + self.rows % 9
    }
}

/// Ciphertexts that are packed in pairs and switched: two pairs and an odd one.
const PACKED: usize = 5;
/// The first polynomial of these that is switched.
const FIRST_SENT: usize = 3;
/// Orders of the entries that are folded.
const ORDERS: [EntryOrder; 2] = [EntryOrder::EntryMajor, EntryOrder::PlaneMajor];

/// Operands of all steps for one parameter set, and what the reference makes of them.
pub struct RingCase {
    name: String,
    context: Arc<RingContext>,
    shape: RingShape,
    keys: Vec<EvaluationKeys>,
    queries: Vec<RlweCiphertext>,
    expanded: Vec<Expanded>,
    symbols: Vec<u32>,
    plaintexts: Vec<u32>,
    selectors: Vec<RlweBatch>,
    folded: Vec<RlweBatch>,
    entries: Vec<RlweBatch>,
    bits: Vec<Vec<RlweBatch>>,
    /// For each order.
    chosen: [Vec<RlweBatch>; 2],
    batches: Vec<RlweBatch>,
    /// `None` if the set does not pack pairs.
    packed: Option<Vec<BatchWords>>,
    sent: [SentPoly; 5],
    switched: Vec<Vec<u8>>,
}

impl RingCase {
    /// Creates a case with residues of one kind; keys and RGSW rows are random, or largest too.
    pub fn new(params: RingParams, shape: RingShape, residues: Residues) -> Self {
        let context = Arc::new(RingContext::new(params));
        let full = context.full();
        let kept = context.kept();
        let mut rng = Csprng::insecure_from_seed(shape.rows as u64);
        let rows = if residues == Residues::Largest { residues } else { Residues::Random };
        let keys: Vec<_> = (0..shape.queries).map(|_| rows.keys(&context, &mut rng)).collect();
        let queries: Vec<_> = keys.iter().map(|_| residues.ciphertext(full, &mut rng)).collect();
        let mask = u32::MAX >> (32 - params.plaintext_bits());
        let symbols: Vec<u32> = (0..shape.rows * shape.columns() * params.degree())
            .map(|_| match residues {
                Residues::Random => rng.next_u32() & mask,
                Residues::Largest => mask,
                Residues::Zero => 0,
                Residues::Middle => mask / 2 + (rng.next_u32() & 1),
            })
            .collect();
        let mut batches =
            |count| -> Vec<_> { (0..shape.queries).map(|_| residues.batch(kept, count, &mut rng)).collect() };
        let selectors = batches(shape.rows);
        let entries = batches(shape.entries * shape.planes);
        let batches = batches(PACKED);
        let bit_rows = 2 * params.fold_gadget().digits;
        let bits: Vec<Vec<_>> = (0..shape.queries)
            .map(|_| (0..shape.folds).map(|_| rows.batch(kept, bit_rows, &mut rng)).collect())
            .collect();
        let degree = params.degree();
        let widths = params.response_bits();
        // After the second one they begin anywhere in a word.
        let sent = [
            SentPoly::whole(degree, 1),
            SentPoly { bits: widths.a, stride: 1, count: degree - 3 },
            SentPoly { bits: widths.b, stride: 3, count: degree / 3 },
            SentPoly { bits: 31, stride: degree, count: 1 },
            SentPoly::whole(degree, 48),
        ];

        let all_keys: Vec<_> = keys.iter().collect();
        let expanded = Reference.expand(&context, &all_keys, &queries, shape.rows, shape.folds).expect(FITS);
        let plaintexts = Reference.ntt_db(&context, &symbols).expect(FITS);
        let db = tiled(&context, shape, &plaintexts);
        let folded = Reference.rlwe_fold(&context, &db, &all(&selectors)).expect(FITS);
        let all_bits: Vec<_> = bits.iter().map(|bits| &bits[..]).collect();
        let chosen = ORDERS.map(|order| {
            Reference.rgsw_fold(&context, &all(&entries), shape.planes, order, &all_bits).expect(FITS)
        });
        let packed = params
            .packs_pairs()
            .then(|| Reference.pack_pairs(&context, &all_keys, &all(&batches)).expect(FITS));
        let words: Vec<_> = batches.iter().map(|batch| &batch.words).collect();
        let switched = Reference.mod_switch(&context, &words, FIRST_SENT, &sent).expect(FITS);
        Self {
            name: format!("{}, {residues:?}, {shape:?}", params.name()),
            shape,
            keys,
            queries,
            expanded,
            symbols,
            plaintexts,
            selectors,
            folded,
            entries,
            bits,
            chosen,
            batches,
            packed,
            sent,
            switched,
            context,
        }
    }

    /// Checks all steps of `backend`.
    #[track_caller]
    pub fn check<B: RingOps>(&self, backend: &B) {
        self.check_expand(backend);
        self.check_rlwe_fold(backend);
        self.check_rgsw_fold(backend);
        self.check_pack_pairs(backend);
        self.check_mod_switch(backend);
    }

    fn ring<B: RingOps>(&self, backend: &B) -> B::Ring {
        backend.open_ring(self.context.clone()).expect("the backend holds the tables")
    }

    fn keys<B: RingOps>(&self, backend: &B, ring: &B::Ring) -> Vec<B::Keys> {
        self.keys
            .iter()
            .map(|keys: &EvaluationKeys| backend.open_evaluation_keys(ring, keys.clone()).expect(FITS))
            .collect()
    }

    #[track_caller]
    fn assert_same(&self, step: &str, expected: &[u32], actual: &[u32]) {
        let what = format!("{step}, {} (line = limb of a polynomial)", self.name);
        assert_same_words(&what, self.context.params().degree(), expected, actual);
    }

    #[track_caller]
    fn assert_same_batches<B: RingOps>(
        &self,
        backend: &B,
        step: &str,
        expected: &[RlweBatch],
        actual: &[RlweBatch<B::Words>],
    ) {
        assert_eq!(expected.len(), actual.len(), "{step}, {}", self.name);
        for (expected, actual) in expected.iter().zip(actual) {
            assert_eq!(expected.ciphertext_words, actual.ciphertext_words, "{step}, {}", self.name);
            self.assert_same(step, &expected.words, &backend.result(&actual.words));
        }
    }

    /// Checks `expand`.
    #[track_caller]
    pub fn check_expand<B: RingOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let shape = self.shape;
        let keys = self.keys(backend, &ring);
        let expanded = backend.expand(&ring, &all(&keys), &self.queries, shape.rows, shape.folds);
        let expanded = expanded.expect(FITS);
        assert_eq!(expanded.len(), shape.queries);
        for (expected, actual) in self.expanded.iter().zip(expanded) {
            let selectors = [expected.selectors.clone()];
            let bits = [actual.selectors];
            self.assert_same_batches(backend, "expand, selectors", &selectors, &bits);
            self.assert_same_batches(backend, "expand, RGSW ciphertexts", &expected.bits, &actual.bits);
        }
    }

    /// Checks `ntt_db` and `rlwe_fold`.
    #[track_caller]
    pub fn check_rlwe_fold<B: RingOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let plaintexts = backend.ntt_db(&ring, &self.symbols).expect(FITS);
        self.assert_same("ntt_db", &self.plaintexts, &plaintexts);
        let tiled = tiled(&self.context, self.shape, &plaintexts);
        let db = backend.open_ntt_db(&ring, tiled.clone()).expect(FITS);
        let read = backend.read_ntt_db(&ring, &db).expect("the database can be read");
        assert!(
            read.tiling() == tiled.tiling() && read.bytes() == tiled.bytes(),
            "read_ntt_db, {}",
            self.name
        );
        let selectors = backend.kept_all(&self.selectors);
        let folded = backend.rlwe_fold(&ring, &db, &all(&selectors)).expect(FITS);
        self.assert_same_batches(backend, "rlwe_fold", &self.folded, &folded);
    }

    /// Checks `rgsw_fold`.
    #[track_caller]
    pub fn check_rgsw_fold<B: RingOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let entries = backend.kept_all(&self.entries);
        let bits: Vec<_> = self.bits.iter().map(|bits| backend.kept_all(bits)).collect();
        let bits: Vec<_> = bits.iter().map(|bits| &bits[..]).collect();
        for (order, expected) in ORDERS.into_iter().zip(&self.chosen) {
            let chosen = backend.rgsw_fold(&ring, &all(&entries), self.shape.planes, order, &bits);
            self.assert_same_batches(
                backend,
                &format!("rgsw_fold, {order:?}"),
                expected,
                &chosen.expect(FITS),
            );
        }
    }

    /// Checks `pack_pairs`.
    #[track_caller]
    pub fn check_pack_pairs<B: RingOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let keys = self.keys(backend, &ring);
        let batches = backend.kept_all(&self.batches);
        let packed = backend.pack_pairs(&ring, &all(&keys), &all(&batches));
        let Some(expected) = &self.packed else {
            assert!(matches!(packed.err(), Some(OpsError::Shape { .. })), "pack_pairs, {}", self.name);
            return;
        };
        let packed = packed.expect(FITS);
        assert_eq!(packed.len(), expected.len());
        for (expected, actual) in expected.iter().zip(&packed) {
            self.assert_same("pack_pairs", expected, &backend.result(actual));
        }
    }

    /// Checks `mod_switch`.
    #[track_caller]
    pub fn check_mod_switch<B: RingOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let words: Vec<_> = self.batches.iter().map(|batch| backend.kept(&batch.words)).collect();
        let switched = backend.mod_switch(&ring, &all(&words), FIRST_SENT, &self.sent).expect(FITS);
        assert!(self.switched == switched, "mod_switch, {}", self.name);
    }

    /// Checks that `backend` refuses operands that do not fit.
    pub fn check_refusals<B: RingOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let mut wrong = self.keys[0].clone();
        wrong.levels.pop();
        let db = NttTiling::new(self.context.params().degree() * 2, 1, 1, 1).expect("whole groups");
        let opened = [
            backend.open_evaluation_keys(&ring, wrong).err(),
            backend.open_ntt_db(&ring, NttTiledDb::from_polys(db, &vec![0; db.degree()])).err(),
            backend.ntt_db(&ring, &[0]).err(),
        ];
        let refusals =
            [self.expand_refusals(backend), self.fold_refusals(backend), self.answer_refusals(backend)];
        for (index, refused) in opened.into_iter().chain(refusals.concat()).enumerate() {
            assert!(matches!(refused, Some(OpsError::Shape { .. })), "refusal {index}: {refused:?}");
        }
    }

    fn expand_refusals<B: RingOps>(&self, backend: &B) -> Vec<Option<OpsError>> {
        let ring = self.ring(backend);
        let keys = self.keys(backend, &ring);
        let query = &self.queries[..1];
        let short = [RlweCiphertext { a: query[0].a.clone(), b: self.context.kept().zero() }];
        let most = self.context.params().max_leaves();
        let expand = |keys: &[&B::Keys], queries: &[RlweCiphertext], rows| {
            backend.expand(&ring, keys, queries, rows, 0).err()
        };
        vec![expand(&[&keys[0]], &short, 1), expand(&[&keys[0]], query, most + 1), expand(&[], query, 1)]
    }

    fn fold_refusals<B: RingOps>(&self, backend: &B) -> Vec<Option<OpsError>> {
        let ring = self.ring(backend);
        let planes = self.shape.planes;
        let entries = &self.entries[0];
        let [ragged, none] = [&entries.words[1..], &[]]
            .map(|words| RlweBatch { words: words.to_vec().into(), ..*entries })
            .map(|batch| backend.kept_rlwe(&batch));
        let entries = backend.kept_rlwe(entries);
        let bits = backend.kept_all(&self.bits[0]);
        let fold = |entries: &[&RlweBatch<B::Words>], planes, bits: &[&[RlweBatch<B::Words>]]| {
            backend.rgsw_fold(&ring, entries, planes, EntryOrder::PlaneMajor, bits).err()
        };
        vec![
            fold(&[&ragged], planes, &[&bits]),
            fold(&[&none], planes, &[&bits]),
            fold(&[&entries], planes, &[&bits[..0]]),
            fold(&[&entries], 0, &[&bits]),
            fold(&[&entries], planes, &[]),
            fold(&[&entries, &none], planes, &[&bits, &bits]),
            fold(&[&entries, &entries], planes, &[&bits, &bits[1..]]),
        ]
    }

    fn answer_refusals<B: RingOps>(&self, backend: &B) -> Vec<Option<OpsError>> {
        let ring = self.ring(backend);
        let keys = self.keys(backend, &ring);
        let batch = &self.batches[0];
        let ragged = backend.kept_rlwe(&RlweBatch { words: batch.words[1..].to_vec().into(), ..*batch });
        let batch = backend.kept_rlwe(batch);
        let polys = 2 * PACKED;
        let pack = |keys: &[&B::Keys], batches: &[&RlweBatch<B::Words>]| {
            backend.pack_pairs(&ring, keys, batches).err()
        };
        let switch = |words: &B::Words, first, bits, stride, count| {
            backend.mod_switch(&ring, &[words], first, &[SentPoly { bits, stride, count }]).err()
        };
        let degree = self.context.params().degree();
        vec![
            pack(&[&keys[0]], &[&ragged]),
            pack(&[], &[&batch]),
            switch(&batch.words, 0, 49, 1, degree),
            switch(&batch.words, 0, 0, 1, degree),
            switch(&batch.words, 0, 1, 0, 1),
            switch(&batch.words, 0, 1, 1, degree + 1),
            switch(&batch.words, 0, 1, degree - 1, 3),
            switch(&batch.words, polys, 1, 1, degree),
            switch(&ragged.words, 0, 1, 1, degree),
        ]
    }
}

const FITS: &str = "the shapes fit";

fn all<T>(operands: &[T]) -> Vec<&T> {
    operands.iter().collect()
}

fn tiled(context: &RingContext, shape: RingShape, plaintexts: &[u32]) -> NttTiledDb {
    let kept = context.kept();
    let tiling =
        NttTiling::new(kept.degree(), kept.limbs(), shape.rows, shape.columns()).expect("whole groups");
    NttTiledDb::from_polys(tiling, plaintexts)
}
