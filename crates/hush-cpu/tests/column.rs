//! Tests of the steps of column packing at every level against the reference, bit for bit. AMX runs through the emulator if the
//! machine has none.

#![allow(clippy::print_stderr)]

mod ring_backends;

use hush_cpu::{Cpu, Level};
use hush_he::params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN};
use hush_ops::reference::Reference;
use hush_testkit::conformance::{
    ChainCase, ChainMisfit, ColumnCase, ColumnCaseShape, HintRows, Misfit, Residues, Words,
};
use ring_backends::backends;

/// Batches for which the fold of the columns uses different kernels.
const BATCHES: [usize; 4] = [1, 2, 5, 33];
/// The number of queries that the fold answers in one pass, and one more.
const PASSES: [usize; 2] = [64, 65];

fn check(backends: &[Cpu], params: ColumnParams, (rows, entry_rows): (usize, usize), batches: &[usize]) {
    let queries = batches.iter().copied().max().unwrap_or(0);
    let shape = ColumnCaseShape { rows, entry_rows, queries };
    check_case(backends, &ColumnCase::new(params, shape, Words::Random, Residues::Random), batches);
}

fn check_case(backends: &[Cpu], case: &ColumnCase, batches: &[usize]) {
    for cpu in backends {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        case.check(cpu, batches);
    }
}

#[test]
fn every_shape() {
    let backends = backends();
    for (rows, entry_rows, batches) in [
        // One entry: nothing is folded.
        (50, 64, &BATCHES[..]),
        (150, 150, &[1, 3]),
        // A short last entry, of no power of two.
        (170, 60, &BATCHES),
        // Several planes; the last ones of the last entry without rows.
        (340, 150, &BATCHES),
        (64 * 8, 128, &[0, 1, 2]),
        // Powers of X that are no whole vectors, up to the last one that there is.
        (50, 2, &[1]),
        (100, 1, &[2]),
        (128, 1, &[1]),
        // One row and one entry; a row beyond a panel; several entries.
        (1, 1, &PASSES),
        (33, 64, &PASSES),
        (170, 60, &PASSES),
    ] {
        check(&backends, INSECURE_COLPACK_PLAIN, (rows, entry_rows), batches);
    }
    for (rows, entry_rows, batches) in
        [(1200, 400, &BATCHES[..]), (256, 256, &[2]), (300, 37, &[5]), (1, 1, &PASSES), (600, 300, &PASSES)]
    {
        check(&backends, INSECURE_COLPACK_N256, (rows, entry_rows), batches);
    }
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends();
    ColumnCase::extremes().for_each(|case| check_case(&backends, &case, &[2]));
}

#[test]
fn the_default_set() {
    let best = [Cpu::new(2).expect("the machine has the level that HUSH_CPU names")];
    let shape = ColumnCaseShape { rows: 3 * 2100, entry_rows: 2100, queries: 2 };
    let case = ColumnCase::new(COLPACK_N2048_Q52, shape, Words::Extreme, Residues::Random);
    check_case(&best, &case, &[2]);
}

#[test]
fn refusals() {
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    ColumnCase::small().iter().for_each(|case| case.check_refusals(&cpu));
}

#[test]
fn chains() {
    let backends = backends();
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let cases = ChainCase::of_every_kind(params);
        for cpu in &backends {
            cases.iter().for_each(|case| case.check(cpu));
            ChainCase::check_together(&cases, cpu);
        }
    }
}

#[test]
fn chains_of_the_default_set() {
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    for values in [HintRows::Of(Words::Random), HintRows::Rotations { step: 5 }] {
        ChainCase::new(COLPACK_N2048_Q52, 2048, values).check(&cpu);
    }
}

fn check_misfit(misfit: Misfit) {
    let case = ChainMisfit::new(COLPACK_N2048_Q52, misfit);
    case.check(&Reference);
    for &level in Level::ALL {
        match Cpu::with_level(level, 1) {
            Ok(cpu) => case.check(&cpu),
            Err(reason) => eprintln!("skipped: {reason}"),
        }
    }
}

#[test]
fn entries_that_do_not_fit_are_refused() {
    check_misfit(Misfit::Row);
}

#[test]
fn entries_that_do_not_fit_are_refused_in_rows_behind_the_hint() {
    check_misfit(Misfit::Behind);
}
