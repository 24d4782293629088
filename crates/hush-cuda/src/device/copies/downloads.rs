//! Copies from the device to the host, over the link while the device does other work.

use cudarc::driver::result;

use crate::device::{
    CudaError, UPLOAD_BYTES,
    calls::failed,
    memory::pinned::PinnedBuffer,
    stream::{Event, Stream},
};

/// A stream for the link and two pinned buffers: the device fills one while the host reads the other.
///
/// The context must be current in all calls, and when it is dropped.
pub(in crate::device) struct Downloads {
    /// The stream. It is dropped first, which waits for the copies.
    stream: Stream,
    buffers: [(PinnedBuffer, Event); 2],
}

impl Downloads {
    pub(in crate::device) fn new() -> Result<Self, CudaError> {
        let buffer = || Ok((PinnedBuffer::new()?, Event::new()?));
        Ok(Self { stream: Stream::beside()?, buffers: [buffer()?, buffer()?] })
    }

    /// Waits until `ready` has happened, and for no later work. Passes bytes of the device, as they are then, to `take`, one part
    /// after another. The device memory must not be freed before this returns.
    pub(in crate::device) fn download(
        &mut self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
        ready: &Event,
    ) -> Result<(), CudaError> {
        self.stream.wait_event(ready)?;
        let copied = self.copy(address, bytes, take);
        if copied.is_err() {
            // The queued copies read memory that may have another owner next.
            let _ = self.stream.synchronize();
        }
        copied
    }

    fn copy(&self, address: u64, bytes: usize, take: &mut dyn FnMut(&[u8])) -> Result<(), CudaError> {
        let queue = |index: usize, bytes: usize| {
            let (buffer, filled) = &self.buffers[index % 2];
            // SAFETY: the host has read its contents, and the device writes to it only from here on.
            let pinned = unsafe { buffer.bytes(bytes) };
            let from = address + (index * UPLOAD_BYTES) as u64;
            // SAFETY: the slice lies within an allocation.
            unsafe { result::memcpy_dtoh_async(pinned, from, self.stream.handle()) }
                .map_err(failed("cuMemcpyDtoHAsync"))?;
            filled.record(&self.stream)
        };
        let lengths: Vec<usize> =
            (0..bytes).step_by(UPLOAD_BYTES).map(|first| UPLOAD_BYTES.min(bytes - first)).collect();
        lengths.first().map_or(Ok(()), |&bytes| queue(0, bytes))?;
        for (index, &bytes) in lengths.iter().enumerate() {
            lengths.get(index + 1).map_or(Ok(()), |&bytes| queue(index + 1, bytes))?;
            let (buffer, filled) = &self.buffers[index % 2];
            filled.synchronize()?;
            // SAFETY: the device is done with it.
            take(unsafe { buffer.bytes(bytes) });
        }
        Ok(())
    }
}
