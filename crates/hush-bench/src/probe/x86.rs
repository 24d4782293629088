//! The fastest instructions of an x86-64 CPU.
#![cfg(target_arch = "x86_64")]

use std::arch::{asm, x86_64::*};

use hush_cpu::Level;

use super::{AHEAD, STEP, read_words, repeat_multiply, steps};

/// Returns the function that reads bytes with the widest vectors of `level`, which the machine has.
pub(super) fn reader(level: Level) -> fn(&[u8]) -> u64 {
    match level {
        // SAFETY: the machine has AVX-512.
        Level::Avx512 | Level::Avx512Ifma | Level::Amx => |bytes| unsafe { read_avx512(bytes) },
        // SAFETY: the machine has AVX2.
        Level::Avx2 => |bytes| unsafe { read_avx2(bytes) },
        Level::Portable => read_words,
    }
}

/// Returns the multiply-adds of bytes in an iteration, and the function that runs iterations, for `level`, which the machine has.
pub(super) fn multiplier(level: Level) -> (u64, fn(u64)) {
    match level {
        Level::Portable => (8, repeat_multiply),
        // SAFETY: the machine has AVX2.
        Level::Avx2 => (6 * 16 * 2, |iterations| unsafe { repeat_vpmaddwd(iterations) }),
        // SAFETY: the machine has VNNI.
        Level::Avx512 | Level::Avx512Ifma => (16 * 64, |iterations| unsafe { repeat_vpdpbusd(iterations) }),
        // SAFETY: the machine has AMX.
        Level::Amx => (4 * 16 * 16 * 64, |iterations| unsafe { repeat_tdpbsud(iterations) }),
    }
}

/// Returns the function that runs iterations of 16 multiply-adds of 52 bits, if the machine has them.
pub(super) fn ifma() -> Option<fn(u64)> {
    Level::Avx512Ifma.require().ok()?;
    // SAFETY: the machine has AVX-512 IFMA.
    Some(|iterations| unsafe { repeat_vpmadd52luq(iterations) })
}

/// Reads `bytes` with vectors of 512 bits, and returns a checksum, so that no read is left out.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn read_avx512(bytes: &[u8]) -> u64 {
    let mut sums = [_mm512_setzero_si512(); 4];
    for at in steps(bytes.len()) {
        let from = bytes[at..at + STEP].as_ptr();
        for (i, sum) in sums.iter_mut().enumerate() {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + 64 * i).cast());
            // SAFETY: within the step, 256 bytes from `from` on.
            *sum = _mm512_xor_si512(*sum, unsafe { _mm512_loadu_si512(from.add(64 * i).cast()) });
        }
    }
    sums.into_iter().fold(0, |sum, vector| sum ^ _mm512_reduce_add_epi64(vector) as u64)
}

/// Reads `bytes` with vectors of 256 bits, and returns a checksum, so that no read is left out.
///
/// # Safety
/// The CPU must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn read_avx2(bytes: &[u8]) -> u64 {
    let mut sums = [_mm256_setzero_si256(); 8];
    for at in steps(bytes.len()) {
        let from = bytes[at..at + STEP].as_ptr();
        for (i, sum) in sums.iter_mut().enumerate() {
            if i % 2 == 0 {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + 32 * i).cast());
            }
            // SAFETY: within the step, 256 bytes from `from` on.
            *sum = _mm256_xor_si256(*sum, unsafe { _mm256_loadu_si256(from.add(32 * i).cast()) });
        }
    }
    sums.into_iter().fold(0, |sum, vector| sum ^ _mm256_extract_epi64::<0>(vector) as u64)
}

/// Runs iterations of six vectors of 16 multiply-adds each.
///
/// # Safety
/// The CPU must have AVX2.
unsafe fn repeat_vpmaddwd(iterations: u64) {
    // SAFETY: changes registers only, all of which are declared; the CPU has AVX2, says the caller.
    unsafe {
        asm!(
            "2:",
            // Products and sums have their own registers, operands two others.
            "vpmaddwd ymm0, ymm14, ymm15", "vpaddd ymm6, ymm6, ymm0",
            "vpmaddwd ymm1, ymm14, ymm15", "vpaddd ymm7, ymm7, ymm1",
            "vpmaddwd ymm2, ymm14, ymm15", "vpaddd ymm8, ymm8, ymm2",
            "vpmaddwd ymm3, ymm14, ymm15", "vpaddd ymm9, ymm9, ymm3",
            "vpmaddwd ymm4, ymm14, ymm15", "vpaddd ymm10, ymm10, ymm4",
            "vpmaddwd ymm5, ymm14, ymm15", "vpaddd ymm11, ymm11, ymm5",
            "dec rcx",
            "jnz 2b",
            inout("rcx") iterations => _,
            clobber_abi("sysv64"),
            options(nomem, nostack),
        );
    }
}

/// Runs iterations of 16 vectors of 64 multiply-adds each.
///
/// # Safety
/// The CPU must have AVX-512 VNNI.
unsafe fn repeat_vpdpbusd(iterations: u64) {
    // SAFETY: changes registers only, all of which are declared; the CPU has VNNI, says the caller.
    unsafe {
        asm!(
            "2:",
            ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vpdpbusd zmm\\r, zmm16, zmm17",
            ".endr",
            "dec rcx",
            "jnz 2b",
            inout("rcx") iterations => _,
            clobber_abi("sysv64"),
            options(nomem, nostack),
        );
    }
}

/// Runs iterations of four tiles of 16 x 16 x 64 multiply-adds each.
///
/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn repeat_tdpbsud(iterations: u64) {
    /// The memory operand of `ldtilecfg`: palette 1, eight tiles of 16 rows of 64 bytes.
    #[repr(align(64))]
    struct TileConfig([u8; 64]);
    let mut config = TileConfig([0; 64]);
    config.0[0] = 1;
    config.0[16..32].copy_from_slice(&[64, 0].repeat(8));
    config.0[48..56].fill(16);
    // SAFETY: the CPU has AMX, says the caller; the tiles are zero after their configuration, and given back.
    unsafe {
        asm!(
            "ldtilecfg [{config}]",
            "2:",
            "tdpbsud tmm0, tmm4, tmm6",
            "tdpbsud tmm1, tmm5, tmm6",
            "tdpbsud tmm2, tmm4, tmm7",
            "tdpbsud tmm3, tmm5, tmm7",
            "dec {n}",
            "jnz 2b",
            "tilerelease",
            config = in(reg) &config,
            n = inout(reg) iterations => _,
            options(nostack),
        );
    }
}

/// Runs iterations of 16 instructions, in as many chains.
///
/// # Safety
/// The CPU must have AVX-512 IFMA.
unsafe fn repeat_vpmadd52luq(iterations: u64) {
    // SAFETY: changes registers only, all of which are declared; the CPU has IFMA, says the caller.
    unsafe {
        asm!(
            "2:",
            ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vpmadd52luq zmm\\r, zmm16, zmm17",
            ".endr",
            "dec rcx",
            "jnz 2b",
            inout("rcx") iterations => _,
            clobber_abi("sysv64"),
            options(nomem, nostack),
        );
    }
}
