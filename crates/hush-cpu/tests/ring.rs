//! Tests of the steps over rings at every level against the reference, bit for bit. AMX runs through the emulator if the machine
//! has none.

#![allow(clippy::print_stderr)]

mod ring_backends;

use hush_cpu::Cpu;
use hush_he::params::{
    INSECURE_PACK_N256, INSECURE_PACK_PLAIN, INSECURE_RING_N256, INSECURE_RING_PLAIN, ONION_M31, ONION_S,
    ONIONPIRV2_N2048_2X30_SEC113, ONIONPIRV2_N4096_4X27_SEC126, PACK_M31, RingParams, VIPIR_N4096_3X29,
};
use hush_testkit::conformance::{Residues, RingCase, RingShape};
use ring_backends::backends;

fn check(params: RingParams, shape: RingShape, residues: Residues) {
    let case = RingCase::new(params, shape, residues);
    for cpu in backends() {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        case.check(&cpu);
    }
}

/// Returns a shape of one plane and one query: planes and queries do not depend on the set.
fn shape(rows: usize, folds: usize, entries: usize) -> RingShape {
    RingShape { rows, folds, entries, planes: 1, queries: 1 }
}

#[test]
fn small_rings() {
    for residues in Residues::ALL {
        check(INSECURE_RING_N256, shape(8, 2, 3), residues);
    }
    for shape in [shape(1, 0, 1), shape(17, 4, 1), shape(100, 6, 37), shape(246, 5, 32)] {
        check(INSECURE_RING_N256, shape, Residues::Random);
    }
    check(INSECURE_RING_PLAIN, shape(60, 2, 4), Residues::Random);
}

#[test]
fn batches_and_planes() {
    for (planes, queries) in [(1, 3), (3, 1), (2, 2), (17, 2), (1, 0)] {
        check(INSECURE_RING_N256, RingShape { planes, queries, ..shape(8, 3, 5) }, Residues::Random);
    }
    check(INSECURE_RING_N256, RingShape { planes: 2, queries: 2, ..shape(4, 0, 1) }, Residues::Random);
    check(
        *INSECURE_PACK_N256.ring(),
        RingShape { planes: 3, queries: 2, ..shape(4, 2, 3) },
        Residues::Random,
    );
}

#[test]
fn refusals() {
    let shape = RingShape { planes: 2, ..shape(2, 1, 2) };
    let case = RingCase::new(INSECURE_RING_N256, shape, Residues::Zero);
    case.check_refusals(&Cpu::new(1).expect("the machine has the level that HUSH_CPU names"));
}

#[test]
fn onion_m31() {
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        check(ONION_M31, shape(8, 2, 3), residues);
    }
}

#[test]
fn onion_s() {
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        check(ONION_S, shape(8, 3, 5), residues);
    }
}

#[test]
fn onionpirv2() {
    for residues in [Residues::Random, Residues::Largest] {
        check(ONIONPIRV2_N4096_4X27_SEC126, shape(3, 1, 2), residues);
        check(ONIONPIRV2_N2048_2X30_SEC113, shape(3, 1, 2), residues);
    }
}

#[test]
fn sets_that_pack() {
    let shape = shape(8, 2, 3);
    for small in [INSECURE_PACK_N256, INSECURE_PACK_PLAIN] {
        check(*small.ring(), shape, Residues::Random);
    }
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        check(*PACK_M31.ring(), shape, residues);
        check(*VIPIR_N4096_3X29.ring(), shape, residues);
    }
}
