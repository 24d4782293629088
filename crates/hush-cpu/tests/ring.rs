//! The steps over rings at every level against the reference, bit for bit; AMX through the emulator where the machine
//! has none.

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

#[test]
fn small_rings() {
    for residues in Residues::ALL {
        check(INSECURE_RING_N256, RingShape { rows: 8, folds: 2, entries: 3 }, residues);
    }
    for shape in [
        RingShape { rows: 1, folds: 0, entries: 1 },
        RingShape { rows: 17, folds: 4, entries: 1 },
        RingShape { rows: 100, folds: 6, entries: 37 },
        RingShape { rows: 246, folds: 5, entries: 32 },
    ] {
        check(INSECURE_RING_N256, shape, Residues::Random);
    }
    check(INSECURE_RING_PLAIN, RingShape { rows: 60, folds: 2, entries: 4 }, Residues::Random);
}

#[test]
fn refusals() {
    let shape = RingShape { rows: 2, folds: 1, entries: 2 };
    let case = RingCase::new(INSECURE_RING_N256, shape, Residues::Zero);
    case.check_refusals(&Cpu::new(1).expect("the machine has the level that HUSH_CPU names"));
}

#[test]
fn onion_m31() {
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        check(ONION_M31, RingShape { rows: 8, folds: 2, entries: 3 }, residues);
    }
}

#[test]
fn onion_s() {
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        check(ONION_S, RingShape { rows: 8, folds: 3, entries: 5 }, residues);
    }
}

#[test]
fn onionpirv2() {
    for residues in [Residues::Random, Residues::Largest] {
        check(ONIONPIRV2_N4096_4X27_SEC126, RingShape { rows: 3, folds: 1, entries: 2 }, residues);
        check(ONIONPIRV2_N2048_2X30_SEC113, RingShape { rows: 3, folds: 1, entries: 2 }, residues);
    }
}

#[test]
fn sets_that_pack() {
    let shape = RingShape { rows: 8, folds: 2, entries: 3 };
    for small in [INSECURE_PACK_N256, INSECURE_PACK_PLAIN] {
        check(*small.ring(), shape, Residues::Random);
    }
    for residues in [Residues::Random, Residues::Largest, Residues::Middle] {
        check(*PACK_M31.ring(), shape, residues);
        check(*VIPIR_N4096_3X29.ring(), shape, residues);
    }
}
