//! The step `rlwe_fold` (6): it folds the first dimension of ring elements. `kernels/rlwe_fold.cuh` describes the method.

use std::mem::offset_of;

use hush_math::modulus::Modulus;
use hush_ops::{
    OpsError,
    contract::{RLWE_POLYS, RlweBatch, ciphertext_words},
    ntt_tiling::MAX_ROWS,
    steps::{poly_bytes, rlwe_fold::check_words},
};
use zerocopy::{Immutable, IntoBytes};

use super::{
    CudaRing, MAX_LIMBS, Prime,
    databases::ntt_tiles::{CudaNttDb, MAX_WIDTH, TILE_ROWS},
    tables::{
        arithmetic::{Arithmetic, check_limbs, montgomery_factor},
        prime,
    },
};
use crate::{
    Cuda, Thresholds,
    device::{Arg, Buffer, CudaError, Device, LEAST_SHARED, Launch, MAX_GRID, Side, Slice},
    squares::{launch_squares, squares},
};

/// The largest number of queries of a pass, which is the number of pointers that kernels take.
pub const MAX_PASS: usize = 64;
/// The points that are transposed together, and the fewest points of a chunk.
const POINTS: usize = 32;
/// The bytes of selectors and sums that are transposed at once, for more than [`POINTS`] points.
const POINT_BYTES: usize = 1 << 30;
/// The largest number of points of a launch: a few dozen waves of blocks.
const MAX_POINTS: usize = 4096;
/// The fewest chunks of points, if one is transposed while another is multiplied.
const LEAST_CHUNKS: usize = 4;
/// The fewest polynomials of a pass by [`RlweFoldKernel::Mma`] beside which chunks are turned over: 16 queries. With fewer, memory
/// bounds the product too.
const LEAST_POLYS: usize = 32;
/// The cycles of a block of the Hopper kernel for 32 rows of 128 columns and 64 polynomials: 1.2 times those of the tensor cores.
/// (Not measured.)
const ITEM_CYCLES: usize = 1229;
/// The bytes that a multiprocessor reads and writes in a cycle if it only transposes. (Not measured.)
const TURNED_BYTES: usize = 36;
/// The largest number of columns: squares of them are the second dimension of a grid when sums are transposed.
const MAX_COLUMNS: usize = MAX_GRID[1] * POINTS;
/// The threads of a block of any kernel except Hopper's.
const THREADS: u32 = 256;
/// The bytes of shared memory for stages of the database, in the kernels for tensor cores.
const MMA_STAGE_BYTES: usize = 48 << 10;

/// The method by which products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlweFoldKernel {
    /// Products of 64 bits on CUDA cores, for up to 2 queries a pass.
    Imad,
    /// Byte matrices on tensor cores, for up to 64 queries a pass, in groups of up to 32.
    Mma,
    /// Products by Hopper's warpgroup instructions, for databases in tiles of 64 columns; [`RlweFoldKernel::Mma`]
    /// elsewhere. If there are enough multiprocessors, most compute products, while the others transpose selectors and
    /// results of other points.
    Hopper,
}

impl RlweFoldKernel {
    /// Returns the kernel for a batch of `queries` queries.
    fn suited(thresholds: Thresholds, db: &CudaNttDb, queries: usize) -> Self {
        match queries {
            few if few < thresholds.mma_from => Self::Imad,
            many if many >= thresholds.hopper_from && db.padded_columns() > 64 => Self::Hopper,
            _ => Self::Mma,
        }
    }

    /// Returns the kernel, or [`RlweFoldKernel::Mma`] if the kernel is not available.
    fn or_mma(self, device: &Device, db: &CudaNttDb) -> Self {
        let has_hopper = device.is_hopper() && db.width() == 64;
        match self {
            Self::Hopper if !has_hopper => Self::Mma,
            kernel => kernel,
        }
    }

    /// Returns the largest number of queries of a pass.
    fn max_pass(self) -> usize {
        match self {
            Self::Imad => 2,
            Self::Mma | Self::Hopper => MAX_PASS,
        }
    }

