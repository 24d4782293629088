//! Copies between the host and a device, and within the host.
//!
//! `uploads` and `downloads` use the link while the device does other work, through pinned memory. [`copy`] copies within the
//! memory of the host, by several threads.

#[cfg(feature = "driver")]
pub(super) mod downloads;
mod host;
#[cfg(feature = "driver")]
pub(super) mod uploads;

pub(super) use host::copy;
