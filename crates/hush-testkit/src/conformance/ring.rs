//! The steps over rings. Operands are any residues, not only what clients would send: the reference is defined on all.

use std::sync::Arc;

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext, RlwePair},
    params::{RingContext, RingParams},
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
    ring::Ring,
};
use hush_ops::{
    OpsError,
    contract::{Expanded, RingOps, RlweBatch},
    ntt_tiling::{NttTiledDb, NttTiling},
    reference::Reference,
};

use super::assert_same_words;

/// Values of residues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residues {
    /// Uniform.
    Random,
    /// Each p - 1: products are largest.
    Largest,
    /// Each zero.
    Zero,
    /// In the coefficients, those of values about Q / 2: digits are extreme.
    Middle,
}

impl Residues {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Random, Self::Largest, Self::Zero, Self::Middle];

    pub(super) fn poly(self, ring: &Ring, rng: &mut Csprng) -> Poly<Eval> {
        match self {
            Self::Random => ring.expand_uniform(rng),
            Self::Zero => ring.zero(),
            Self::Largest => {
                let mut poly = ring.zero();
                for (limb, p) in ring.moduli().iter().enumerate() {
                    poly.limb_mut(limb).fill(p.value() - 1);
                }
                poly
            }
            Self::Middle => {
                let mut poly = ring.zero();
                for i in 0..ring.degree() {
                    let value = ring.rns().product() / 2 + u128::from(rng.next_u32() % 2);
                    for limb in 0..ring.limbs() {
                        poly.limb_mut(limb)[i] = ring.rns().reduce(value, limb);
                    }
                }
                ring.forward(poly)
            }
        }
    }

    pub(super) fn polys(self, ring: &Ring, count: usize, rng: &mut Csprng) -> Vec<u32> {
        (0..count).flat_map(|_| self.poly(ring, rng).into_words()).collect()
    }

    fn ciphertext(self, ring: &Ring, rng: &mut Csprng) -> RlweCiphertext {
        RlweCiphertext { a: self.poly(ring, rng), b: self.poly(ring, rng) }
    }

    pub(super) fn batch(self, ring: &Ring, count: usize, rng: &mut Csprng) -> RlweBatch {
        RlweBatch {
            ciphertext_words: 2 * ring.limbs() * ring.degree(),
            words: self.polys(ring, 2 * count, rng).into(),
        }
    }

    fn keys(self, context: &RingContext, rng: &mut Csprng) -> EvaluationKeys {
        let params = context.params();
        let mut key = |digits| KeySwitchKey {
            rows: (0..digits).map(|_| self.ciphertext(context.full(), rng)).collect(),
        };
        let levels = params.levels().iter().map(|gadget| key(gadget.digits)).collect();
        let square = key(params.square_gadget().digits);
        let kept = context.kept();
        let pack = [(); 2].map(|()| {
            let rows = (0..params.pack_gadget().digits).map(|_| RlwePair {
                a: self.poly(kept, rng),
                b: [self.poly(kept, rng), self.poly(kept, rng)],
            });
            rows.collect()
        });
        EvaluationKeys { levels, square, pack }
    }
}

/// How much of each step is done.
#[derive(Clone, Copy, Debug)]
pub struct RingShape {
    /// Rows of the database.
    pub rows: usize,
    /// Folds of a query.
    pub folds: usize,
    /// Entries that are folded, at most 2^folds.
    pub entries: usize,
}

impl RingShape {
    /// Columns of the database: 1 to 9, so that the cases of a backend have tiles of several widths.
    fn columns(&self) -> usize {
        1 + self.rows % 9
    }
}

/// Operands of all steps for one parameter set, and what the reference makes of them.
pub struct RingCase {
    name: String,
    context: Arc<RingContext>,
    shape: RingShape,
    keys: EvaluationKeys,
    query: RlweCiphertext,
    expanded: Expanded,
    symbols: Vec<u32>,
    plaintexts: Vec<u32>,
    selectors: RlweBatch,
    folded: RlweBatch,
    entries: Vec<u32>,
    bits: Vec<RlweBatch>,
    entry: RlweBatch,
    /// `None` if the set does not pack pairs.
    packed: Option<Vec<u32>>,
    widths: Vec<u32>,
    switched: Vec<Vec<u64>>,
}

impl RingCase {
    /// A case with residues of one kind; keys and RGSW rows are random, or largest too.
    pub fn new(params: RingParams, shape: RingShape, residues: Residues) -> Self {
        let context = Arc::new(RingContext::new(params));
        let (full, kept) = (context.full(), context.kept());
        let mut rng = Csprng::insecure_from_seed(shape.rows as u64);
        let rows = if residues == Residues::Largest { residues } else { Residues::Random };
        let keys = rows.keys(&context, &mut rng);
        let query = residues.ciphertext(full, &mut rng);
        let mask = u32::MAX >> (32 - params.plaintext_bits());
        let symbol = |_| match residues {
            Residues::Random => rng.next_u32() & mask,
            Residues::Largest => mask,
            Residues::Zero => 0,
            Residues::Middle => mask / 2 + (rng.next_u32() & 1),
        };
        let symbols: Vec<u32> = (0..shape.rows * shape.columns() * params.degree()).map(symbol).collect();
        let selectors = residues.batch(kept, shape.rows, &mut rng);
        let entries = residues.polys(kept, 2 * shape.entries, &mut rng);
        let bit_rows = 2 * params.fold_gadget().digits;
        let bits: Vec<_> = (0..shape.folds).map(|_| rows.batch(kept, bit_rows, &mut rng)).collect();
        let widths: Vec<u32> = vec![1, params.response_bits().a, params.response_bits().b, 48];

        let ring = Reference.open_ring(context.clone());
        let expanded = Reference.expand(&ring, &keys, &query, shape.rows, shape.folds).expect(FITS);
        let plaintexts = Reference.ntt_db(&ring, &symbols).expect(FITS);
        let db = tiled(&context, shape, &plaintexts);
        let folded = Reference.rlwe_fold(&ring, &db, &[&selectors]).expect(FITS).remove(0);
        let entry = Reference.rgsw_fold(&ring, &entries, &bits).expect(FITS);
        let pair = pair(&entries, &entry);
        let packed = params.packs_pairs().then(|| Reference.pack_pair(&ring, &keys, &pair).expect(FITS));
        let switched = Reference.mod_switch(&ring, &pair.words, &widths).expect(FITS);
        Self {
            name: format!("{}, {residues:?}, {shape:?}", params.name()),
            shape,
            keys,
            query,
            expanded,
            symbols,
            plaintexts,
            selectors,
            folded,
            entries,
            bits,
            entry,
            packed,
            widths,
            switched,
            context,
        }
    }