    /// Returns the names (for [`Arithmetic::pick`]), the grid and the shared memory for the polynomials of a pass, at some points.
    /// The Hopper kernel runs on all multiprocessors.
    fn launch(
        self,
        device: &Device,
        db: &CudaNttDb,
        (polys, points): (usize, usize),
    ) -> ([&'static str; 2], Launch) {
        let wide = db.width() > 32;
        match self {
            Self::Imad => {
                let (most, names) = match (polys, wide) {
                    (..=2, false) => (2, ["rlwe_fold_imad_p2_c1", "rlwe_fold_imad_p2_c1_wide"]),
                    (..=2, true) => (2, ["rlwe_fold_imad_p2_c2", "rlwe_fold_imad_p2_c2_wide"]),
                    (_, false) => (4, ["rlwe_fold_imad_p4_c1", "rlwe_fold_imad_p4_c1_wide"]),
                    (_, true) => (4, ["rlwe_fold_imad_p4_c2", "rlwe_fold_imad_p4_c2_wide"]),
                };
                let units = if wide { 64 } else { 32 };
                let blocks = points * db.padded_columns() / db.width();
                let shared = imad_shared(most, db.row_tiles(), units);
                (names, Launch::new(blocks as u32, THREADS).shared(shared))
            }
            Self::Mma => {
                let fits = mma_shared(64) <= device.info().shared_per_block;
                let (most, names) = match polys {
                    ..=16 => (16, ["rlwe_fold_mma_p16", "rlwe_fold_mma_p16_wide"]),
                    33.. if fits => (64, ["rlwe_fold_mma_p64", "rlwe_fold_mma_p64_wide"]),
                    _ => (32, ["rlwe_fold_mma_p32", "rlwe_fold_mma_p32_wide"]),
                };
                let blocks = points * db.padded_columns().div_ceil(128) * polys.div_ceil(most);
                (names, Launch::new(blocks as u32, THREADS).shared(mma_shared(most)))
            }
            Self::Hopper => {
                let (most, names) = match polys {
                    ..=32 => (32, ["rlwe_fold_p32_hopper", "rlwe_fold_p32_wide_hopper"]),
                    _ => (64, ["rlwe_fold_p64_hopper", "rlwe_fold_p64_wide_hopper"]),
                };
                let items = points * db.padded_columns().div_ceil(128) * polys.div_ceil(most);
                let blocks = items.min(device.info().multiprocessors as usize) as u32;
                (names, Launch::new(blocks, 384).shared(hopper_shared(most)))
            }
        }
    }
}

/// Returns how many of `all` multiprocessors transpose selectors and results beside Hopper's products, so that both take equally
/// long. A block of products leaves no registers for a block of another kind, so they share no multiprocessor.
fn spared(all: usize, row_tiles: usize, columns: usize, polys: usize) -> usize {
    let products = row_tiles * columns.div_ceil(128) * polys.div_ceil(64) * ITEM_CYCLES;
    let words = 2 * polys * (row_tiles * TILE_ROWS + columns);
    let turned = size_of::<u32>() * words / TURNED_BYTES;
    (all * turned / (products + turned)).min(all - 1)
}

/// Returns the bytes of shared memory of a block on CUDA cores: the selectors of a point, and a sum for each polynomial and
/// each of `units` lines.
const fn imad_shared(polys: usize, row_tiles: usize, units: usize) -> usize {
    size_of::<u32>() * polys * (row_tiles * TILE_ROWS + units)
}

// A database with more rows, which no tiling allows now, would have to be folded in parts.
const _: () = assert!(imad_shared(4, MAX_ROWS.div_ceil(TILE_ROWS), 64) <= LEAST_SHARED);

/// Returns the bytes of shared memory of a block on tensor cores: stages of the database and two byte matrices.
fn mma_shared(polys: usize) -> usize {
    MMA_STAGE_BYTES + 2 * 4 * polys * 128
}

/// Returns the bytes of shared memory of a block of the kernel by warpgroup instructions: four stages with a byte matrix each, and
/// their barriers.
fn hopper_shared(polys: usize) -> usize {
    4 * ((16 << 10) + 4 * polys * 128) + 64
}

/// Runs [`hush_ops::contract::RingOps::rlwe_fold`].
pub(super) fn rlwe_fold(
    cuda: &Cuda,
    ring: &CudaRing,
    db: &CudaNttDb,
    selectors: &[&RlweBatch<Buffer<u32>>],
) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
    let words: Vec<_> = selectors.iter().map(|batch| &batch.words).collect();
    let kernel = RlweFoldKernel::suited(cuda.thresholds(), db, words.len());
    let folded = fold_words(cuda.device(), ring.context().kept().moduli(), db, &words, kernel)?;
    let ciphertext_words = ciphertext_words(ring.context());
    Ok(folded.into_iter().map(|words| RlweBatch { ciphertext_words, words }).collect())
}

