//! GPU 0 and what is on it.

use std::{
    env,
    ffi::OsStr,
    sync::{
        Arc,
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
    on_gpu::{OnGpu, Room},
    promises::{Promise, Promises},
};

/// This share of a device's memory is left alone: the driver's and small tables.
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
            CudaError::NoDriver => BackendError::NoDriver(error.to_string()),
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

/// Bytes of a device that tables may take, if nothing is promised to others.
pub fn room_for_tables(cuda: &Cuda) -> usize {
    cuda.release_unused();
    let device = cuda.device();
    // A device that does not answer has no room.
    device.free_bytes().unwrap_or(0).saturating_sub(device.info().memory_bytes / LEFT_ALONE)
}

/// A device with tables on it.
pub(crate) struct Gpu {
    cuda: Arc<Cuda>,
    promises: Promises,
}

impl Gpu {
    pub(crate) fn open() -> Result<Self, BackendError> {
        Ok(Self::new(open_device()?))
    }

    pub(crate) fn new(device: Device) -> Self {
        Self { cuda: Arc::new(Cuda::new(device)), promises: Promises::default() }
    }

    /// As its maker calls it.
    pub(crate) fn name(&self) -> &str {
        &self.cuda.device().info().name
    }

    /// Whether it has failed for good.
    pub(crate) fn is_lost(&self) -> bool {
        self.cuda.device().lost().is_some()
    }

    /// Bytes that another table may take: what is free and not promised. Batches that are under way and keys that clients have
    /// uploaded by now take of both, and so less is found free than there is.
    pub(crate) fn free_bytes(&self) -> usize {
        room_for_tables(&self.cuda).saturating_sub(self.promises.batches() + self.promises.keys())
    }

    /// What a table takes that is served, with the keys of so many clients.
    pub(crate) fn serving_plan(&self, table: &TableParams, clients: usize) -> MemoryPlan {
        self.in_blocks(MemoryPlan::to_serve(table, clients)).with_keys_promised(self.promises.keys())
    }

    /// What a table takes whose hint is computed.
    pub(crate) fn building_plan(&self, table: &TableParams) -> MemoryPlan {
        self.in_blocks(MemoryPlan::to_build(table))
    }

    /// The same as the device rounds it up.
    fn in_blocks(&self, plan: MemoryPlan) -> MemoryPlan {
        plan.in_blocks(|bytes, buffers| self.cuda.device().bytes_taken(bytes, buffers))
    }

    /// Uploads a table that has room in `free` bytes. `progress` is told of the plan, and then of the upload. After an error the
    /// device has its memory back.
    pub(crate) fn host(
        &self,
        stored: Stored,
        plan: &MemoryPlan,
        free: usize,
        progress: &dyn Progress,
    ) -> Result<Arc<dyn Engine>, OpenError> {
        self.cuda.device().synchronize().map_err(hush_ops::OpsError::from)?;
        plan.lines(self.name(), free).iter().for_each(|line| progress.note(line));
        let batch = plan.max_batch(free);
        progress.start("upload", plan.upload_bytes() as u64, "bytes");
        let promise = Promise { batch: plan.batch_bytes(batch), keys: plan.keys_bytes() };
        let room = Room::new(self.cuda.clone(), self.promises.make(promise));
        let engine =
            self.watched(plan.upload_bytes() as u64, progress, || host(self.cuda.clone(), stored, batch))?;
        // What was on its way.
        self.cuda.device().release_unused();
        Ok(Arc::new(OnGpu { engine, room }))
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
