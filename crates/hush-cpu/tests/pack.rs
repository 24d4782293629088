//! Tests of the steps between LWE and RLWE at every level against the reference, bit for bit. AMX runs through the emulator if the
//! machine has none.

#![allow(clippy::print_stderr)]

mod ring_backends;

use hush_cpu::Cpu;
use hush_he::params::{INSECURE_PACK_N256, INSECURE_PACK_PLAIN, PACK_M31, PackParams, VIPIR_N4096_3X29};
use hush_testkit::conformance::{PackCase, PackCaseShape, Residues, Words};
use ring_backends::backends;

fn check(backends: &[Cpu], params: PackParams, shape: PackCaseShape, words: Words) {
    check_case(backends, &PackCase::new(*params.ring(), shape, words, Residues::Random));
}

fn check_case(backends: &[Cpu], case: &PackCase) {
    for cpu in backends {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        case.check(cpu);
    }
}

#[test]
fn every_shape() {
    let backends = backends();
    for shape in [
        // A short last entry.
        PackCaseShape::new(5, 700, 256, 0..3, 2),
        PackCaseShape::new(64, 700, 256, 2..3, 1),
        // Several planes an entry, the last one without a row.
        PackCaseShape::new(64, 1100, 600, 1..6, 1),
        PackCaseShape::new(1, 600, 600, 0..3, 2),
        // Entries that do not fill a plaintext.
        PackCaseShape::new(1, 240, 60, 0..4, 3),
        PackCaseShape::new(17, 1600, 100, 3..12, 1),
        // More than a tile of columns.
        PackCaseShape::new(64, 2000, 100, 0..20, 1),
        PackCaseShape::new(5, 2000, 100, 1..18, 3),
        PackCaseShape::new(5, 700, 256, 1..1, 1),
    ] {
        check(&backends, INSECURE_PACK_N256, shape, Words::Random);
    }
    for columns in [0..1, 0..2, 5..8, 2..7, 0..8] {
        let shape = PackCaseShape::new(21, 500, 60, columns, 1);
        check(&backends, INSECURE_PACK_PLAIN, shape, Words::Random);
    }
}

#[test]
fn extreme_words_and_residues() {
    let backends = backends();
    PackCase::extremes(18).for_each(|case| check_case(&backends, &case));
}

#[test]
fn presets() {
    let backends = backends();
    for words in [Words::Random, Words::Extreme] {
        for params in [PACK_M31, VIPIR_N4096_3X29] {
            check(&backends, params, PackCaseShape::new(5, 12_000, 4096, 1..3, 2), words);
        }
    }
}

#[test]
fn refusals() {
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    PackCase::small().iter().for_each(|case| case.check_refusals(&cpu));
}