/// Runs [`hush_ops::steps::rlwe_fold::reference`], which defines the orders of selectors and results. `kernel` selects a kernel,
/// to compare kernels; `None` selects the suitable one.
///
/// # Errors
/// [`OpsError::Shape`] if the degree is not a power of two, or the moduli are not one for each limb. The same error if a query does
/// not have a selector for each row, or there are too many columns for a grid. [`OpsError::Backend`] if there are more than
/// [`MAX_LIMBS`] moduli, or the device fails.
pub fn fold_rows(
    device: &Device,
    moduli: &[Modulus],
    db: &CudaNttDb,
    selectors: &[&Buffer<u32>],
    kernel: Option<RlweFoldKernel>,
) -> Result<Vec<Buffer<u32>>, OpsError> {
    let tiling = db.tiling();
    OpsError::check_shape("rlwe_fold", "degree", tiling.degree().next_power_of_two(), tiling.degree())?;
    check_words(tiling, moduli, selectors.iter().map(|words| words.len()))?;
    fold_words(
        device,
        moduli,
        db,
        selectors,
        kernel.unwrap_or_else(|| RlweFoldKernel::suited(Thresholds::default(), db, selectors.len())),
    )
}

/// Folds words, for checked operands.
///
/// # Errors
/// [`OpsError::Shape`] if there are too many columns for a grid; [`OpsError::Backend`] if there are more than [`MAX_LIMBS`]
/// moduli, or the device fails.
fn fold_words(
    device: &Device,
    moduli: &[Modulus],
    db: &CudaNttDb,
    selectors: &[&Buffer<u32>],
    kernel: RlweFoldKernel,
) -> Result<Vec<Buffer<u32>>, OpsError> {
    let tiling = db.tiling();
    check_limbs(moduli.len())?;
    OpsError::check_shape("rlwe_fold", "columns", tiling.columns().min(MAX_COLUMNS), tiling.columns())?;
    let words = tiling.columns() * RLWE_POLYS * tiling.poly_words();
    if words == 0 || tiling.rows() == 0 {
        return Ok(selectors.iter().map(|_| device.zeroed(words)).collect::<Result<_, _>>()?);
    }
    let kernel = kernel.or_mma(device, db);
    let arithmetic = Arithmetic::of(moduli);
    let ring = FoldRing::new(arithmetic, moduli, tiling.degree());
    let mut results = Vec::with_capacity(selectors.len());
    // The passes have about the same size.
    let passes = selectors.len().div_ceil(kernel.max_pass());
    for queries in selectors.chunks(selectors.len().div_ceil(passes.max(1)).max(1)) {
        let first = results.len();
        for _ in queries {
            results.push(device.alloc(words)?);
        }
        let pass = Pass {
            device,
            kernel,
            arithmetic,
            ring: &ring,
            db,
            polys: queries.len() * RLWE_POLYS,
            selectors: QueryPointers::new(device, queries.iter().map(|words| words.slice(..)))?,
            results: QueryPointers::new(device, results[first..].iter().map(|words| words.slice(..)))?,
        };
        pass.run()?;
    }
    Ok(results)
}

/// A pass over the whole database.
struct Pass<'a> {
    device: &'a Device,
    kernel: RlweFoldKernel,
    arithmetic: Arithmetic,
    ring: &'a FoldRing,
    db: &'a CudaNttDb,
    polys: usize,
    selectors: QueryPointers,
    results: QueryPointers,
}

