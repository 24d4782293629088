//! A snapshot is opened on the backend that has room for it.

use std::{path::Path, sync::Arc};

use hush_ops::path::Content;
use hush_store::snapshot::{Verified, Verify};

use crate::{
    Backends, Engine, OpenError, Place, Progress, Silent,
    gpus::seats::{Seating, host_parts},
    hosted::{Berth, Reading, Stored, host, host_batch},
};

/// Opens the snapshot in `dir` on one of the backends and makes it resident there. `progress` is told what it takes of a device's
/// memory, before anything is loaded, and of the upload; and why the CPU takes its place, if so.
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

/// The same for another epoch of a table, of whose files those that are `verified` are taken to be whole. These are then those of
/// this epoch.
///
/// # Errors
/// As [`open`].
pub fn open_after(
    dir: &Path,
    verify: Verify,
    verified: &mut Verified,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Arc<dyn Engine>, OpenError> {
    let mut reading = Reading { verify, verified, memory: backends.memory(), progress };
    let mut stored = Stored::open(dir)?;
    let seating = backends.gpus_to_serve(&stored.params, progress)?;
    stored.load(&mut reading, |content| match seating {
        None => true,
        // They are copied to the GPU for every batch.
        Some(Seating::Streaming(_)) => matches!(content, Content::Symbols { .. }),
        Some(Seating::One(_) | Seating::Several(_)) => false,
    })?;
    let hosted = match seating {
        None => return on_cpu(backends, stored),
        Some(Seating::One(seat)) => seat.gpu.host(stored, &seat.plan, seat.free, progress),
        Some(Seating::Streaming(seat)) => seat.gpu.host_streaming(stored, &seat.plan, seat.free, progress),
        Some(Seating::Several(seats)) => host_parts(&seats, stored, progress),
    };
    match hosted {
        // It was planned to fit, but others may have taken the memory, the device may have failed, or not take the parameter set.
        // What is wrong with the table itself is found on the CPU as well.
        Err(OpenError::Ops(error)) if backends.is_free_to_choose() => {
            progress.note(&format!("on the CPU: {error}"));
            // The other one is without the files that were taken out of it.
            let mut stored = Stored::open(dir)?;
            stored.load(&mut reading, |_| true)?;
            on_cpu(backends, stored)
        }
        outcome => outcome,
    }
}

/// Looks at the head of the snapshot in `dir`, and whether the place that it would be served at has room for it. Nothing is loaded.
///
/// # Errors
/// As [`open`].
pub fn check(dir: &Path, backends: &Backends) -> Result<(), OpenError> {
    let stored = Stored::open(dir)?;
    Ok(backends.gpus_to_serve(&stored.params, &Silent).map(drop)?)
}

fn on_cpu(backends: &Backends, stored: Stored) -> Result<Arc<dyn Engine>, OpenError> {
    let batch = host_batch(&stored.params);
    host(Berth { backend: backends.cpu().clone(), place: Place::Cpu, room: None }, stored, batch)
}
