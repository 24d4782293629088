//! GPUs with room for a table, or for a part of one.

use std::sync::Arc;

#[cfg(any(feature = "cuda", feature = "emulator"))]
use hush_cuda::device::Device;
use hush_protocol::share::Share;

use super::gpu::Gpu;
#[cfg(any(feature = "cuda", feature = "emulator"))]
use super::{gpu::watched, several};
use crate::{Engine, OpenError, Progress, hosted::Stored, memory::plan::MemoryPlan};
#[cfg(any(feature = "cuda", feature = "emulator"))]
use crate::{GpuSet, Place, hosted::Berth};

/// Where a table is on GPUs.
pub(crate) enum Seating<'a> {
    /// All of it on one.
    One(Seat<'a>),
    /// On one, but for its symbols, which it gets from the host for every batch.
    Streaming(Seat<'a>),
    /// In parts.
    Several(Vec<PartSeat<'a>>),
}

/// A GPU with room for a part of a table.
#[cfg_attr(
    not(any(feature = "cuda", feature = "emulator")),
    expect(dead_code, reason = "without GPU support nobody has one")
)]
pub(crate) struct PartSeat<'a> {
    pub(crate) share: Share,
    pub(crate) seat: Seat<'a>,
}

/// A GPU with room for a table, for a part of one, or for work.
pub struct Seat<'a> {
    /// The GPU.
    pub gpu: &'a Gpu,
    /// The memory that is taken of it.
    pub plan: MemoryPlan,
    /// The bytes that may be taken.
    pub free: usize,
}

/// Uploads a table in parts, each of which has room where it goes. Otherwise as [`Gpu::host`].
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(crate) fn host_parts(
    seats: &[PartSeat<'_>],
    stored: Stored,
    progress: &dyn Progress,
) -> Result<Arc<dyn Engine>, OpenError> {
    let devices: Vec<&Device> = seats.iter().map(|part| part.seat.gpu.cuda.device()).collect();
    for (number, PartSeat { seat, .. }) in seats.iter().enumerate() {
        devices[number].synchronize().map_err(hush_ops::OpsError::from)?;
        let name = format!("{} (part {} of {})", seat.gpu.name(), number + 1, seats.len());
        seat.plan.lines(&name, seat.free).iter().for_each(|line| progress.note(line));
    }
    let batches = seats.iter().map(|PartSeat { seat, .. }| seat.plan.max_batch(seat.free));
    let batch = batches.min().unwrap_or(1);
    let total = seats.iter().map(|part| part.seat.plan.upload_bytes() as u64).sum();
    progress.start("upload", total, "bytes");
    let numbers: Vec<usize> = seats.iter().map(|part| part.seat.gpu.number).collect();
    let refused = || OpenError::Ops(hush_ops::OpsError::Backend { reason: "there are too many GPUs".into() });
    let place = Place::Gpus(GpuSet::new(&numbers).ok_or_else(refused)?);
    let berths = seats.iter().map(|PartSeat { share, seat }| {
        let room = Some(Box::new(seat.gpu.room(&seat.plan, batch)) as Box<_>);
        (share.clone(), Berth { backend: seat.gpu.cuda.clone(), place, room })
    });
    let berths = berths.collect();
    let engine = watched(&devices, total, progress, || several::host(berths, place, stored, batch))?;
    devices.iter().for_each(|device| device.release_unused());
    Ok(engine)
}

#[cfg(not(any(feature = "cuda", feature = "emulator")))]
pub(crate) fn host_parts(
    _: &[PartSeat<'_>],
    _: Stored,
    _: &dyn Progress,
) -> Result<Arc<dyn Engine>, OpenError> {
    Err(hush_ops::OpsError::Backend { reason: crate::BackendError::NotBuilt.to_string() }.into())
}