impl Pass<'_> {
    /// Folds all points, in chunks that bound the scratch memory.
    fn run(&self) -> Result<(), CudaError> {
        let polys = self.polys;
        let all = self.db.tiling().poly_words();
        let selector_words = polys * self.db.row_tiles() * TILE_ROWS;
        let sum_words = polys * self.db.padded_columns();
        let most = POINT_BYTES / (4 * (selector_words + sum_words)) / POINTS * POINTS;
        let count = all.min(most.clamp(POINTS, MAX_POINTS));
        // With two chunks in memory at once, each has half as many points.
        let half = (count / 2 / POINTS * POINTS).min((all / LEAST_CHUNKS).next_multiple_of(POINTS));
        let beside = if half > 0 { self.beside(half)? } else { None };
        let (rooms, count) = if beside.is_some() { (2, half) } else { (1, count) };
        let selectors = self.device.alloc(rooms * count * selector_words)?;
        let sums = self.device.alloc(rooms * count * sum_words)?;
        let chunks = (0..all).step_by(count).enumerate().map(|(index, first)| {
            let room = |words: usize| index % rooms * count * words..(index % rooms + 1) * count * words;
            let points =
                PassPoints { all: all as u32, first: first as u32, count: count.min(all - first) as u32 };
            Chunk {
                points,
                selectors: selectors.slice(room(selector_words)),
                sums: sums.slice(room(sum_words)),
            }
        });
        let chunks: Vec<Chunk<'_>> = chunks.collect();
        match beside {
            Some(blocks) => self.run_beside(&chunks, blocks),
            None => chunks.iter().try_for_each(|chunk| self.run_chunk(chunk)),
        }
    }

    /// Returns the blocks that multiply chunks of `points` points while others are turned over; `None` if there is no room beside
    /// them. A block of the Hopper kernel takes a multiprocessor, so some multiprocessors are spared. Blocks of the other kernels
    /// leave what their registers and shared memory leave, once all of them are resident.
    fn beside(&self, points: usize) -> Result<Option<u32>, CudaError> {
        let all = self.device.info().multiprocessors;
        let (names, launch) = self.kernel.launch(self.device, self.db, (self.polys, points));
        match self.kernel {
            RlweFoldKernel::Hopper => {
                let turned = spared(all as usize, self.db.row_tiles(), self.db.padded_columns(), self.polys);
                Ok(Some(all - turned as u32))
            }
            RlweFoldKernel::Mma if self.polys >= LEAST_POLYS => {
                let turns = ["rlwe_fold_selectors", "rlwe_fold_results"]
                    .map(|kernel| (kernel, launch_squares([1; 3])));
                let kernel = (self.arithmetic.pick(names), launch);
                Ok(self.device.resident_beside(kernel, &turns)?.map(|blocks| blocks * all))
            }
            _ => Ok(None),
        }
    }

    fn run_chunk(&self, chunk: &Chunk<'_>) -> Result<(), CudaError> {
        self.turn_selectors(chunk, None)?;
        self.multiply(chunk, u32::MAX)?;
        self.turn_results(chunk, None)
    }

    /// Multiplies chunk after chunk; in a branch beside it, transposes the results of the chunk before and the selectors of the
    /// next. At most `blocks` blocks multiply. Source: GPIR section 5.2.2.
    fn run_beside(&self, chunks: &[Chunk<'_>], blocks: u32) -> Result<(), CudaError> {
        let Some((first, last)) = chunks.first().zip(chunks.last()) else { return Ok(()) };
        self.turn_selectors(first, None)?;
        let mut side = self.device.fork()?;
        for (index, chunk) in chunks.iter().enumerate() {
            // The selectors of the chunk are written, and its sums buffer has been read.
            side.join()?;
            // The sums of the chunk before are written, and its selectors have been read.
            side.fork()?;
            self.multiply(chunk, blocks)?;
            if let Some(before) = index.checked_sub(1) {
                self.turn_results(&chunks[before], Some(&mut side))?;
            }
            if let Some(next) = chunks.get(index + 1) {
                self.turn_selectors(next, Some(&mut side))?;
            }
        }
        self.turn_results(last, None)?;
        side.join()
    }

    fn turn_selectors(&self, chunk: &Chunk<'_>, side: Option<&mut Side<'_>>) -> Result<(), CudaError> {
        let launch = launch_squares([chunk.squares(), self.db.row_tiles() as u32, self.polys as u32]);
        let rows = (self.db.tiling().rows() as u32).into();
        let args = [chunk.selectors.into(), Arg::of(&self.selectors), rows, Arg::of(&chunk.points)];
        self.launch(side, "rlwe_fold_selectors", launch, &args)
    }

    /// Multiplies a chunk with at most `blocks` blocks.
    fn multiply(&self, chunk: &Chunk<'_>, blocks: u32) -> Result<(), CudaError> {
        let polys_and_points = (self.polys, chunk.points.count as usize);
        let (names, mut launch) = self.kernel.launch(self.device, self.db, polys_and_points);
        launch.grid[0] = launch.grid[0].min(blocks);
        let view = self.db.view();
        let ring = Arg::of(self.ring);
        let polys = (self.polys as u32).into();
        let points = Arg::of(&chunk.points);
        let args = [chunk.sums.into(), chunk.selectors.into(), self.db.arg(&view), ring, polys, points];
        self.device.launch(self.arithmetic.pick(names), launch, &args)
    }

    fn turn_results(&self, chunk: &Chunk<'_>, side: Option<&mut Side<'_>>) -> Result<(), CudaError> {
        let columns = self.db.tiling().columns();
        let launch = launch_squares([chunk.squares(), squares(columns), self.polys as u32]);
        let padded = (self.db.padded_columns() as u32).into();
        let args = [
            Arg::of(&self.results),
            chunk.sums.into(),
            (columns as u32).into(),
            padded,
            Arg::of(&chunk.points),
        ];
        self.launch(side, "rlwe_fold_results", launch, &args)
    }

    /// Launches in a branch, or in the order of the device.
    fn launch(
        &self,
        side: Option<&mut Side<'_>>,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        match side {
            Some(side) => side.launch(kernel, launch, args),
            None => self.device.launch(kernel, launch, args),
        }
    }
}

