//! The steps between LWE and RLWE. Operands are any words and residues, not only what clients would send.

use std::{ops::Range, sync::Arc};

use hush_he::params::{INSECURE_PACK_N256, INSECURE_PACK_PLAIN, RingContext, RingParams};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{BatchWords, LweBatch, LweOps, LweQueries, PackOps, RlweBatch},
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    reference::Reference,
};

use super::{Kept, Residues, assert_same_words};

/// Values of words modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Uniform.
    Random,
    /// Words about the limits of a word and of its sign, and words that rounding just carries, or just not.
    Extreme,
    /// All the same.
    All(u32),
}

impl Words {
    /// All kinds, with the words that are the limits of a word and of its sign.
    pub const ALL: [Self; 6] = [
        Self::Random,
        Self::Extreme,
        Self::All(0),
        Self::All(0x7fff_ffff),
        Self::All(0x8000_0000),
        Self::All(u32::MAX),
    ];

    pub(super) fn words(self, count: usize, plaintext_bits: u32, rng: &mut Csprng) -> Vec<u32> {
        let half = 1u32 << (31 - plaintext_bits);
        let edges = [
            0,
            u32::MAX,
            0x7fff_ffff,
            0x8000_0000,
            half - 1,
            half,
            0u32.wrapping_sub(half),
            0u32.wrapping_sub(half + 1),
            0x8000_0000 - half,
            0x8000_0000 - half - 1,
            0x8000_0000 + half,
            0x5555_5555 / half * half,
            0x5555_5555 / half * half - 1,
        ];
        (0..count)
            .map(|_| match self {
                Self::Random => rng.next_u32(),
                Self::Extreme => edges[rng.next_u32() as usize % edges.len()],
                Self::All(word) => word,
            })
            .collect()
    }
}

/// The shape of a packing.
#[derive(Clone, Debug)]
pub struct PackCaseShape {
    /// LWE dimension.
    pub n: usize,
    /// Rows of the database.
    pub rows: usize,
    /// Rows of an entry.
    pub entry_rows: usize,
    /// The columns that are lifted and packed.
    pub columns: Range<usize>,
    /// Number of queries.
    pub queries: usize,
}

impl PackCaseShape {
    /// Creates the shape with these numbers, in the order of the fields.
    pub fn new(n: usize, rows: usize, entry_rows: usize, columns: Range<usize>, queries: usize) -> Self {
        Self { n, rows, entry_rows, columns, queries }
    }
}

/// Operands of all steps for one parameter set, and what the reference makes of them.
pub struct PackCase {
    name: String,
    context: Arc<RingContext>,
    n: usize,
    shape: PackShape,
    columns: Range<usize>,
    hint: BatchWords,
    folded: LweBatch,
    selectors: Vec<RlweBatch>,
    lifted: NttTiledDb,
    packed: Vec<RlweBatch>,
}

const FITS: &str = "the shapes fit";

impl PackCase {
    /// Creates a case with words of one kind and residues of another.
    pub fn new(params: RingParams, shape: PackCaseShape, words: Words, residues: Residues) -> Self {
        let name = format!("{}, {words:?}, {residues:?}, {shape:?}", params.name());
        let PackCaseShape { n, rows, entry_rows, columns, queries } = shape;
        let context = Arc::new(RingContext::new(params));
        let mut rng = Csprng::insecure_from_seed((rows * 31 + n) as u64);
        let shape = PackShape::new(params.degree(), rows, entry_rows).expect("positive");
        let bits = params.plaintext_bits();
        let hint = words.words(shape.rows_of(columns.clone()).len() * n, bits, &mut rng).into();
        let folded = LweBatch { rows, words: words.words(queries * rows, bits, &mut rng).into() };
        let selectors: Vec<_> = (0..queries).map(|_| residues.batch(context.kept(), n, &mut rng)).collect();
        let lifted = Reference.lift_hint(&context, &hint, n, &shape, columns.clone()).expect(FITS);
        let all: Vec<_> = selectors.iter().collect();
        let packed = Reference.pack(&context, &lifted, &folded, &shape, columns.clone(), &all).expect(FITS);
        Self { name, context, n, shape, columns, hint, folded, selectors, lifted, packed }
    }

