//! The steps over LWE.

use std::error::Error;

use hush_cuda::{CudaDb, FoldKernel, fill_random};
use hush_he::params::DEFAULT_LWE;
use hush_ops::{contract::LweOps, tiling::Tiling};
use hush_protocol::{Protocol, table::TableShape};

use crate::{
    gpu::{
        Bench, Work,
        work::{WORD, fold},
    },
    row::Row,
    scan::random_queries,
};

/// Bytes of a word that the second database is made of, in `double`.
const DIGITS: usize = 2;
/// Words of the hint that become a part of the second database, at most.
const HINT_WORDS: usize = 1 << 27;

pub(super) fn run(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    bench.attempt(Row::named("lwe_fold"), |bench| folds(bench, shape));
    bench.attempt(Row::named("reinterpret_lwe"), |bench| reinterpret(bench, shape));
    Ok(())
}

/// (1) with every kernel, for all batches that a pass of it takes; and what is done with queries before.
fn folds(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    let (cuda, device) = (bench.cuda, bench.cuda.device());
    let (rows, cols) = (shape.blocks * shape.slot_bytes, shape.columns);
    let db = cuda.random_db(rows, cols, 1)?;
    let bytes = db.bytes_on_device();
    for &batch in bench.scale.fold_batches {
        let queries = random_queries(cols, batch);
        let words = WORD * queries.words.len() as f64;
        // Words come up and are written; they are read, and their bytes written.
        let work = Work { bytes: 3.0 * words, up: words, ..Work::default() };
        let prepare = || cuda.prepare_queries(&queries, None).map(drop);
        bench.row(Row::named("lwe_fold: queries").batch(batch), &work, prepare);
        let sums = device.zeroed::<u32>(batch * rows)?;
        for kernel in [FoldKernel::Wgmma, FoldKernel::Mma, FoldKernel::Gemv] {
            let runs = kernel != FoldKernel::Wgmma || device.is_hopper();
            if runs && batch <= kernel.pass_queries() {
                let prepared = cuda.prepare_queries(&queries, Some(kernel))?;
                let run = || cuda.add_prepared_fold(&db, &prepared, &sums.slice(..));
                // Tiles are read whole.
                let row = Row::named(format!("lwe_fold, {kernel:?}")).batch(batch).table(bytes);
                bench.row(row, &fold(bytes as f64, batch), run);
            }
        }
    }
    Ok(())
}

/// (2) of the words of all blocks, as in an answer of `double` with records of two bytes, and of a part of its hint.
fn reinterpret(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    let (cuda, device, items) = (bench.cuda, bench.cuda.device(), DIGITS);
    let answer = shape.blocks * shape.slot_bytes / items;
    let hint_items = items * DEFAULT_LWE.n();
    let hint = (HINT_WORDS / hint_items).min(answer);
    for (name, items, blocks) in
        [("reinterpret_lwe, an answer", items, answer), ("reinterpret_lwe, a hint", hint_items, hint)]
    {
        let words = device.alloc::<u32>(items * blocks)?;
        fill_random(device, &words.slice(..), 1, 0)?;
        // Words are read, and tiles written, which are whole.
        let written = CudaDb::bytes_for(Tiling::new(items * DIGITS, blocks));
        let bytes = WORD * (items * blocks) as f64 + written as f64;
        let row = Row::named(name).batch(1).of(Protocol::Double);
        let reinterpret = || cuda.reinterpret_lwe(&words, items, DIGITS).map(drop);
        bench.row(row, &Work { bytes, ..Work::default() }, reinterpret);
    }
    Ok(())
}
