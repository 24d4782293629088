//! The CPU backend: a level, its kernels, and threads with their memory.

use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hush_he::entities::PublicMatrix;
use hush_math::modulus::Modulus;
use hush_ops::{
    OpsError,
    contract::{BatchWords, HostMemory, LweBatch, LweOps, LweQueries, Rounding, SentRows},
    ntt_tiling::NttTiledDb,
    steps::rlwe_fold::check_words,
    tiling::{TiledDb, Tiling},
};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{
    CpuError, Level, buffer_pool::BufferPool, features::Cores, kernels::Kernels, lwe_fold, lwe_hint,
    reinterpret_lwe, rlwe_fold, send_words, workspace::Workspace,
};

/// The CPU backend. It is cheap to share: steps take `&self` and may run from several threads at once, which then
/// share the backend's threads.
pub struct Cpu {
    kernels: Kernels,
    /// Whether kernels are chosen by measurement where several may be best.
    measures: bool,
    pool: ThreadPool,
    /// A workspace for each thread of the pool; only this thread locks it.
    workspaces: Vec<Mutex<Workspace>>,
    query_buffers: BufferPool<u8>,
    ring_buffers: BufferPool<u32>,
    result_buffers: Arc<BufferPool<u8>>,
    batch_buffers: Arc<BufferPool<u32>>,
}

impl Cpu {
    /// Creates a backend with `threads` threads (at least one) at the best level of this machine, or at the level that
    /// `HUSH_CPU` names.
    ///
    /// # Errors
    /// [`CpuError`] if `HUSH_CPU` names no level or one that the machine lacks, or threads cannot be started.
    pub fn new(threads: usize) -> Result<Self, CpuError> {
        let cpu = Self::with_level(Level::from_env()?, threads)?;
        // A forced level gets its kernels without a measurement.
        Ok(Self { measures: !Level::is_forced(), ..cpu })
    }

    /// Creates a backend with `threads` threads (at least one) at `level`.
    ///
    /// # Errors
    /// [`CpuError::MissingLevel`] if the machine lacks it, [`CpuError::Threads`] if threads cannot be started.
    pub fn with_level(level: Level, threads: usize) -> Result<Self, CpuError> {
        let level = level.require()?;
        // SAFETY: the machine has the level.
        unsafe { Self::with_level_unchecked(level, threads) }
    }

    /// Creates a backend like [`Cpu::with_level`], without asking whether the machine has the level.
    ///
    /// # Errors
    /// [`CpuError::Threads`] if threads cannot be started.
    ///
    /// # Safety
    /// The machine must have `level`, or something that executes its instructions exactly in its place (an emulator
    /// that catches the illegal-instruction signal): anything else is undefined behaviour.
    pub unsafe fn with_level_unchecked(level: Level, threads: usize) -> Result<Self, CpuError> {
        // SAFETY: the caller promises that the machine has the level.
        unsafe { Self::with_cores(level, Cores::detect(), threads) }
    }

    /// Creates a backend like [`Cpu::with_level_unchecked`], with the kernels that are best on `cores`; every machine runs them.
    ///
    /// # Safety
    /// The machine must have `level`, as for [`Cpu::with_level_unchecked`].
    pub(crate) unsafe fn with_cores(level: Level, cores: Cores, threads: usize) -> Result<Self, CpuError> {
        let threads = threads.max(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("hush-cpu-{index}"))
            .build()
            .map_err(|error| CpuError::Threads { threads, reason: error.to_string() })?;
        Ok(Self {
            kernels: Kernels::of(level, cores),
            measures: false,
            pool,
            workspaces: (0..threads).map(|_| Mutex::new(Workspace::new())).collect(),
            query_buffers: BufferPool::new(),
            ring_buffers: BufferPool::new(),
            result_buffers: Arc::new(BufferPool::new()),
            batch_buffers: Arc::new(BufferPool::new()),
        })
    }

    /// Returns the level that the kernels are for.
    pub fn level(&self) -> Level {
        self.kernels.level
    }

    /// Returns the level of the kernel that folds the first dimension for one query. `None` until a measurement has chosen it,
    /// which happens when a database larger than caches is opened.
    pub fn single_level(&self) -> Option<Level> {
        self.kernels.fold.single_level()
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` on the backend's threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    /// Folds the rows of a database of ring elements with RLWE selectors. The results are those of
    /// [`hush_ops::steps::rlwe_fold::reference`], word for word.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if there is not one modulus a limb, or a query does not have one selector a row.
    pub fn rlwe_fold_words(
        &self,
        moduli: &[Modulus],
        db: &NttTiledDb,
        selectors: &[&[u32]],
    ) -> Result<Vec<Vec<u32>>, OpsError> {
        check_words(db.tiling(), moduli, selectors.iter().map(|query| query.len()))?;
        Ok(rlwe_fold::rlwe_fold(self, moduli, db, selectors))
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Lends the calling thread its workspace. `work` must not run rayon jobs, which might ask for the workspace again.
    pub(crate) fn with_workspace<R>(&self, work: impl FnOnce(&mut Workspace) -> R) -> R {
        let index = self.pool.current_thread_index().expect("steps run on the backend's threads");
        work(&mut lock(&self.workspaces[index]))
    }

    /// Returns the buffers for prepared queries.
    pub(crate) fn query_buffers(&self) -> &BufferPool<u8> {
        &self.query_buffers
    }

    /// Returns the buffers for intermediate values of steps over rings.
    pub(crate) fn ring_buffers(&self) -> &BufferPool<u32> {
        &self.ring_buffers
    }

    /// Returns the buffers for databases that a step makes for every query.
    pub(crate) fn result_buffers(&self) -> &Arc<BufferPool<u8>> {
        &self.result_buffers
    }

    /// Returns the buffers for the large batches that steps over rings return.
    pub(crate) fn batch_buffers(&self) -> &Arc<BufferPool<u32>> {
        &self.batch_buffers
    }
}

/// Locks a buffer, even after a panic: contents never matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostMemory for Cpu {}

impl LweOps for Cpu {
    type Db = TiledDb;

    fn open_db(&self, db: TiledDb) -> Result<TiledDb, OpsError> {
        if self.measures {
            lwe_fold::choose_single(self, &db);
        }
        Ok(db)
    }

    fn tiling(&self, db: &TiledDb) -> Tiling {
        db.tiling()
    }

    fn run_lwe_fold(&self, db: &TiledDb, queries: &LweQueries) -> Result<LweBatch, OpsError> {
        Ok(lwe_fold::lwe_fold(self, db, queries))
    }

    fn run_lwe_hint(
        &self,
        db: &TiledDb,
        a: &PublicMatrix,
        rows: Range<usize>,
    ) -> Result<BatchWords, OpsError> {
        Ok(lwe_hint::lwe_hint(self, db, a, rows).into())
    }

    fn run_reinterpret_lwe(
        &self,
        words: &BatchWords,
        queries: usize,
        items: usize,
        digits: usize,
        cols: usize,
    ) -> Result<TiledDb, OpsError> {
        reinterpret_lwe::reinterpret_lwe(self, words, queries, items, digits, cols)
    }

    fn run_send_words(
        &self,
        words: &LweBatch,
        sent: &[SentRows],
        rounding: Rounding,
    ) -> Result<Vec<Vec<u8>>, OpsError> {
        Ok(send_words::send_words(self, words, sent, rounding))
    }
}
