//! Memory of a device, and memory of the host that a device reads and writes by itself (`pinned`).
//!
//! [`buffer`] has device memory that is owned. [`pool`] keeps what is freed for the next one who needs as much.

pub(super) mod buffer;
#[cfg(feature = "driver")]
pub(super) mod pinned;
pub(super) mod pool;
