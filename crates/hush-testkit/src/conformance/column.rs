//! The steps of column packing. Operands are any words and residues, not only what clients would send.

use std::sync::Arc;

use hush_he::{
    entities::{ColumnMasks, PublicSeed},
    params::{ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN, RingContext},
};
use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
};
use hush_ops::{
    OpsError,
    contract::{ChainPolys, ColumnOps, LweBatch, LweQueries, PACK_BYTES, PowerKeys, RlweBatch, poly_words},
    pack_shape::PackShape,
    reference::Reference,
    tiling::TiledDb,
};

use super::{Fill, Kept, Residues, Words, assert_same_words};

/// The shape of a packing, and how many queries there are.
#[derive(Clone, Copy, Debug)]
pub struct ColumnCaseShape {
    /// Rows of the database.
    pub rows: usize,
    /// Rows of an entry.
    pub entry_rows: usize,
    /// Queries of the largest batch.
    pub queries: usize,
}

/// Operands of the steps of a query for one parameter set, and what the reference makes of them.
pub struct ColumnCase {
    name: String,
    context: Arc<RingContext>,
    shape: PackShape,
    columns: TiledDb,
    polys: ChainPolys,
    keys: LweQueries,
    conjugations: Vec<Poly<Coeff>>,
    power_masks: [Poly<Eval>; 2],
    /// The bodies of the RGSW rows of each query; empty where there is one entry.
    power_bodies: Vec<[Poly<Coeff>; 2]>,
    queries: usize,
    folded: LweBatch,
    packed: LweBatch,
    planes: RlweBatch,
}

const FITS: &str = "the shapes fit";
/// Sets that are quick to compute, and not secure.
const SMALL_SETS: [ColumnParams; 2] = [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256];

impl ColumnCase {
    /// Creates a case with bytes and words of one kind and residues of another.
    pub fn new(params: ColumnParams, shape: ColumnCaseShape, words: Words, residues: Residues) -> Self {
        let name = format!("{}, {words:?}, {residues:?}, {shape:?}", params.name());
        let ColumnCaseShape { rows, entry_rows, queries } = shape;
        let context = Arc::new(RingContext::new(*params.ring()));
        let kept = context.kept();
        let degree = params.ring().degree();
        let mut rng = Csprng::insecure_from_seed((rows * 31 + degree) as u64);
        let shape = PackShape::new(degree, rows, entry_rows).expect("positive");
        let fill = if words == Words::Random { Fill::Random } else { Fill::All(-128) };
        let columns = fill.matrix(rows, PACK_BYTES * degree);
        let columns = TiledDb::from_matrix(rows, PACK_BYTES * degree, &columns);
        let digits = residues.polys(kept, shape.plaintexts(), &mut rng);
        let polys = ChainPolys { digits, masks: residues.polys(kept, shape.plaintexts(), &mut rng) };

        let bits = params.ring().plaintext_bits();
        let keys = LweQueries {
            cols: PACK_BYTES * degree,
            words: words.words(queries * PACK_BYTES * degree, bits, &mut rng),
        };
        let conjugations: Vec<_> = (0..queries).map(|_| residues.coefficients(kept, &mut rng)).collect();
        let power_masks = [residues.poly(kept, &mut rng), residues.poly(kept, &mut rng)];
        let powers = if shape.entries() > 1 { queries } else { 0 };
        let power_bodies: Vec<_> =
            (0..powers).map(|_| [(); 2].map(|()| residues.coefficients(kept, &mut rng))).collect();
        let folded = LweBatch { rows, words: words.words(queries * rows, bits, &mut rng).into() };

        let chain = Reference.open_chain(&context, &shape, polys.clone()).expect(FITS);
        let all: Vec<_> = conjugations.iter().collect();
        let packed =
            Reference.pack_columns(&context, &columns, &chain, folded.clone(), &keys, &all).expect(FITS);
        let bodies = bodies(&power_bodies, queries);
        let powers = PowerKeys { masks: &power_masks, bodies: &bodies };
        let planes = Reference.rgsw_power_fold(&context, &chain, &folded, powers).expect(FITS);
        Self {
            name,
            context,
            shape,
            columns,
            polys,
            keys,
            conjugations,
            power_masks,
            power_bodies,
            queries,
            folded,
            packed,
            planes,
        }
    }

