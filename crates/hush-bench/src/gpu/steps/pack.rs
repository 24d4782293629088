//! The steps of packing by evaluation keys.

use std::error::Error;

use hush_cuda::{
    device::CudaError,
    fill_random,
    ring::{self, RlweFoldKernel},
};
use hush_ops::{
    contract::{EntryOrder, PackOps},
    ntt_tiling::{MAX_TILE_WIDTH, NttTiling},
};
use hush_protocol::{
    Protocol, hybrid::Hybrid, pack_page::PackPage, pack_table::PackTable, table::TableShape,
};

use super::{device_residues, ring::RingBench};
use crate::{
    gpu::{
        Bench, Work,
        work::{WORD, transforms},
    },
    row::Row,
};

pub(super) fn run(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    let params = bench.scale.pack;
    let table = PackTable::new(Hybrid::SPEC, params, shape)?;
    let (first, n) = (table.first_shape(), params.lwe().n());
    let mut steps = RingBench::new(bench, Protocol::Hybrid, params.ring())?;
    let what = |name: &str| Row::named(name).of(Protocol::Hybrid);
    bench.attempt(Row::named("NTT"), |bench| steps.transforms(bench));
    bench.attempt(what("expand"), |bench| steps.expand(bench, n, table.folds()));
    bench.attempt(what("rgsw_fold"), |bench| {
        steps.rgsw_fold(bench, first.entries(), first.planes(), EntryOrder::EntryMajor)
    });
    bench.attempt(what("pack"), |bench| pack(bench, &steps, n, first.plaintexts()));
    bench.attempt(what("lift_hint"), |bench| lift_hint(bench, &steps, &table));
    // All plaintexts are sent.
    steps.protocol = Protocol::ExppackS;
    bench.attempt(Row::named("an answer").of(steps.protocol), |bench| {
        steps.respond(bench, first.plaintexts().next_multiple_of(2))
    });
    Ok(())
}

/// (3) without the words: the hint of `columns` plaintexts times selectors, by each kernel.
fn pack(bench: &mut Bench<'_>, of: &RingBench, n: usize, columns: usize) -> Result<(), Box<dyn Error>> {
    let (device, kept) = (bench.cuda.device(), of.ring.context().kept());
    let tiling = NttTiling::new(kept.degree(), kept.limbs(), n, columns)?;
    let hint = bench.cuda.random_ntt_db(&of.ring, tiling, 1)?;
    let bytes = tiling.bytes() as f64;
    for &batch in bench.scale.batches {
        let selectors = (0..batch)
            .map(|query| device_residues(device, &of.ring, 2 * n * tiling.poly_words(), query as u64));
        let selectors = selectors.collect::<Result<Vec<_>, CudaError>>()?;
        let selectors: Vec<_> = selectors.iter().collect();
        // A word of the hint meets both halves of a selector.
        let products = 2.0 * batch as f64 * bytes / WORD;
        for kernel in [RlweFoldKernel::Imad, RlweFoldKernel::Mma, RlweFoldKernel::Hopper] {
            let work = match kernel {
                RlweFoldKernel::Imad => Work { bytes, multiply_adds: products, ..Work::default() },
                // Four classes of four by one bytes each, 2 operations a multiply-add.
                _ => Work { bytes, byte_ops: 32.0 * products, ..Work::default() },
            };
            let fold = || ring::fold_rows(device, kept.moduli(), &hint, &selectors, Some(kernel)).map(drop);
            let row = Row::named(format!("pack {columns} x {n}, {kernel:?}")).batch(batch);
            bench.row(row.of(of.protocol).table(tiling.bytes()), &work, fold);
        }
    }
    Ok(())
}

/// Offline: the hint of as many plaintexts as a tile has, at most.
fn lift_hint(bench: &mut Bench<'_>, of: &RingBench, table: &PackTable) -> Result<(), Box<dyn Error>> {
    let (cuda, shape, n) = (bench.cuda, table.first_shape(), table.params().lwe().n());
    let columns = 0..shape.plaintexts().min(MAX_TILE_WIDTH);
    let words = shape.rows_of(columns.clone()).len() * n;
    let hint = cuda.device().alloc::<u32>(words)?;
    fill_random(cuda.device(), &hint.slice(..), 1, 0)?;
    // Words are read and residues written; a transform a polynomial and limb.
    let polys = (n * columns.len()) as f64;
    let work = Work {
        bytes: WORD * words as f64 + of.counts.polys(polys),
        ..transforms(polys * of.counts.limbs as f64, of.counts.degree)
    };
    let lift = || cuda.lift_hint(&of.ring, &hint, n, &shape, columns.clone()).map(drop);
    let row = Row::named(format!("lift_hint, {} x {n}", columns.len())).batch(1);
    bench.row(row.of(of.protocol), &work, lift);
    Ok(())
}