    /// Cases of a small set of dimension n, with words and residues of every kind.
    pub fn extremes(n: usize) -> impl Iterator<Item = Self> {
        let words = Words::ALL.map(|words| (words, Residues::Random));
        let residues = Residues::ALL.map(|residues| (Words::Extreme, residues));
        words.into_iter().chain(residues).map(move |(words, residues)| {
            let shape = PackCaseShape::new(n, 600, 250, 0..3, 2);
            Self::new(*INSECURE_PACK_N256.ring(), shape, words, residues)
        })
    }

    /// Returns a case of each of the small sets.
    pub fn small() -> [Self; 2] {
        [INSECURE_PACK_PLAIN, INSECURE_PACK_N256].map(|params| {
            let shape = PackCaseShape::new(3, 600, 256, 0..2, 2);
            Self::new(*params.ring(), shape, Words::Random, Residues::Random)
        })
    }

    fn ring<B: PackOps>(&self, backend: &B) -> B::Ring {
        backend.open_ring(self.context.clone()).expect("the backend holds the tables")
    }

    fn lift<B: PackOps>(&self, backend: &B, ring: &B::Ring) -> B::NttDb {
        let hint = backend.kept(&self.hint);
        backend.lift_hint(ring, &hint, self.n, &self.shape, self.columns.clone()).expect(FITS)
    }

    /// Checks all steps of `backend`.
    #[track_caller]
    pub fn check<B: PackOps>(&self, backend: &B) {
        self.check_pack(backend);
        self.check_add(backend);
        self.check_reinterpret(backend);
    }

