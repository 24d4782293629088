//! The backends on which the steps over rings are tested.

#![allow(clippy::print_stderr)]

use hush_cpu::{Cpu, Level};
use hush_testkit::amx_emulator;

/// Returns backends at all levels of this machine, with one thread and with two.
pub(crate) fn backends() -> Vec<Cpu> {
    let mut backends = Vec::new();
    for &level in Level::ALL {
        for threads in [1, 2] {
            match (Cpu::with_level(level, threads), level.name(), Level::detect().name()) {
                (Ok(cpu), _, _) => backends.push(cpu),
                // One emulated backend is enough.
                (Err(_), "amx", "avx512ifma") if threads > 1 => {}
                // The AMX kernels use AVX-512 IFMA as well, which is not emulated.
                (Err(_), "amx", "avx512ifma") => {
                    amx_emulator::install();
                    // SAFETY: the machine has AVX-512 IFMA and the emulator executes the AMX instructions.
                    backends
                        .push(unsafe { Cpu::with_level_unchecked(level, threads) }.expect("threads start"));
                }
                (Err(reason), _, _) => eprintln!("skipped: {reason}"),
            }
        }
    }
    backends
}
