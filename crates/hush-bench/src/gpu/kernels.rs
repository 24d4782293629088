//! The kernels among which a step chooses, each by itself, and the transforms.

use std::{error::Error, sync::Arc};

use hush_cuda::{
    FoldKernel, baselines,
    device::CudaError,
    fill_random,
    ring::{self, RingTables, RlweFoldKernel},
};
use hush_he::params::RingContext;
use hush_math::ring::Ring;
use hush_ops::{contract::RingOps, ntt_tiling::NttTiling, steps::sample::random_queries};
use hush_protocol::{
    Protocol, hybrid::Hybrid, pack_page::PackPage, pack_table::PackTable, table::TableShape,
};

use super::{
    Bench, Work,
    work::{WORD, WORD_OPS, fold, transforms},
};
use crate::row::Row;

/// The kernels of `pack`.
const FOLDS: [RlweFoldKernel; 3] = [RlweFoldKernel::Imad, RlweFoldKernel::Mma, RlweFoldKernel::Hopper];

/// The most bytes of a database without tiles, which is made beside that of the kernels to compare with.
const BASELINE_BYTES: usize = 1 << 30;

/// The seconds of the kernels of `pack` by batch.
pub(super) type Timings = Vec<(RlweFoldKernel, usize, f64)>;

/// Measures the kernels of `lwe_fold` and `pack` on a table of `shape`, and the transforms.
pub(super) fn run(bench: &mut Bench<'_>, shape: TableShape) {
    bench.attempt(Row::named("NTT"), ntts);
    bench.attempt(Row::named("lwe_fold"), |bench| lwe_folds(bench, shape));
    bench.attempt(Row::named("pack"), |bench| rlwe_folds(bench, shape, bench.scale.batches));
    bench.attempt(Row::named("pack, nothing turned over"), |bench| folds_as_they_lie(bench, shape));
    bench.cuda.release_unused();
    bench.attempt(Row::named("pack of the widest"), widest_folds);
    bench.cuda.release_unused();
}

/// Measures `lwe_fold` (1) with every kernel, for all batches that a pass of it takes, and the preparation of queries.
fn lwe_folds(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    let cuda = bench.cuda;
    let device = bench.cuda.device();
    let rows = shape.blocks * shape.slot_bytes;
    let cols = shape.columns;
    let db = cuda.random_db(rows, cols, 1)?;
    let bytes = db.bytes_on_device();
    for &batch in bench.scale.fold_batches {
        let queries = random_queries(cols, batch);
        let words = WORD * queries.words.len() as f64;
        // Words are copied to the device and written; then they are read, and their bytes written.
        let work = Work { bytes: 3.0 * words, up: words, ..Work::default() };
        let row = Row::named("lwe_fold: queries").batch(batch);
        bench.row(row, &work, || cuda.prepare_queries(&queries, None).map(drop));
        let sums = device.zeroed::<u32>(batch * rows)?;
        for kernel in [FoldKernel::Wgmma, FoldKernel::Mma] {
            let runs = kernel == FoldKernel::Mma || device.is_hopper();
            if runs && batch <= kernel.pass_queries() {
                let prepared = cuda.prepare_queries(&queries, Some(kernel))?;
                // Tiles are read whole.
                let row = Row::named(format!("lwe_fold, {kernel:?}")).batch(batch).table(bytes);
                bench.row(row, &fold(bytes as f64, batch), || {
                    cuda.add_prepared_fold(&db, &prepared, &sums.slice(..))
                });
            }
        }
    }
    drop(db);
    // A baseline of VIPIR's figure 7.
    let cols = cols.min(BASELINE_BYTES / rows).max(1);
    let bytes = rows * cols;
    let db = device.alloc(bytes / size_of::<u32>())?;
    fill_random(device, &db.slice(..), 1, 0)?;
    for &batch in bench.scale.batches {
        let queries = device.alloc(batch * cols)?;
        fill_random(device, &queries.slice(..), 2, 0)?;
        let work = Work { bytes: bytes as f64, multiply_adds: (batch * bytes) as f64, ..Work::default() };
        let row = Row::named("lwe_fold, no tensor cores").batch(batch).table(bytes);
        bench.row(row, &work, || baselines::lwe_fold(device, &db, &queries, rows, cols).map(drop));
    }
    Ok(())
}

/// Measures `pack` (3) without the words: the hint of all plaintexts of a table, two primes a word. Returns the timings.
pub(super) fn rlwe_folds(
    bench: &mut Bench<'_>,
    shape: TableShape,
    batches: &[usize],
) -> Result<Timings, Box<dyn Error>> {
    let params = bench.scale.pack;
    let columns = PackTable::new(Hybrid::SPEC, params, shape)?.first_shape().plaintexts();
    let context = RingContext::new(*params.ring());
    fold_hint(bench, "pack", context.kept(), columns, batches)
}

