//! Memory of a device, and memory of the host that a device accesses directly (`pinned`).
//!
//! [`buffer`]: owned device memory. [`pool`]: freed device memory, kept for reuse.

pub(super) mod buffer;
#[cfg(feature = "driver")]
pub(super) mod pinned;
pub(super) mod pool;
