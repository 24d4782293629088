//! GPU 0 and what is on it.

use std::{
    env,
    ffi::OsStr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

#[cfg(feature = "emulator")]
use hush_cuda::device::Emulation;
use hush_cuda::{
    Cuda,
    device::{CudaError, Device},
};
use hush_protocol::table::TableParams;

use crate::{
    Backend, BackendError, Engine, OpenError, Progress,
    backend::{CUDA_VARIABLE, Named},
    build::{BuildError, HintStage},
    hosted::{Stored, host},
    memory_plan::MemoryPlan,
};

/// This share of a device's memory is left alone: the driver's, small tables, and what blocks are rounded up by.
const LEFT_ALONE: usize = 64;
/// How often the progress of an upload is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Named for Cuda {
    const BACKEND: Backend = Backend::Cuda;
}

/// GPU 0; the emulator, if [`CUDA_VARIABLE`] says so.
///
/// # Errors
/// [`BackendError`] says why it cannot be used.
pub fn open_device() -> Result<Device, BackendError> {
    match env::var_os(CUDA_VARIABLE) {
        None => Device::open(0).map_err(|error| match error {
            CudaError::NotBuilt => BackendError::NotBuilt,
            error => BackendError::Device(error.to_string()),
        }),
        Some(value) => emulated(&value).ok_or_else(|| BackendError::Variable(value.to_string_lossy().into())),
    }
}

#[cfg(feature = "emulator")]
fn emulated(value: &OsStr) -> Option<Device> {
    (value == "emulator").then(|| Device::emulated(Emulation::default()))
}

#[cfg(not(feature = "emulator"))]
fn emulated(_: &OsStr) -> Option<Device> {
    None
}

/// A device with tables on it.
pub(crate) struct Gpu {
    cuda: Arc<Cuda>,
    /// Bytes that the batches of its tables may take.
    promised: AtomicUsize,
}

impl Gpu {
    pub(crate) fn open() -> Result<Self, BackendError> {
        Ok(Self::new(open_device()?))
    }

    pub(crate) fn new(device: Device) -> Self {
        Self { cuda: Arc::new(Cuda::new(device)), promised: AtomicUsize::new(0) }
    }

    /// As its maker calls it.
    pub(crate) fn name(&self) -> &str {
        &self.cuda.device().info().name
    }

    /// Bytes that another table may take.
    pub(crate) fn free_bytes(&self) -> usize {
        let device = self.cuda.device();
        device.release_unused();
        // A device that does not answer has no room.
        let free = device.free_bytes().unwrap_or(0);
        free.saturating_sub(device.info().memory_bytes / LEFT_ALONE + self.promised.load(Relaxed))
    }

    /// What a table takes that is served, with the keys of so many clients.
    pub(crate) fn serving_plan(&self, table: &TableParams, clients: usize) -> MemoryPlan {
        MemoryPlan::to_serve(table, clients)
    }

    /// What a table takes whose hint is computed.
    pub(crate) fn building_plan(&self, table: &TableParams) -> MemoryPlan {
        MemoryPlan::to_build(table)
    }

    /// Uploads a table that has room in `free` bytes. `progress` is told of the plan, and then of the upload.
    pub(crate) fn host(
        &self,
        stored: Stored,
        plan: &MemoryPlan,
        free: usize,
        progress: &dyn Progress,
    ) -> Result<Arc<dyn Engine>, OpenError> {
        plan.lines(self.name(), free).iter().for_each(|line| progress.note(line));
        let batch = plan.max_batch(free);
        progress.start("upload", plan.upload_bytes() as u64, "bytes");
        let engine =
            self.watched(plan.upload_bytes() as u64, progress, || host(self.cuda.clone(), stored, batch))?;
        self.promised.fetch_add(plan.batch_bytes(batch), Relaxed);
        Ok(engine)
    }

    /// Computes what comes of a hint.
    pub(crate) fn compute(&self, stage: HintStage<'_>) -> Result<(), BuildError> {
        stage.run(&*self.cuda)
    }

    /// Does `work`, which uploads some `total` bytes, and reports how many until now.
    fn watched<T>(&self, total: u64, progress: &dyn Progress, work: impl FnOnce() -> T) -> T {
        let device = self.cuda.device();
        let start = device.uploaded_bytes();
        thread::scope(|scope| {
            // Dropped when the work is done, or has panicked.
            let (_working, done) = channel::<()>();
            scope.spawn(move || {
                let mut reported = 0;
                loop {
                    let over = done.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected);
                    let uploaded = (device.uploaded_bytes() - start).min(total);
                    progress.advance(uploaded - reported);
                    reported = uploaded;
                    if over {
                        return;
                    }
                }
            });
            work()
        })
    }
}
