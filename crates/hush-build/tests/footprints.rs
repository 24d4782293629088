//! Compares the footprint that a backend states of each step with the memory that the step allocates. On the CPU an allocator
//! counts, on the device the emulator. There is one test, so that nothing else allocates meanwhile.

use std::error::Error;

use hush_build::planner::operands::{random_db, random_symbols};
use hush_cpu::Cpu;
use hush_cuda::{
    Cuda,
    device::{Device, Emulation},
};
use hush_he::params::{
    INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_PRIVKS_N256, INSECURE_RING_N256, INSECURE_TFHE_N256,
    LWE_N1280_STD3_2_PLAIN, ParameterSet, RingParams,
};
use hush_ops::{
    contract::Steps,
    ntt_tiling::{NttTiledDb, NttTiling},
    path::{Footprint, Step},
    steps::{
        RgswFold, StepShape, SymbolFold,
        sample::{Operands, residues},
    },
    symbol_tiling::SymbolTiling,
    tiling::Tiling,
};
use hush_protocol::{Protocol, any_page::Slots, facts::DbForm};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes that lists of a step's work may take beside its operands: for the step, and for each query.
const BOOKKEEPING: [usize; 2] = [8 << 10, 2 << 10];
/// A footprint may be too small by this share of it, which lists of long operands take.
const LISTS_SHARE: usize = 16;

/// Returns the most bytes that `run` had allocated at once.
fn peak_of<T>(run: impl FnOnce() -> T) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    run();
    ALLOCATOR.peak_usage() - before
}

/// Returns the least of what `runs` runs take. The first runs of a thread make workspaces and tables that stay.
fn least_of_runs(runs: usize, mut run: impl FnMut() -> usize) -> usize {
    (0..runs).map(|_| run()).min().unwrap_or(0)
}

/// Random operands on any backend.
struct Random;

impl<B: Steps> Operands<B> for Random {
    fn db(&self, backend: &B, tiling: Tiling) -> Result<B::Db, Box<dyn Error>> {
        Ok(backend.open_db(random_db(tiling)?)?)
    }

    fn ntt_db(&self, backend: &B, ring: &B::Ring, tiling: NttTiling) -> Result<B::NttDb, Box<dyn Error>> {
        let polys = residues(backend.context(ring), tiling.rows() * tiling.columns());
        Ok(backend.open_ntt_db(ring, NttTiledDb::from_polys(tiling, &polys))?)
    }

    fn symbols(
        &self,
        backend: &B,
        ring: &B::Ring,
        _: RingParams,
        tiling: SymbolTiling,
    ) -> Result<B::Symbols, Box<dyn Error>> {
        Ok(backend.open_symbols(ring, random_symbols(tiling)?)?)
    }

    fn polys(&self, backend: &B, ring: &B::Ring, count: usize) -> Result<B::Words, Box<dyn Error>> {
        Ok(backend.keep(residues(backend.context(ring), count))?)
    }
}

/// Returns the step on one part of its table. A backend folds the parts one after another, but operands are made for all at once.
fn of_one_part(step: Step) -> Step {
    let shape = match step.shape {
        StepShape::SymbolFold(fold) => SymbolFold { db: fold.db.part(fold.parts), parts: 1, ..fold }.into(),
        StepShape::RgswFold(fold) => {
            RgswFold { entries: fold.entries.div_ceil(fold.parts), parts: 1, ..fold }.into()
        }
        shape => shape,
    };
    Step { shape, ..step }
}

/// Returns the steps of all protocols under quick sets, for tables of one block and of several.
fn steps() -> Vec<(Protocol, Step)> {
    let quick = [
        INSECURE_RING_N256.name(),
        INSECURE_TFHE_N256.name(),
        INSECURE_PRIVKS_N256.name(),
        INSECURE_PACK_N256.name(),
        INSECURE_COLPACK_N256.name(),
        LWE_N1280_STD3_2_PLAIN.name(),
    ];
    let mut found = Vec::new();
    for &protocol in Protocol::ALL {
        let page = protocol.page();
        let sets = quick.into_iter().filter(|set| page.has_set(set));
        for (set, (count, slot_bytes)) in
            sets.flat_map(|set| [(75, 20), (1000, 100)].map(|table| (set, table)))
        {
            for form in [DbForm::Evaluation, DbForm::Symbols] {
                let slots = Slots { count, slot_bytes, by_key: false };
                let table =
                    page.shape(set, slots, None).and_then(|shape| page.table(set, shape)?.in_form(form));
                let Ok(table) = table else { continue };
                found.extend(table.path().into_iter().map(|step| (protocol, of_one_part(step))));
            }
        }
    }
    found
}

#[test]
fn no_step_allocates_more_than_its_footprint() {
    let cpu = Cpu::new(2).unwrap();
    let device = Device::emulated(Emulation::default());
    let cuda = Cuda::new(device.clone());
    let mut wrong = Vec::new();
    for (protocol, step) in steps() {
        for batch in [1, 3] {
            let batch = if step.one_by_one { 1 } else { batch };
            let name = step.shape.name();
            let mut check = |backend: &str, stated: usize, taken: usize| {
                if taken > stated + stated / LISTS_SHARE + BOOKKEEPING[0] + batch * BOOKKEEPING[1] {
                    wrong.push(format!(
                        "{backend}, {protocol}, {name}, {batch} queries: {taken} bytes, stated {stated}"
                    ));
                }
            };
            let mut run = Random.step(&cpu, &step.shape, batch).unwrap();
            let taken = least_of_runs(4, || peak_of(|| run().unwrap()));
            check("cpu", <Cpu as Footprint>::footprint(&step.shape, batch), taken);
            let mut run = Random.step(&cuda, &step.shape, batch).unwrap();
            let taken = least_of_runs(2, || {
                device.take_emulated_peak();
                run().unwrap();
                device.take_emulated_peak()
            });
            check("cuda", <Cuda as Footprint>::footprint(&step.shape, batch), taken);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
