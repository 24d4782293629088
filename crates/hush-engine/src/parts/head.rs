//! The head of a table whose parts are elsewhere: it scans no share, and finishes the answers.

use std::sync::Arc;

use hush_cpu::Cpu;

use super::{Workers, elsewhere::Elsewhere, source::Source};
use crate::{
    Device, Engine, MemoryChoice, OpenError, PlacedShare, Placement, memory::server::host_batch,
    opening::ShareToOpen, parts::Share, table::TableToOpen,
};

/// Opens the head of a table whose parts `workers` reaches. Does not read the files that the parts scan.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open_head(
    source: &Source,
    workers: Arc<dyn Workers>,
    cpu: Arc<Cpu>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let mut opened = source.open()?;
    opened.bring_blobs()?;
    let nothing = Share::nothing();
    let placed = |index, device| {
        let share = Share { index, ..nothing.clone() };
        PlacedShare { share, device, is_streamed: false }
    };
    let placement =
        Placement { shares: vec![placed(0, Device::Cpu), placed(1, Device::Elsewhere)], by_query: false };
    let max_batch = host_batch(&opened.stored.params);
    let served = opened.stored.served(placement, max_batch)?;
    let files = opened.files(MemoryChoice::default())?;
    let descriptor = opened.stored.descriptor.clone();
    let mapped = opened.mapped();
    let elsewhere = Some(Elsewhere { workers });
    let head = TableToOpen { descriptor, served, files, mapped, scans: None, elsewhere };
    let head = head.open(vec![ShareToOpen::new(nothing, cpu)])?;
    opened.forget_others();
    Ok(head)
}
