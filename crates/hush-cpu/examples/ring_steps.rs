//! Times of the steps over rings, the best of several: `ring_steps [PRESET [ROWS [FOLDS [ENTRIES]]]]`.
//!
//! One thread, at the level that `HUSH_CPU` names. Operands are random: no step looks at their values. Times are those
//! of the processor in this process, which other processes disturb less than those of a clock.

use std::sync::Arc;

use hush_cpu::{Cpu, probe};
use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RlweCiphertext, RlwePair},
    params::{RingContext, pack_preset, ring_preset},
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
    ring::Ring,
};
use hush_ops::{
    contract::{EntryOrder, RingOps, RlweBatch},
    ntt_tiling::{NttTiledDb, NttTiling},
};

/// Timings of which the best counts.
const RUNS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, default| arguments.get(index).map_or(default, |a| a.parse().expect("a number"));
    let name = arguments.first().map_or("ONION_M31", |name| name);
    let pack = || pack_preset(name).map(|pack| *pack.ring());
    let params = ring_preset(name).or_else(|_| pack()).expect("a ring preset or one of packing");
    let (rows, folds) = (number(1, 256), number(2, 9));
    let entries = number(3, 381);
    let context = Arc::new(RingContext::new(params));
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    let mut random = Random { rng: Csprng::insecure_from_seed(1) };
    let (full, kept, degree) = (context.full(), context.kept(), params.degree());
    println!("{} at level {}, {rows} rows, {folds} folds, {entries} entries", params.name(), cpu.level());
    let ntt = probe::ntt_rates(cpu.level(), kept.moduli()[0].value(), degree).expect("the level");
    println!("forward NTT  {:9.2} us", ntt.forward_ns / 1e3);

    let ring = cpu.open_ring(context.clone()).expect("there is room");
    let keys = random.keys(&context);
    let keys = cpu.open_evaluation_keys(&ring, keys).expect("the shapes fit");
    let query = [random.ciphertext(full)];
    let seconds = best(|| cpu.expand(&ring, &[&keys], &query, rows, folds).expect("the shapes fit"));
    let leaves = params.leaves(rows, folds);
    let nodes: usize =
        (0..params.levels().len()).map(|j| leaves.div_ceil(1 << (params.levels().len() - j))).sum();
    println!("expand       {:9.2} ms, {nodes} Subs, {leaves} leaves", seconds * 1e3);
    let seconds = best(|| cpu.expand(&ring, &[&keys], &query, 1, 0).expect("the shapes fit"));
    let levels = params.levels().len();
    println!("  one leaf   {:9.2} us, {levels} Subs", seconds * 1e6);

    let folded = random.batch(kept, entries);
    let rgsw = 2 * params.fold_gadget().digits;
    let bits: Vec<_> = (0..folds).map(|_| random.batch(kept, rgsw)).collect();
    let fold = || cpu.rgsw_fold(&ring, &[&folded], 1, EntryOrder::PlaneMajor, &[&bits]);
    let seconds = best(|| fold().expect("the shapes fit"));
    let products: usize = (0..folds).map(|fold| entries.div_ceil(2 << fold)).sum();
    println!("rgsw_fold    {:9.2} ms, {products} external products", seconds * 1e3);

    let pair = random.batch(kept, 2);
    let seconds = best(|| cpu.pack_pairs(&ring, &[&keys], &[&pair]).expect("the shapes fit"));
    println!("pack_pairs   {:9.2} us", seconds * 1e6);
    let polys = random.polys(kept, 3).into();
    let widths = [params.response_bits().a, params.response_bits().b, params.response_bits().b];
    let seconds = best(|| cpu.mod_switch(&ring, &[&polys], 0..3, &widths).expect("the shapes fit"));
    println!("mod_switch   {:9.2} us, 3 polynomials", seconds * 1e6);

    let columns = 32;
    let mask = u32::MAX >> (32 - params.plaintext_bits());
    let symbols: Vec<u32> = (0..rows * columns * degree).map(|_| random.rng.next_u32() & mask).collect();
    let gb = (rows * columns * params.plaintext_bytes()) as f64 / 1e9;
    let seconds = best(|| cpu.ntt_db(&ring, &symbols).expect("the shapes fit"));
    println!("ntt_db       {:9.2} ms, {:.3} GB/s of plaintext", seconds * 1e3, gb / seconds);
    let tiling = NttTiling::new(degree, kept.limbs(), rows, columns).expect("whole groups");
    let db = NttTiledDb::from_polys(tiling, &cpu.ntt_db(&ring, &symbols).expect("the shapes fit"));
    let db = cpu.open_ntt_db(&ring, db).expect("the shapes fit");
    let selectors = random.batch(kept, rows);
    let seconds = best(|| cpu.rlwe_fold(&ring, &db, &[&selectors]).expect("the shapes fit"));
    let read = (rows * columns * kept.limbs() * degree * 4) as f64 / 1e9;
    println!("rlwe_fold    {:9.2} ms, {:.2} GB/s of words", seconds * 1e3, read / seconds);
}

/// The shortest time of `work`, in seconds.
fn best<R>(mut work: impl FnMut() -> R) -> f64 {
    let timed = |_| {
        let start = cpu_seconds();
        let result = work();
        let seconds = cpu_seconds() - start;
        drop(result);
        seconds
    };
    (0..RUNS).map(timed).fold(f64::INFINITY, f64::min)
}

/// Time that processors have spent in this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

struct Random {
    rng: Csprng,
}

impl Random {
    fn poly(&mut self, ring: &Ring) -> Poly<Eval> {
        ring.expand_uniform(&mut self.rng)
    }

    fn polys(&mut self, ring: &Ring, count: usize) -> Vec<u32> {
        (0..count).flat_map(|_| self.poly(ring).into_words()).collect()
    }

    fn ciphertext(&mut self, ring: &Ring) -> RlweCiphertext {
        RlweCiphertext { a: self.poly(ring), b: self.poly(ring) }
    }

    fn batch(&mut self, ring: &Ring, count: usize) -> RlweBatch {
        let ciphertext_words = 2 * ring.limbs() * ring.degree();
        RlweBatch { ciphertext_words, words: self.polys(ring, 2 * count).into() }
    }

    fn keys(&mut self, context: &RingContext) -> EvaluationKeys {
        let (params, full, kept) = (context.params(), context.full(), context.kept());
        let mut key = |digits| KeySwitchKey { rows: (0..digits).map(|_| self.ciphertext(full)).collect() };
        let levels = params.levels().iter().map(|gadget| key(gadget.digits)).collect();
        let square = key(params.square_gadget().digits);
        let mut pair = || RlwePair { a: self.poly(kept), b: [self.poly(kept), self.poly(kept)] };
        let pack = [(); 2].map(|()| (0..params.pack_gadget().digits).map(|_| pair()).collect());
        EvaluationKeys { levels, square, pack }
    }
}
