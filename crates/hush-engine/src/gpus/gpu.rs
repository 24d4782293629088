//! GPUs and the tables on them.

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
use hush_protocol::any_page::TableParams;

use super::{
    reservations::{KeptMemory, Reservations, Reserved},
    thresholds::suited_backend,
};
use crate::{
    BackendError, OpenError, Progress,
    choice::CUDA_VARIABLE,
    memory::plan::MemoryPlan,
    opening::{Hosting, OpenOn, ShareToOpen},
    placement::{self, PlacedShare, Placement},
    units::Bytes,
};

/// The inverse of the share of a device's memory that is left to the driver and small tables.
const LEFT_ALONE: usize = 64;
/// The interval at which the progress of an upload is read.
const LOOK: Duration = Duration::from_millis(100);

impl Hosting for Cuda {
    fn lost(&self) -> Option<String> {
        self.device().lost().map(str::to_owned)
    }
}

/// Opens all GPUs, at least one; the emulator, or several of it, if [`CUDA_VARIABLE`] says so.
///
/// # Errors
/// [`BackendError`] with the reason if none can be used.
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

/// Parses `emulator`; `emulator:2` for two of them; `emulator:2:64` for two with 64 MiB of memory each.
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
    Some(
        (0..count)
            .map(|_| match mebibytes {
                Some(mebibytes) => Device::emulated_with_memory(Emulation::default(), mebibytes << 20),
                None => Device::emulated(Emulation::default()),
            })
            .collect(),
    )
}

#[cfg(not(feature = "emulator"))]
fn emulated(_: &OsStr) -> Option<Vec<Device>> {
    None
}

/// Returns the bytes of a device that tables may take, if nothing is reserved for others.
pub fn room_for_tables(cuda: &Cuda) -> usize {
    cuda.release_unused();
    let device = cuda.device();
    // A device that does not answer has no free memory.
    device.free_bytes().unwrap_or(0).saturating_sub(device.info().memory_bytes / LEFT_ALONE)
}

/// A device with tables on it.
pub struct Gpu {
    number: usize,
    cuda: Arc<Cuda>,
    reservations: Reservations,
}

impl Gpu {
    /// Opens all GPUs.
    pub(crate) fn open_all() -> Result<Vec<Self>, BackendError> {
        Ok(open_devices()?
            .into_iter()
            .enumerate()
            .map(|(number, device)| Self::new(number, device))
            .collect())
    }

    pub(crate) fn new(number: usize, device: Device) -> Self {
        Self { number, cuda: Arc::new(suited_backend(device)), reservations: Reservations::default() }
    }

    /// Returns the backend that computes on this GPU.
    pub fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// Returns the GPU as a device of a placement.
    pub(crate) fn device(&self) -> placement::Device {
        placement::Device::Gpu(self.number)
    }

    /// Returns the name that the GPU's maker gave it.
    pub(crate) fn name(&self) -> &str {
        &self.cuda.device().info().name
    }

    /// Whether the GPU has failed for good.
    pub(crate) fn is_lost(&self) -> bool {
        self.cuda.device().lost().is_some()
    }

    /// Returns the bytes that another table may take: free and not reserved. Batches in flight and uploaded keys count as both
    /// taken and reserved, so the result is less than what is free.
    pub(crate) fn free_bytes(&self) -> usize {
        room_for_tables(&self.cuda).saturating_sub(self.reservations.batches() + self.reservations.keys())
    }

    /// Plans the memory of a share of a table, with the keys of `clients` clients; `finishes` as for [`MemoryPlan::of_share`].
    pub(crate) fn plan(
        &self,
        table: &TableParams,
        placed: &PlacedShare,
        finishes: bool,
        clients: usize,
    ) -> MemoryPlan {
        let of_share = match placed.is_streamed {
            true => MemoryPlan::of_share::<SymbolsOnHost>,
            false => MemoryPlan::of_share::<Cuda>,
        };
        let plan = of_share(table, &placed.share, finishes, clients);
        self.in_blocks(plan).with_keys_reserved(self.reservations.keys())
    }

