//! The steps between LWE and RLWE against the reference, bit for bit, in the emulator and on a GPU.

use crate::{
    coverage,
    devices::{one_and_gpu, small, varied},
};
use hush_cuda::Cuda;
use hush_he::params::{
    COLPACK_N2048_Q52, INSECURE_PACK_N256, INSECURE_PACK_PLAIN, PACK_M31, PackParams, VIPIR_N4096_3X29,
};
use hush_testkit::conformance::{PackCase, PackCaseShape, Residues, Words};

fn check(backends: &[Cuda], params: PackParams, shape: PackCaseShape, words: Words) {
    let case = PackCase::new(*params.ring(), shape, words, Residues::Random);
    backends.iter().for_each(|backend| case.check(backend));
}

/// Returns one emulated backend, and that of the GPU.
fn backends(seed: u64) -> Vec<Cuda> {
    one_and_gpu(seed).into_iter().map(Cuda::new).collect()
}

#[test]
fn every_shape() {
    let backends = backends(0);
    for shape in [
        // A short last entry.
        PackCaseShape::new(5, 700, 256, 0..3, 2),
        PackCaseShape::new(33, 700, 256, 2..3, 1),
        // Several planes an entry, the last one without a row.
        PackCaseShape::new(3, 1100, 600, 1..6, 1),
        PackCaseShape::new(1, 600, 600, 0..3, 2),
        // Entries that do not fill a plaintext.
        PackCaseShape::new(1, 240, 60, 0..4, 3),
        PackCaseShape::new(17, 1600, 100, 3..7, 1),
        // More than a tile of columns.
        PackCaseShape::new(3, 2000, 100, 0..20, 1),
        PackCaseShape::new(5, 2000, 100, 1..18, 4),
        PackCaseShape::new(5, 700, 256, 1..1, 1),
    ] {
        check(&backends, INSECURE_PACK_N256, shape, Words::Random);
    }
}

#[test]
fn on_other_devices() {
    let backends: Vec<_> = varied().into_iter().map(Cuda::new).collect();
    for columns in [0..1, 2..7] {
        let shape = PackCaseShape::new(40, 500, 60, columns, 2);
        check(&backends, INSECURE_PACK_PLAIN, shape, Words::Random);
    }
}

#[test]
fn more_queries_than_a_launch_takes() {
    let shape = PackCaseShape::new(2, 60, 60, 0..1, 67);
    let case = PackCase::new(*INSECURE_PACK_PLAIN.ring(), shape, Words::Random, Residues::Random);
    backends(0).iter().for_each(|backend| case.check_pack(backend));
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends(1);
    PackCase::extremes(2).for_each(|case| backends.iter().for_each(|backend| case.check(backend)));
}

#[test]
fn presets() {
    let backends = backends(0);
    check(&backends, PACK_M31, PackCaseShape::new(1, 5000, 4096, 0..2, 1), Words::Extreme);
    let shape = PackCaseShape::new(2, 5000, 4096, 1..2, 1);
    let case = PackCase::new(*VIPIR_N4096_3X29.ring(), shape, Words::Extreme, Residues::Random);
    backends.iter().for_each(|backend| case.check_pack(backend));
    // Of a degree that no preset has.
    let shape = PackCaseShape::new(1, 300, 300, 0..1, 1);
    let case = PackCase::new(*COLPACK_N2048_Q52.ring(), shape, Words::Extreme, Residues::Random);
    case.check_pack(&backends[0]);
}

#[test]
fn refusals() {
    let backends = backends(0);
    PackCase::small().iter().for_each(|case| backends.iter().for_each(|cuda| case.check_refusals(cuda)));
}

/// Runs under the sanitizers.
#[test]
fn small_packing_by_evaluation_keys() {
    let case =
        |params: PackParams, shape| PackCase::new(*params.ring(), shape, Words::Extreme, Residues::Random);
    let all_steps = case(INSECURE_PACK_PLAIN, PackCaseShape::new(2, 60, 40, 0..2, 1));
    let packed = case(INSECURE_PACK_N256, PackCaseShape::new(1, 300, 300, 0..1, 2));
    let backends: Vec<_> = small().into_iter().map(Cuda::new).collect();
    backends.iter().for_each(|backend| all_steps.check(backend));
    packed.check_pack(&backends[3]);
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::PACK);
}
