//! (6) Fold the first dimension of ring elements: `kernels/rlwe_fold.cuh` says how.

use std::mem::offset_of;

use hush_math::modulus::Modulus;
use hush_ops::{
    OpsError, check,
    contract::{RLWE_POLYS, RlweBatch, ciphertext_words},
    ntt_tiling::MAX_ROWS,
};

use super::{
    CudaRing, MAX_LIMBS, Prime,
    arithmetic::{Arithmetic, check_limbs},
    factors::montgomery_factor,
    ntt_tiles::{CudaNttDb, TILE_ROWS},
    tables::prime,
};
use crate::{
    Cuda,
    device::{Arg, Buffer, CudaError, Device, LEAST_SHARED, Launch, MAX_GRID, Slice},
    squares::{launch_squares, squares},
};

/// Most queries of a pass: as many pointers are passed to kernels.
pub const MAX_PASS: usize = 64;
/// Points that are turned over together: as many are done at once at least.
pub const POINTS: usize = 32;
/// Bytes of selectors and sums that are turned over at once, for more than [`POINTS`] points.
pub const POINT_BYTES: usize = 1 << 30;
/// Most points of a launch: a few dozen waves of blocks.
const MAX_POINTS: usize = 4096;
/// Queries from which on tensor cores are used: up to there the database is read at the memory's rate by either, and the
/// others have less to prepare. (Not measured.)
const MMA_FROM: usize = 4;
/// Queries from which on Hopper's own kernel is used: up to there the memory is the limit. (Not measured.)
const HOPPER_FROM: usize = 9;
/// Most columns: squares of them are the second dimension of a grid when sums are turned over.
const MAX_COLUMNS: usize = MAX_GRID[1] * POINTS;
/// Threads of a block of any kernel but Hopper's.
const THREADS: u32 = 256;
/// Bytes of shared memory for stages of the database, in the kernels for tensor cores.
const MMA_STAGE_BYTES: usize = 48 << 10;

/// How the products are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlweFoldKernel {
    /// Products of 64 bits on CUDA cores, for up to 4 queries a pass.
    Imad,
    /// Byte matrices on tensor cores, for up to 64 queries a pass, in groups of up to 32.
    Mma,
    /// The same by Hopper's warpgroup instructions, for databases in tiles of 64 columns; [`RlweFoldKernel::Mma`] elsewhere.
    Hopper,
}

impl RlweFoldKernel {
    /// The kernel for a batch: `asked`, or the one that should be the fastest.
    fn choose(asked: Option<Self>, device: &Device, db: &CudaNttDb, queries: usize) -> Self {
        let hopper = device.is_hopper() && db.width() == 64;
        match asked {
            Some(Self::Hopper) if !hopper => Self::Mma,
            Some(kernel) => kernel,
            None if queries < MMA_FROM => Self::Imad,
            None if hopper && queries >= HOPPER_FROM && db.padded_columns() > 64 => Self::Hopper,
            None => Self::Mma,
        }
    }

    /// Most queries of a pass.
    fn max_pass(self) -> usize {
        match self {
            Self::Imad => 4,
            Self::Mma | Self::Hopper => MAX_PASS,
        }
    }