/// Measures the product of `pack` on polynomials as they lie, a baseline of GPIR's figure 10.
fn folds_as_they_lie(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    let device = bench.cuda.device();
    let params = bench.scale.pack;
    let context = RingContext::new(*params.ring());
    let kept = context.kept();
    let tables = RingTables::new(device, kept)?;
    let rows = params.lwe().n();
    let column = rows * tables.poly_words();
    let columns = PackTable::new(Hybrid::SPEC, params, shape)?.first_shape().plaintexts();
    let columns = columns.min(BASELINE_BYTES / (column * size_of::<u32>())).max(1);
    let least = kept.moduli().iter().map(|p| p.value()).min().unwrap_or(1);
    let random = |words: usize, seed| {
        let words = device.alloc(words)?;
        fill_random(device, &words.slice(..), seed, least)?;
        Ok::<_, CudaError>(words)
    };
    let hint = random(columns * column, 1)?;
    let bytes = columns * column * size_of::<u32>();
    for &batch in bench.scale.batches {
        let selectors = (0..batch).map(|query| random(2 * column, query as u64));
        let selectors = selectors.collect::<Result<Vec<_>, _>>()?;
        let selectors: Vec<_> = selectors.iter().collect();
        let multiply_adds = (2 * batch * columns * column) as f64;
        let work = Work { bytes: bytes as f64, multiply_adds, ..Work::default() };
        let row = Row::named("pack, nothing turned over").batch(batch).of(Protocol::Hybrid).table(bytes);
        let run = || baselines::rlwe_fold(device, &tables, &hint, &selectors, rows).map(drop);
        bench.row(row, &work, run);
    }
    Ok(())
}

/// Measures `pack` where the papers do: modulo all of Q_e, for the plaintexts of a table of 64 GiB.
fn widest_folds(bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
    let context = RingContext::new(*bench.scale.pack.ring());
    let full = context.full();
    let columns = bench.scale.widest_columns;
    let name = format!("pack of {columns} x {}", full.limbs() * full.degree());
    fold_hint(bench, &name, full, columns, bench.scale.batches).map(drop)
}

/// Measures every kernel on a hint of `columns` plaintexts, times selectors. Returns the timings.
fn fold_hint(
    bench: &mut Bench<'_>,
    name: &str,
    ring: &Ring,
    columns: usize,
    batches: &[usize],
) -> Result<Timings, Box<dyn Error>> {
    let device = bench.cuda.device();
    let moduli = ring.moduli();
    let tiling = NttTiling::new(ring.degree(), ring.limbs(), bench.scale.pack.lwe().n(), columns)?;
    let hint = bench.cuda.random_residues(moduli, tiling, 1)?;
    let bytes = tiling.bytes() as f64;
    let least = moduli.iter().map(|p| p.value()).min().unwrap_or(1);
    let mut timings = Timings::new();
    for &batch in batches {
        let selectors = (0..batch).map(|query| {
            let words = device.alloc(2 * tiling.rows() * tiling.poly_words())?;
            fill_random(device, &words.slice(..), query as u64, least)?;
            Ok(words)
        });
        let selectors = selectors.collect::<Result<Vec<_>, CudaError>>()?;
        let selectors: Vec<_> = selectors.iter().collect();
        // A word of the hint meets both halves of a selector.
        let products = 2.0 * batch as f64 * bytes / WORD;
        // The third kernel runs on Hopper GPUs alone.
        for &kernel in &FOLDS[..if device.is_hopper() { FOLDS.len() } else { 2 }] {
            let work = match kernel {
                RlweFoldKernel::Imad => Work { bytes, multiply_adds: products, ..Work::default() },
                _ => Work { bytes, byte_ops: WORD_OPS * products, ..Work::default() },
            };
            let row = Row::named(format!("{name}, {kernel:?}")).batch(batch).of(Protocol::Hybrid);
            let seconds = bench.row(row.table(tiling.bytes()), &work, || {
                ring::fold_rows(device, moduli, &hint, &selectors, Some(kernel)).map(drop)
            });
            timings.extend(seconds.map(|seconds| (kernel, batch, seconds)));
        }
    }
    Ok(timings)
}

/// Measures transforms of N words modulo all limbs of Q_e.
fn ntts(bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
    let device = bench.cuda.device();
    let polys = bench.scale.polys;
    let ring = bench.cuda.open_ring(Arc::new(RingContext::new(*bench.scale.pack.ring())))?;
    let tables = ring.full();
    let moduli = ring.context().full().moduli();
    let words = polys * tables.poly_words();
    let from = device.alloc::<u32>(words)?;
    let to = device.alloc::<u32>(words)?;
    fill_random(device, &from.slice(..), 1, moduli.iter().map(|p| p.value()).min().unwrap_or(1))?;
    let limbs = tables.limbs();
    let degree = tables.degree().words();
    // Words are read and written.
    let work = Work { bytes: 2.0 * WORD * words as f64, ..transforms((polys * limbs) as f64, degree) };
    let what = |name: &str| Row::named(format!("{name}, {polys} x {limbs} of {degree}")).batch(1);
    let forward = || ring::forward(device, tables, &from.slice(..), &to.slice(..));
    bench.row(what("NTT"), &work, forward);
    let inverse = || ring::inverse(device, tables, &from.slice(..), &to.slice(..));
    bench.row(what("inverse NTT"), &work, inverse);
    Ok(())
}
