//! Opens a snapshot on the backend that has enough memory for it.

use std::{path::Path, sync::Arc};

use hush_protocol::{any_page::TableParams, share::Share};
use hush_store::snapshot::{Verified, Verify};

use crate::{
    Backends, Device, Engine, OpenError, Placement, Progress, Silent,
    gpus::gpu,
    memory::server::{ScanMemory, host_batch},
    opening::{Hosting, OpenOn, ShareToOpen},
    stored::{Reading, Stored},
    table::TableToOpen,
};

/// Opens the snapshot in `dir` on one of the backends and makes it resident there. Before anything is loaded, reports to `progress`
/// the device memory that it takes; then the upload; and the reason, if the CPU takes the device's place.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open(
    dir: &Path,
    verify: Verify,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Arc<dyn Engine>, OpenError> {
    open_after(dir, verify, &mut Verified::default(), backends, progress)
}

/// Opens another epoch of a table as [`open`] does. Files in `verified` are taken to be whole. Afterwards, `verified` has the files
/// of this epoch.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_after(
    dir: &Path,
    verify: Verify,
    verified: &mut Verified,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Arc<dyn Engine>, OpenError> {
    let mut reading = Reading { verify, verified, memory: backends.memory(), progress };
    let mut open = |mut stored: Stored, placement: Placement| {
        stored.load(&mut reading, &placement)?;
        let params = placement.as_placed(&stored.params);
        let table = TableToServe { stored, placement: placement.clone() };
        open_on(backends, &placement, &params, table, progress)
    };
    let stored = Stored::open(dir)?;
    let placement = backends.place(&stored.params, None, progress)?;
    let is_free = backends.is_free_to_choose() && !placement.is_on_cpu();
    match open(stored, placement.clone()) {
        // The plan said that it fits, but others may have taken the memory, or the device may have failed, or not support the
        // parameter set. An error of the table itself is found on the CPU as well.
        Err(OpenError::Ops(error)) if is_free || placement.has_copies() => {
            // The first `Stored` is without the files that were taken out of it.
            let stored = Stored::open(dir)?;
            let others = backends.place(&stored.params, None, progress)?;
            // Devices that have failed for good have no copy now.
            if placement.has_copies() && others != placement {
                return open(stored, others);
            }
            if !is_free {
                return Err(OpenError::Ops(error));
            }
            progress.note(&format!("on the CPU: {error}"));
            open(stored, Placement::on(Device::Cpu, Share::whole()))
        }
        outcome => outcome,
    }
}

/// Checks the head of the snapshot in `dir`, and returns the placement that it would get now. Nothing is loaded.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn check(dir: &Path, backends: &Backends) -> Result<Placement, OpenError> {
    let stored = Stored::open(dir)?;
    Ok(backends.place(&stored.params, None, &Silent)?)
}

/// Has `work` open a table, or a part of it, on the devices of its placement.
pub(crate) fn open_on<O: OpenOn>(
    backends: &Backends,
    placement: &Placement,
    table: &TableParams,
    work: O,
    progress: &dyn Progress,
) -> Result<O::Output, OpenError> {
    let gpus = placement.shares.iter().filter_map(|placed| match placed.device {
        Device::Gpu(number) => backends.gpus().get(number),
        Device::Cpu | Device::Elsewhere => None,
    });
    let gpus: Vec<_> = gpus.collect();
    if !gpus.is_empty() {
        return gpu::open_on(&gpus, placement, table, backends.clients(), work, progress);
    }
    let here = placement.shares.iter().filter(|placed| placed.device == Device::Cpu);
    let on_cpu = here.map(|placed| ShareToOpen::new(placed.share.clone(), backends.cpu().clone()));
    work.on(on_cpu.collect(), host_batch(table))
}

/// A table that is to be served at its placement.
struct TableToServe {
    stored: Stored,
    placement: Placement,
}

impl OpenOn for TableToServe {
    const FINISHES: bool = true;
    type Output = Arc<dyn Engine>;

    fn on<B: Hosting>(
        self,
        shares: Vec<ShareToOpen<B>>,
        max_batch: usize,
    ) -> Result<Self::Output, OpenError> {
        let Self { mut stored, placement } = self;
        let served = stored.served(placement.clone(), max_batch)?;
        let (files, mapped) = stored.files(&placement)?;
        let scans = placement.is_on_cpu().then(|| ScanMemory::new(&stored.params, max_batch));
        TableToOpen { descriptor: stored.descriptor, served, files, mapped, scans, elsewhere: None }
            .open(shares)
    }
}
