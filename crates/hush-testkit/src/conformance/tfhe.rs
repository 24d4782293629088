//! The steps of `tfhe`. Operands are any residues, as for the steps over rings.

use std::{slice, sync::Arc};

use hush_he::{
    entities::{EvaluationKeys, TlweWords},
    params::{RingContext, RingParams},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{Expanded, RlweBatch, TfheOps, ciphertext_words},
    reference::Reference,
    symbol_tiling::{SymbolDb, SymbolTiling},
};

use super::{Kept, Residues, assert_same_words};

/// How much of each step is done.
#[derive(Clone, Copy, Debug)]
pub struct TfheShape {
    /// Rows of the database.
    pub rows: usize,
    /// Columns of it.
    pub columns: usize,
    /// Bits of a rotation.
    pub bits: usize,
    /// Ciphertexts that are rotated.
    pub count: usize,
    /// Queries of a batch, each of a client of its own.
    pub queries: usize,
}

/// Operands of all steps for one parameter set, and what the reference makes of them.
pub struct TfheCase {
    name: String,
    context: Arc<RingContext>,
    db: SymbolDb,
    selectors: Vec<RlweBatch>,
    folded: Vec<RlweBatch>,
    ciphertexts: Vec<RlweBatch>,
    bits: Vec<Vec<RlweBatch>>,
    rotated: Vec<RlweBatch>,
    keys: Vec<EvaluationKeys>,
    switched: Vec<Vec<Vec<u64>>>,
    shape: TfheShape,
    /// In sets of TLWE words, for as many rows, and folds as bits.
    words: Vec<TlweWords>,
    made: Vec<Expanded>,
}

const FITS: &str = "the shapes fit";

fn all<T>(operands: &[T]) -> Vec<&T> {
    operands.iter().collect()
}

impl TfheCase {
    /// Creates a case with residues of one kind.
    pub fn new(set: RingParams, shape: TfheShape, residues: Residues) -> Self {
        let context = Arc::new(RingContext::new(set));
        let kept = context.kept();
        let mut rng = Csprng::insecure_from_seed(shape.rows as u64);
        let tiling =
            SymbolTiling::new(set.degree(), set.plaintext_bits(), shape.rows, shape.columns).expect(FITS);
        let half = 1 << (set.plaintext_bits() - 1);
        let symbols: Vec<u32> = (0..shape.rows * shape.columns * set.degree())
            .map(|_| match residues {
                Residues::Random => rng.next_u32(),
                Residues::Largest => half - 1,
                Residues::Zero => 0,
                Residues::Middle => half - (rng.next_u32() & 1),
            })
            .collect();
        let db = SymbolDb::from_symbols(tiling, &symbols);
        let mut batches =
            |count| -> Vec<_> { (0..shape.queries).map(|_| residues.batch(kept, count, &mut rng)).collect() };
        let selectors = batches(shape.rows);
        let ciphertexts = batches(shape.count);
        let rows = 2 * set.fold_gadget().digits;
        let bits: Vec<Vec<_>> = (0..shape.queries)
            .map(|_| (0..shape.bits).map(|_| residues.batch(kept, rows, &mut rng)).collect())
            .collect();
        let keys: Vec<_> = (0..shape.queries).map(|_| residues.keys(&context, &mut rng)).collect();

        let folded = Reference.symbol_fold(&context, &db, &all(&selectors)).expect(FITS);
        let of_queries: Vec<_> = bits.iter().map(|bits| &bits[..]).collect();
        let rotated = Reference.rotate(&context, &all(&ciphertexts), &of_queries).expect(FITS);
        let switched = match shape.count {
            0 => Vec::new(),
            _ if set.switch().is_none() => Vec::new(),
            _ => Reference.ring_switch(&context, &all(&keys), &all(&ciphertexts)).expect(FITS),
        };
        let leaves = set.leaves(shape.rows, shape.bits);
        let words: Vec<_> = match set.tlwe() {
            None => Vec::new(),
            Some(tlwe) => {
                let modulus = 1u32 << tlwe.bits();
                let mut word = |_| match residues {
                    Residues::Random => rng.next_u32() % modulus,
                    Residues::Largest => modulus - 1,
                    Residues::Zero => 0,
                    Residues::Middle => modulus / 2 - (rng.next_u32() & 1),
                };
                (0..shape.queries)
                    .map(|_| TlweWords {
                        masks: (0..leaves * tlwe.n()).map(&mut word).collect(),
                        bodies: (0..leaves).map(&mut word).collect(),
                    })
                    .collect()
            }
        };
        let made = match set.tlwe() {
            None => Vec::new(),
            Some(_) => Reference
                .private_key_switch(&context, &all(&keys), &words, shape.rows, shape.bits)
                .expect(FITS),
        };
        let name = format!("{}, {residues:?}, {shape:?}", set.name());
        Self {
            name,
            db,
            selectors,
            folded,
            ciphertexts,
            bits,
            rotated,
            keys,
            switched,
            shape,
            words,
            made,
            context,
        }
    }

