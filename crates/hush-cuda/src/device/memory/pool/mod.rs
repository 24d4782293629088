//! Device memory that is kept for the next one who needs as much.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::device::{CudaError, id::DeviceId, runtime::Runtime};

/// If more than this share of a device's memory is kept, all of it goes back before more is asked of the driver: the share is more
/// than the batches of a table take that leaves room for others, and little enough for programs beside this one.
const KEPT_SHARE: usize = 4;
/// The most that a block is rounded up by: databases are large, and nobody else asks for their sizes.
const MAX_WASTE: usize = 64 << 20;
/// Blocks are rounded up by at most this share of them.
const WASTE_SHARE: usize = 8;

/// Blocks of device memory that nobody has at the moment, by size. The shapes of a table give few sizes, and so after the first
/// batches nothing is asked of the driver any more. Since all work of a device is done in order, a block may go to the next one
/// while work on it is still queued. What goes back to the driver is a different matter: first the device does all that is queued,
/// so that nothing is taken from under a kernel. `cuMemFree` waits for that as well, but the driver's documentation says so by way
/// of an exception only, and to wait here costs nothing then.
pub(in crate::device) struct Pool {
    device: DeviceId,
    runtime: Arc<Runtime>,
    kept: Mutex<Kept>,
    /// Bytes beyond which nothing new is allocated before all that is kept was given up.
    cap: usize,
}

#[derive(Default)]
struct Kept {
    /// Addresses of blocks, by size.
    blocks: HashMap<usize, Vec<u64>>,
    /// Bytes of all of them.
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

    /// Returns the device whose memory it is.
    pub(in crate::device) fn device(&self) -> DeviceId {
        self.device
    }

    /// Returns a block of at least `bytes` bytes: its address and its size. From the look at what is kept to the second attempt
    /// there is one lock: of two threads that find no memory, the second one sees all that the first one gave back.
    pub(in crate::device) fn take(&self, bytes: usize) -> Result<(u64, usize), CudaError> {
        let size = if self.runtime.is_pooled() { block_bytes(bytes) } else { bytes };
        let mut kept = self.kept();
        if let Some(address) = kept.take(size) {
            return Ok((address, size));
        }
        if kept.bytes > self.cap {
            // Blocks of sizes that nobody asked for lately. Others may go on meanwhile: this waits for the device.
            let unused = std::mem::take(&mut *kept);
            drop(kept);
            self.free(unused);
            kept = self.kept();
        }
        let allocate = || self.runtime.allocate(size);
        let address = match allocate() {
            Err(error) if error.is_short_of_memory() => self.again(&mut kept, allocate)?,
            address => address?,
        };
        Ok((address, size))
    }

    /// Does what may take memory of the device in the driver's own name; once more, with what is kept here given back, if there
    /// was none.
    pub(in crate::device) fn with_room<T>(
        &self,
        mut work: impl FnMut() -> Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        match work() {
            Err(error) if error.is_short_of_memory() => self.again(&mut self.kept(), work),
            outcome => outcome,
        }
    }

    /// Returns the second attempt of all that found no memory.
    fn again<T>(&self, kept: &mut Kept, work: impl FnOnce() -> Result<T, CudaError>) -> Result<T, CudaError> {
        self.give_up(kept);
        work()
    }

    /// Takes a block back, without a word to the device: buffers are dropped where nobody may wait for it. Only while others give
    /// memory back, because it is short or a table comes or goes, this waits for them.
    pub(in crate::device) fn give_back(&self, address: u64, size: usize) {
        if !self.runtime.is_pooled() {
            return self.runtime.free(address);
        }
        self.kept().keep(address, size);
    }

    /// Returns the bytes of the blocks that nobody has.
    pub(in crate::device) fn kept_bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Gives all blocks that nobody has to the driver.
    pub(in crate::device) fn release(&self) {
        self.give_up(&mut self.kept());
    }

    fn give_up(&self, kept: &mut Kept) {
        if kept.bytes > 0 {
            self.free(std::mem::take(kept));
        }
    }

    /// Gives blocks to the driver when the device has done all that is queued.
    fn free(&self, blocks: Kept) {
        // A device that fails has nothing queued any more, and whoever uses it next is told.
        let _ = self.runtime.synchronize();
        blocks.blocks.into_values().flatten().for_each(|address| self.runtime.free(address));
    }

    /// Returns the bytes that `buffers` buffers of `bytes` bytes in all take at most, but for sectors that are not whole.
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

/// Returns the size of a block for `bytes` bytes: eight sizes between one power of two and the next, so that batches of nearly
/// the same size share blocks and at most an eighth is wasted, or 64 MiB; whole sectors of 256 bytes.
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
