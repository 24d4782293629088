//! `hush-bench gpu-steps`: the steps of the main protocols' answers, each by itself, on databases that are made on the device;
//! and the steps of builds.

use std::{error::Error, sync::Arc};

use hush_build::planner::operands::random_symbols;
use hush_cuda::{
    Cuda, CudaDb, Stages,
    device::Buffer,
    fill_random,
    ring::{CudaNttDb, CudaRing, CudaSymbols},
};
use hush_he::{
    entities::{ColumnMasks, PublicSeed},
    params::{DEFAULT_LWE, RingContext, RingParams},
};
use hush_ops::{
    contract::{ColumnOps, Memory, RingOps, TfheOps, poly_words},
    ntt_tiling::{MAX_TILE_WIDTH, NttTiling},
    steps::{
        LiftHint, ReinterpretLwe, StepShape,
        sample::{Operands, random_words},
    },
    symbol_tiling::SymbolTiling,
    tiling::Tiling,
};
use hush_protocol::{Protocol, any_page::TableParams};

use super::{
    Bench, SHORT_RECORD, Work,
    answers::{self, Chosen, table_shape},
    kernels,
    work::{WORD, of_step, transforms},
};
use crate::row::Row;

/// Bytes of a word that the second database is made of, in `double`.
const DIGITS: usize = 2;
/// The approximate length of a database of ring elements over the length of its records.
const NTT_EXPANSION: usize = 4;
/// The expansion of a table of `tfhe`. Symbols are made on the host, so no table of symbols is longer.
const SYMBOL_EXPANSION: usize = 32;
/// The most words of the hint that become a part of the second database.
const HINT_WORDS: usize = 1 << 27;

/// The kernels of stages that suit a device, beside those of one kind alone: the ablation of GPIR (figure 10).
const STAGES: [(&str, Stages); 2] =
    [("by operations", Stages::Operations), ("one kernel a stage", Stages::Whole)];

/// Databases and polynomials that are made on the device. Residues are below the least of the primes.
struct OnDevice;

impl Operands<Cuda> for OnDevice {
    fn db(&self, cuda: &Cuda, tiling: Tiling) -> Result<CudaDb, Box<dyn Error>> {
        Ok(cuda.random_db(tiling.rows(), tiling.cols(), 1)?)
    }

    fn ntt_db(&self, cuda: &Cuda, ring: &CudaRing, tiling: NttTiling) -> Result<CudaNttDb, Box<dyn Error>> {
        Ok(cuda.random_ntt_db(ring, tiling, 1)?)
    }

    fn symbols(
        &self,
        cuda: &Cuda,
        ring: &CudaRing,
        _: RingParams,
        tiling: SymbolTiling,
    ) -> Result<CudaSymbols, Box<dyn Error>> {
        Ok(cuda.open_symbols(ring, random_symbols(tiling)?)?)
    }

    fn polys(&self, cuda: &Cuda, ring: &CudaRing, count: usize) -> Result<Buffer<u32>, Box<dyn Error>> {
        let words = cuda.device().alloc(count * poly_words(ring.context()))?;
        let least = ring.context().full().moduli().iter().map(|p| p.value()).min().unwrap_or(1);
        fill_random(cuda.device(), &words.slice(..), 1, least)?;
        Ok(words)
    }
}

/// Measures the steps of tables of `size` bytes, or of half of the device's memory if that is less.
pub(super) fn run(bench: &mut Bench<'_>, size: usize) -> Result<(), Box<dyn Error>> {
    let size = size.min(bench.cuda.device().free_bytes()? / 2);
    let shape = table_shape(size, bench.scale.columns);
    kernels::run(bench, shape);
    let mut done = Vec::new();
    for protocol in answers::PROTOCOLS {
        bench.attempt(Row::named("steps").of(protocol), |bench| {
            let params = answers::table_params(bench.scale, protocol, shape, Chosen::default())?;
            bench.steps(&params, &mut done);
            Ok(())
        });
    }
    bench.attempt(Row::named("reinterpret_lwe"), |bench| {
        reinterpret_lwe(bench, shape.blocks * shape.slot_bytes)
    });
    bench.attempt(Row::named("lift_hint"), lift_hint);
    bench.attempt(Row::named("chain_hint"), chain_hint);
    // In evaluation form a database is several times as long as its records.
    let suited = answers::suited(bench.scale, size / NTT_EXPANSION, Chosen::default());
    let ppir = answers::ppir(bench.scale, size / SYMBOL_EXPANSION, Chosen::default());
    for (protocol, params) in suited.into_iter().chain(ppir.map(|(protocol, _, params)| (protocol, params))) {
        bench.attempt(Row::named("steps").of(protocol), |bench| {
            bench.steps(&params?, &mut done);
            Ok(())
        });
    }
    Ok(())
}

