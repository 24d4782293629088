//! A GPU and what is on it.

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
    footprint::SymbolsOnHost,
};
use hush_ops::path::Footprint;
use hush_protocol::{any_page::TableParams, share::Share};

use super::{
    promises::{Promise, Promises, Room},
    thresholds::suited_backend,
};
use crate::{
    BackendError, Engine, OpenError, Place, Progress,
    choice::CUDA_VARIABLE,
    hosted::{Berth, Stored, host},
    memory::plan::MemoryPlan,
    parts::{PartEngine, PartToOpen},
    place::Hosting,
    units::Bytes,
};

/// This share of a device's memory is left alone: the driver's and small tables.
const LEFT_ALONE: usize = 64;
/// How often the progress of an upload is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Hosting for Cuda {
    fn lost(&self) -> Option<String> {
        self.device().lost().map(str::to_owned)
    }
}

/// All GPUs, at least one; the emulator, or several of it, if [`CUDA_VARIABLE`] says so.
///
/// # Errors
/// [`BackendError`] says why none can be used.
pub fn open_devices() -> Result<Vec<Device>, BackendError> {
    match env::var_os(CUDA_VARIABLE) {
        None => Device::open_all().map_err(|error| match error {
            CudaError::NotBuilt => BackendError::NotBuilt,
            CudaError::NoDriver => BackendError::NoDriver(error.to_string()),
            error => BackendError::Device(error.to_string()),
        }),
        Some(value) => emulated(&value).ok_or_else(|| BackendError::Variable(value.to_string_lossy().into())),
    }
}

/// `emulator`; `emulator:2` for two of them; `emulator:2:64` for two with 64 MiB of memory each.
#[cfg(feature = "emulator")]
fn emulated(value: &OsStr) -> Option<Vec<Device>> {
    let mut words = value.to_str()?.split(':');
    if words.next() != Some("emulator") {
        return None;
    }
    let number = |word: &str, most| word.parse().ok().filter(|number| (1..=most).contains(number));
    let count = words.next().map_or(Some(1), |word| number(word, 8))?;
    let mebibytes = words.next().map(|word| number(word, 1 << 20).ok_or(())).transpose().ok()?;
    if words.next().is_some() {
        return None;
    }
    let device = |_| match mebibytes {
        Some(mebibytes) => Device::emulated_with_memory(Emulation::default(), mebibytes << 20),
        None => Device::emulated(Emulation::default()),
    };
    Some((0..count).map(device).collect())
}

