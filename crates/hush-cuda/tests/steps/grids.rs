//! More columns, planes or queries than a grid has rows are refused before anything is computed.

use std::sync::Arc;

use crate::devices::one_and_gpu;
use hush_cuda::{
    Cuda,
    device::Buffer,
    ring::{CudaNttDb, CudaRing, fold_rows},
};
use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext, RlwePair},
    params::{INSECURE_COLPACK_PLAIN, INSECURE_PACK_PLAIN, RingContext, RingParams},
};
use hush_math::{gadget::Gadget, modulus::Modulus};
use hush_ops::{
    OpsError,
    contract::{
        ChainPolys, ColumnOps, EntryOrder, LweBatch, LweOps, LweQueries, Memory, PACK_BYTES, PackOps,
        RingOps, RlweBatch,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    tiling::TiledDb,
};

/// A number above the second and the third dimension of a grid.
const MANY: usize = 1 << 16;

/// A backend and a parameter set.
struct Setup {
    cuda: Cuda,
    context: Arc<RingContext>,
    ring: CudaRing,
}

impl Setup {
    fn all(params: RingParams) -> Vec<Self> {
        let mut setups = Vec::new();
        for device in one_and_gpu(0) {
            let cuda = Cuda::new(device);
            let context = Arc::new(RingContext::new(params));
            let ring = cuda.open_ring(context.clone()).expect("there is room");
            setups.push(Self { cuda, context, ring });
        }
        setups
    }

    /// Ciphertexts of zeros.
    fn zeros(&self, count: usize) -> RlweBatch<Buffer<u32>> {
        let ciphertext_words = 2 * self.ring.kept().poly_words();
        let words = self.cuda.device().zeroed(count * ciphertext_words).expect("there is room");
        RlweBatch { ciphertext_words, words }
    }

    /// Keys of zeros.
    fn zero_keys(&self) -> EvaluationKeys {
        let (params, full, kept) = (self.context.params(), self.context.full(), self.context.kept());
        let key = |gadget: Gadget| KeySwitchKey {
            rows: (0..gadget.digits).map(|_| RlweCiphertext { a: full.zero(), b: full.zero() }).collect(),
        };
        EvaluationKeys {
            levels: params.levels().iter().map(|&gadget| key(gadget)).collect(),
            square: key(params.square_gadget()),
            pack: [(); 2].map(|()| {
                let rows = 0..params.pack_gadget().digits;
                rows.map(|_| RlwePair { a: kept.zero(), b: [kept.zero(), kept.zero()] }).collect()
            }),
            switch: None,
            private: None,
        }
    }
}

#[track_caller]
fn assert_refused<T>(result: Result<T, OpsError>, part: &str) {
    match result.err() {
        Some(OpsError::Shape { what, .. }) if what == part => {}
        other => panic!("{part}: {other:?}"),
    }
}

#[test]
fn columns_of_a_hint() {
    for Setup { cuda, context, ring } in Setup::all(*INSECURE_PACK_PLAIN.ring()) {
        let shape = PackShape::new(context.params().degree(), MANY, 1).expect("positive");
        let hint = cuda.keep(vec![1; MANY]).expect("there is room");
        assert_refused(cuda.lift_hint(&ring, &hint, 1, &shape, 0..MANY), "columns");
    }
}

#[test]
fn columns_of_a_fold_of_ring_elements() {
    // Squares of 32 columns are a row of the grid. Without rows the database is empty.
    let tiling = NttTiling::new(16, 1, 0, 32 * MANY).expect("whole groups");
    for device in one_and_gpu(0) {
        let db = CudaNttDb::upload(&device, &NttTiledDb::from_polys(tiling, &[])).expect("there is room");
        let query = device.alloc(0).expect("there is room");
        assert_refused(fold_rows(&device, &[Modulus::new(2_147_483_647)], &db, &[&query], None), "columns");
    }
}

#[test]
fn planes_of_external_products() {
    for setup in Setup::all(*INSECURE_PACK_PLAIN.ring()) {
        let rows = 2 * setup.context.params().fold_gadget().digits;
        let (entries, bits) = (setup.zeros(MANY), [setup.zeros(rows)]);
        let Setup { cuda, ring, .. } = &setup;
        let folded = cuda.rgsw_fold(ring, &[&entries], MANY, EntryOrder::EntryMajor, &[&bits]);
        assert_refused(folded, "planes");
    }
}

#[test]
fn pairs_and_queries_that_are_packed() {
    for setup in Setup::all(*INSECURE_PACK_PLAIN.ring()) {
        let Setup { cuda, ring, .. } = &setup;
        let keys = cuda.open_evaluation_keys(ring, setup.zero_keys()).expect("the shapes fit");
        let batch = setup.zeros(2 * MANY);
        assert_refused(cuda.pack_pairs(ring, &[&keys], &[&batch]), "pairs");
        let batch = setup.zeros(2);
        assert_refused(cuda.pack_pairs(ring, &vec![&keys; MANY], &vec![&batch; MANY]), "queries");
    }
}

#[test]
fn queries_and_planes_of_column_packing() {
    for Setup { cuda, context, ring } in Setup::all(*INSECURE_COLPACK_PLAIN.ring()) {
        let (degree, poly) = (context.params().degree(), context.kept().zero());
        let polys = |count: usize| vec![0; count * ring.kept().poly_words()];
        let shape = PackShape::new(degree, 1, 1).expect("positive");
        let chain = ChainPolys { digits: polys(1), masks: Vec::new() };
        let chain = cuda.open_chain(&ring, &shape, chain).expect("the shapes fit");
        let cols = PACK_BYTES * degree;
        let columns = cuda.open_db(TiledDb::from_matrix(1, cols, &vec![0; cols])).expect("there is room");
        let folded = LweBatch { rows: 1, words: cuda.keep(vec![0; MANY]).expect("there is room") };
        let keys = LweQueries { cols, words: vec![0; cols * MANY] };
        let packed = cuda.pack_columns(&ring, &columns, &chain, folded, &keys, &vec![&poly; MANY]);
        assert_refused(packed, "queries");

        let shape = PackShape::new(degree, 1, MANY * degree).expect("positive");
        let chain = ChainPolys { digits: polys(MANY), masks: polys(MANY) };
        assert_refused(cuda.open_chain(&ring, &shape, chain), "planes");
    }
}
