//! The computers of a build: the backends of this process, and a crew elsewhere.

use hush_engine::{Backends, DoesNotFit, Gpu, Progress};
use hush_protocol::{any_page::SegmentParams, facts::HintPlan};

use crate::builder::{BuildError, Crew, HintStage};

/// The backends of this process, and the crew elsewhere, if there is one.
#[derive(Clone, Copy)]
pub struct Computers<'a> {
    /// The backends.
    pub backends: &'a Backends,
    /// The crew that does tasks elsewhere; `None` if this process computes everything.
    pub crew: Option<&'a dyn Crew>,
}

impl<'a> From<&'a Backends> for Computers<'a> {
    fn from(backends: &'a Backends) -> Self {
        Self { backends, crew: None }
    }
}

/// Returns the GPUs with enough memory to compute the products of a segment's hint. Each holds the segment's whole database, and
/// they share the work. Returns none if the CPU has to compute; if there is a GPU, the reason is printed to `progress`.
///
/// # Errors
/// [`DoesNotFit`] if a GPU was requested and its memory is too small.
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(in crate::builder) fn gpus_to_build<'a>(
    segment: &SegmentParams,
    hint: &HintPlan,
    backends: &'a Backends,
    progress: &dyn Progress,
) -> Result<Vec<&'a Gpu>, DoesNotFit> {
    let memory = super::hint_memory::plan(hint);
    backends.gpus_to_share(segment.facts(), |gpu| gpu.in_blocks(memory.clone()), progress)
}

/// Computes the products of a hint on all of `gpus`.
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(in crate::builder) fn compute_on(gpus: &[&Gpu], stage: HintStage<'_>) -> Result<(), BuildError> {
    stage.run(&gpus.iter().map(|gpu| gpu.cuda()).collect::<Vec<_>>())
}

/// Returns no GPU: this program is built without support for GPUs.
#[cfg(not(any(feature = "cuda", feature = "emulator")))]
pub(in crate::builder) fn gpus_to_build<'a>(
    _: &SegmentParams,
    _: &HintPlan,
    _: &'a Backends,
    _: &dyn Progress,
) -> Result<Vec<&'a Gpu>, DoesNotFit> {
    Ok(Vec::new())
}

#[cfg(not(any(feature = "cuda", feature = "emulator")))]
pub(in crate::builder) fn compute_on(_: &[&Gpu], _: HintStage<'_>) -> Result<(), BuildError> {
    unreachable!("no GPU is found without support of GPUs")
}