#[cfg(not(feature = "emulator"))]
fn emulated(_: &OsStr) -> Option<Vec<Device>> {
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
pub struct Gpu {
    pub(super) number: usize,
    pub(super) cuda: Arc<Cuda>,
    promises: Promises,
}

impl Gpu {
    /// All of them.
    pub(crate) fn open_all() -> Result<Vec<Self>, BackendError> {
        Ok(open_devices()?
            .into_iter()
            .enumerate()
            .map(|(number, device)| Self::new(number, device))
            .collect())
    }

    pub(crate) fn new(number: usize, device: Device) -> Self {
        Self { number, cuda: Arc::new(suited_backend(device)), promises: Promises::default() }
    }

    /// Returns the backend that computes on it.
    pub fn cuda(&self) -> &Cuda {
        &self.cuda
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
        self.plan_to_serve::<Cuda>(table, clients)
    }

    /// The same of a table whose symbols stay in the host's memory.
    pub(crate) fn streaming_plan(&self, table: &TableParams, clients: usize) -> MemoryPlan {
        self.plan_to_serve::<SymbolsOnHost>(table, clients)
    }

    fn plan_to_serve<F: Footprint>(&self, table: &TableParams, clients: usize) -> MemoryPlan {
        let plan = MemoryPlan::to_serve::<F>(table, clients, Place::Gpu(self.number).batches_in_flight());
        self.in_blocks(plan).with_keys_promised(self.promises.keys())
    }

    /// What a part of a table takes that is served in parts.
    pub(crate) fn serving_part_plan(&self, table: &TableParams, share: &Share, clients: usize) -> MemoryPlan {
        let in_flight = Place::Gpu(self.number).batches_in_flight();
        let plan = MemoryPlan::to_serve_part::<Cuda>(table, share, clients, in_flight);
        self.in_blocks(plan).with_keys_promised(self.promises.keys())
    }

    /// What a part of a table takes that is scanned here, whose answers are finished elsewhere.
    pub(crate) fn scanning_plan(&self, table: &TableParams, share: &Share, clients: usize) -> MemoryPlan {
        let in_flight = Place::Gpu(self.number).batches_in_flight();
        let plan = MemoryPlan::to_scan_part::<Cuda>(table, share, clients, in_flight);
        self.in_blocks(plan).with_keys_promised(self.promises.keys())
    }

    /// Returns the plan as the device rounds it up.
    pub fn in_blocks(&self, plan: MemoryPlan) -> MemoryPlan {
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
        self.host_on(self.cuda.clone(), stored, plan, free, progress)
    }

    /// The same of a table whose symbols stay in the host's memory.
    pub(crate) fn host_streaming(
        &self,
        stored: Stored,
        plan: &MemoryPlan,
        free: usize,
        progress: &dyn Progress,
    ) -> Result<Arc<dyn Engine>, OpenError> {
        let bytes = Bytes(stored.params.facts().encoded_bytes as usize);
        progress.note(&format!(
            "its symbols stay in the host's memory: {bytes} are copied to the GPU for every batch"
        ));
        let backend = Cuda::new(self.cuda.device().clone()).with_thresholds(self.cuda.thresholds());
        self.host_on(Arc::new(backend.with_symbols_on_host()), stored, plan, free, progress)
    }

    fn host_on(
        &self,
        backend: Arc<Cuda>,
        stored: Stored,
        plan: &MemoryPlan,
        free: usize,
        progress: &dyn Progress,
    ) -> Result<Arc<dyn Engine>, OpenError> {
        self.cuda.device().synchronize().map_err(hush_ops::OpsError::from)?;
        plan.lines(self.name(), free).iter().for_each(|line| progress.note(line));
        let batch = plan.max_batch(free);
        progress.start("upload", plan.upload_bytes() as u64, "bytes");
        let room = Some(Box::new(self.room(plan, batch)) as Box<_>);
        let berth = Berth { backend, place: Place::Gpu(self.number), room };
        let devices = [self.cuda.device()];
        let engine = watched(&devices, plan.upload_bytes() as u64, progress, || host(berth, stored, batch))?;
        // What was on its way.
        self.cuda.device().release_unused();
        Ok(engine)
    }

    /// Uploads a part of a table that has room in `free` bytes.
    pub(crate) fn open_part(
        &self,
        part: PartToOpen<'_>,
        plan: &MemoryPlan,
        free: usize,
    ) -> Result<Arc<dyn PartEngine>, OpenError> {
        self.cuda.device().synchronize().map_err(hush_ops::OpsError::from)?;
        let max_batch = plan.max_batch(free);
        let room = Some(Box::new(self.room(plan, max_batch)) as Box<_>);
        let berth = Berth { backend: self.cuda.clone(), place: Place::Gpu(self.number), room };
        let engine = part.open(berth, max_batch)?;
        self.cuda.device().release_unused();
        Ok(engine)
    }

    /// The room that a table was promised for batches of so many queries.
    pub(super) fn room(&self, plan: &MemoryPlan, batch: usize) -> Room {
        let promise = Promise { batch: plan.batch_bytes(batch), keys: plan.keys_bytes() };
        Room::new(self.cuda.clone(), self.promises.make(promise))
    }
}

/// Does `work`, which uploads some `total` bytes, and reports how many until now.
pub(super) fn watched<T>(
    devices: &[&Device],
    total: u64,
    progress: &dyn Progress,
    work: impl FnOnce() -> T,
) -> T {
    let uploaded = || devices.iter().map(|device| device.uploaded_bytes()).sum::<u64>();
    let start = uploaded();
    thread::scope(|scope| {
        // Dropped when the work is done, or has panicked.
        let (_working, done) = channel::<()>();
        scope.spawn(move || {
            let mut reported = 0;
            loop {
                let over = done.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected);
                let uploaded = (uploaded() - start).min(total);
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
