//! The steps of column packing, in the emulator and on a GPU: bit for bit what the reference backend makes.

use crate::{
    coverage,
    devices::{devices, gpu_or_one, orderly, small},
};
use hush_cuda::Cuda;
use hush_he::params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN};
use hush_testkit::conformance::{
    ChainCase, ChainMisfit, ColumnCase, ColumnCaseShape, HintRows, Misfit, Residues, Words,
};

fn backends() -> Vec<Cuda> {
    devices().into_iter().map(Cuda::new).collect()
}

fn check(params: ColumnParams, case: (usize, usize, &[usize]), values: (Words, Residues)) {
    let (rows, entry_rows, batches) = case;
    let queries = batches.iter().copied().max().unwrap_or(0);
    let case = ColumnCase::new(params, ColumnCaseShape { rows, entry_rows, queries }, values.0, values.1);
    backends().iter().for_each(|cuda| case.check(cuda, batches));
}

#[test]
fn every_shape() {
    let random = (Words::Random, Residues::Random);
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
        check(INSECURE_COLPACK_PLAIN, (rows, entry_rows, batches), random);
    }
    for (rows, entry_rows, batches) in [(1200, 400, &[2][..]), (256, 256, &[2]), (300, 37, &[2])] {
        check(INSECURE_COLPACK_N256, (rows, entry_rows, batches), random);
    }
}

#[test]
fn extreme_words_and_residues() {
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        for words in Words::ALL {
            check(params, (300, 101, &[2]), (words, Residues::Random));
        }
        for residues in Residues::ALL {
            check(params, (300, 101, &[2]), (Words::Extreme, residues));
        }
    }
}

#[test]
fn the_default_set() {
    let shape = ColumnCaseShape { rows: 2 * 2100, entry_rows: 2100, queries: 2 };
    let case = ColumnCase::new(COLPACK_N2048_Q52, shape, Words::Extreme, Residues::Random);
    orderly().into_iter().for_each(|device| case.check(&Cuda::new(device), &[2]));
}

#[test]
fn refusals() {
    let backends = backends();
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let shape = ColumnCaseShape { rows: 170, entry_rows: 60, queries: 2 };
        let case = ColumnCase::new(params, shape, Words::Random, Residues::Random);
        backends.iter().for_each(|backend| case.check_refusals(backend));
    }
}

#[test]
fn chains() {
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let degree = params.ring().degree();
        let mut cases = Vec::new();
        for rows in [1, 17, degree - 1, degree] {
            let mut values = vec![HintRows::Of(Words::Random)];
            if rows == degree {
                values.extend([Words::Extreme, Words::All(0)].map(HintRows::Of));
                values.extend([HintRows::One, HintRows::OneWord, HintRows::Equal]);
                values.extend([1, 5].map(|step| HintRows::Rotations { step }));
            }
            cases.extend(values.into_iter().map(|values| ChainCase::new(params, rows, values)));
        }
        for cuda in backends() {
            ChainCase::check_together(&cases, &cuda);
            cases[0].check(&cuda);
        }
    }
}

/// What the sanitizers run: queries of a set of each degree, chains of those that are small.
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
    let backends: Vec<_> = small().into_iter().map(Cuda::new).collect();
    for cuda in &backends {
        ChainCase::check_together(&chains, cuda);
        cases.iter().for_each(|case| case.check(cuda, &[2]));
    }
    // What takes longer, in disorder alone.
    longer.check(&backends[1]);
    large.check(&backends[1], &[2]);
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::COLUMN);
}

/// One device, as a chain of the full size is long in the emulator.
fn one_backend() -> Cuda {
    Cuda::new(gpu_or_one())
}

#[test]
fn a_chain_of_the_default_set() {
    ChainCase::new(COLPACK_N2048_Q52, 2048, HintRows::Of(Words::Random)).check(&one_backend());
}

#[test]
fn entries_that_do_not_fit_are_refused() {
    ChainMisfit::new(COLPACK_N2048_Q52, Misfit::Row).check(&one_backend());
}

#[test]
fn entries_that_do_not_fit_are_refused_in_rows_behind_the_hint() {
    ChainMisfit::new(COLPACK_N2048_Q52, Misfit::Behind).check(&one_backend());
}
