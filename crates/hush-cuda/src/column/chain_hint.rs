//! The step `chain_hint`: hints become pack columns, by the chain of key switches applied to masks alone.
//!
//! All phases work on matrices of N polynomials for each hint, `[hint][row][limb][N]`, and alternate between two of them.

use hush_ops::{
    OpsError,
    contract::{ChainedHint, PACK_BYTES},
};

use super::{
    ChainPlan,
    pair_kernel::{LIMBS, PairKernel},
};
use crate::{
    device::{Arg, Buffer, CudaError, Device, Launch},
    ring::{self, CudaRing},
    squares::{launch_squares, squares},
};

/// The degree of the largest ring with kernels.
const MAX_DEGREE: usize = 2048;
/// The bytes of device memory that a hint needs: for itself, two matrices, and its columns.
const HINT_BYTES: usize = (1 + 2 * LIMBS + 1) * size_of::<u32>() * MAX_DEGREE * MAX_DEGREE;

/// The rows of a matrix in a block's band (`BAND` in `kernels/chain_orbits.cu`).
const BAND: usize = 8;
/// The threads of a block of the kernels in `kernels/chain_orbits.cu`.
const ORBIT_THREADS: u32 = 256;
/// The words by which a row in the shared memory of these blocks is padded.
const BAND_PADDING: usize = 4;

/// The chain kernels: one polynomial in registers; two transforms, an exchange and w in shared memory.
const SWITCH: PairKernel =
    PairKernel::of_blocks(["chain_switch_6", "chain_switch_8", "chain_switch_11"], 1, 6);
/// The kernels for the end of a chain: two transforms and an exchange in shared memory.
const END: PairKernel = PairKernel::of_blocks(["chain_end_6", "chain_end_8", "chain_end_11"], 1, 4);

/// Returns the number of hints to switch at once: at most [`most_at_once`], and no more than half of the free memory holds.
pub(super) fn chain_batch(device: &Device) -> usize {
    let fit = device.free_bytes().unwrap_or(0) / 2 / HINT_BYTES;
    fit.clamp(1, most_at_once(device))
}

/// Returns the number of hints for which each of the two chains has its own multiprocessor. More hints would wait, as one
/// chain keeps the multiplier of a multiprocessor busy for much of the time. (Not measured.)
pub(super) fn most_at_once(device: &Device) -> usize {
    device.info().multiprocessors.div_ceil(2) as usize
}

/// Switches some hints in parallel.
///
/// # Errors
/// [`OpsError::PackColumns`] if an entry of any hint has more than four digits; [`OpsError::Backend`] if the device fails.
pub(super) fn chain_hints(
    device: &Device,
    ring: &CudaRing,
    plan: &ChainPlan,
    hints: &[&Buffer<u32>],
) -> Result<Vec<ChainedHint>, OpsError> {
    let chains = Chains::new(device, ring, plan, hints.len())?;
    chains.spread(hints)?;
    let ends = chains.switch()?;
    chains.collect()?;
    let misfits = device.zeroed::<u32>(1)?;
    let columns = chains.join(&misfits)?;
    let ends = device.download(&ends.slice(..))?;
    if device.download(&misfits.slice(..))? != [0] {
        return Err(OpsError::PackColumns);
    }
    let poly_words = ring.kept().poly_words();
    let bytes = columns.len() / hints.len();
    let chained = hints.iter().zip(ends.chunks_exact(2 * poly_words)).enumerate();
    let chained = chained.map(|(index, (hint, ends))| {
        let first = index * bytes;
        let columns = device.download(&columns.slice(first..first + PACK_BYTES * hint.len()))?;
        let (digit, mask) = ends.split_at(poly_words);
        Ok(ChainedHint { columns, digit: digit.to_vec(), mask: mask.to_vec() })
    });
    chained.collect()
}

/// The hints that are being switched, with their matrices.
struct Chains<'a> {
    device: &'a Device,
    ring: &'a CudaRing,
    plan: &'a ChainPlan,
    /// The number of hints.
    hints: usize,
    /// The degree N.
    degree: usize,
    /// A matrix whose row `c N/2 + k` is first the image, then the digit, of the automorphism `(c, k)`. Other phases reuse it.
    images: Buffer<u32>,
    /// A matrix whose rows belong to slots, or to columns of the hint or the key.
    rows: Buffer<u32>,
}

impl<'a> Chains<'a> {
    fn new(
        device: &'a Device,
        ring: &'a CudaRing,
        plan: &'a ChainPlan,
        hints: usize,
    ) -> Result<Self, CudaError> {
        let degree = ring.kept().degree().words();
        let words = hints * degree * ring.kept().poly_words();
        let images = device.alloc(words)?;
        let rows = device.alloc(words)?;
        Ok(Self { device, ring, plan, hints, degree, images, rows })
    }

