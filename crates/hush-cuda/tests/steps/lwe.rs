//! The steps over LWE, in the emulator and on a GPU: the words of the reference backend.

use crate::{
    coverage,
    devices::{self, devices, gpu, orderly, small},
};
use hush_cuda::{
    Cuda, FoldKernel,
    device::{Device, Emulation},
};
use hush_he::entities::{MatrixDomain, MatrixShape, MatrixStructure, PublicMatrix, PublicSeed};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweBatch, LweOps, LweQueries, Memory, Rounding, SentRows},
    reference::Reference,
    tiling::TiledDb,
};
use hush_testkit::conformance::{self, FOLD_SHAPES, HINT_CASES};

/// Returns the emulator, in order and for shapes that are not too long: disorder has tests of its own.
fn emulated() -> impl Iterator<Item = Cuda> {
    devices::emulated().into_iter().map(Cuda::new)
}

#[test]
fn lwe_fold() {
    for (backend, batches) in emulated().zip([&[1, 5, 9, 33, 65][..], &[1, 2, 3, 9, 33]]) {
        conformance::lwe_fold_of(&backend, &FOLD_SHAPES, batches);
    }
    gpu().into_iter().for_each(|device| conformance::lwe_fold(&Cuda::new(device)));
}

#[test]
fn lwe_hint() {
    let small = HINT_CASES.into_iter().filter(|&(_, cols, _, n)| cols * n < 1 << 20);
    let high_degree = (20, 600, MatrixStructure::Ring { degree: 512 }, 512);
    let cases: Vec<_> = small.chain([high_degree]).collect();
    emulated().for_each(|backend| conformance::lwe_hint_of(&backend, &cases));
    gpu().into_iter().for_each(|device| conformance::lwe_hint(&Cuda::new(device)));
}

#[test]
fn reinterpret_lwe() {
    devices().into_iter().for_each(|device| conformance::reinterpret_lwe(&Cuda::new(device)));
}

#[test]
fn send_words() {
    devices().into_iter().for_each(|device| conformance::send_words(&Cuda::new(device)));
}

/// Kernels that the device can run.
fn kernels(device: &Device) -> Vec<FoldKernel> {
    let hopper = device.is_hopper().then_some(FoldKernel::Wgmma);
    hopper.into_iter().chain([FoldKernel::Mma]).collect()
}

fn random_db(rows: usize, cols: usize) -> TiledDb {
    let mut matrix = vec![0; rows * cols];
    Csprng::insecure_from_seed(1).fill_bytes(&mut matrix);
    TiledDb::from_matrix(rows, cols, &matrix)
}

fn fold(backend: &Cuda, db: &TiledDb, queries: &LweQueries) -> Vec<u32> {
    let db = backend.open_db(db.clone()).expect("the device holds the database");
    let folded = backend.lwe_fold(&db, queries).expect("the shapes fit");
    backend.read(&folded.words).expect("the device is there").into_owned()
}

/// Runs of units that begin and end within row blocks, row blocks that several blocks share, and short last ones; in disorder.
#[test]
fn every_kernel_gives_the_same_words() {
    let (rows, cols) = (700, 1100);
    let db = random_db(rows, cols);
    let mut words = vec![0; 40 * cols];
    Csprng::insecure_from_seed(2).fill_u32(&mut words);
    let expected =
        Reference.lwe_fold(&db, &LweQueries { cols, words: words.clone() }).expect("the shapes fit");
    let emulations = [(5, 0), (7, 9)].map(|(multiprocessors, seed)| Emulation {
        multiprocessors,
        seed,
        ..Emulation::default()
    });
    for device in emulations.map(Device::emulated).into_iter().chain(gpu()) {
        let kernels = kernels(&device);
        let mut backend = Cuda::new(device);
        for kernel in kernels {
            backend = backend.with_fold_kernel(kernel);
            for batch in [1, 2, 5, 40] {
                let queries = LweQueries { cols, words: words[..batch * cols].to_vec() };
                let folded = fold(&backend, &db, &queries);
                assert_eq!(folded, expected.words[..batch * rows], "{kernel:?}, {batch} queries");
            }
        }
    }
}

