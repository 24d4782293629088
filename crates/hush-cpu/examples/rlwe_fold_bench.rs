use hush_cpu::{AlignedBuffer, Cpu, Level, probe};
use hush_math::modulus::{Modulus, find_primes};
use hush_ops::ntt_tiling::{NttTiledDb, NttTiling};
use std::{sync::Arc, time::Instant};
fn cpu_time() -> f64 {
    let mut t: libc::timespec = unsafe { std::mem::zeroed() };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}
fn stream(bytes: &[u8], th: usize) -> (f64, f64) {
    // stream_read_gbps reads the bytes 5 times.
    let c = cpu_time();
    let w = probe::stream_read_gbps(bytes, th);
    (w, 5.0 * bytes.len() as f64 / ((cpu_time() - c) / th as f64) / 1e9)
}
fn main() {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let columns = args.first().copied().unwrap_or(380);
    let threads: Vec<usize> = args.get(1).map_or(vec![1, 2], |&t| vec![t]);
    let batches: Vec<usize> = if args.len() > 2 { args[2..].to_vec() } else { vec![1, 2, 3, 4, 8] };
    let levels: Vec<Level> = std::env::var("LEVELS")
        .unwrap_or("avx512ifma,amx".into())
        .split(',')
        .map(|l| l.parse().unwrap())
        .collect();
    let moduli: Vec<Modulus> = find_primes(4096, 31, 2).into_iter().map(Modulus::new).collect();
    let t = NttTiling::new(4096, 2, 256, columns).unwrap();
    let mut buf = AlignedBuffer::<u8>::zeroed(t.bytes());
    let mut x = 1u64;
    for w in buf.chunks_exact_mut(8) {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        w.copy_from_slice(&(x & 0x3fffffff3fffffff).to_le_bytes());
    }
    let query: Vec<u32> =
        (0..256 * 2 * t.poly_words() as u32).map(|i| i.wrapping_mul(2654435769) >> 2).collect();
    let mut best = [0.0; 3];
    let bytes = t.bytes() as f64;
    let db = NttTiledDb::new(t, Arc::new(buf)).unwrap();
    let queries: Vec<Vec<u32>> = (0..16).map(|_| query.clone()).collect();
    for level in levels {
        for &th in &threads {
            let cpu = Cpu::with_level(level, th).unwrap();
            for &b in &batches {
                let q: Vec<&[u32]> = queries[..b].iter().map(|q| &q[..]).collect();
                let (mut wall, mut cpu_best) = (f64::MAX, f64::MAX);
                let (mut sw, mut sc) = (0f64, 0f64);
                for _ in 0..3 {
                    for _ in 0..2 {
                        let (s, c) = (Instant::now(), cpu_time());
                        std::hint::black_box(cpu.rlwe_fold_words(&moduli, &db, &q).unwrap());
                        wall = wall.min(s.elapsed().as_secs_f64());
                        cpu_best = cpu_best.min((cpu_time() - c) / th as f64);
                    }
                    if b == batches[0] {
                        let (w, c) = stream(db.bytes(), th);
                        sw = sw.max(w);
                        sc = sc.max(c);
                    }
                }
                if b == batches[0] {
                    println!("stream {th} threads: wall {sw:.2}, cpu {sc:.2} GB/s");
                    best[th] = sc;
                }
                let g = |s: f64| bytes / s / 1e9;
                println!(
                    "{level:10} {th} threads B={b}: wall {:.2}, cpu {:.2} GB/s, {:.2} of stream; {:.1} cpu ms a query",
                    g(wall),
                    g(cpu_best),
                    g(cpu_best) / best[th],
                    cpu_best * 1e3 / b as f64
                );
            }
        }
    }
}
