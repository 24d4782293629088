//! The steps between LWE and RLWE at every level against the reference, bit for bit; AMX through the emulator where the
//! machine has none.

mod ring_backends;

use std::ops::Range;

use hush_cpu::Cpu;
use hush_he::params::{INSECURE_PACK_N256, INSECURE_PACK_PLAIN, PACK_M31, PackParams, VIPIR_N4096_3X29};
use hush_testkit::conformance::{PackCase, PackCaseShape, Residues, Words};
use ring_backends::backends;

fn check(backends: &[Cpu], params: PackParams, shape: PackCaseShape, words: Words, residues: Residues) {
    let case = PackCase::new(*params.ring(), shape, words, residues);
    for cpu in backends {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        case.check(cpu);
    }
}

fn shape(n: usize, rows: usize, entry_rows: usize, columns: Range<usize>, queries: usize) -> PackCaseShape {
    PackCaseShape { n, rows, entry_rows, columns, queries }
}

#[test]
fn every_shape() {
    let backends = backends();
    for shape in [
        // A short last entry.
        shape(5, 700, 256, 0..3, 2),
        shape(64, 700, 256, 2..3, 1),
        // Several planes an entry, the last one without a row.
        shape(64, 1100, 600, 1..6, 1),
        shape(1, 600, 600, 0..3, 2),
        // Entries that do not fill a plaintext.
        shape(1, 240, 60, 0..4, 3),
        shape(17, 1600, 100, 3..12, 1),
        // More than a tile of columns.
        shape(64, 2000, 100, 0..20, 1),
        shape(5, 2000, 100, 1..18, 3),
        shape(5, 700, 256, 1..1, 1),
    ] {
        check(&backends, INSECURE_PACK_N256, shape, Words::Random, Residues::Random);
    }
    for columns in [0..1, 0..2, 5..8, 2..7, 0..8] {
        let shape = shape(21, 500, 60, columns, 1);
        check(&backends, INSECURE_PACK_PLAIN, shape, Words::Random, Residues::Random);
    }
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends();
    for words in Words::ALL {
        check(&backends, INSECURE_PACK_N256, shape(18, 600, 250, 0..3, 2), words, Residues::Random);
    }
    for residues in Residues::ALL {
        check(&backends, INSECURE_PACK_N256, shape(5, 600, 256, 0..3, 1), Words::Extreme, residues);
    }
}

#[test]
fn presets() {
    let backends = backends();
    for words in [Words::Random, Words::Extreme] {
        for params in [PACK_M31, VIPIR_N4096_3X29] {
            check(&backends, params, shape(5, 12_000, 4096, 1..3, 2), words, Residues::Random);
        }
    }
}

#[test]
fn refusals() {
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    for params in [INSECURE_PACK_PLAIN, INSECURE_PACK_N256] {
        let shape = shape(3, 600, 256, 0..2, 2);
        let case = PackCase::new(*params.ring(), shape, Words::Random, Residues::Random);
        case.check_refusals(&cpu);
    }
}
