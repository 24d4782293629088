//! The steps of column packing at every level against the reference, bit for bit; AMX through the emulator where the
//! machine has none.

mod ring_backends;

use hush_cpu::{Cpu, Level};
use hush_he::params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN};
use hush_ops::reference::Reference;
use hush_testkit::conformance::{
    ChainCase, ChainMisfit, ColumnCase, ColumnCaseShape, HintRows, Misfit, Residues, Words,
};
use ring_backends::backends;

/// Batches at which the fold of the columns takes different kernels.
const BATCHES: [usize; 4] = [1, 2, 5, 33];
/// As many queries as the fold answers in one pass, and one more.
const PASSES: [usize; 2] = [64, 65];

fn check(backends: &[Cpu], params: ColumnParams, case: (usize, usize, &[usize]), values: (Words, Residues)) {
    let (rows, entry_rows, batches) = case;
    let queries = batches.iter().copied().max().unwrap_or(0);
    let case = ColumnCase::new(params, ColumnCaseShape { rows, entry_rows, queries }, values.0, values.1);
    for cpu in backends {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        case.check(cpu, batches);
    }
}

#[test]
fn every_shape() {
    let backends = backends();
    let random = (Words::Random, Residues::Random);
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
        check(&backends, INSECURE_COLPACK_PLAIN, (rows, entry_rows, batches), random);
    }
    for (rows, entry_rows, batches) in
        [(1200, 400, &BATCHES[..]), (256, 256, &[2]), (300, 37, &[5]), (1, 1, &PASSES), (600, 300, &PASSES)]
    {
        check(&backends, INSECURE_COLPACK_N256, (rows, entry_rows, batches), random);
    }
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends();
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        for words in Words::ALL {
            check(&backends, params, (300, 101, &[2]), (words, Residues::Random));
        }
        for residues in Residues::ALL {
            check(&backends, params, (300, 101, &[2]), (Words::Extreme, residues));
        }
    }
}

#[test]
fn the_default_set() {
    let best = [Cpu::new(2).expect("the machine has the level that HUSH_CPU names")];
    let values = (Words::Extreme, Residues::Random);
    check(&best, COLPACK_N2048_Q52, (3 * 2100, 2100, &[2]), values);
}

#[test]
fn refusals() {
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let shape = ColumnCaseShape { rows: 170, entry_rows: 60, queries: 2 };
        ColumnCase::new(params, shape, Words::Random, Residues::Random).check_refusals(&cpu);
    }
}

#[test]
fn chains() {
    let backends = backends();
    for params in [INSECURE_COLPACK_PLAIN, INSECURE_COLPACK_N256] {
        let degree = params.ring().degree();
        for rows in [1, 17, degree - 1, degree] {
            let mut values = vec![HintRows::Of(Words::Random), HintRows::One, HintRows::OneWord];
            if rows == degree {
                values.extend([HintRows::Of(Words::Extreme), HintRows::Of(Words::All(0))]);
                values.extend([
                    HintRows::Equal,
                    HintRows::Rotations { step: 1 },
                    HintRows::Rotations { step: 5 },
                ]);
            }
            let cases: Vec<_> =
                values.into_iter().map(|values| ChainCase::new(params, rows, values)).collect();
            for cpu in &backends {
                cases.iter().for_each(|case| case.check(cpu));
                ChainCase::check_together(&cases, cpu);
            }
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
    for level in Level::ALL {
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