impl Bench<'_> {
    /// Measures the steps of a path that are not `done` yet, and adds them to `done`.
    fn steps(&mut self, params: &TableParams, done: &mut Vec<StepShape>) {
        for step in params.path() {
            if done.contains(&step.shape) {
                continue;
            }
            done.push(step.shape);
            let batches = if step.one_by_one { &[1] } else { self.scale.batches };
            let row = |name: &str| Row::named(name).of(params.facts().protocol);
            self.step(step.shape, &row(step.shape.name()), batches);
            if matches!(step.shape, StepShape::Expand(_) | StepShape::RgswFold(_)) {
                for (kernels, stages) in STAGES {
                    let cuda = Cuda::new(self.cuda.device().clone()).with_stages(stages);
                    self.step_on(
                        &cuda,
                        step.shape,
                        &row(&format!("{}, {kernels}", step.shape.name())),
                        batches,
                    );
                }
            }
        }
    }

    /// Measures a step for some batches.
    fn step(&mut self, shape: StepShape, row: &Row, batches: &[usize]) {
        let cuda = self.cuda;
        self.step_on(cuda, shape, row, batches);
    }

    /// Measures a step on a backend of this device, for some batches.
    fn step_on(&mut self, cuda: &Cuda, shape: StepShape, row: &Row, batches: &[usize]) {
        for &batch in batches {
            let row = row.clone().batch(batch);
            self.attempt(row.clone(), |bench| {
                let run = OnDevice.step(cuda, &shape, batch)?;
                let scanned = shape.work(batch).bytes as usize;
                let row = if scanned > 0 { row.table(scanned) } else { row };
                bench.row(row, &of_step(&shape, batch), run);
                Ok(())
            });
            self.cuda.release_unused();
        }
    }
}

/// Measures `reinterpret_lwe` (2) of `rows` words, as in an answer of `double` with records of two bytes, and of a part of its
/// hint.
fn reinterpret_lwe(bench: &mut Bench<'_>, rows: usize) -> Result<(), Box<dyn Error>> {
    let hint_items = SHORT_RECORD * DEFAULT_LWE.n();
    for (name, items, blocks) in [
        ("reinterpret_lwe, an answer", SHORT_RECORD, rows / SHORT_RECORD),
        ("reinterpret_lwe, a hint", hint_items, HINT_WORDS.min(rows) / hint_items),
    ] {
        let db = Tiling::new(items * DIGITS, blocks.max(1));
        let shape = ReinterpretLwe { words: items * db.cols(), db };
        bench.step(shape.into(), &Row::named(name).of(Protocol::Double), &[1]);
    }
    Ok(())
}

/// Measures an offline step: the hint of as many plaintexts as a tile has is lifted.
fn lift_hint(bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
    let ring = *bench.scale.pack.ring();
    let n = bench.scale.pack.lwe().n();
    let lift = LiftHint { ring, n, columns: MAX_TILE_WIDTH, parts: 1 };
    bench.step(lift.into(), &Row::named("lift_hint").of(Protocol::Hybrid), &[1]);
    Ok(())
}

/// Measures an offline step: hints of plaintexts become pack columns.
fn chain_hint(bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
    let cuda = bench.cuda;
    let context = Arc::new(RingContext::new(*bench.scale.column.ring()));
    let ring = cuda.open_ring(context.clone())?;
    let kept = context.kept();
    let plan = cuda.open_masks(&ring, &ColumnMasks::new(&context, &PublicSeed([1; 32])))?;
    let degree = kept.degree();
    let limbs = kept.limbs();
    let hint = cuda.keep(random_words(degree * degree))?;
    for count in [1, cuda.chain_batch()] {
        let hints = vec![&hint; count];
        // Four passes of 2 N transforms, and 8 for each of the N/2 steps.
        let transformed = (count * (4 * limbs * degree + 8 * degree / 2)) as f64;
        // The hint is read, and 4 N columns of as many rows are written, and go to the host.
        let words = (count * degree * degree) as f64;
        let work = Work { bytes: 2.0 * WORD * words, down: WORD * words, ..transforms(transformed, degree) };
        let row = Row::named("chain_hint").batch(count).of(Protocol::Colpack);
        bench.row(row, &work, || cuda.chain_hint(&ring, &plan, &hints).map(drop));
    }
    Ok(())
}
