//! The bounds of this machine, measured now: the yardsticks of the benchmarks.

use std::{
    arch::{asm, x86_64::*},
    hint::black_box,
    time::Instant,
};

use hush_cpu::{CpuError, Level};

/// Measurements of which the best counts.
const RUNS: usize = 5;
/// Bytes that are read before the next stream position: the streams stay this close to each other.
const STREAM_BYTES: usize = 16 << 20;
/// Places that are read side by side.
const STREAMS: usize = 4;
/// Bytes read at one place before the next one.
const STEP: usize = 256;
/// How far ahead of a read is prefetched.
const AHEAD: usize = 1024;

/// Returns the best measured bandwidth of reading all of `bytes` with `threads` threads, in GB (10^9 bytes) a second.
///
/// Every thread reads its share in order, four streams at a time, with prefetches: the fastest pattern known. Less
/// than 1 KiB a thread is not measured and gives 0.
pub(crate) fn stream_read_gbps(bytes: &[u8], threads: usize) -> f64 {
    let share = bytes.len() / threads.max(1) / (STREAMS * STEP) * (STREAMS * STEP);
    if share == 0 {
        return 0.0;
    }
    let read: fn(&[u8]) -> u64 = match Level::detect() {
        // SAFETY: the machine has AVX-512.
        Level::Avx512 | Level::Avx512Ifma | Level::Amx => |bytes| unsafe { read_avx512(bytes) },
        // SAFETY: the machine has AVX2.
        Level::Avx2 => |bytes| unsafe { read_avx2(bytes) },
        Level::Scalar => read_words,
    };
    let seconds = best_seconds(threads, |thread| {
        for piece in bytes[thread * share..][..share].chunks(STREAMS * STREAM_BYTES) {
            black_box(read(piece));
        }
    });
    (share * threads.max(1)) as f64 / seconds / 1e9
}

/// Returns the best measured rate of 8-bit multiply-adds from registers with `threads` threads, in 10^12 operations (two a
/// multiply-add) a second.
///
/// Measured with the instruction that the fold of `level` uses: `tdpbsud`, `vpdpbusd`, `vpmaddwd` with `vpaddd` (a byte by 16
/// bits: two multiply-adds of bytes), or a 64-bit `imul`.
///
/// # Errors
/// [`CpuError::MissingLevel`] if the machine lacks `level`.
pub(crate) fn int8_peak_tops(level: Level, threads: usize) -> Result<f64, CpuError> {
    const ITERATIONS: u64 = 2_000_000;
    let level = level.require()?;
    let seconds = best_seconds(threads, |_| {
        // SAFETY: the machine has the level.
        unsafe {
            match level {
                Level::Scalar => repeat_imul(ITERATIONS),
                Level::Avx2 => repeat_vpmaddwd(ITERATIONS),
                Level::Avx512 | Level::Avx512Ifma => repeat_vpdpbusd(ITERATIONS),
                Level::Amx => repeat_tdpbsud(ITERATIONS),
            }
        }
    });
    let multiply_adds = match level {
        Level::Scalar => 8,
        Level::Avx2 => 6 * 16 * 2,
        Level::Avx512 | Level::Avx512Ifma => 16 * 64,
        Level::Amx => 4 * 16 * 16 * 64,
    };
    Ok((2 * multiply_adds * ITERATIONS) as f64 * threads.max(1) as f64 / seconds / 1e12)
}

/// Returns the shortest of some runs of `work(thread)` on `threads` threads at once.
fn best_seconds(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for thread in 0..threads.max(1) {
                    let work = &work;
                    scope.spawn(move || work(thread));
                }
            });
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Returns the positions of one step of all streams, in `len` bytes.
fn steps(len: usize) -> impl Iterator<Item = usize> {
    let stream = len / STREAMS;
    (0..stream / STEP).flat_map(move |step| (0..STREAMS).map(move |s| s * stream + step * STEP))
}

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

fn read_words(bytes: &[u8]) -> u64 {
    let mut sums = [0u64; STEP / 8];
    for at in steps(bytes.len()) {
        for (sum, word) in sums.iter_mut().zip(bytes[at..at + STEP].chunks_exact(8)) {
            *sum ^=
                u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        }
    }
    sums.into_iter().fold(0, |sum, word| sum ^ word)
}

/// Eight multiplications an iteration, in four chains.
fn repeat_imul(iterations: u64) {
    // SAFETY: changes registers only, which are declared.
    unsafe {
        asm!(
            "2:",
            "imul {a}, {a}", "imul {b}, {b}", "imul {c}, {c}", "imul {d}, {d}",
            "imul {a}, {a}", "imul {b}, {b}", "imul {c}, {c}", "imul {d}, {d}",
            "dec {n}",
            "jnz 2b",
            n = inout(reg) iterations => _,
            a = inout(reg) 3u64 => _,
            b = inout(reg) 5u64 => _,
            c = inout(reg) 7u64 => _,
            d = inout(reg) 9u64 => _,
            options(nomem, nostack),
        );
    }
}

/// Six vectors of 16 multiply-adds an iteration.
///
/// # Safety
/// The CPU must have AVX2.
unsafe fn repeat_vpmaddwd(iterations: u64) {
    // SAFETY: changes registers only, all of which are declared; the CPU has AVX2, says the caller.
    unsafe {
        asm!(
            "2:",
            // Products and sums in registers of their own, operands in two others.
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

/// 16 vectors of 64 multiply-adds an iteration.
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

/// Four tiles of 16 x 16 x 64 multiply-adds an iteration.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read() {
        let bytes: Vec<u8> = (0..64 * 1024u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
        let expected = bytes.chunks_exact(8).fold(0, |sum, word| {
            sum ^ u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]])
        });
        assert_eq!(read_words(&bytes), expected);
        let mut positions: Vec<usize> = steps(bytes.len()).collect();
        positions.sort_unstable();
        assert!(positions.into_iter().eq((0..bytes.len()).step_by(STEP)));
    }

    #[test]
    fn measurements_are_finite_and_positive() {
        let bytes = vec![1u8; 1 << 20];
        for threads in [1, 2] {
            let bandwidth = stream_read_gbps(&bytes, threads);
            assert!(bandwidth.is_finite() && bandwidth > 0.0);
        }
        assert_eq!(stream_read_gbps(&bytes[..1000], 1), 0.0);
        for level in Level::ALL {
            match int8_peak_tops(level, 1) {
                Ok(peak) => assert!(peak.is_finite() && peak > 0.0, "{level}"),
                Err(error) => assert!(matches!(error, CpuError::MissingLevel { .. })),
            }
        }
    }
}
