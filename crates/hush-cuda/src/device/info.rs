//! The facts that a device reports.

/// Bytes of shared memory that a block may have on any GPU: those of Ada, and of later ones for desks.
pub const LEAST_SHARED: usize = 99 << 10;

/// The properties of a device that decide how kernels are launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name that its maker gave it.
    pub name: String,
    /// Compute capability: 9.0 is Hopper.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory_bytes: usize,
    /// Bytes of the second-level cache.
    pub l2_bytes: usize,
    /// Bytes of shared memory that a block can have.
    pub shared_per_block: usize,
}

impl DeviceInfo {
    /// Returns whether kernels for Hopper alone run on it: code for compute capability 9.0a runs on no other.
    pub fn is_hopper(&self) -> bool {
        self.capability == (9, 0)
    }
}