    /// Checks all steps of `backend`.
    #[track_caller]
    pub fn check<B: RingOps>(&self, backend: &B) {
        let (degree, shape) = (self.context.params().degree(), self.shape);
        let same = |step: &str, expected: &[u32], actual: &[u32]| {
            let what = format!("{step}, {} (line = limb of a polynomial)", self.name);
            assert_same_words(&what, degree, expected, actual);
        };
        let ring = backend.open_ring(self.context.clone());
        let keys = backend.open_evaluation_keys(&ring, self.keys.clone()).expect(FITS);
        let expanded = backend.expand(&ring, &keys, &self.query, shape.rows, shape.folds).expect(FITS);
        same("expand, selectors", &self.expanded.selectors.words, &expanded.selectors.words);
        assert_eq!(expanded.bits.len(), shape.folds);
        for (expected, actual) in self.expanded.bits.iter().zip(&expanded.bits) {
            same("expand, an RGSW ciphertext", &expected.words, &actual.words);
            assert_eq!(expected.ciphertext_words, actual.ciphertext_words);
        }
        let plaintexts = backend.ntt_db(&ring, &self.symbols).expect(FITS);
        same("ntt_db", &self.plaintexts, &plaintexts);
        let db = tiled(&self.context, shape, &plaintexts);
        let db = backend.open_ntt_db(&ring, db).expect(FITS);
        let folded = backend.rlwe_fold(&ring, &db, &[&self.selectors]).expect(FITS);
        assert_eq!(folded.len(), 1);
        same("rlwe_fold", &self.folded.words, &folded[0].words);
        let entry = backend.rgsw_fold(&ring, &self.entries, &self.bits).expect(FITS);
        same("rgsw_fold", &self.entry.words, &entry.words);
        let pair = pair(&self.entries, &entry);
        let packed = backend.pack_pair(&ring, &keys, &pair);
        match &self.packed {
            Some(expected) => same("pack_pair", expected, &packed.expect(FITS)),
            None => assert!(matches!(packed, Err(OpsError::Shape { .. })), "{packed:?}"),
        }
        let switched = backend.mod_switch(&ring, &pair.words, &self.widths).expect(FITS);
        assert_eq!(self.switched, switched, "mod_switch, {}", self.name);
    }

    /// Checks that `backend` refuses operands that do not fit.
    pub fn check_refusals<B: RingOps>(&self, backend: &B) {
        let ring = backend.open_ring(self.context.clone());
        let keys = backend.open_evaluation_keys(&ring, self.keys.clone()).expect(FITS);
        let mut wrong = self.keys.clone();
        wrong.levels.pop();
        let most = self.context.params().max_leaves();
        let query = RlweCiphertext { a: self.query.a.clone(), b: self.context.kept().zero() };
        let entries = &self.entries[1..];
        let bits = &self.bits[..0];
        let pair = RlweBatch { ciphertext_words: self.entry.ciphertext_words, words: vec![].into() };
        let db = NttTiling::new(self.context.params().degree() * 2, 1, 1, 1).expect("whole groups");
        for refused in [
            backend.open_evaluation_keys(&ring, wrong).err(),
            backend.open_ntt_db(&ring, NttTiledDb::from_polys(db, &vec![0; db.degree()])).err(),
            backend.ntt_db(&ring, &[0]).err(),
            backend.expand(&ring, &keys, &query, 1, 0).err(),
            backend.expand(&ring, &keys, &self.query, most + 1, 0).err(),
            backend.rgsw_fold(&ring, entries, &self.bits).err(),
            backend.rgsw_fold(&ring, &[], &self.bits).err(),
            backend.rgsw_fold(&ring, &self.entries, bits).err(),
            backend.pack_pair(&ring, &keys, &pair).err(),
            backend.mod_switch(&ring, &self.entry.words, &[49, 1]).err(),
            backend.mod_switch(&ring, &self.entry.words, &[1]).err(),
        ] {
            assert!(matches!(refused, Some(OpsError::Shape { .. })), "{refused:?}");
        }
    }
}

const FITS: &str = "the shapes fit";

/// The first ciphertext of `entries`, and `entry`.
fn pair(entries: &[u32], entry: &RlweBatch) -> RlweBatch {
    RlweBatch { words: [&entries[..entry.words.len()], &entry.words].concat().into(), ..*entry }
}

fn tiled(context: &RingContext, shape: RingShape, plaintexts: &[u32]) -> NttTiledDb {
    let kept = context.kept();
    let tiling =
        NttTiling::new(kept.degree(), kept.limbs(), shape.rows, shape.columns()).expect("whole groups");
    NttTiledDb::from_polys(tiling, plaintexts)
}
