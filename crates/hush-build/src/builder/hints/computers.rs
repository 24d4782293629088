//! The backends of this process and the crew elsewhere that compute a build.

use hush_engine::{Backends, DoesNotFit, Gpu, Progress};
use hush_protocol::{any_page::SegmentParams, facts::HintPlan};

use crate::builder::{BuildError, Crew, HintStage};

/// The backends of this process, and who computes elsewhere.
#[derive(Clone, Copy)]
pub struct Computers<'a> {
    /// The backends.
    pub backends: &'a Backends,
    /// Whoever has tasks done elsewhere, if there is anyone.
    pub crew: Option<&'a dyn Crew>,
}

impl<'a> From<&'a Backends> for Computers<'a> {
    fn from(backends: &'a Backends) -> Self {
        Self { backends, crew: None }
    }
}

/// Returns the GPUs that have room to compute what comes of the hint of a segment: each has its whole database, and they share the
/// work. None for the CPU; `progress` is told why, if there is a GPU.
///
/// # Errors
/// [`DoesNotFit`] if the GPU was asked for.
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

/// Computes what comes of a hint, on all of some GPUs.
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(in crate::builder) fn compute_on(gpus: &[&Gpu], stage: HintStage<'_>) -> Result<(), BuildError> {
    stage.run(&gpus.iter().map(|gpu| gpu.cuda()).collect::<Vec<_>>())
}

/// Returns no GPU: this program has no support of GPUs.
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
