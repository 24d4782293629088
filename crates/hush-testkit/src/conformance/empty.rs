//! Empty operands: no queries, no rows, no columns, no plaintexts, no digits to add up. What comes of them is empty or zero on
//! every backend, and never an error: a table may be empty, and so may a batch after all its queries were refused.

use std::{slice, sync::Arc};

use hush_he::{
    entities::{ColumnMasks, MatrixDomain, MatrixShape, MatrixStructure, PublicMatrix, PublicSeed},
    params::{
        ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN, INSECURE_PACK_N256, INSECURE_PACK_PLAIN,
        INSECURE_RING_N256, INSECURE_RING_PLAIN, RingContext, RingParams,
    },
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{
        BatchWords, ChainPolys, ColumnOps, EntryOrder, LweBatch, LweOps, LweQueries, PACK_BYTES, PackOps,
        PowerKeys, RingOps, RlweBatch, Rounding, SentPoly, SentRows, ciphertext_words, poly_words,
        switched_bytes,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    reference::Reference,
    tiling::TiledDb,
};

use super::{Kept, Residues, Words};

const FITS: &str = "the shapes fit";
/// Rows of a database, and of an entry of it: three entries.
const ROWS: usize = 100;
const ENTRY_ROWS: usize = 40;

/// Checks every step of `backend` with operands that are empty in one way or another.
///
/// # Panics
/// If a result is not empty, zero, or what the reference makes of nothing.
pub fn empty_operands<B: PackOps + ColumnOps>(backend: &B) {
    empty_lwe(backend);
    for params in [INSECURE_RING_PLAIN, INSECURE_RING_N256] {
        empty_ring(backend, params);
    }
    for params in [INSECURE_PACK_PLAIN, INSECURE_PACK_N256] {
        empty_pack(backend, *params.ring());
    }
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        empty_column(backend, params);
    }
}

/// The seed of what is public.
const SEED: PublicSeed = PublicSeed([1; 32]);

/// The steps over LWE.
fn empty_lwe<B: LweOps>(backend: &B) {
    let open = |rows, cols| {
        backend.open_db(TiledDb::from_matrix(rows, cols, &vec![1; rows * cols])).expect("there is room")
    };
    for (rows, cols, queries) in [(4, 100, 0), (0, 5, 2), (5, 0, 0), (0, 0, 0)] {
        let words = vec![1; queries * cols];
        let folded = backend.lwe_fold(&open(rows, cols), &LweQueries { cols, words }).expect(FITS);
        assert_eq!(folded.rows, rows, "lwe_fold {rows} x {cols}");
        assert_eq!(backend.result(&folded.words), [], "lwe_fold {rows} x {cols}");
    }
    for structure in [MatrixStructure::Plain, MatrixStructure::Ring { degree: 4 }] {
        let a = |cols| PublicMatrix::new(SEED, MatrixShape::new(MatrixDomain::First, structure, cols, 8));
        let hint = backend.lwe_hint(&open(0, 5), &a(5), 0..0).expect(FITS);
        assert_eq!(backend.result(&hint), [], "lwe_hint without rows, {structure:?}");
        let hint = backend.lwe_hint(&open(5, 0), &a(0), 0..5).expect(FITS);
        assert_eq!(backend.result(&hint), [0; 5 * 8], "lwe_hint without columns, {structure:?}");
    }
    let send = |words: &[u32], rows, sent: &[SentRows]| {
        let words = LweBatch { rows, words: backend.kept(words) };
        backend.send_words(&words, sent, Rounding::HalfEven).expect(FITS)
    };
    let all = SentRows { rows: 0..2, bits: 7 };
    assert!(send(&[], 2, slice::from_ref(&all)).is_empty(), "send_words of no queries");
    assert!(send(&[], 0, &[]).is_empty(), "send_words without rows");
    assert_eq!(send(&[1; 4], 2, &[]), vec![Vec::<u8>::new(); 2]);
    assert_eq!(send(&[1; 4], 2, &[SentRows { rows: 2..2, ..all }]), vec![Vec::<u8>::new(); 2]);
    let db = backend.reinterpret_lwe(&backend.kept(&[]), 1, 4, 3).expect(FITS);
    assert_no_columns(backend, &db, 4 * 3, "reinterpret_lwe");
}

/// Checks that a database has `rows` rows and no column.
#[track_caller]
fn assert_no_columns<B: LweOps>(backend: &B, db: &B::Db, rows: usize, step: &str) {
    let folded = backend.lwe_fold(db, &LweQueries { cols: 0, words: Vec::new() }).expect(FITS);
    assert_eq!((folded.rows, backend.result(&folded.words)), (rows, Vec::new()), "{step} of nothing");
}