    /// Checks all steps of `backend`.
    #[track_caller]
    pub fn check<B: TfheOps>(&self, backend: &B) {
        let ring = backend.open_ring(self.context.clone()).expect("the backend holds the tables");
        let db = backend.open_symbols(&ring, self.db.clone()).expect("the backend holds the database");
        assert_eq!(backend.symbol_tiling(&db), self.db.tiling());
        let selectors = backend.kept_all(&self.selectors);
        let folded = backend.symbol_fold(&ring, &db, &all(&selectors)).expect(FITS);
        self.assert_same(backend, "symbol_fold", &self.folded, &folded);

        let ciphertexts = backend.kept_all(&self.ciphertexts);
        let bits: Vec<_> = self.bits.iter().map(|bits| backend.kept_all(bits)).collect();
        let bits: Vec<_> = bits.iter().map(|bits| &bits[..]).collect();
        let rotated = backend.rotate(&ring, &all(&ciphertexts), &bits).expect(FITS);
        self.assert_same(backend, "rotate", &self.rotated, &rotated);

        let keys =
            self.keys.iter().map(|keys| backend.open_evaluation_keys(&ring, keys.clone()).expect(FITS));
        let keys: Vec<_> = keys.collect();
        if !self.made.is_empty() {
            let TfheShape { rows, bits, .. } = self.shape;
            let made = backend.private_key_switch(&ring, &all(&keys), &self.words, rows, bits).expect(FITS);
            for (expected, actual) in self.made.iter().zip(made) {
                let step = "private_key_switch";
                self.assert_same(backend, step, slice::from_ref(&expected.selectors), &[actual.selectors]);
                self.assert_same(backend, step, &expected.bits, &actual.bits);
            }
        }
        if !self.switched.is_empty() {
            let switched = backend.ring_switch(&ring, &all(&keys), &all(&ciphertexts));
            assert_eq!(switched.expect(FITS), self.switched, "ring_switch, {}", self.name);
        }
    }

    /// Checks that operands of other shapes are refused.
    ///
    /// # Panics
    /// If one is not.
    pub fn check_refusals<B: TfheOps>(&self, backend: &B) {
        let ring = backend.open_ring(self.context.clone()).expect("the backend holds the tables");
        let set = self.context.params();
        let tiling = self.db.tiling();
        let open = |degree, bits| {
            let tiling = SymbolTiling::new(degree, bits, 1, 1).expect(FITS);
            backend
                .open_symbols(&ring, SymbolDb::new(tiling, Arc::new(vec![0; tiling.bytes()])).expect(FITS))
                .err()
        };
        let db = backend.open_symbols(&ring, self.db.clone()).expect(FITS);
        let words = ciphertext_words(&self.context);
        let batch = |words: usize| {
            backend.kept_rlwe(&RlweBatch {
                ciphertext_words: ciphertext_words(&self.context),
                words: vec![0; words].into(),
            })
        };
        let short = batch(tiling.rows() * words - 1);
        let one = batch(words);
        let bits = backend.kept_all(&self.bits[0]);
        let many: Vec<_> =
            (0..=set.degree().ilog2()).map(|_| batch(2 * set.fold_gadget().digits * words)).collect();
        let refused = [
            open(2 * set.degree(), set.plaintext_bits()),
            open(set.degree(), 2 * set.plaintext_bits()),
            backend.symbol_fold(&ring, &db, &[&short]).err(),
            backend.rotate(&ring, &[&one], &[]).err(),
            backend.rotate(&ring, &[&one, &one], &[&bits[..], &bits[..0]]).err(),
            backend.rotate(&ring, &[&one], &[&many[..]]).err(),
            backend.ring_switch(&ring, &[], &[&one]).err(),
            backend.private_key_switch(&ring, &[], &[], 1, 1 << 20).err(),
        ];
        for (case, error) in refused.into_iter().enumerate() {
            assert!(matches!(error, Some(OpsError::Shape { .. })), "case {case}: {error:?}");
        }
    }

    #[track_caller]
    fn assert_same<B: TfheOps>(
        &self,
        backend: &B,
        step: &str,
        expected: &[RlweBatch],
        actual: &[RlweBatch<B::Words>],
    ) {
        assert_eq!(expected.len(), actual.len(), "{step}, {}", self.name);
        for (expected, actual) in expected.iter().zip(actual) {
            let what = format!("{step}, {} (line = limb of a polynomial)", self.name);
            let degree = self.context.params().degree();
            assert_same_words(&what, degree, &expected.words, &backend.result(&actual.words));
        }
    }
}