/// A chunk of points that are processed at once, and their scratch memory: selectors and sums by points.
struct Chunk<'a> {
    points: PassPoints,
    selectors: Slice<'a, u32>,
    sums: Slice<'a, u32>,
}

impl Chunk<'_> {
    /// Returns the number of squares along the points.
    fn squares(&self) -> u32 {
        squares(self.points.count as usize)
    }
}

/// The struct `PassPoints` of `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
struct PassPoints {
    all: u32,
    first: u32,
    count: u32,
}

const _: () = assert!(size_of::<PassPoints>() == 12);

/// The addresses of each query's memory in a pass: the struct `QueryPointers` of `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Immutable, IntoBytes)]
pub(crate) struct QueryPointers([u64; MAX_PASS]);

const _: () = assert!(size_of::<QueryPointers>() == 512);

impl QueryPointers {
    /// Creates the addresses of the first words of at most [`MAX_PASS`] slices.
    ///
    /// # Errors
    /// [`CudaError::OtherDevice`] if a slice is not on `device`.
    pub(crate) fn new<'a>(
        device: &Device,
        slices: impl Iterator<Item = Slice<'a, u32>>,
    ) -> Result<Self, CudaError> {
        let mut pointers = [0; _];
        for (pointer, slice) in pointers.iter_mut().zip(slices) {
            *pointer = device.address(&slice)?;
        }
        Ok(Self(pointers))
    }
}

/// The struct `FoldPrime` of `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Immutable, IntoBytes)]
struct FoldPrime {
    prime: Prime,
    /// The factors 2^8, 2^16, 2^24 with their Shoup quotients; for a wide prime, the words of [`montgomery_factor`].
    scale: [[u32; 2]; 3],
    /// The largest multiple of p up to 2^31; 0 for a wide prime.
    limit: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<FoldPrime>() == 48 && offset_of!(FoldPrime, scale) == 16);

impl FoldPrime {
    fn new(arithmetic: Arithmetic, modulus: Modulus) -> Self {
        let p = modulus.value();
        let scale = [8, 16, 24].map(|bits| {
            let factor = modulus.reduce(1 << bits);
            match arithmetic {
                Arithmetic::Narrow => [factor, ((u64::from(factor) << 32) / u64::from(p)) as u32],
                Arithmetic::Wide => montgomery_factor(modulus, factor),
            }
        });
        Self { prime: prime(modulus), scale, limit: (1 << 31) / p * p, reserved: 0 }
    }
}

/// The struct `FoldRing` of `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
struct FoldRing {
    primes: [FoldPrime; MAX_LIMBS],
    log_degree: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<FoldRing>() == 200);

impl FoldRing {
    fn new(arithmetic: Arithmetic, moduli: &[Modulus], degree: usize) -> Self {
        let mut primes = [FoldPrime::default(); MAX_LIMBS];
        primes
            .iter_mut()
            .zip(moduli)
            .for_each(|(prime, &modulus)| *prime = FoldPrime::new(arithmetic, modulus));
        Self { primes, log_degree: degree.ilog2(), reserved: 0 }
    }
}

hush_ops::footprint!(Cuda: RlweFold, |step, batch| {
    // Selectors and results, and both transposed to the order of points.
    let ring = step.ring;
    let db = step.db;
    let padded = db.rows().next_multiple_of(TILE_ROWS) + db.columns().next_multiple_of(MAX_WIDTH);
    let by_points = 2 * batch * padded * poly_bytes(&ring);
    let least = by_points / db.poly_words().max(1) * POINTS;
    batch * db.fold_bytes() + by_points.min(POINT_BYTES.max(least))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_multiprocessors_are_spared() {
        // Two cases: `pack` of 256 columns for 64 queries on an H200, and the columns of a table, which are many.
        assert_eq!((spared(132, 40, 256, 128), spared(132, 8, 4500, 128)), (23, 21));
        assert_eq!((spared(3, 40, 256, 128), spared(1, 1, 64, 2)), (0, 0));
    }
}