    /// Checks `lift_hint`, padding included, and `pack`.
    #[track_caller]
    pub fn check_pack<B: PackOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let hint = self.lift(backend, &ring);
        let lifted = backend.read_ntt_db(&ring, &hint).expect("the hint can be read");
        assert_eq!(lifted.tiling(), self.lifted.tiling(), "{}", self.name);
        assert!(lifted.bytes() == self.lifted.bytes(), "lift_hint, {}", self.name);
        let folded = backend.kept_lwe(&self.folded);
        let selectors = backend.kept_all(&self.selectors);
        let selectors: Vec<_> = selectors.iter().collect();
        let columns = self.columns.clone();
        let packed = backend.pack(&ring, &hint, &folded, &self.shape, columns, &selectors).expect(FITS);
        assert_eq!(packed.len(), self.packed.len(), "{}", self.name);
        for (expected, actual) in self.packed.iter().zip(&packed) {
            assert_eq!(expected.ciphertext_words, actual.ciphertext_words);
            self.assert_same("pack", &expected.words, &backend.result(&actual.words));
        }
    }

    #[track_caller]
    fn assert_same(&self, step: &str, expected: &[u32], actual: &[u32]) {
        let what = format!("{step}, {} (line = limb of a polynomial)", self.name);
        assert_same_words(&what, self.context.params().degree(), expected, actual);
    }

    /// Checks `add_rlwe`: adds selectors, which are any ciphertexts, to each other, and the last one alone to the last one.
    #[track_caller]
    pub fn check_add<B: PackOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let all = &self.selectors[0];
        let last = RlweBatch { words: all.ciphertext(all.count() - 1).to_vec().into(), ..*all };
        for (first, part) in
            [(0, all), (all.count() - 1, &last), (all.count(), &RlweBatch { words: vec![].into(), ..*all })]
        {
            let mut expected = all.clone();
            let mut actual = backend.kept_rlwe(all);
            Reference.add_rlwe(&self.context, &mut expected, first, part).expect(FITS);
            backend.add_rlwe(&ring, &mut actual, first, &backend.kept_rlwe(part)).expect(FITS);
            self.assert_same("add_rlwe", &expected.words, &backend.result(&actual.words));
        }
    }

    /// Checks `reinterpret_rlwe`: reads the bytes of a database that packed words became by folding it with unit vectors.
    #[track_caller]
    pub fn check_reinterpret<B: PackOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let packed = self.packed.iter().chain(&self.selectors).filter(|packed| !packed.words.is_empty());
        for packed in packed {
            let kept = backend.kept_rlwe(packed);
            for planes in (1..=3).filter(|&planes| packed.count().is_multiple_of(planes)) {
                let expected = Reference.reinterpret_rlwe(&self.context, packed, planes);
                let actual = backend.reinterpret_rlwe(&ring, &kept, planes);
                let (expected, actual) = match (expected, actual) {
                    (Ok(expected), Ok(actual)) => (expected, actual),
                    (expected, actual) => {
                        assert_eq!(expected.err(), actual.err(), "reinterpret_rlwe, {}", self.name);
                        continue;
                    }
                };
                let cols = packed.count() / planes;
                let mut words = vec![0; cols * cols.min(8)];
                words.iter_mut().step_by(cols + 1).for_each(|word| *word = 1);
                // Later columns, all at once: each with a weight of its own.
                words.extend((0..cols).map(|c| (c as u32).wrapping_mul(0x9e37_79b9)));
                let queries = LweQueries { cols, words };
                let expected = Reference.lwe_fold(&expected, &queries).expect(FITS);
                let actual = backend.lwe_fold(&actual, &queries).expect(FITS);
                let what =
                    format!("reinterpret_rlwe, {planes} planes, {} (line = query, word = row)", self.name);
                assert_same_words(&what, expected.rows, &expected.words, &backend.result(&actual.words));
            }
        }
    }

    /// Checks that `backend` refuses operands that do not fit.
    pub fn check_refusals<B: PackOps>(&self, backend: &B) {
        let ring = self.ring(backend);
        let shape = &self.shape;
        let columns = self.columns.clone();
        let n = self.n;
        let degree = self.context.params().degree();
        let hint = self.lift(backend, &ring);
        let selectors = backend.kept_all(&self.selectors);
        let selectors: Vec<_> = selectors.iter().collect();
        let other = PackShape::new(degree * 2, shape.rows(), shape.rows()).expect("positive");
        let beyond = shape.plaintexts()..shape.plaintexts() + 1;
        let lift = |words: usize, shape: &PackShape, columns: Range<usize>| {
            backend.lift_hint(&ring, &backend.kept(&self.hint[..words]), n, shape, columns).err()
        };
        let pack = |folded: &LweBatch, columns: Range<usize>, selectors: &[&RlweBatch<B::Words>]| {
            backend.pack(&ring, &hint, &backend.kept_lwe(folded), shape, columns, selectors).err()
        };
        let all = &self.selectors[0];
        let short = RlweBatch { words: all.words[all.ciphertext_words..].to_vec().into(), ..*all };
        let narrow = RlweBatch { ciphertext_words: all.ciphertext_words / 2, words: all.words.clone() };
        let ragged = RlweBatch { words: all.words[1..].to_vec().into(), ..*all };
        let odd = LweBatch { rows: shape.rows(), words: self.folded.words[1..].to_vec().into() };
        let rows = LweBatch { rows: shape.rows() + 1, words: self.folded.words.clone() };
        let add = |first, part: &RlweBatch| {
            backend.add_rlwe(&ring, &mut backend.kept_rlwe(all), first, &backend.kept_rlwe(part)).err()
        };
        let reinterpret =
            |packed, planes| backend.reinterpret_rlwe(&ring, &backend.kept_rlwe(packed), planes).err();
        for (index, refused) in [
            lift(self.hint.len() - 1, shape, columns.clone()),
            lift(0, shape, beyond.clone()),
            lift(0, &other, 0..0),
            pack(&odd, columns.clone(), &selectors),
            pack(&rows, columns.clone(), &selectors),
            pack(&self.folded, columns.start..columns.start, &selectors),
            pack(&self.folded, beyond, &selectors),
            pack(&self.folded, columns.clone(), &selectors[1..]),
            pack(&self.folded, columns.clone(), &vec![&backend.kept_rlwe(&short); selectors.len()]),
            add(1, all),
            add(usize::MAX, all),
            add(0, &narrow),
            reinterpret(all, 0),
            reinterpret(&narrow, 1),
            reinterpret(&ragged, 1),
            reinterpret(all, all.count() + 1),
        ]
        .into_iter()
        .enumerate()
        {
            assert!(matches!(refused, Some(OpsError::Shape { .. })), "{index}: {refused:?}");
        }
    }
}
