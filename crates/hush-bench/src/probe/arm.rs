//! The fastest instructions of a 64-bit ARM CPU.
#![cfg(target_arch = "aarch64")]

use std::arch::asm;

use hush_cpu::Level;

use super::{read_words, repeat_multiply};

/// Returns the function that reads bytes.
pub(super) fn reader(_level: Level) -> fn(&[u8]) -> u64 {
    // The compiler makes vectors of the words, which every ARMv8 has.
    read_words
}

/// Defines a function that repeats an instruction with 16 destinations and two sources.
macro_rules! repeat {
    ($name:ident, $extension:literal, $instruction:literal) => {
        fn $name(iterations: u64) {
            // SAFETY: changes registers only, all of which are declared; the machine has the instruction, says `multiplier`.
            unsafe {
                asm!(
                    $extension,
                    "2:",
                    ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23",
                    $instruction,
                    ".endr",
                    "subs x0, x0, #1",
                    "b.ne 2b",
                    inout("x0") iterations => _,
                    clobber_abi("C"),
                    options(nomem, nostack),
                );
            }
        }
    };
}

repeat!(repeat_smlal, ".arch_extension simd", "smlal v\\r\\().4s, v24.4h, v25.4h");
repeat!(repeat_sdot, ".arch_extension dotprod", "sdot v\\r\\().4s, v24.16b, v25.16b");
repeat!(repeat_smmla, ".arch_extension i8mm", "smmla v\\r\\().4s, v24.16b, v25.16b");

/// Returns the multiply-adds of bytes in an iteration, and the function that runs iterations, for `level`, which the machine has.
pub(super) fn multiplier(level: Level) -> (u64, fn(u64)) {
    match level {
        Level::Portable => (8, repeat_multiply),
        // A byte by 16 bits is two multiply-adds of bytes.
        Level::Neon => (16 * 4 * 2, repeat_smlal),
        Level::Dotprod => (16 * 16, repeat_sdot),
        Level::I8mm => (16 * 32, repeat_smmla),
    }
}

/// Returns `None`: ARM has no such instruction.
pub(super) fn ifma() -> Option<fn(u64)> {
    None
}
