//! The steps between LWE and RLWE against the reference, bit for bit, in the emulator and on a GPU.

use std::{ops::Range, sync::Arc};

use crate::{
    coverage,
    devices::{devices, one_and_gpu, small},
};
use hush_cuda::Cuda;
use hush_he::params::{
    INSECURE_PACK_N256, INSECURE_PACK_PLAIN, PACK_M31, PackParams, RingContext, VIPIR_N4096_3X29,
};
use hush_ops::{
    OpsError,
    contract::{Memory, PackOps, RingOps},
    pack_shape::PackShape,
};
use hush_testkit::conformance::{PackCase, PackCaseShape, Residues, Words};

fn check(backends: &[Cuda], params: PackParams, shape: PackCaseShape, words: Words, residues: Residues) {
    let case = PackCase::new(*params.ring(), shape, words, residues);
    backends.iter().for_each(|backend| case.check(backend));
}

/// One emulated backend, and that of the GPU.
fn backends(seed: u64) -> Vec<Cuda> {
    one_and_gpu(seed).into_iter().map(Cuda::new).collect()
}

fn shape(n: usize, rows: usize, entry_rows: usize, columns: Range<usize>, queries: usize) -> PackCaseShape {
    PackCaseShape { n, rows, entry_rows, columns, queries }
}

#[test]
fn every_shape() {
    let backends = backends(0);
    for shape in [
        // A short last entry.
        shape(5, 700, 256, 0..3, 2),
        shape(33, 700, 256, 2..3, 1),
        // Several planes an entry, the last one without a row.
        shape(3, 1100, 600, 1..6, 1),
        shape(1, 600, 600, 0..3, 2),
        // Entries that do not fill a plaintext.
        shape(1, 240, 60, 0..4, 3),
        shape(17, 1600, 100, 3..7, 1),
        // More than a tile of columns.
        shape(3, 2000, 100, 0..20, 1),
        shape(5, 2000, 100, 1..18, 4),
        shape(5, 700, 256, 1..1, 1),
    ] {
        check(&backends, INSECURE_PACK_N256, shape, Words::Random, Residues::Random);
    }
}

#[test]
fn on_every_device() {
    let backends: Vec<_> = devices().into_iter().map(Cuda::new).collect();
    for columns in [0..1, 2..7] {
        let shape = shape(40, 500, 60, columns, 2);
        check(&backends, INSECURE_PACK_PLAIN, shape, Words::Random, Residues::Random);
    }
}

#[test]
fn more_queries_than_a_launch_takes() {
    let shape = shape(2, 60, 60, 0..1, 67);
    let case = PackCase::new(*INSECURE_PACK_PLAIN.ring(), shape, Words::Random, Residues::Random);
    backends(0).iter().for_each(|backend| case.check_pack(backend));
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends(1);
    for words in Words::ALL {
        check(&backends, INSECURE_PACK_N256, shape(3, 600, 250, 0..2, 2), words, Residues::Random);
    }
    for residues in Residues::ALL {
        check(&backends, INSECURE_PACK_N256, shape(5, 600, 256, 0..3, 1), Words::Extreme, residues);
    }
}

#[test]
fn presets() {
    let backends = backends(0);
    check(&backends, PACK_M31, shape(2, 5000, 4096, 0..2, 1), Words::Extreme, Residues::Random);
    let shape = shape(3, 8000, 4096, 0..2, 1);
    let case = PackCase::new(*VIPIR_N4096_3X29.ring(), shape, Words::Extreme, Residues::Random);
    backends.iter().for_each(|backend| case.check_pack(backend));
}

#[test]
fn more_columns_than_a_grid_has_are_refused() {
    let backend = &backends(0)[0];
    let context = RingContext::new(*INSECURE_PACK_PLAIN.ring());
    let degree = context.params().degree();
    let ring = backend.open_ring(Arc::new(context)).expect("the backend holds the tables");
    let columns = 1 << 16;
    let shape = PackShape::new(degree, columns, 1).expect("positive");
    let hint = backend.keep(vec![1; columns]).expect("there is room");
    let refused = backend.lift_hint(&ring, &hint, 1, &shape, 0..columns).err();
    assert!(matches!(refused, Some(OpsError::Shape { what: "columns", .. })), "{refused:?}");
}

#[test]
fn refusals() {
    let backends = backends(0);
    for params in [INSECURE_PACK_PLAIN, INSECURE_PACK_N256] {
        let shape = shape(3, 600, 256, 0..2, 2);
        let case = PackCase::new(*params.ring(), shape, Words::Random, Residues::Random);
        backends.iter().for_each(|backend| case.check_refusals(backend));
    }
}

/// What the sanitizers run.
#[test]
fn small_packing_by_evaluation_keys() {
    let case =
        |params: PackParams, shape| PackCase::new(*params.ring(), shape, Words::Extreme, Residues::Random);
    let all_steps = case(INSECURE_PACK_PLAIN, shape(2, 60, 40, 0..2, 1));
    let packed = case(INSECURE_PACK_N256, shape(1, 300, 300, 0..1, 2));
    let backends: Vec<_> = small().into_iter().map(Cuda::new).collect();
    backends.iter().for_each(|backend| all_steps.check(backend));
    packed.check_pack(&backends[3]);
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::PACK);
}
