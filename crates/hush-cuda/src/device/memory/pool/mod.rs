//! Freed device memory, kept for reuse.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::device::{CudaError, id::DeviceId, runtime::Runtime};

/// The divisor of a device's memory that gives the share to keep. If more is kept, all of it is freed before the driver allocates
/// more. The share exceeds what the batches of a table need, and is small enough for programs beside this one.
const KEPT_SHARE: usize = 4;
/// The largest number of bytes by which a block is rounded up: databases are large, and other requests do not have their sizes.
const MAX_WASTE: usize = 64 << 20;
/// The divisor of a block's size that gives the largest share by which it is rounded up.
const WASTE_SHARE: usize = 8;

/// Unused blocks of device memory, by size. The shapes of a table need few sizes, so after the first batches no memory is allocated
/// in the driver. All work of a device runs in order, so a block may be reused while work on it is still queued. Before memory is
/// given back to the driver, however, the device must finish all queued work, so that no kernel loses its memory. `cuMemFree` waits
/// for that too, but the driver's documentation mentions it only in passing, and waiting here costs nothing more.
pub(in crate::device) struct Pool {
    device: DeviceId,
    runtime: Arc<Runtime>,
    kept: Mutex<Kept>,
    /// The limit of kept bytes: above it, all kept memory is freed before a new allocation.
    cap: usize,
}

#[derive(Default)]
struct Kept {
    /// The addresses of blocks, by size.
    blocks: HashMap<usize, Vec<u64>>,
    /// The bytes of all these blocks.
    bytes: usize,
}

impl Kept {
    fn take(&mut self, size: usize) -> Option<u64> {
        let address = self.blocks.get_mut(&size)?.pop()?;
        self.bytes -= size;
        Some(address)
    }

    fn keep(&mut self, address: u64, size: usize) {
        self.blocks.entry(size).or_default().push(address);
        self.bytes += size;
    }
}

impl Pool {
    pub(in crate::device) fn new(runtime: Arc<Runtime>) -> Self {
        let cap = runtime.info().memory_bytes / KEPT_SHARE;
        Self { device: DeviceId::next(), runtime, kept: Mutex::default(), cap }
    }

    /// Returns the device to which the memory belongs.
    pub(in crate::device) fn device(&self) -> DeviceId {
        self.device
    }

    /// Returns the address and the size of a block of at least `bytes` bytes. One lock is held while kept memory is
    /// freed, and from the first attempt to allocate to the second attempt. So if two threads find no memory, the second thread
    /// sees all memory that the first thread freed.
    pub(in crate::device) fn take(&self, bytes: usize) -> Result<(u64, usize), CudaError> {
        let size = if self.runtime.is_pooled() { block_bytes(bytes) } else { bytes };
        let mut kept = self.kept();
        if let Some(address) = kept.take(size) {
            return Ok((address, size));
        }
        if kept.bytes > self.cap {
            // The kept blocks have sizes that were not needed lately.
            self.give_up(&mut kept);
        }
        let allocate = || self.runtime.allocate(size);
        let address = match allocate() {
            Err(error) if error.is_short_of_memory() => self.again(&mut kept, allocate)?,
            address => address?,
        };
        Ok((address, size))
    }

    /// Runs a call for which the driver may need memory of its own. If there is none, frees all kept blocks and runs the call once
    /// more.
    pub(in crate::device) fn with_room<T>(
        &self,
        mut work: impl FnMut() -> Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        match work() {
            Err(error) if error.is_short_of_memory() => self.again(&mut self.kept(), work),
            outcome => outcome,
        }
    }

    /// Frees all kept blocks, then runs the second attempt of a call that found no memory.
    fn again<T>(&self, kept: &mut Kept, work: impl FnOnce() -> Result<T, CudaError>) -> Result<T, CudaError> {
        self.give_up(kept);
        work()
    }

    /// Takes a block back. This does not wait for the device, because buffers are dropped in code that must not wait. This waits
    /// only while another thread gives memory back to the driver, because memory is short, much is kept, or a table is loaded or
    /// unloaded.
    pub(in crate::device) fn give_back(&self, address: u64, size: usize) {
        if !self.runtime.is_pooled() {
            return self.runtime.free(address);
        }
        self.kept().keep(address, size);
    }

    /// Returns the bytes of the unused blocks.
    pub(in crate::device) fn kept_bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Gives all unused blocks back to the driver.
    pub(in crate::device) fn release(&self) {
        self.give_up(&mut self.kept());
    }

    /// Gives all unused blocks back to the driver once the device has done all queued work.
    fn give_up(&self, kept: &mut Kept) {
        if kept.bytes > 0 {
            // A device that fails has no queued work left, and the next call on it returns an error.
            let _ = self.runtime.synchronize();
            let unused = std::mem::take(kept).blocks;
            unused.into_values().flatten().for_each(|address| self.runtime.free(address));
        }
    }

    /// Returns an upper bound on the bytes of `buffers` buffers of `bytes` bytes in total, apart from the rounding to whole
    /// sectors.
    pub(in crate::device) fn bytes_taken(&self, bytes: usize, buffers: usize) -> usize {
        let waste = (bytes / WASTE_SHARE).min(buffers.saturating_mul(MAX_WASTE));
        if self.runtime.is_pooled() { bytes + waste } else { bytes }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns the size of a block for `bytes` bytes: a multiple of 256 bytes (a sector). There are eight sizes between one power of
/// two and the next. So batches of nearly the same size share blocks, and at most an eighth or 64 MiB is wasted.
fn block_bytes(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / (2 * WASTE_SHARE)).clamp(256, MAX_WASTE);
    bytes.max(1).next_multiple_of(step)
}

#[cfg(all(test, feature = "emulator"))]
mod tests;

#[cfg(test)]
mod size_tests {
    use super::*;

    #[test]
    fn blocks_waste_at_most_an_eighth() {
        let sizes = [0, 1, 255, 256, 257, 4096, 4097, 5000, 1 << 20, (1 << 20) + 1, 123_456_789];
        for bytes in sizes.into_iter().chain([1 << 36, (1 << 36) + 1]) {
            let size = block_bytes(bytes);
            assert!(size >= bytes.max(256) && size.is_multiple_of(256), "{bytes}: {size}");
            assert!(size - bytes <= (bytes / 8).clamp(256, MAX_WASTE), "{bytes}: {size}");
        }
    }
}
