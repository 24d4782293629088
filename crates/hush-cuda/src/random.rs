//! Random contents for tables that are only measured. They must not be used for secrets.

use hush_math::modulus::Modulus;
use hush_ops::{OpsError, ntt_tiling::NttTiling, steps::rlwe_fold::check_db};

use crate::{
    Cuda, CudaDb,
    device::{CudaError, Device, Launch, Slice},
    ring::{CudaNttDb, CudaRing},
};

/// The threads of a block of `fill_random`.
const THREADS: usize = 256;
/// The blocks of `fill_random` for each multiprocessor.
const BLOCKS: usize = 16;

/// Fills words with pseudo-random values from a seed: any value if `below` is 0, values less than `below` otherwise. Fails with
/// [`CudaError::OtherDevice`] if the words are on another device, and with another [`CudaError`] if the device fails.
pub fn fill_random(device: &Device, words: &Slice<'_, u32>, seed: u64, below: u32) -> Result<(), CudaError> {
    let blocks = words.len().div_ceil(THREADS).min(BLOCKS * device.info().multiprocessors as usize);
    let launch = Launch::new(blocks as u32, THREADS as u32);
    device.launch(
        "fill_random",
        launch,
        &[words.into(), (words.len() as u64).into(), seed.into(), below.into()],
    )
}

impl Cuda {
    /// Creates a database of `rows` x `cols` random bytes on the device. Fails with [`CudaError::OutOfMemory`] if the device has no
    /// memory for it, and with another [`CudaError`] if the device fails.
    pub fn random_db(&self, rows: usize, cols: usize, seed: u64) -> Result<CudaDb, CudaError> {
        let db = CudaDb::alloc(self.device(), rows, cols)?;
        fill_random(self.device(), &db.bytes().words(), seed, 0)?;
        Ok(db)
    }

    /// Creates a database of random ring elements in evaluation form on the device. All residues are below the smallest prime.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the shape does not fit the ring, [`OpsError::Backend`] if the device has no memory for it.
    pub fn random_ntt_db(
        &self,
        ring: &CudaRing,
        tiling: NttTiling,
        seed: u64,
    ) -> Result<CudaNttDb, OpsError> {
        check_db(ring.context(), tiling)?;
        self.random_residues(ring.context().kept().moduli(), tiling, seed)
    }

    /// Creates a database of random residues for [`crate::ring::fold_rows`]. `moduli` has a prime for each limb, and all residues
    /// are below the smallest one. Fails with [`OpsError::Backend`] if the device has no memory for the database, or fails.
    pub fn random_residues(
        &self,
        moduli: &[Modulus],
        tiling: NttTiling,
        seed: u64,
    ) -> Result<CudaNttDb, OpsError> {
        let least = moduli.iter().map(|p| p.value()).min().unwrap_or(0);
        let db = CudaNttDb::alloc(self.device(), tiling)?;
        fill_random(self.device(), &db.residues(), seed, least)?;
        Ok(db)
    }
}