    /// Cases of the small sets, with words and residues of every kind.
    pub fn extremes() -> impl Iterator<Item = Self> {
        let shape = ColumnCaseShape { rows: 300, entry_rows: 101, queries: 2 };
        let words = Words::ALL.map(|words| (words, Residues::Random));
        let residues = Residues::ALL.map(|residues| (Words::Extreme, residues));
        let kinds = words.into_iter().chain(residues);
        let kinds = kinds.flat_map(|kinds| SMALL_SETS.map(|params| (params, kinds)));
        kinds.map(move |(params, (words, residues))| Self::new(params, shape, words, residues))
    }

    /// Returns a case of each of the small sets, with several entries and two queries.
    pub fn small() -> [Self; 2] {
        let shape = ColumnCaseShape { rows: 170, entry_rows: 60, queries: 2 };
        SMALL_SETS.map(|params| Self::new(params, shape, Words::Random, Residues::Random))
    }

    fn ring<B: ColumnOps>(&self, backend: &B) -> B::Ring {
        backend.open_ring(self.context.clone()).expect("the backend holds the tables")
    }

    /// Checks all steps of a query on `backend`, in batches of `batches` queries, the last ones of all: what a query is
    /// answered does not depend on its place.
    #[track_caller]
    pub fn check<B: ColumnOps>(&self, backend: &B, batches: &[usize]) {
        let ring = self.ring(backend);
        let columns = backend.open_db(self.columns.clone()).expect("the backend holds the columns");
        let chain = backend.open_chain(&ring, &self.shape, self.polys.clone()).expect(FITS);
        for &batch in batches {
            let first = self.queries - batch;
            let keys = self.last_keys(batch);
            let folded = last(&self.folded, batch);
            let conjugations: Vec<_> = self.conjugations[first..].iter().collect();
            let kept = backend.kept_lwe(&folded);
            let packed = backend.pack_columns(&ring, &columns, &chain, kept, &keys, &conjugations);
            let packed = packed.expect(FITS);
            let expected = last(&self.packed, batch);
            assert_eq!(packed.rows, expected.rows);
            let what = format!("pack_columns of {batch}, {} (line = query, word = row)", self.name);
            assert_same_words(&what, expected.rows, &expected.words, &backend.result(&packed.words));
            let bodies = bodies(&self.power_bodies, self.queries);
            let powers = PowerKeys { masks: &self.power_masks, bodies: &bodies[first..] };
            let folded = backend.kept_lwe(&folded);
            let planes = backend.rgsw_power_fold(&ring, &chain, &folded, powers).expect(FITS);
            assert_eq!(self.planes.ciphertext_words, planes.ciphertext_words);
            let before = first * self.shape.planes() * self.planes.ciphertext_words;
            let expected = &self.planes.words[before..];
            let actual = backend.result(&planes.words);
            let what = format!("rgsw_power_fold of {batch}, {} (line = limb of a polynomial)", self.name);
            assert_same_words(&what, self.shape.degree(), expected, &actual);
        }
    }

    /// Returns the keys of the last queries.
    fn last_keys(&self, batch: usize) -> LweQueries {
        let LweQueries { cols, words } = &self.keys;
        LweQueries { cols: *cols, words: words[words.len() - batch * cols..].to_vec() }
    }

    /// Checks that `backend` refuses operands that do not fit, as the reference does.
    #[track_caller]
    pub fn check_refusals<B: ColumnOps>(&self, backend: &B) {
        let expected = self.refusals(&Reference);
        for (index, refused) in expected.iter().enumerate() {
            assert!(matches!(refused, Some(OpsError::Shape { .. })), "refusal {index}: {refused:?}");
        }
        assert_eq!(self.refusals(backend), expected, "{}", self.name);
    }