    /// Names (by [`Arithmetic::pick`]), grid and shared memory for the polynomials of a pass, at some points.
    fn launch(
        self,
        device: &Device,
        db: &CudaNttDb,
        polys: usize,
        points: usize,
    ) -> ([&'static str; 2], Launch) {
        let wide = db.width() > 32;
        match self {
            Self::Imad => {
                let (most, names) = match (polys, wide) {
                    (..=2, false) => (2, ["rlwe_fold_imad_p2_c1", "rlwe_fold_imad_p2_c1_wide"]),
                    (..=2, true) => (2, ["rlwe_fold_imad_p2_c2", "rlwe_fold_imad_p2_c2_wide"]),
                    (..=4, false) => (4, ["rlwe_fold_imad_p4_c1", "rlwe_fold_imad_p4_c1_wide"]),
                    (..=4, true) => (4, ["rlwe_fold_imad_p4_c2", "rlwe_fold_imad_p4_c2_wide"]),
                    (_, false) => (8, ["rlwe_fold_imad_p8_c1", "rlwe_fold_imad_p8_c1_wide"]),
                    (_, true) => (8, ["rlwe_fold_imad_p8_c2", "rlwe_fold_imad_p8_c2_wide"]),
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

/// Bytes of shared memory of a block on CUDA cores: the selectors of a point, and a sum a polynomial for each of `units` lines.
const fn imad_shared(polys: usize, row_tiles: usize, units: usize) -> usize {
    size_of::<u32>() * polys * (row_tiles * TILE_ROWS + units)
}

// A database of more rows, which no tiling has now, would have to be folded in parts of them.
const _: () = assert!(imad_shared(8, MAX_ROWS.div_ceil(TILE_ROWS), 64) <= LEAST_SHARED);

/// Bytes of shared memory of a block on tensor cores: stages of the database and two byte matrices.
fn mma_shared(polys: usize) -> usize {
    MMA_STAGE_BYTES + 2 * 4 * polys * 128
}

/// The same by warpgroup instructions: four stages with a byte matrix each, and their barriers.
fn hopper_shared(polys: usize) -> usize {
    4 * ((16 << 10) + 4 * polys * 128) + 64
}

/// As [`hush_ops::contract::RingOps::rlwe_fold`].
pub(super) fn rlwe_fold(
    cuda: &Cuda,
    ring: &CudaRing,
    db: &CudaNttDb,
    selectors: &[&RlweBatch<Buffer<u32>>],
) -> Result<Vec<RlweBatch<Buffer<u32>>>, OpsError> {
    let words: Vec<_> = selectors.iter().map(|batch| &batch.words).collect();
    let folded = fold_words(cuda.device(), ring.context().kept().moduli(), db, &words, None)?;
    let ciphertext_words = ciphertext_words(ring.context());
    Ok(folded.into_iter().map(|words| RlweBatch { ciphertext_words, words }).collect())
}

/// As [`hush_ops::reference::rlwe_fold::rlwe_fold`], which has the orders of selectors and results; by one kernel, if `kernel`
/// names it, to compare kernels.
///
/// # Errors
/// [`OpsError::Shape`] if there is not one modulus a limb, a query has not one selector a row, or a grid has no squares for all
/// columns; [`OpsError::Backend`] if there are more than [`MAX_LIMBS`] moduli, or the device fails.
pub fn fold_rows(
    device: &Device,
    moduli: &[Modulus],
    db: &CudaNttDb,
    selectors: &[&Buffer<u32>],
    kernel: Option<RlweFoldKernel>,
) -> Result<Vec<Buffer<u32>>, OpsError> {
    let tiling = db.tiling();
    OpsError::check_shape("rlwe_fold", "degree", tiling.degree().next_power_of_two(), tiling.degree())?;
    check::rlwe_fold_words(tiling, moduli, selectors.iter().map(|words| words.len()))?;
    fold_words(device, moduli, db, selectors, kernel)
}

/// The same, for operands that fit together.
///
/// # Errors
/// [`OpsError::Shape`] if a grid has no squares for all columns; [`OpsError::Backend`] if there are more than [`MAX_LIMBS`]
/// moduli, or the device fails.
fn fold_words(
    device: &Device,
    moduli: &[Modulus],
    db: &CudaNttDb,
    selectors: &[&Buffer<u32>],
    kernel: Option<RlweFoldKernel>,
) -> Result<Vec<Buffer<u32>>, OpsError> {
    let tiling = db.tiling();
    check_limbs(moduli.len())?;
    OpsError::check_shape("rlwe_fold", "columns", tiling.columns().min(MAX_COLUMNS), tiling.columns())?;
    let words = tiling.columns() * RLWE_POLYS * tiling.poly_words();
    if words == 0 || tiling.rows() == 0 {
        return Ok(selectors.iter().map(|_| device.zeroed(words)).collect::<Result<_, _>>()?);
    }
    let kernel = RlweFoldKernel::choose(kernel, device, db, selectors.len());
    let arithmetic = Arithmetic::of(moduli);
    let ring = FoldRing::new(arithmetic, moduli, tiling.degree());
    let mut results = Vec::with_capacity(selectors.len());
    // Passes of about the same size.
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

/// One pass over the whole database.
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
    /// All points, some after others, so that the scratch memory is bounded.
    fn run(&self) -> Result<(), CudaError> {
        let (polys, all) = (self.polys, self.db.tiling().poly_words());
        let (selector_words, sum_words) =
            (polys * self.db.row_tiles() * TILE_ROWS, polys * self.db.padded_columns());
        let most = POINT_BYTES / (4 * (selector_words + sum_words)) / POINTS * POINTS;
        let count = all.min(most.clamp(POINTS, MAX_POINTS));
        let selectors = self.device.alloc(count * selector_words)?;
        let sums = self.device.alloc(count * sum_words)?;
        for first in (0..all).step_by(count) {
            let points =
                PassPoints { all: all as u32, first: first as u32, count: count.min(all - first) as u32 };
            self.run_points(points, &selectors, &sums)?;
        }
        Ok(())
    }

    fn run_points(
        &self,
        points: PassPoints,
        selectors: &Buffer<u32>,
        sums: &Buffer<u32>,
    ) -> Result<(), CudaError> {
        let (device, tiling, polys) = (self.device, self.db.tiling(), self.polys as u32);
        let point_squares = squares(points.count as usize);
        // SAFETY: laid out as the kernels have them, without padding.
        let (points_arg, ring) = unsafe { (Arg::of(&points), Arg::of(self.ring)) };
        let launch = launch_squares([point_squares, self.db.row_tiles() as u32, polys]);
        let rows = (tiling.rows() as u32).into();
        device.launch(
            "rlwe_fold_selectors",
            launch,
            &[selectors.into(), self.selectors.arg(), rows, points_arg],
        )?;

        let (names, launch) = self.kernel.launch(device, self.db, self.polys, points.count as usize);
        let view = self.db.view();
        let args = [sums.into(), selectors.into(), self.db.arg(&view), ring, polys.into(), points_arg];
        device.launch(self.arithmetic.pick(names), launch, &args)?;

        let columns = tiling.columns() as u32;
        let launch = launch_squares([point_squares, squares(tiling.columns()), polys]);
        let padded = self.db.padded_columns() as u32;
        let args = [self.results.arg(), sums.into(), columns.into(), padded.into(), points_arg];
        device.launch("rlwe_fold_results", launch, &args)
    }
}

/// As in `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PassPoints {
    all: u32,
    first: u32,
    count: u32,
}

const _: () = assert!(size_of::<PassPoints>() == 12);

/// Memory of each query of a pass; as in `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct QueryPointers([u64; MAX_PASS]);

const _: () = assert!(size_of::<QueryPointers>() == 512);

impl QueryPointers {
    /// The first words of each of at most [`MAX_PASS`] slices.
    ///
    /// # Errors
    /// [`CudaError::OtherDevice`] if one is not of `device`.
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

    /// As an argument of a kernel.
    pub(crate) fn arg(&self) -> Arg<'_> {
        // SAFETY: laid out as the kernels have it, without padding.
        unsafe { Arg::of(self) }
    }
}

/// As in `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FoldPrime {
    prime: Prime,
    /// 2^8, 2^16, 2^24 with their Shoup quotients; if a prime is wide, as [`montgomery_factor`] gives them.
    scale: [[u32; 2]; 3],
    /// The largest multiple of p up to 2^31; for a wide prime there is none.
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

/// As in `kernels/rlwe_fold.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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
