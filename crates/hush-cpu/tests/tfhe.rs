//! Tests of the steps of `tfhe` at every level against the reference, bit for bit.

#![allow(clippy::print_stderr)]

mod ring_backends;

use hush_cpu::Cpu;
use hush_he::params::{
    INSECURE_PPIR_N256, INSECURE_PRIVKS_N256, INSECURE_PRIVKS_PLAIN, INSECURE_TFHE_N256, INSECURE_TFHE_PLAIN,
    RingParams, TFHE_COMPACT, TFHE_FAST, TFHE_PRIVKS, TFHE_TINY, TfheParams,
};
use hush_testkit::conformance::{Residues, TfheCase, TfheShape};
use ring_backends::backends;

fn check(params: TfheParams, shape: TfheShape, residues: Residues) {
    check_set(*params.ring(), shape, residues);
}

fn check_set(params: RingParams, shape: TfheShape, residues: Residues) {
    let case = TfheCase::new(params, shape, residues);
    for cpu in backends() {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        case.check(&cpu);
    }
}

fn shape(rows: usize, columns: usize, bits: usize) -> TfheShape {
    TfheShape { rows, columns, bits, count: 1, queries: 1 }
}

#[test]
fn small_rings() {
    for residues in Residues::ALL {
        check(INSECURE_TFHE_N256, shape(5, 3, 2), residues);
        // There are more rows than a sum of 64 bits can take.
        check(INSECURE_TFHE_N256, shape(131, 1, 0), residues);
    }
    for rows in [1, 2, 3, 4, 6, 64, 65] {
        check(INSECURE_TFHE_N256, shape(rows, 2, 1), Residues::Random);
    }
    check(INSECURE_TFHE_PLAIN, shape(7, 5, 6), Residues::Random);
}

#[test]
fn batches_and_planes() {
    for (count, queries) in [(1, 3), (3, 1), (2, 9), (1, 0), (0, 2)] {
        check(INSECURE_TFHE_N256, TfheShape { count, queries, ..shape(8, 3, 3) }, Residues::Random);
    }
    check(INSECURE_TFHE_N256, shape(8, 0, 1), Residues::Random);
    check(INSECURE_TFHE_N256, shape(0, 3, 1), Residues::Random);
}

#[test]
fn every_set() {
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        for params in [TFHE_COMPACT, TFHE_TINY, TFHE_FAST] {
            check(params, shape(37, 2, 2), residues);
        }
    }
}

#[test]
fn private_key_switching() {
    for params in [INSECURE_PRIVKS_N256, INSECURE_PPIR_N256, INSECURE_PRIVKS_PLAIN].map(|set| *set.ring()) {
        for residues in Residues::ALL {
            check_set(params, shape(3, 1, 2), residues);
        }
        check_set(params, TfheShape { queries: 2, ..shape(1, 2, 5) }, Residues::Random);
    }
    check_set(*TFHE_PRIVKS.ring(), shape(1, 1, 1), Residues::Middle);
}

#[test]
fn refusals() {
    let case = TfheCase::new(*INSECURE_TFHE_N256.ring(), shape(2, 2, 2), Residues::Zero);
    case.check_refusals(&Cpu::new(1).expect("the machine has the level that HUSH_CPU names"));
}