/// The steps over rings.
fn empty_ring<B: RingOps>(backend: &B, params: RingParams) {
    let context = Arc::new(RingContext::new(params));
    let ring = backend.open_ring(context.clone()).expect("the backend holds the tables");
    assert_eq!(backend.ntt_db(&ring, &[]), Ok(Vec::new()));
    assert!(backend.expand(&ring, &[], &[], 2, 1).expect(FITS).is_empty());
    for order in [EntryOrder::EntryMajor, EntryOrder::PlaneMajor] {
        assert!(backend.rgsw_fold(&ring, &[], 3, order, &[]).expect(FITS).is_empty());
    }
    empty_rlwe_fold(backend, &ring, &context);
    empty_responses(backend, &ring, &context);
}

/// Folds of a database without rows, without columns, without queries.
fn empty_rlwe_fold<B: RingOps>(backend: &B, ring: &B::Ring, context: &RingContext) {
    let kept = context.kept();
    let ciphertext_words = ciphertext_words(context);
    for (rows, columns) in [(0, 3), (3, 0), (0, 0), (3, 3)] {
        let tiling = NttTiling::new(kept.degree(), kept.limbs(), rows, columns).expect("whole groups");
        let host = NttTiledDb::from_polys(tiling, &vec![1; rows * columns * tiling.poly_words()]);
        let db = backend.open_ntt_db(ring, host.clone()).expect("there is room");
        let read = backend.read_ntt_db(ring, &db).expect("it can be read");
        assert!(read.tiling() == tiling && read.bytes() == host.bytes(), "{rows} x {columns}");
        assert!(backend.rlwe_fold(ring, &db, &[]).expect(FITS).is_empty(), "{rows} x {columns}, no query");
        if rows * columns > 0 {
            continue;
        }
        let selectors = RlweBatch { ciphertext_words, words: vec![1; rows * ciphertext_words].into() };
        let folded = backend.rlwe_fold(ring, &db, &[&backend.kept_rlwe(&selectors)]).expect(FITS);
        let folded: Vec<_> = folded.iter().map(|folded| backend.result(&folded.words)).collect();
        assert_eq!(folded, [vec![0; columns * ciphertext_words]], "rlwe_fold {rows} x {columns}");
    }
}

/// No queries, too few ciphertexts for a pair, no polynomials to switch.
fn empty_responses<B: RingOps>(backend: &B, ring: &B::Ring, context: &RingContext) {
    let rng = &mut Csprng::insecure_from_seed(1);
    if context.params().packs_pairs() {
        assert!(backend.pack_pairs(ring, &[], &[]).expect(FITS).is_empty());
        let keys = Residues::Random.keys(context, rng);
        let keys = backend.open_evaluation_keys(ring, keys).expect(FITS);
        for count in [0, 1] {
            let batch = backend.kept_rlwe(&Residues::Random.batch(context.kept(), count, rng));
            let packed = backend.pack_pairs(ring, &[&keys], &[&batch]).expect(FITS);
            let packed: Vec<_> = packed.iter().map(|words| backend.result(words)).collect();
            assert_eq!(packed, [vec![]], "pack_pairs of {count}");
        }
    }
    let whole = SentPoly::whole(context.params().degree(), 20);
    let none_of = SentPoly { count: 0, ..whole };
    let switch = |polys: &[&B::Words], first, sent: &[SentPoly]| {
        backend.mod_switch(ring, polys, first, sent).expect(FITS)
    };
    let none = backend.kept(&[]);
    let some = backend.kept(&vec![1; ciphertext_words(context)]);
    assert!(switch(&[], 0, &[whole, whole]).is_empty(), "mod_switch of no queries");
    assert_eq!(switch(&[&some, &some], 1, &[]), vec![Vec::<u8>::new(); 2]);
    assert_eq!(switch(&[&some, &some], 1, &[none_of]), vec![Vec::<u8>::new(); 2]);
    assert_eq!(switch(&[&none], 0, &[]), [Vec::<u8>::new()]);
}

