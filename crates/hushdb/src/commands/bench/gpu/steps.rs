//! The steps, each by itself, on random operands that are made on the device.

use std::{error::Error, sync::Arc, time::Instant};

use hush_cuda::{
    Cuda, CudaDb, FoldKernel,
    device::Device,
    fill_random,
    ring::{self, CudaRing, RlweFoldKernel},
};
use hush_he::{
    algorithms::open_ring_query,
    entities::ColumnMasks,
    params::{COLPACK_N2048_Q52, PACK_M31, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ColumnOps, LweOps, LweQueries, Memory, RingOps},
    ntt_tiling::NttTiling,
};
use hush_protocol::{
    Target,
    pack_table::PackTable,
    packing,
    ring_keys::{RingKeys, open_upload},
    table::{Protocol, TableShape},
};

use super::{
    RUNS, device_seconds,
    floors::Floors,
    row::{Row, Table, Work},
};

/// Bytes of the database that is folded, at most.
const FOLD_BYTES: usize = 32 << 30;
/// Its columns (D0).
const FOLD_COLUMNS: usize = 1 << 16;
const BATCHES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Polynomials of the transforms.
const POLYS: usize = 1000;
/// Columns of the hint that is packed, as for 4 GiB of 4-KiB records.
const PACK_COLUMNS: usize = 256;
/// Batches of packing.
const PACK_BATCHES: [usize; 4] = [1, 8, 32, 64];

/// All steps.
pub(super) fn run(device: Device, floors: &Floors, rows: &mut Table) -> Result<(), Box<dyn Error>> {
    let fold_bytes = FOLD_BYTES.min(device.free_bytes()? / 2);
    let mut cuda = Cuda::new(device);
    let db = cuda.random_db(fold_bytes / FOLD_COLUMNS, FOLD_COLUMNS, 1)?;
    let mut kernels = vec![FoldKernel::Mma, FoldKernel::Gemv];
    if cuda.device().is_hopper() {
        kernels.insert(0, FoldKernel::Wgmma);
    }
    for kernel in kernels {
        cuda = cuda.with_fold_kernel(kernel);
        fold(&cuda, &db, kernel, floors, rows)?;
    }
    drop(db);
    let mut cuda = Cuda::new(reopen(cuda)?);
    let context = Arc::new(RingContext::new(*PACK_M31.ring()));
    let ring = cuda.open_ring(context.clone())?;
    transforms(&cuda, &ring, floors, rows)?;
    pack(&cuda, &ring, floors, rows)?;
    expand(&cuda, &context, &ring, floors, rows)?;
    drop(ring);
    cuda = Cuda::new(reopen(cuda)?);
    chain(&cuda, floors, rows)
}

/// The same GPU with all memory free.
fn reopen(cuda: Cuda) -> Result<Device, Box<dyn Error>> {
    drop(cuda);
    Ok(Device::open(0)?)
}

/// (1) with one kernel, for all batches that one pass takes.
fn fold(
    cuda: &Cuda,
    db: &CudaDb,
    kernel: FoldKernel,
    floors: &Floors,
    rows: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let bytes = db.bytes_on_device() as f64;
    for batch in BATCHES.into_iter().filter(|&batch| batch <= kernel.pass_queries()) {
        let mut queries = LweQueries { cols: FOLD_COLUMNS, words: vec![0; batch * FOLD_COLUMNS] };
        Csprng::insecure_from_seed(2).fill_u32(&mut queries.words);
        let seconds = device_seconds(cuda.device(), || cuda.lwe_fold(db, &queries).map(drop))?;
        let work = Work { bytes, byte_ops: 8.0 * batch as f64 * bytes, ..Work::default() };
        rows.push(
            &Row::new(format!("lwe_fold, {kernel:?}"), batch, seconds, work, floors).table(bytes as u64),
        );
    }
    Ok(())
}

/// Transforms of N = 4096 modulo all limbs.
fn transforms(cuda: &Cuda, ring: &CudaRing, floors: &Floors, rows: &mut Table) -> Result<(), Box<dyn Error>> {
    let (device, tables) = (cuda.device(), ring.full());
    let words = POLYS * tables.poly_words();
    let (from, to) = (device.alloc::<u32>(words)?, device.alloc::<u32>(words)?);
    fill_random(device, &from.slice(..), 1, 1 << 28)?;
    // Two words a coefficient go through memory; three products of 32 bits a butterfly.
    let butterflies = words as f64 / 2.0 * f64::from(tables.degree().log2());
    let work = Work { bytes: 8.0 * words as f64, word_ops: 3.0 * butterflies, ..Work::default() };
    type Transform = fn(
        &Device,
        &ring::RingTables,
        &hush_cuda::device::Slice<'_, u32>,
        &hush_cuda::device::Slice<'_, u32>,
    ) -> Result<(), hush_cuda::device::CudaError>;
    for (name, transform) in [("NTT", ring::forward as Transform), ("inverse NTT", ring::inverse)] {
        let seconds = device_seconds(device, || transform(device, tables, &from.slice(..), &to.slice(..)))?;
        let name = format!("{name}, {POLYS} x {} of {}", tables.limbs(), tables.degree().words());
        rows.push(&Row::new(name, 1, seconds, work, floors));
    }
    Ok(())
}