/// Row blocks in whole waves and a rest, odd numbers of them and of multiprocessors, fewer than clusters, one cluster for all.
#[test]
fn clusters_of_blocks() {
    let cols = 300;
    let mut words = vec![0; 64 * cols];
    Csprng::insecure_from_seed(4).fill_u32(&mut words);
    // Row blocks have 384 rows for up to 32 queries, 192 for more.
    for (rows, multiprocessors) in [(1, 3), (192, 132), (193, 1), (385, 2), (900, 5), (2000, 4), (2400, 7)] {
        let db = random_db(rows, cols);
        let expected = Reference.lwe_fold(&db, &LweQueries { cols, words: words.clone() });
        let expected = expected.expect("the shapes fit").words;
        for seed in [0, 11] {
            let emulation = Emulation { multiprocessors, seed, ..Emulation::default() };
            let backend = Cuda::new(Device::emulated(emulation));
            for batch in [17, 64] {
                let queries = LweQueries { cols, words: words[..batch * cols].to_vec() };
                let folded = fold(&backend, &db, &queries);
                assert!(folded == expected[..batch * rows], "{rows} rows, {batch} queries, {emulation:?}");
            }
            let launched = backend.device().launched_kernels();
            assert!(
                ["lwe_fold_n128_cluster_hopper", "lwe_fold_n256_cluster_hopper"]
                    .iter()
                    .all(|kernel| launched.contains(kernel))
            );
        }
    }
}

#[test]
fn hints_in_disorder() {
    let db = random_db(600, 300);
    for structure in [MatrixStructure::Plain, MatrixStructure::Ring { degree: 16 }] {
        let shape = MatrixShape::new(MatrixDomain::First, structure, 300, 80);
        let a = PublicMatrix::new(PublicSeed([1; 32]), shape);
        let expected = Reference.lwe_hint(&db, &a, 512..600).expect("the shapes fit");
        for device in devices() {
            let backend = Cuda::new(device);
            let db = backend.open_db(db.clone()).expect("the device holds the database");
            // The second time the matrix is ready.
            for _ in 0..2 {
                let hint = backend.lwe_hint(&db, &a, 512..600).expect("the shapes fit");
                assert_eq!(backend.read(&hint).expect("the device is there")[..], expected[..]);
            }
        }
    }
}

/// Sums beyond 2^31: accumulators wrap, they do not saturate.
#[test]
fn accumulators_wrap() {
    let (rows, cols) = (2, 70_000);
    for byte in [-128i8, 127] {
        let db = TiledDb::from_matrix(rows, cols, &vec![byte as u8; rows * cols]);
        let queries = LweQueries { cols, words: vec![u32::MAX; cols] };
        let expected = vec![(-i64::from(byte) * cols as i64) as u32; rows];
        for device in orderly() {
            let kernels = kernels(&device);
            let mut backend = Cuda::new(device);
            for kernel in kernels {
                backend = backend.with_fold_kernel(kernel);
                assert_eq!(fold(&backend, &db, &queries), expected, "{byte}, {kernel:?}");
            }
        }
    }
}

/// Runs under the sanitizers: every kernel over two row blocks and three k tiles, and both structures of hints.
#[test]
fn small_lwe_steps() {
    let (rows, cols) = (400, 300);
    let db = random_db(rows, cols);
    let mut words = vec![0; 33 * cols];
    Csprng::insecure_from_seed(3).fill_u32(&mut words);
    let expected =
        Reference.lwe_fold(&db, &LweQueries { cols, words: words.clone() }).expect("the shapes fit");
    let mut backends = Vec::new();
    for device in small() {
        let mut backend = Cuda::new(device);
        let plain = (33, 70, MatrixStructure::Plain, 5);
        conformance::lwe_hint_of(&backend, &[plain, (17, 130, MatrixStructure::Ring { degree: 8 }, 16)]);
        conformance::reinterpret_lwe_of(&backend, &[(2, 3, 20)]);
        for kernel in kernels(backend.device()) {
            backend = backend.with_fold_kernel(kernel);
            // There is a batch for each launch that a kernel has.
            let batches: &[usize] = match kernel {
                FoldKernel::Wgmma => &[1, 5, 9, 17, 33],
                FoldKernel::Mma => &[1, 5, 9, 17],
            };
            for &batch in batches {
                let queries = LweQueries { cols, words: words[..batch * cols].to_vec() };
                let folded = fold(&backend, &db, &queries);
                assert_eq!(folded, expected.words[..batch * rows], "{kernel:?}, {batch} queries");
            }
        }
        let words = LweBatch { rows, words: backend.keep(expected.words.to_vec()).unwrap() };
        let sent = [SentRows { rows: 1..rows, bits: 11 }, SentRows { rows: 0..3, bits: 32 }];
        let packed = backend.send_words(&words, &sent, Rounding::HalfEven).unwrap();
        assert_eq!(packed, Reference.send_words(&expected, &sent, Rounding::HalfEven).unwrap());
        backends.push(backend);
    }
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::LWE);
}
