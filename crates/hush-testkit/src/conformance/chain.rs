//! The chain of key switches that makes pack columns of a hint.

use std::sync::Arc;

use hush_he::{
    entities::{ColumnMasks, PublicSeed},
    params::{ColumnParams, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{BatchWords, ChainedHint, ColumnOps},
    reference::Reference,
};

use super::{Kept, Words, assert_same_words};

/// The rows of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintRows {
    /// Words of one kind.
    Of(Words),
    /// Random ones, all the same.
    Equal,
    /// Negacyclic rotations of a random one: row i is row 0 times `X^(i step)`. By an odd step, A_e is 0 but for one e, the
    /// inverse of the step: the last one of the chain for 1, the first one for 5.
    Rotations {
        /// Places from row to row.
        step: usize,
    },
    /// A random one in the middle, and zeros.
    One,
    /// Zeros, but for one random word in the middle.
    OneWord,
}

impl HintRows {
    fn words(self, rows: usize, degree: usize, plaintext_bits: u32, rng: &mut Csprng) -> Vec<u32> {
        if let Self::Of(words) = self {
            return words.words(rows * degree, plaintext_bits, rng);
        }
        let row = Words::Random.words(degree, plaintext_bits, rng);
        let mut hint = vec![0; rows * degree];
        let middle = rows / 2 * degree;
        match self {
            Self::Of(_) => unreachable!("done above"),
            Self::Equal => hint = row.repeat(rows),
            Self::Rotations { step } => {
                for (i, out) in hint.chunks_exact_mut(degree).enumerate() {
                    for (j, word) in row.iter().enumerate() {
                        let at = (i * step + j) % (2 * degree);
                        out[at % degree] = if at < degree { *word } else { word.wrapping_neg() };
                    }
                }
            }
            Self::One => hint[middle..middle + degree].copy_from_slice(&row),
            Self::OneWord => hint[middle + degree / 2] = row[0] | 1,
        }
        hint
    }
}

/// A hint of one plaintext, and what the reference makes of it.
pub struct ChainCase {
    name: String,
    context: Arc<RingContext>,
    masks: ColumnMasks,
    hint: BatchWords,
    expected: ChainedHint,
}

impl ChainCase {
    /// Creates a hint of `rows` rows.
    pub fn new(params: ColumnParams, rows: usize, values: HintRows) -> Self {
        let context = Arc::new(RingContext::new(*params.ring()));
        let degree = params.ring().degree();
        let bits = params.ring().plaintext_bits();
        let mut rng = Csprng::insecure_from_seed((rows * 17 + degree) as u64);
        let hint = values.words(rows, degree, bits, &mut rng).into();
        let masks = ColumnMasks::new(&context, &PublicSeed([1; 32]));
        let expected = Reference.chain_hint(&context, &masks, &[&hint]).expect("all entries fit").remove(0);
        Self { name: format!("{}, {rows} rows, {values:?}", params.name()), context, masks, hint, expected }
    }

    /// Hints with rows of every kind, for a set that is quick to compute: those that have N rows, and shorter ones.
    pub fn of_every_kind(params: ColumnParams) -> Vec<Self> {
        let degree = params.ring().degree();
        let short = [HintRows::Of(Words::Random), HintRows::OneWord];
        let short = [1, 17, degree - 1].into_iter().flat_map(|rows| short.map(|values| (rows, values)));
        let whole = [
            HintRows::Of(Words::Random),
            HintRows::Of(Words::Extreme),
            HintRows::Of(Words::All(0)),
            HintRows::One,
            HintRows::OneWord,
            HintRows::Equal,
            HintRows::Rotations { step: 1 },
            HintRows::Rotations { step: 5 },
        ];
        let whole = whole.map(|values| (degree, values));
        short.chain(whole).map(|(rows, values)| Self::new(params, rows, values)).collect()
    }

    /// Checks the chain on `backend`.
    #[track_caller]
    pub fn check<B: ColumnOps>(&self, backend: &B) {
        Self::check_together(std::slice::from_ref(self), backend);
    }

    /// Checks the chains of several hints of one parameter set, at once.
    #[track_caller]
    pub fn check_together<B: ColumnOps>(cases: &[Self], backend: &B) {
        assert!(backend.chain_batch() > 0);
        let Some(first) = cases.first() else { return };
        let ring = backend.open_ring(first.context.clone()).expect("the backend holds the tables");
        let plan = backend.open_masks(&ring, &first.masks).expect("the backend holds the masks");
        let hints: Vec<_> = cases.iter().map(|case| backend.kept(&case.hint)).collect();
        let chained = backend.chain_hint(&ring, &plan, &hints.iter().collect::<Vec<_>>());
        let chained = chained.unwrap_or_else(|error| panic!("chain_hint, {}: {error}", first.name));
        assert_eq!(chained.len(), cases.len());
        cases.iter().zip(&chained).for_each(|(case, chained)| case.assert_same(chained));
    }

    #[track_caller]
    fn assert_same(&self, actual: &ChainedHint) {
        let expected = &self.expected;
        let degree = self.context.params().degree();
        let same = |part: &str, width: usize, expected: &[u32], actual: &[u32]| {
            assert_same_words(&format!("chain_hint, {part}, {}", self.name), width, expected, actual);
        };
        let words = |bytes: &[u8]| -> Vec<u32> {
            bytes.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect()
        };
        assert_eq!(expected.columns.len(), actual.columns.len());
        same("columns (line = row)", degree, &words(&expected.columns), &words(&actual.columns));
        same("digit (line = limb)", degree, &expected.digit, &actual.digit);
        same("mask (line = limb)", degree, &expected.mask, &actual.mask);
    }
}