    fn refusals<B: ColumnOps>(&self, backend: &B) -> Vec<Option<OpsError>> {
        let ring = self.ring(backend);
        let mut refused = self.offline_refusals(backend, &ring);
        let chain = backend.open_chain(&ring, &self.shape, self.polys.clone()).expect(FITS);
        let db = |db| backend.open_db(db).expect("the backend holds the columns");
        let rows = self.shape.rows();
        let cols = self.keys.cols;
        let columns = db(self.columns.clone());
        let [few_rows, few_cols] = [(rows - 1, cols), (rows, cols - 1)]
            .map(|(rows, cols)| db(TiledDb::from_matrix(rows, cols, &vec![0; rows * cols])));
        let short_keys = LweQueries { cols: cols - 1, words: vec![0; cols - 1] };
        let key = self.last_keys(1);
        let two_keys = self.last_keys(2);
        let folded = last(&self.folded, 1);
        let two_folded = last(&self.folded, 2);
        let short = LweBatch { rows: rows - 1, words: vec![0; rows - 1].into() };
        let z = &self.conjugations[0];
        let one_limb = Poly::from_words(vec![0; self.shape.degree()], self.shape.degree());
        for (columns, folded, keys, z) in [
            (&few_rows, &folded, &key, &[z][..]),
            (&few_cols, &folded, &key, &[z]),
            (&few_cols, &folded, &short_keys, &[z]),
            (&columns, &folded, &short_keys, &[z]),
            (&columns, &folded, &two_keys, &[z]),
            (&columns, &folded, &key, &[]),
            (&columns, &folded, &key, &[z, z]),
            (&columns, &folded, &key, &[&one_limb]),
            (&columns, &short, &key, &[z]),
            (&columns, &two_folded, &key, &[z]),
        ] {
            let folded = backend.kept_lwe(folded);
            refused.push(backend.pack_columns(&ring, columns, &chain, folded, keys, z).err());
        }
        let masks = &self.power_masks;
        let power = Some(&self.power_bodies[0]);
        let short_mask =
            [masks[0].clone(), Poly::from_words(vec![0; self.shape.degree()], self.shape.degree())];
        let short_body = [self.conjugations[0].clone(), one_limb.clone()];
        for (packed, masks, bodies) in [
            (&short, masks, &[power][..]),
            (&two_folded, masks, &[power]),
            (&folded, masks, &[]),
            (&folded, masks, &[power, power]),
            (&folded, masks, &[None]),
            (&folded, masks, &[Some(&short_body)]),
            (&folded, &short_mask, &[power]),
        ] {
            let powers = PowerKeys { masks, bodies };
            refused.push(backend.rgsw_power_fold(&ring, &chain, &backend.kept_lwe(packed), powers).err());
        }
        refused
    }

    fn offline_refusals<B: ColumnOps>(&self, backend: &B, ring: &B::Ring) -> Vec<Option<OpsError>> {
        let degree = self.shape.degree();
        let masks = ColumnMasks::new(&self.context, &PublicSeed([1; 32]));
        let plan = backend.open_masks(ring, &masks).expect("the backend holds the masks");
        let hints = [0, 1, degree - 1, degree + 1, (degree + 1) * degree];
        let hints =
            hints.map(|words| backend.chain_hint(ring, &plan, &[&backend.kept(&vec![0; words])]).err());
        let polys = |digits: usize, masks: usize| {
            let words = |words: usize| vec![0; words];
            ChainPolys { digits: words(digits), masks: words(masks) }
        };
        let words = self.polys.digits.len();
        let many = PackShape::new(degree, 2 * degree + 1, 1).expect("positive");
        let other = PackShape::new(2 * degree, self.shape.rows(), self.shape.rows()).expect("positive");
        let poly = poly_words(&self.context);
        let chains = [
            (&self.shape, polys(words - 1, words)),
            (&self.shape, polys(words, words + 1)),
            (&self.shape, polys(0, words)),
            (&many, polys(many.plaintexts() * poly, many.plaintexts() * poly)),
            (&other, polys(other.plaintexts() * poly, other.plaintexts() * poly)),
        ];
        let chains = chains.map(|(shape, polys)| backend.open_chain(ring, shape, polys).err());
        hints.into_iter().chain(chains).collect()
    }
}

/// Returns the halves b of all queries; `None` for each where there are none.
fn bodies(rows: &[[Poly<Coeff>; 2]], queries: usize) -> Vec<Option<&[Poly<Coeff>; 2]>> {
    (0..queries).map(|query| rows.get(query)).collect()
}

/// Returns the last queries of a batch.
fn last(all: &LweBatch, batch: usize) -> LweBatch {
    let LweBatch { rows, words } = all;
    LweBatch { rows: *rows, words: words[words.len() - batch * rows..].to_vec().into() }
}
