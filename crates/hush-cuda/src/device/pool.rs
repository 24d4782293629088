//! Device memory that is kept for the next one who needs as much.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{CudaError, runtime::Runtime};

/// Blocks of device memory that nobody has at the moment, by size. The shapes of a table give few sizes, and so after the first
/// batches nothing is asked of the driver any more. Since all work of a device is done in order, a block may go to the next one
/// while work on it is still queued.
pub(super) struct Pool {
    runtime: Arc<Runtime>,
    free: Mutex<HashMap<usize, Vec<u64>>>,
}

impl Pool {
    pub(super) fn new(runtime: Arc<Runtime>) -> Self {
        Self { runtime, free: Mutex::default() }
    }

    /// A block of at least `bytes` bytes: its address and its size.
    pub(super) fn take(&self, bytes: usize) -> Result<(u64, usize), CudaError> {
        if !self.runtime.is_pooled() {
            return Ok((self.runtime.allocate(bytes)?, bytes));
        }
        let size = block_bytes(bytes);
        if let Some(address) = self.free().get_mut(&size).and_then(Vec::pop) {
            return Ok((address, size));
        }
        let first = self.runtime.allocate(size);
        if let Err(CudaError::OutOfMemory { .. }) = first {
            self.release();
            return Ok((self.runtime.allocate(size)?, size));
        }
        Ok((first?, size))
    }

    /// Takes a block back.
    pub(super) fn give_back(&self, address: u64, bytes: usize) {
        if !self.runtime.is_pooled() {
            return self.runtime.free(address);
        }
        self.free().entry(bytes).or_default().push(address);
    }

    /// Bytes of the blocks that nobody has.
    pub(super) fn kept_bytes(&self) -> usize {
        self.free().iter().map(|(bytes, addresses)| bytes * addresses.len()).sum()
    }

    /// Gives all free blocks back to the driver.
    pub(super) fn release(&self) {
        for (_, addresses) in self.free().drain() {
            addresses.into_iter().for_each(|address| self.runtime.free(address));
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Vec<u64>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.release();
    }
}

/// The most that a block is rounded up by: databases are large, and nobody else asks for their sizes.
const MAX_WASTE: usize = 64 << 20;

/// The size of a block for `bytes` bytes: eight sizes between one power of two and the next, so that batches of nearly the same
/// size share blocks and at most an eighth is wasted, or 64 MiB; whole sectors of 256 bytes.
pub(super) fn block_bytes(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 16).clamp(256, MAX_WASTE);
    bytes.max(1).next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_waste_at_most_an_eighth() {
        for bytes in [
            0,
            1,
            255,
            256,
            257,
            4096,
            4097,
            5000,
            1 << 20,
            (1 << 20) + 1,
            123_456_789,
            1 << 36,
            (1 << 36) + 1,
        ] {
            let size = block_bytes(bytes);
            assert!(size >= bytes.max(256) && size.is_multiple_of(256), "{bytes}: {size}");
            assert!(size - bytes <= (bytes / 8).clamp(256, MAX_WASTE), "{bytes}: {size}");
        }
    }
}
