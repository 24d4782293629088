//! The steps at shapes of the sets in use, on a GPU: the emulator would take minutes for them. Without one they are skipped.

use crate::devices::gpu;
use hush_cuda::{Cuda, FoldKernel};
use hush_he::params::{COLPACK_N2048_Q52, ONION_M31, ONION_S, PACK_M31};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweOps, LweQueries, Memory},
    reference::Reference,
    tiling::TiledDb,
};
use hush_testkit::conformance::{
    ChainCase, ColumnCase, ColumnCaseShape, HintRows, PackCase, PackCaseShape, Residues, RingCase, RingShape,
    Words,
};

fn backend() -> Option<Cuda> {
    gpu().map(Cuda::new)
}

/// Every multiprocessor has several row blocks or a part of one, by every kernel.
#[test]
fn lwe_folds() {
    let Some(mut backend) = backend() else { return };
    for (rows, cols) in [(70_000, 700), (500, 60_000)] {
        let mut matrix = vec![0; rows * cols];
        Csprng::insecure_from_seed(1).fill_bytes(&mut matrix);
        let mut words = vec![0; 64 * cols];
        Csprng::insecure_from_seed(2).fill_u32(&mut words);
        let host = TiledDb::from_matrix(rows, cols, &matrix);
        let expected = Reference.lwe_fold(&host, &LweQueries { cols, words: words.clone() });
        let expected = expected.expect("the shapes fit").words;
        let db = backend.open_db(host).expect("the device holds the database");
        for kernel in [FoldKernel::Wgmma, FoldKernel::Mma] {
            if kernel == FoldKernel::Wgmma && !backend.device().is_hopper() {
                continue;
            }
            backend = backend.with_fold_kernel(kernel);
            for batch in [1, 2, 4, 8, 16, 32, 64] {
                let queries = LweQueries { cols, words: words[..batch * cols].to_vec() };
                let folded = backend.lwe_fold(&db, &queries).expect("the shapes fit");
                let folded = backend.read(&folded.words).expect("the device is there");
                assert!(folded[..] == expected[..batch * rows], "{kernel:?}, {batch} queries, {rows} rows");
            }
        }
    }
}

#[test]
fn steps_over_rings() {
    let Some(backend) = backend() else { return };
    for params in [ONION_M31, ONION_S, *PACK_M31.ring()] {
        for (residues, rows) in [(Residues::Random, 40), (Residues::Middle, 7), (Residues::Largest, 2)] {
            let shape = RingShape { rows, folds: 3, entries: 7, planes: 2, queries: 3 };
            RingCase::new(params, shape, residues).check(&backend);
        }
    }
}

#[test]
fn packing_by_evaluation_keys() {
    let Some(backend) = backend() else { return };
    let case = |rows, entry_rows, columns, words| {
        let shape = PackCaseShape { n: 300, rows, entry_rows, columns, queries: 3 };
        PackCase::new(*PACK_M31.ring(), shape, words, Residues::Random)
    };
    case(9 * 4096, 4096, 0..9, Words::Random).check_pack(&backend);
    case(3 * 9000 - 5000, 9000, 1..9, Words::Extreme).check_pack(&backend);
}

#[test]
fn column_packing() {
    let Some(backend) = backend() else { return };
    // The last one has more planes than clusters are for.
    for (rows, entry_rows) in [(40 * 2048, 2048), (3 * 5000 - 3000, 5000), (3000, 100), (60_000, 30_000)] {
        let shape = ColumnCaseShape { rows, entry_rows, queries: 5 };
        let case = ColumnCase::new(COLPACK_N2048_Q52, shape, Words::Random, Residues::Random);
        case.check(&backend, &[1, 3, 5]);
    }
}

#[test]
fn chains() {
    let Some(backend) = backend() else { return };
    let rows =
        [(2048, HintRows::Of(Words::Extreme)), (700, HintRows::Of(Words::Random)), (1, HintRows::OneWord)];
    let cases = rows.map(|(rows, values)| ChainCase::new(COLPACK_N2048_Q52, rows, values));
    ChainCase::check_together(&cases, &backend);
}
