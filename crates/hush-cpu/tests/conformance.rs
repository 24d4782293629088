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
    match (native, level.name(), Level::detect().name()) {
        (Ok(cpu), _, _) => Some(cpu),
        // The AMX kernels use AVX-512 as well, which is not emulated.
        (Err(_), "amx", "avx512" | "avx512ifma") => {
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

/// Checks every step over LWE at level `name`, unless this architecture has none of that name.
fn check(name: &str) {
    let Ok(level) = name.parse::<Level>() else { return };
    // Emulated instructions are slow, so one number of threads is tested, one that the units of work do not divide by.
    let emulated = level > Level::detect();
    for threads in if emulated { 3..=3 } else { 1..=3 } {
        if let Some(cpu) = backend(level, threads) {
            assert_eq!((cpu.level(), cpu.threads()), (level, threads));
            conformance::lwe_fold(&cpu);
            conformance::lwe_hint(&cpu);
            // Only the fold has AMX code (and the hint, if it is a fold).
            if !emulated {
                conformance::reinterpret_lwe(&cpu);
                conformance::send_words(&cpu);
            }
        }
    }
}

macro_rules! levels {
    ($($level:ident)*) => {
        $(
            #[test]
            fn $level() {
                check(stringify!($level));
            }
        )*

        #[test]
        fn every_level_is_checked() {
            let checked = [$(stringify!($level)),*];
            assert!(Level::ALL.iter().all(|level| checked.contains(&level.name())));
        }
    };
}

levels! { portable avx2 avx512 avx512ifma amx neon dotprod i8mm }

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
