//! The properties that a device reports.

/// The bytes of shared memory that a block may have on every GPU. Ada and later desktop GPUs have no more.
pub const LEAST_SHARED: usize = 99 << 10;

/// The properties of a device that decide how kernels are launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The product name.
    pub name: String,
    /// The compute capability: 9.0 is Hopper.
    pub capability: (u32, u32),
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The bytes of device memory.
    pub memory_bytes: usize,
    /// The bytes of the second-level cache.
    pub l2_bytes: usize,
    /// The bytes of shared memory that a block can have.
    pub shared_per_block: usize,
    /// The bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: usize,
}

impl DeviceInfo {
    /// Returns whether kernels for Hopper run on the device: code for compute capability 9.0a runs on no other.
    pub fn is_hopper(&self) -> bool {
        self.capability == (9, 0)
    }
}