    /// Computes A_e for all e from the hints. In between, row v of `rows` has `(1/N) sum_i psi^(i e_v) h_ij` for every column j of
    /// the hint; its transform is `A_e[v]` for all e.
    fn spread(&self, hints: &[&Buffer<u32>]) -> Result<(), CudaError> {
        let kept = self.ring.kept();
        let mut table = Vec::with_capacity(2 * hints.len());
        for hint in hints {
            table.extend([self.device.address(&hint.slice(..))?, (hint.len() / self.degree) as u64]);
        }
        let table = self.device.upload(&table)?;
        let args = [(&self.images).into(), (&table).into(), kept.view(), Arg::of(&self.plan.lift)];
        self.device.launch("chain_lift", self.squares(self.hints), &args)?;
        ring::forward(self.device, kept, &self.images.slice(..), &self.images.slice(..))?;
        self.transpose(&self.images, &self.rows)?;
        ring::forward(self.device, kept, &self.rows.slice(..), &self.rows.slice(..))?;
        self.rotate("chain_rotate", &self.rows, &self.images)
    }

    /// Runs the chains, which turn images into digits. Returns the digit for the conjugation key, and the mask:
    /// `[hint][digit, mask][limb][slot]`.
    fn switch(&self) -> Result<Buffer<u32>, OpsError> {
        let kept = self.ring.kept();
        let plan = self.plan;
        let hints = self.hints as u32;
        let gadget = self.ring.fold_gadget();
        let sums = self.device.alloc::<u32>(self.hints * 2 * kept.poly_words())?;
        let ends = self.device.alloc(sums.len())?;
        let args = [
            (&self.images).into(),
            (&sums).into(),
            (&plan.rotation).into(),
            (&plan.places).into(),
            kept.view(),
            gadget.view(),
        ];
        SWITCH.launch(self.device, kept, [2, hints, 1], &args)?;
        let args = [(&ends).into(), (&sums).into(), (&plan.conjugation).into(), kept.view(), gadget.view()];
        END.launch(self.device, kept, [hints, 1, 1], &args)?;
        Ok(ends)
    }

    /// Computes `1/N` times the entries of the columns from the digits. Row c of `images` then has the contributions of
    /// coefficient c of the key to every row of the columns.
    fn collect(&self) -> Result<(), CudaError> {
        let kept = self.ring.kept();
        self.rotate("chain_rotate_back", &self.images, &self.rows)?;
        ring::inverse(self.device, kept, &self.rows.slice(..), &self.rows.slice(..))?;
        self.transpose(&self.rows, &self.images)?;
        ring::inverse(self.device, kept, &self.images.slice(..), &self.images.slice(..))
    }

    /// Returns the columns, N x 4N bytes for each hint. `misfits` becomes positive if an entry of any row does not fit.
    fn join(&self, misfits: &Buffer<u32>) -> Result<Buffer<u8>, CudaError> {
        let columns = self.device.alloc(self.hints * self.degree * self.degree * PACK_BYTES)?;
        let args = [
            (&columns).into(),
            misfits.into(),
            (&self.images).into(),
            self.ring.kept().view(),
            Arg::of(&self.plan.join),
        ];
        self.device.launch("chain_join", self.squares(self.hints), &args)?;
        Ok(columns)
    }

    fn transpose(&self, from: &Buffer<u32>, to: &Buffer<u32>) -> Result<(), CudaError> {
        let args = [to.into(), from.into(), (self.degree as u32).into()];
        self.device.launch("chain_transpose", self.squares(self.hints * LIMBS), &args)
    }

    /// Permutes rows between the order of slots and the order of automorphisms.
    fn rotate(&self, kernel: &'static str, from: &Buffer<u32>, to: &Buffer<u32>) -> Result<(), CudaError> {
        let bands = (self.degree / BAND) as u32;
        let launch = Launch::grid([bands, LIMBS as u32, self.hints as u32], ORBIT_THREADS)
            .shared(BAND * (self.degree + BAND_PADDING) * size_of::<u32>());
        let slots = &self.plan.slots;
        let places = &self.plan.places;
        let args = [to.into(), from.into(), slots.into(), places.into(), (self.degree as u32).into()];
        self.device.launch(kernel, launch, &args)
    }

    /// Returns a launch for `matrices` matrices of N x N words.
    fn squares(&self, matrices: usize) -> Launch {
        launch_squares([squares(self.degree), squares(self.degree), matrices as u32])
    }
}
