//! Copies between the host and a device, and within the host.
//!
//! `uploads` and `downloads` go over the link while the device does other work, through pinned memory. [`copy`] is for the memory
//! of the host, by several threads.

#[cfg(feature = "driver")]
pub(super) mod downloads;
mod host;
#[cfg(feature = "driver")]
pub(super) mod uploads;

pub(super) use host::copy;
