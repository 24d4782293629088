//! The steps of column packing, in the emulator and on a GPU: bit for bit what the reference backend makes.

use crate::{
    coverage,
    devices::{gpu, gpu_or_one, orderly, small, varied},
};
use hush_cuda::{
    Cuda,
    device::{Device, Emulation},
};
use hush_he::params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN};
use hush_testkit::conformance::{
    ChainCase, ChainMisfit, ColumnCase, ColumnCaseShape, HintRows, Misfit, Residues, Words,
};

/// Returns a backend with multiprocessors for two blocks a plane, whose folds of planes are by clusters.
fn with_clusters(seed: u64) -> Cuda {
    Cuda::new(Device::emulated(Emulation { multiprocessors: 132, seed, ..Emulation::default() }))
}

fn backends() -> Vec<Cuda> {
    varied().into_iter().map(Cuda::new).chain([with_clusters(6)]).collect()
}

fn check(params: ColumnParams, (rows, entry_rows): (usize, usize), batches: &[usize]) {
    let queries = batches.iter().copied().max().unwrap_or(0);
    let shape = ColumnCaseShape { rows, entry_rows, queries };
    let case = ColumnCase::new(params, shape, Words::Random, Residues::Random);
    backends().iter().for_each(|cuda| case.check(cuda, batches));
}

#[test]
fn every_shape() {
    for (rows, entry_rows, batches) in [
        // One entry: nothing is folded.
        (50, 64, &[1, 3][..]),
        (150, 150, &[2]),
        // A short last entry, of no power of two.
        (170, 60, &[1, 5]),
        // Several planes; the last ones of the last entry without rows.
        (340, 150, &[3]),
        (64 * 8, 128, &[0, 1, 2]),
        // Two, three and more passes of the spectrum, up to the last power of X that there is.
        (50, 4, &[1]),
        (50, 2, &[1]),
        (63, 1, &[2]),
        (128, 1, &[1]),
        (1, 1, &[2]),
    ] {
        check(INSECURE_COLPACK_PLAIN, (rows, entry_rows), batches);
    }
    for (rows, entry_rows, batches) in [(1200, 400, &[2][..]), (256, 256, &[2]), (300, 37, &[2])] {
        check(INSECURE_COLPACK_N256, (rows, entry_rows), batches);
    }
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends();
    ColumnCase::extremes().for_each(|case| backends.iter().for_each(|cuda| case.check(cuda, &[2])));
}

#[test]
fn the_default_set() {
    let shape = ColumnCaseShape { rows: 2 * 2100, entry_rows: 2100, queries: 2 };
    let case = ColumnCase::new(COLPACK_N2048_Q52, shape, Words::Extreme, Residues::Random);
    let backends = orderly().into_iter().map(Cuda::new).chain([with_clusters(0)]);
    backends.for_each(|cuda| case.check(&cuda, &[2]));
}

#[test]
fn refusals() {
    let backends = backends();
    ColumnCase::small().iter().for_each(|case| backends.iter().for_each(|cuda| case.check_refusals(cuda)));
}

#[test]
fn chains() {
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let cases = ChainCase::of_every_kind(params);
        for cuda in backends() {
            ChainCase::check_together(&cases, &cuda);
            cases[0].check(&cuda);
        }
    }
}

/// Runs under the sanitizers: queries of a set of each degree, chains of those that are small.
#[test]
fn small_column_packing() {
    let random = HintRows::Of(Words::Random);
    let chains = [64, 33].map(|rows| ChainCase::new(INSECURE_COLPACK_PLAIN, rows, random));
    let longer = ChainCase::new(INSECURE_COLPACK_N256, 20, random);
    let queries = |params, rows, entry_rows| {
        let shape = ColumnCaseShape { rows, entry_rows, queries: 2 };
        ColumnCase::new(params, shape, Words::Random, Residues::Random)
    };
    let cases = [queries(INSECURE_COLPACK_PLAIN, 170, 10), queries(INSECURE_COLPACK_N256, 30, 20)];
    let large = queries(COLPACK_N2048_Q52, 10, 5);
    let backends: Vec<_> = small().into_iter().map(Cuda::new).chain([with_clusters(9)]).collect();
    for cuda in &backends {
        ChainCase::check_together(&chains, cuda);
        cases.iter().for_each(|case| case.check(cuda, &[2]));
    }
    // What takes longer, in disorder alone.
    longer.check(&backends[1]);
    large.check(&backends[1], &[2]);
    large.check(&backends[backends.len() - 1], &[1]);
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::COLUMN);
}

/// Returns one device, as a chain of the full size is long in the emulator.
fn one_backend() -> Cuda {
    Cuda::new(gpu_or_one())
}

#[test]
fn a_chain_of_the_default_set() {
    ChainCase::new(COLPACK_N2048_Q52, 2048, HintRows::Of(Words::Random)).check(&one_backend());
}

/// Rows behind those of the hint are joined like its own, so that one of the two is enough in the emulator.
#[test]
fn entries_that_do_not_fit_are_refused() {
    ChainMisfit::new(COLPACK_N2048_Q52, Misfit::Behind).check(&one_backend());
    let row = ChainMisfit::new(COLPACK_N2048_Q52, Misfit::Row);
    gpu().into_iter().for_each(|device| row.check(&Cuda::new(device)));
}
