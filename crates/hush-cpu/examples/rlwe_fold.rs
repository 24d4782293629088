//! Times of `rlwe_fold`: `rlwe_fold ROWS COLUMNS,.. BATCH,.. [THREADS,..]`, N = 4096 and two primes of 31 bits, as
//! shares of the time to read database and selectors in order.

use std::{sync::Arc, time::Instant};

use hush_cpu::{AlignedBuffer, Cpu, probe};
use hush_math::modulus::{Modulus, find_primes};
use hush_ops::ntt_tiling::{NttTiledDb, NttTiling};

/// Timings of which the best and the median count.
const RUNS: usize = 11;
const DEGREE: usize = 4096;

struct Bytes(AlignedBuffer<u8>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Words below 2^30.
fn random(bytes: usize, mut state: u64) -> AlignedBuffer<u8> {
    let mut buffer = AlignedBuffer::<u8>::zeroed(bytes);
    for word in buffer.chunks_exact_mut(4) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word.copy_from_slice(&((state >> 34) as u32).to_le_bytes());
    }
    buffer
}

/// Time that processors have spent in this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn words(bytes: &[u8]) -> &[u32] {
    // SAFETY: words have no invalid values; the buffer is aligned.
    unsafe { bytes.align_to().1 }
}

fn main() {
    let lists: Vec<Vec<usize>> = std::env::args()
        .skip(1)
        .map(|list| list.split(',').map(|number| number.parse().expect("a number")).collect())
        .collect();
    let rows = lists[0][0];
    let threads = lists.get(3).cloned().unwrap_or(vec![1]);
    let moduli: Vec<Modulus> = find_primes(2 * DEGREE, 31, 2).into_iter().map(Modulus::new).collect();
    let most = lists[2].iter().max().copied().unwrap_or(1);
    let queries: Vec<_> = (0..most).map(|query| random(rows * 4 * DEGREE * 4, query as u64)).collect();
    let queries: Vec<&[u32]> = queries.iter().map(|query| words(query)).collect();
    for &columns in &lists[1] {
        let tiling = NttTiling::new(DEGREE, 2, rows, columns).expect("whole groups");
        let db = NttTiledDb::new(tiling, Arc::new(Bytes(random(tiling.bytes(), 99)))).expect("aligned");
        for &threads in &threads {
            let cpu = Cpu::new(threads).expect("a level");
            for &batch in &lists[2] {
                let gbps = (0..3).map(|_| probe::stream_read_gbps(db.bytes(), threads)).fold(0.0, f64::max);
                let mut seconds: Vec<f64> = (0..RUNS)
                    .map(|_| {
                        let (start, cpu_start) = (Instant::now(), cpu_seconds());
                        let result = cpu.rlwe_fold_words(&moduli, &db, &queries[..batch]).expect("fits");
                        let wall = start.elapsed().as_secs_f64();
                        let seconds = if threads == 1 { cpu_seconds() - cpu_start } else { wall };
                        drop(result);
                        seconds
                    })
                    .collect();
                seconds.sort_by(f64::total_cmp);
                let db_ms = tiling.bytes() as f64 / gbps / 1e6;
                let all_ms = db_ms + (batch * rows * 4 * DEGREE * 4) as f64 / gbps / 1e6;
                println!(
                    "{rows} x {columns}, {threads} threads, B = {batch}: best {:.1} ms, median {:.1} ms, {:.1} a query; {gbps:.1} GB/s: \
                     database {db_ms:.1} ms = {:.2}, with selectors {all_ms:.1} ms = {:.2}",
                    seconds[0] * 1e3,
                    seconds[RUNS / 2] * 1e3,
                    seconds[RUNS / 2] * 1e3 / batch as f64,
                    db_ms / seconds[RUNS / 2] / 1e3,
                    all_ms / seconds[RUNS / 2] / 1e3,
                );
            }
        }
    }
}
