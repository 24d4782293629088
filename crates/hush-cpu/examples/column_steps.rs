//! Times of the steps of column packing, the best of several: `column_steps [ROWS [COLS [ENTRY_ROWS]]]`.
//!
//! One thread, at the level that `HUSH_CPU` names. Operands are random: no step looks at their values. Times are those of
//! the processor in this process, which other processes disturb less than those of a clock.

use std::sync::Arc;

use hush_cpu::{Cpu, CpuRing, probe};
use hush_he::{
    entities::MatrixDomain,
    params::{COLPACK_N2048_Q52, ColumnParams, RingContext},
};
use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
    ring::Ring,
};
use hush_ops::{
    contract::{ChainPolys, ColumnOps, LweBatch, LweOps, LweQueries, PACK_BYTES, PowerKeys, RingOps},
    pack_shape::PackShape,
    tiling::TiledDb,
};

/// Timings of which the best counts.
const RUNS: usize = 15;
/// Rows of the table that hints are made of: one plaintext.
const HINT_ROWS: usize = 2048;

fn main() {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse().expect("a number")).collect();
    let number = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (rows, cols, entry_rows) = (number(0, 1 << 15), number(1, 1 << 15), number(2, 4096));
    let steps = Steps::new(COLPACK_N2048_Q52, rows, entry_rows);
    println!(
        "{} at level {}, {rows} rows of {cols} columns, {} entries of {} planes",
        steps.params.name(),
        steps.cpu.level(),
        steps.shape.entries(),
        steps.shape.planes()
    );
    let kept = steps.context.kept();
    let ntt =
        probe::ntt_rates(steps.cpu.level(), kept.moduli()[0].value(), kept.degree()).expect("the level");
    println!("NTT              {:8.2} us, inverse {:.2} us", ntt.forward_ns / 1e3, ntt.inverse_ns / 1e3);
    for batch in [1, 32] {
        let [fold, pack] = steps.pack(batch);
        println!(
            "pack_columns     {:8.2} ms, {batch} queries; lwe_fold of its columns {:.2} ms",
            pack * 1e3,
            fold * 1e3
        );
    }
    // What else there is to a plaintext does not depend on its rows; with few of them, it is seen beside the fold.
    let [fold, pack] = Steps::new(steps.params, steps.shape.plaintexts(), 1).pack(32);
    println!(
        "  but the fold   {:8.3} ms a query, {} plaintexts",
        (pack - fold) * 1e3 / 32.0,
        steps.shape.plaintexts()
    );
    steps.fold(8);
    steps.hint(cols);
}

/// A table of one shape.
struct Steps {
    params: ColumnParams,
    context: Arc<RingContext>,
    cpu: Cpu,
    ring: CpuRing,
    shape: PackShape,
}

impl Steps {
    fn new(params: ColumnParams, rows: usize, entry_rows: usize) -> Self {
        let context = Arc::new(RingContext::new(*params.ring()));
        let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
        let ring = cpu.open_ring(context.clone()).expect("there is room");
        let shape = PackShape::new(params.ring().degree(), rows, entry_rows).expect("positive");
        Self { params, context, cpu, ring, shape }
    }

    /// Random polynomials, in words.
    fn polys(&self, count: usize) -> Vec<u32> {
        let rng = &mut Csprng::insecure_from_seed(count as u64);
        (0..count).flat_map(|_| poly::<Eval>(self.context.kept(), rng).into_words()).collect()
    }

    /// Seconds of `lwe_fold` of the pack columns, and of `pack_columns`, which is that and more.
    fn pack(&self, batch: usize) -> [f64; 2] {
        let (rows, cols) = (self.shape.rows(), PACK_BYTES * self.shape.degree());
        let mut matrix = vec![0; rows * cols];
        let rng = &mut Csprng::insecure_from_seed(1);
        rng.fill_bytes(&mut matrix);
        let columns = TiledDb::from_matrix(rows, cols, &matrix);
        drop(matrix);
        let chain = self.chain();
        let mut keys = LweQueries { cols, words: vec![0; batch * cols] };
        rng.fill_u32(&mut keys.words);
        let z: Vec<Poly<Coeff>> = (0..batch).map(|_| poly(self.context.kept(), rng)).collect();
        let z: Vec<_> = z.iter().collect();
        let folded = || LweBatch { rows, words: vec![1; batch * rows].into() };
        let pack = |folded| {
            self.cpu.pack_columns(&self.ring, &columns, &chain, folded, &keys, &z).expect("the shapes fit")
        };
        [best(|| {}, |()| self.cpu.lwe_fold(&columns, &keys).expect("the shapes fit")), best(folded, pack)]
    }

    fn chain(&self) -> <Cpu as ColumnOps>::Chain {
        let [digits, masks] = [(); 2].map(|()| self.polys(self.shape.plaintexts()));
        self.cpu.open_chain(&self.ring, &self.shape, ChainPolys { digits, masks }).expect("the shapes fit")
    }

    fn fold(&self, batch: usize) {
        let rng = &mut Csprng::insecure_from_seed(2);
        let rows = self.shape.rows();
        let mut words = vec![0; batch * rows];
        rng.fill_u32(&mut words);
        let packed = LweBatch { rows, words: words.into() };
        let masks = [(); 2].map(|()| poly(self.context.kept(), rng));
        let rows: Vec<_> = (0..batch).map(|_| [(); 2].map(|()| poly(self.context.kept(), rng))).collect();
        let folds = self.shape.entries() > 1;
        let bodies: Vec<_> = rows.iter().map(|rows| folds.then_some(rows)).collect();
        let powers = PowerKeys { masks: &masks, bodies: &bodies };
        let chain = self.chain();
        let fold =
            |()| self.cpu.rgsw_power_fold(&self.ring, &chain, &packed, powers).expect("the shapes fit");
        let seconds = best(|| {}, fold) / batch as f64;
        let products = self.shape.planes() * (self.shape.entries().next_power_of_two() - 1);
        println!("rgsw_power_fold  {:8.3} ms a query, {products} external products", seconds * 1e3);
    }

    fn hint(&self, cols: usize) {
        let mut matrix = vec![0; HINT_ROWS * cols];
        Csprng::insecure_from_seed(3).fill_bytes(&mut matrix);
        let db = TiledDb::from_matrix(HINT_ROWS, cols, &matrix);
        let a = self.params.lwe().public_matrix(MatrixDomain::First, cols);
        let hint = |()| self.cpu.lwe_hint(&db, &a, 0..HINT_ROWS).expect("the shapes fit");
        let seconds = best(|| {}, hint);
        let gb = (HINT_ROWS * cols) as f64 / 1e9;
        println!(
            "lwe_hint         {:8.1} ms, {:.3} GB/s, {:.2} s a GiB",
            seconds * 1e3,
            gb / seconds,
            seconds / gb * 1.073_741_824
        );
    }
}

fn poly<R>(ring: &Ring, rng: &mut Csprng) -> Poly<R> {
    ring.expand_uniform(rng)
}

/// The shortest time of `work` on what `prepare` made, in seconds.
fn best<T, R>(mut prepare: impl FnMut() -> T, mut work: impl FnMut(T) -> R) -> f64 {
    let timed = |_| {
        let operand = prepare();
        let start = cpu_seconds();
        let result = work(operand);
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