    /// Returns the plan as the device rounds it up.
    pub fn in_blocks(&self, plan: MemoryPlan) -> MemoryPlan {
        plan.in_blocks(|bytes, buffers| self.cuda.device().bytes_taken(bytes, buffers))
    }

    /// Returns the backend that holds a share. A backend whose symbols stay on the host has this share alone.
    fn backend(&self, placed: &PlacedShare) -> Arc<Cuda> {
        if !placed.is_streamed {
            return self.cuda.clone();
        }
        let backend = Cuda::new(self.cuda.device().clone()).with_thresholds(self.cuda.thresholds());
        Arc::new(backend.with_symbols_on_host())
    }

    /// Reserves the memory that is planned for batches of `batch` queries.
    fn reserve(&self, plan: &MemoryPlan, batch: usize) -> KeptMemory {
        let reserved = Reserved { batch: plan.batch_bytes(batch), keys: plan.keys_bytes() };
        KeptMemory { cuda: self.cuda.clone(), _reserved: self.reservations.make(reserved) }
    }
}

/// Has `work` open a table, or a part of it, on `gpus`, which are those of its placement. Reports the plans and then the upload to
/// `progress`. After an error the GPUs have their memory back.
///
/// # Errors
/// Returns the errors of `work`, and [`OpenError::Ops`] if a GPU does nothing.
pub(crate) fn open_on<O: OpenOn>(
    gpus: &[&Gpu],
    placement: &Placement,
    table: &TableParams,
    clients: usize,
    work: O,
    progress: &dyn Progress,
) -> Result<O::Output, OpenError> {
    if placement.shares.iter().any(|placed| placed.is_streamed) {
        let bytes = Bytes(table.facts().encoded_bytes as usize);
        progress.note(&format!(
            "its symbols stay in the host's memory: {bytes} are copied to the GPU for every batch"
        ));
    }
    let placed = || gpus.iter().zip(&placement.shares);
    let mut plans = Vec::new();
    for (number, (gpu, placed)) in placed().enumerate() {
        gpu.cuda.device().synchronize().map_err(hush_ops::OpsError::from)?;
        let plan = gpu.plan(table, placed, O::FINISHES, clients);
        let free = gpu.free_bytes();
        let name = match gpus.len() {
            1 => gpu.name().to_owned(),
            several => {
                let what = if placement.has_copies() { "copy" } else { "part" };
                format!("{} ({what} {} of {several})", gpu.name(), number + 1)
            }
        };
        plan.lines(&name, free).iter().for_each(|line| progress.note(line));
        plans.push((plan, free));
    }
    let batch = plans.iter().map(|(plan, free)| plan.max_batch(*free)).min().unwrap_or(1);
    let total = plans.iter().map(|(plan, _)| plan.upload_bytes() as u64).sum();
    progress.start("upload", total, "bytes");
    let on = placed()
        .zip(&plans)
        .map(|((gpu, placed), (plan, _)): ((&&Gpu, &PlacedShare), &(MemoryPlan, usize))| ShareToOpen {
            share: placed.share.clone(),
            backend: gpu.backend(placed),
            kept: Some(Box::new(gpu.reserve(plan, batch))),
        })
        .collect();
    let devices: Vec<&Device> = gpus.iter().map(|gpu| gpu.cuda.device()).collect();
    let opened = watched(&devices, total, progress, || work.on(on, batch))?;
    // The buffers of the upload are not needed any more.
    devices.iter().for_each(|device| device.release_unused());
    Ok(opened)
}

/// Runs `work`, which uploads some `total` bytes, and reports how many bytes are uploaded.
fn watched<T>(devices: &[&Device], total: u64, progress: &dyn Progress, work: impl FnOnce() -> T) -> T {
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
