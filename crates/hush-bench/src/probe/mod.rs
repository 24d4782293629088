//! The bounds of this machine, measured now: the yardsticks of the benchmarks. `x86.rs` and `arm.rs` have the instructions.

mod arm;
mod x86;

use std::{hint::black_box, time::Instant};

use hush_cpu::{CpuError, Level};

#[cfg(target_arch = "aarch64")]
use self::arm as machine;
#[cfg(target_arch = "x86_64")]
use self::x86 as machine;

/// The number of measurements of which the best counts.
const RUNS: usize = 5;
/// The bytes that are read before the next stream position: the streams stay this close to each other.
const STREAM_BYTES: usize = 16 << 20;
/// The number of places that are read side by side.
const STREAMS: usize = 4;
/// The bytes read at one place before the next one.
const STEP: usize = 256;
/// The distance of a prefetch ahead of a read, in bytes.
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
    let read = machine::reader(Level::detect());
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
/// The instruction is the one that the fold of `level` uses: `tdpbsud`, `vpdpbusd`, `vpmaddwd` with `vpaddd` (a byte by 16 bits:
/// two multiply-adds of bytes), `smmla`, `sdot`, `smlal`, or a product of 64 bits.
///
/// # Errors
/// [`CpuError::MissingLevel`] if the machine lacks `level`.
pub(crate) fn int8_peak_tops(level: Level, threads: usize) -> Result<f64, CpuError> {
    const ITERATIONS: u64 = 2_000_000;
    let level = level.require()?;
    let (multiply_adds, repeat) = machine::multiplier(level);
    let seconds = best_seconds(threads, |_| repeat(ITERATIONS));
    Ok((2 * multiply_adds * ITERATIONS) as f64 * threads.max(1) as f64 / seconds / 1e12)
}

/// Returns the best measured rate of 512-bit multiply-adds of 52 bits, in 10^9 a second, if the machine has them.
pub(crate) fn ifma_gops() -> Option<f64> {
    const ITERATIONS: u64 = 200_000;
    let repeat = machine::ifma()?;
    let seconds = best_seconds(1, |_| repeat(ITERATIONS));
    Some((16 * ITERATIONS) as f64 / seconds / 1e9)
}

/// Returns the seconds of the shortest of some runs of `work(thread)` on `threads` threads at once.
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

/// Reads all words of `bytes`, in the order of [`steps`]. Returns their XOR, so that the compiler leaves no read out.
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

/// Runs iterations of eight multiplications in four chains.
fn repeat_multiply(iterations: u64) {
    let mut values = black_box([3u64, 5, 7, 9]);
    for _ in 0..iterations {
        for _ in 0..2 {
            values = values.map(|value| black_box(value.wrapping_mul(value)));
        }
    }
    black_box(values);
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
        for &level in Level::ALL {
            match int8_peak_tops(level, 1) {
                Ok(peak) => assert!(peak.is_finite() && peak > 0.0, "{level}"),
                Err(error) => assert!(matches!(error, CpuError::MissingLevel { .. })),
            }
        }
    }
}
