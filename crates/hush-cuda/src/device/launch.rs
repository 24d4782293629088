//! Launches of kernels: grid, block, shared memory and arguments.

use zerocopy::{Immutable, IntoBytes};

use super::id::DeviceId;

/// The largest number of blocks of a grid in each dimension, on every GPU.
pub const MAX_GRID: [usize; 3] = [i32::MAX as usize, 65_535, 65_535];

/// The grid, the block and the dynamic shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The number of blocks in each dimension.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub block: u32,
    /// The bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Launch {
    /// Creates a launch of `blocks` blocks of `threads` threads.
    pub fn new(blocks: u32, threads: u32) -> Self {
        Self::grid([blocks, 1, 1], threads)
    }

    /// Creates a launch of a grid of blocks of `threads` threads.
    pub fn grid(grid: [u32; 3], threads: u32) -> Self {
        Self { grid, block: threads, shared: 0 }
    }

    /// Creates a launch of blocks of `threads` threads, with a thread for each of `items` items.
    pub fn cover(items: usize, threads: u32) -> Self {
        Self::new(items.div_ceil(threads as usize) as u32, threads)
    }

    /// Sets the dynamic shared memory of a block to `bytes` bytes.
    pub fn shared(self, bytes: usize) -> Self {
        Self { shared: bytes as u32, ..self }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A pointer to memory.
    Pointer(u64, Memory),
    /// A word of 32 bits.
    Word(u32),
    /// A word of 64 bits.
    Long(u64),
    /// A structure by value.
    Bytes(&'a [u8]),
    /// A structure by value that points into memory.
    View(&'a [u8], Memory),
}

/// The device whose memory an argument points to.
#[derive(Clone, Copy, Debug)]
pub struct Memory(pub(super) DeviceId);

impl<'a> Arg<'a> {
    /// Creates a structure by value, whose layout must be that of the kernel's type.
    pub fn of(value: &'a (impl IntoBytes + Immutable)) -> Self {
        Self::Bytes(value.as_bytes())
    }

    /// Returns the address at which the driver reads the value.
    pub(super) fn as_ptr(&self) -> *const u8 {
        match self {
            Self::Pointer(value, _) | Self::Long(value) => std::ptr::from_ref(value).cast(),
            Self::Word(value) => std::ptr::from_ref(value).cast(),
            Self::Bytes(bytes) | Self::View(bytes, _) => bytes.as_ptr(),
        }
    }

    /// Returns the device to whose memory the argument points, if it is a pointer or a view.
    pub(super) fn device(&self) -> Option<DeviceId> {
        match self {
            Self::Pointer(_, memory) | Self::View(_, memory) => Some(memory.0),
            Self::Word(_) | Self::Long(_) | Self::Bytes(_) => None,
        }
    }
}

impl From<u32> for Arg<'_> {
    fn from(word: u32) -> Self {
        Self::Word(word)
    }
}

impl From<u64> for Arg<'_> {
    fn from(word: u64) -> Self {
        Self::Long(word)
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::device::{CudaError, Device, Emulation};

    #[test]
    fn the_emulator_refuses_what_no_gpu_takes() {
        let device = Device::emulated(Emulation::default());
        let shared = device.info().shared_per_block;
        for launch in [
            Launch::grid([MAX_GRID[0] as u32 + 1, 1, 1], 32),
            Launch::grid([1, MAX_GRID[1] as u32 + 1, 1], 32),
            Launch::grid([1, 1, MAX_GRID[2] as u32 + 1], 32),
            Launch::new(1, 1025),
            Launch::new(1, 32).shared(shared + 1),
        ] {
            let refused = device.launch("fill_random", launch, &[]);
            assert!(matches!(refused, Err(CudaError::Driver { .. })), "{launch:?}: {refused:?}");
        }
    }
}