/// The steps that pack by evaluation keys.
fn empty_pack<B: PackOps>(backend: &B, params: RingParams) {
    let context = Arc::new(RingContext::new(params));
    let ring = backend.open_ring(context.clone()).expect("the backend holds the tables");
    // Dimension, columns, queries: no column, no query, no coefficient of the secret.
    for (n, columns, queries) in [(5, 1..1, 2), (5, 0..3, 0), (0, 0..3, 2), (0, 0..0, 0)] {
        let what = format!("n = {n}, columns {columns:?}, {queries} queries");
        let shape = PackShape::new(params.degree(), ROWS, ENTRY_ROWS).expect("positive");
        let rng = &mut Csprng::insecure_from_seed(2);
        let hint: BatchWords = vec![1; shape.rows_of(columns.clone()).len() * n].into();
        let words = Words::Random.words(queries * ROWS, params.plaintext_bits(), rng).into();
        let folded = LweBatch { rows: ROWS, words };
        let selectors: Vec<_> =
            (0..queries).map(|_| Residues::Random.batch(context.kept(), n, rng)).collect();
        let lifted = Reference.lift_hint(&context, &hint, n, &shape, columns.clone()).expect(FITS);
        let all: Vec<_> = selectors.iter().collect();
        let packed = Reference.pack(&context, &lifted, &folded, &shape, columns.clone(), &all).expect(FITS);

        let hint = backend.lift_hint(&ring, &backend.kept(&hint), n, &shape, columns.clone()).expect(FITS);
        let read = backend.read_ntt_db(&ring, &hint).expect("the hint can be read");
        assert!(read.tiling() == lifted.tiling() && read.bytes() == lifted.bytes(), "lift_hint, {what}");
        let folded = backend.kept_lwe(&folded);
        let selectors = backend.kept_all(&selectors);
        let all: Vec<_> = selectors.iter().collect();
        let actual = backend.pack(&ring, &hint, &folded, &shape, columns, &all).expect(FITS);
        let actual: Vec<_> = actual.iter().map(|packed| backend.result(&packed.words)).collect();
        let expected: Vec<_> = packed.iter().map(|packed| packed.words.to_vec()).collect();
        assert!(expected == actual, "pack, {what}");
    }
    let none = Residues::Zero.batch(context.kept(), 0, &mut Csprng::insecure_from_seed(3));
    let mut sum = backend.kept_rlwe(&none);
    backend.add_rlwe(&ring, &mut sum, 0, &backend.kept_rlwe(&none)).expect(FITS);
    assert_eq!(backend.result(&sum.words), []);
    let Some(bytes) = switched_bytes(params.response_bits()) else { return };
    for planes in [1, 3] {
        let db = backend.reinterpret_rlwe(&ring, &backend.kept_rlwe(&none), planes).expect(FITS);
        assert_no_columns(backend, &db, bytes * params.degree() * planes, "reinterpret_rlwe");
    }
}

/// The steps of column packing: no hints, and batches of no query for one entry and for several.
fn empty_column<B: ColumnOps>(backend: &B, params: ColumnParams) {
    let context = Arc::new(RingContext::new(*params.ring()));
    let ring = backend.open_ring(context.clone()).expect("the backend holds the tables");
    let masks = ColumnMasks::new(&context, &SEED);
    let plan = backend.open_masks(&ring, &masks).expect("the backend holds the masks");
    assert_eq!(backend.chain_hint(&ring, &plan, &[]), Ok(Vec::new()));
    let cols = PACK_BYTES * params.ring().degree();
    let columns = backend.open_db(TiledDb::from_matrix(ROWS, cols, &vec![1; ROWS * cols])).expect(FITS);
    for entry_rows in [ENTRY_ROWS, ROWS] {
        let shape = PackShape::new(params.ring().degree(), ROWS, entry_rows).expect("positive");
        let words = vec![1; shape.plaintexts() * poly_words(&context)];
        let polys = ChainPolys { digits: words.clone(), masks: words };
        let chain = backend.open_chain(&ring, &shape, polys).expect(FITS);
        let none = || backend.kept_lwe(&LweBatch { rows: ROWS, words: Vec::new().into() });
        let keys = LweQueries { cols, words: Vec::new() };
        let powers = PowerKeys { masks: masks.power(), bodies: &[] };
        let packed = backend.pack_columns(&ring, &columns, &chain, none(), &keys, &[]).expect(FITS);
        assert_eq!((packed.rows, backend.result(&packed.words)), (ROWS, Vec::new()), "pack_columns");
        let planes = backend.rgsw_power_fold(&ring, &chain, &none(), powers).expect(FITS);
        assert_eq!(planes.ciphertext_words, ciphertext_words(&context));
        assert_eq!(backend.result(&planes.words), [], "rgsw_power_fold");
    }
}
