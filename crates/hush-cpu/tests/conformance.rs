//! Tests of every level of this machine against the reference, bit for bit. AMX runs through the emulator if the machine has
//! none.

#![allow(clippy::print_stderr)]

use hush_cpu::{Cpu, Level};
use hush_ops::{
    contract::{LweOps, LweQueries},
    tiling::TiledDb,
};
use hush_testkit::{amx_emulator, conformance};

/// Returns a backend at `level`, or `None` if neither the machine nor the emulator runs it.
fn backend(level: Level, threads: usize) -> Option<Cpu> {
    let native = Cpu::with_level(level, threads);
    match (native, level, Level::detect()) {
        (Ok(cpu), _, _) => Some(cpu),
        // The AMX kernels use AVX-512 as well, which is not emulated.
        (Err(_), Level::Amx, Level::Avx512 | Level::Avx512Ifma) => {
            amx_emulator::install();
            // SAFETY: the machine has AVX-512 and the emulator executes the AMX instructions.
            Some(unsafe { Cpu::with_level_unchecked(level, threads) }.expect("threads start"))
        }
        (Err(reason), _, _) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn check(level: Level, body: impl Fn(&Cpu)) {
    // Emulated instructions are slow, so one number of threads is tested, one that the units of work do not divide by.
    let emulated = level > Level::detect();
    for threads in if emulated { 3..=3 } else { 1..=3 } {
        if let Some(cpu) = backend(level, threads) {
            assert_eq!((cpu.level(), cpu.threads()), (level, threads));
            body(&cpu);
        }
    }
}

#[test]
fn scalar() {
    check(Level::Scalar, |cpu| {
        conformance::lwe_fold(cpu);
        conformance::lwe_hint(cpu);
        conformance::reinterpret_lwe(cpu);
        conformance::send_words(cpu);
    });
}

#[test]
fn avx2() {
    check(Level::Avx2, |cpu| {
        conformance::lwe_fold(cpu);
        conformance::lwe_hint(cpu);
        conformance::reinterpret_lwe(cpu);
        conformance::send_words(cpu);
    });
}

#[test]
fn avx512() {
    check(Level::Avx512, |cpu| {
        conformance::lwe_fold(cpu);
        conformance::lwe_hint(cpu);
        conformance::reinterpret_lwe(cpu);
        conformance::send_words(cpu);
    });
}

#[test]
fn avx512ifma() {
    check(Level::Avx512Ifma, |cpu| {
        conformance::lwe_fold(cpu);
        conformance::lwe_hint(cpu);
        conformance::reinterpret_lwe(cpu);
        conformance::send_words(cpu);
    });
}

#[test]
fn amx() {
    check(Level::Amx, |cpu| {
        // Only the fold has AMX code (and the hint, if it is a fold); an emulated one takes its time.
        conformance::lwe_fold(cpu);
        conformance::lwe_hint(cpu);
    });
}

#[test]
fn calls_from_several_threads_share_the_backend() {
    let cpu = Cpu::new(2).expect("the machine has the level that HUSH_CPU names");
    let matrix: Vec<u8> = (0..300 * 700).map(|i: u32| (i.wrapping_mul(i) >> 3) as u8).collect();
    let db = TiledDb::from_matrix(300, 700, &matrix);
    let query =
        |seed: u32| LweQueries { cols: 700, words: (0..700).map(|c| (c * 77_777 + seed) << 7).collect() };
    let alone: Vec<_> = (0..4).map(|seed| cpu.lwe_fold(&db, &query(seed)).expect("the shapes fit")).collect();
    std::thread::scope(|scope| {
        for (seed, alone) in alone.iter().enumerate() {
            let (cpu, db) = (&cpu, &db);
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(&cpu.lwe_fold(db, &query(seed as u32)).expect("the shapes fit"), alone);
                }
            });
        }
    });
}