/// (3) without the words: the hint times selectors, by each kernel.
fn pack(cuda: &Cuda, ring: &CudaRing, floors: &Floors, rows: &mut Table) -> Result<(), Box<dyn Error>> {
    let (device, kept, n) = (cuda.device(), ring.context().kept(), PACK_M31.lwe().n());
    let tiling = NttTiling::new(kept.degree(), kept.limbs(), n, PACK_COLUMNS)?;
    let hint = cuda.random_ntt_db(ring, tiling, 1)?;
    let bytes = tiling.bytes() as f64;
    for kernel in [RlweFoldKernel::Imad, RlweFoldKernel::Mma, RlweFoldKernel::Hopper] {
        for batch in PACK_BATCHES {
            let selectors = (0..batch).map(|query| {
                let words = device.alloc::<u32>(2 * n * tiling.poly_words())?;
                fill_random(device, &words.slice(..), query as u64, 1 << 28)?;
                Ok(words)
            });
            let selectors = selectors.collect::<Result<Vec<_>, hush_cuda::device::CudaError>>()?;
            let selectors: Vec<_> = selectors.iter().collect();
            let fold = || ring::fold_rows(device, kept.moduli(), &hint, &selectors, Some(kernel)).map(drop);
            let seconds = device_seconds(device, fold)?;
            let products = 2.0 * batch as f64 * bytes / 4.0;
            let work = match kernel {
                RlweFoldKernel::Imad => Work { bytes, word_ops: products, ..Work::default() },
                // Four classes of four by one bytes each, 2 operations a multiply-add.
                _ => Work { bytes, byte_ops: 32.0 * products, ..Work::default() },
            };
            let name = format!("pack {PACK_COLUMNS} x {n}, {kernel:?}");
            rows.push(&Row::new(name, batch, seconds, work, floors).table(tiling.bytes() as u64));
        }
    }
    Ok(())
}

/// The expansion of queries into selectors of an LWE secret.
fn expand(
    cuda: &Cuda,
    context: &RingContext,
    ring: &CudaRing,
    floors: &Floors,
    rows: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let shape = TableShape { columns: 1 << 12, blocks: 1 << 4, slot_bytes: 4096 };
    let table = PackTable::new(Protocol::ExppackS, PACK_M31, shape)?;
    let client = RingKeys::from_seed(PACK_M31.ring(), &[5; 32]);
    let keys = cuda.open_evaluation_keys(ring, open_upload(context, client.upload())?)?;
    let mut rng = Csprng::from_os();
    let target = Target { columns: vec![(1, 1)], block: 0 };
    let query = packing::query(&table, &client, target, &mut rng).0;
    let opened = open_ring_query(context, table.leaves(), &query.packed)?;
    let full = ring.full();
    for batch in PACK_BATCHES {
        let (keys, queries) = (vec![&keys; batch], vec![opened.clone(); batch]);
        let expand = || cuda.expand(ring, &keys, &queries, PACK_M31.lwe().n(), 0).map(drop);
        let seconds = device_seconds(cuda.device(), expand)?;
        // A Subs a leaf, and one more a level: a transform back of each limb, and one of each limb for every digit.
        let levels = context.params().levels();
        let digits = levels.last().map_or(1, |gadget| gadget.digits);
        let subs = (table.leaves() + levels.len()) as f64;
        let transforms = subs * (full.limbs() * (1 + digits)) as f64 * batch as f64;
        let degree = full.degree().words() as f64;
        let products = transforms * 3.0 * degree / 2.0 * f64::from(full.degree().log2());
        let work = Work { word_ops: products, ..Work::default() };
        rows.push(&Row::new(format!("expand to {} selectors", table.leaves()), batch, seconds, work, floors));
    }
    Ok(())
}

/// Offline: hints of plaintexts to pack columns.
fn chain(cuda: &Cuda, floors: &Floors, rows: &mut Table) -> Result<(), Box<dyn Error>> {
    let context = Arc::new(RingContext::new(*COLPACK_N2048_Q52.ring()));
    let ring = cuda.open_ring(context.clone())?;
    let plan = cuda.open_masks(&ring, &ColumnMasks::new(&context))?;
    let (degree, limbs) = (context.kept().degree(), context.kept().limbs());
    let hint = cuda.keep({
        let mut words = vec![0; degree * degree];
        Csprng::insecure_from_seed(1).fill_u32(&mut words);
        words
    })?;
    for count in [1, cuda.chain_batch()] {
        let hints = vec![&hint; count];
        cuda.chain_hint(&ring, &plan, &hints)?;
        let start = Instant::now();
        for _ in 0..RUNS {
            cuda.chain_hint(&ring, &plan, &hints)?;
        }
        let seconds = start.elapsed().as_secs_f64() / RUNS as f64;
        // Four passes of 2 N transforms, and 8 for each of the N/2 steps.
        let transforms = (count * (4 * limbs * degree + 8 * degree / 2)) as f64;
        let products = transforms * 3.0 * degree as f64 / 2.0 * f64::from(degree.ilog2());
        let work = Work { word_ops: products, ..Work::default() };
        rows.push(&Row::new(format!("chain_hint, {count} plaintexts"), count, seconds, work, floors));
    }
    Ok(())
}
