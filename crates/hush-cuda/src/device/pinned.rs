//! Copies between host and device through memory that the device reads by itself.

use std::ffi::c_void;

use cudarc::driver::{
    result::{self, event},
    sys,
};

use super::{CudaError, UPLOAD_BYTES, driver::failed};

/// Copies of up to this many bytes go the driver's own way.
const SMALL_BYTES: usize = 64 << 10;

/// Buffers of pinned memory, none until they are filled, which are used in turn: while the device copies one, the host copies the
/// next.
#[derive(Default)]
pub(super) struct Pinned {
    buffers: Vec<PinnedBuffer>,
    next: usize,
}

struct PinnedBuffer {
    memory: *mut c_void,
    /// When the device is done with it.
    done: sys::CUevent,
}

impl PinnedBuffer {
    /// Its first `bytes` bytes.
    ///
    /// # Safety
    /// Neither the device nor anyone else may use them meanwhile, and they must be at most [`UPLOAD_BYTES`].
    #[allow(clippy::mut_from_ref, reason = "the memory is not a part of the buffer")]
    unsafe fn bytes(&self, bytes: usize) -> &mut [u8] {
        // SAFETY: the caller's word.
        unsafe { std::slice::from_raw_parts_mut(self.memory.cast(), bytes) }
    }

    /// Has `done` happen after all work on `stream` until now.
    fn record(&self, stream: sys::CUstream) -> Result<(), CudaError> {
        // SAFETY: event and stream are the device's.
        unsafe { event::record(self.done, stream) }.map_err(failed("cuEventRecord"))
    }

    /// Waits until the device is done with it.
    fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the event was recorded.
        unsafe { event::synchronize(self.done) }.map_err(failed("work before a copy"))
    }
}

impl Pinned {
    /// Makes `count` buffers, two or more, for copies on `stream`. The context must be current, here and in all other calls.
    pub(super) fn fill(&mut self, count: usize, stream: sys::CUstream) -> Result<(), CudaError> {
        while self.buffers.len() < count {
            // Waiting sleeps: a scan takes long, and other threads have use for the core.
            let done = event::create(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC);
            let done = done.map_err(failed("cuEventCreate"))?;
            // SAFETY: the context is current; freed on release. Not write-combined: downloads read it.
            let memory = unsafe { result::malloc_host(UPLOAD_BYTES, 0) }.map_err(failed("cuMemHostAlloc"))?;
            let buffer = PinnedBuffer { memory, done };
            buffer.record(stream)?;
            self.buffers.push(buffer);
        }
        Ok(())
    }

    /// Copies at most [`UPLOAD_BYTES`] bytes to the device; `host` may be changed afterwards.
    pub(super) fn upload(
        &mut self,
        host: &[u8],
        address: u64,
        stream: sys::CUstream,
    ) -> Result<(), CudaError> {
        let copied = failed("cuMemcpyHtoDAsync");
        if host.len() <= SMALL_BYTES {
            // SAFETY: the slice lies within an allocation. From memory that is not pinned, the driver copies before it returns.
            return unsafe { result::memcpy_htod_async(address, host, stream) }.map_err(copied);
        }
        let buffer = &self.buffers[self.next];
        self.next = (self.next + 1) % self.buffers.len();
        buffer.wait()?;
        // SAFETY: the device has read it, and reads it again only from here on.
        let pinned = unsafe { buffer.bytes(host.len()) };
        pinned.copy_from_slice(host);
        // SAFETY: the slice lies within an allocation; the buffer is not written before the event.
        unsafe { result::memcpy_htod_async(address, pinned, stream) }.map_err(copied)?;
        buffer.record(stream)
    }

    /// Waits for all work until now and hands bytes of the device to `take`, in parts, one after another: the device fills one
    /// buffer while the other is taken.
    pub(super) fn download(
        &mut self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
        stream: sys::CUstream,
    ) -> Result<(), CudaError> {
        let queue = |index: usize, bytes: usize| {
            let buffer = &self.buffers[index % 2];
            // SAFETY: what was in it was taken, and the device writes it only from here on.
            let pinned = unsafe { buffer.bytes(bytes) };
            // SAFETY: the slice lies within an allocation.
            unsafe { result::memcpy_dtoh_async(pinned, address + (index * UPLOAD_BYTES) as u64, stream) }
                .map_err(failed("cuMemcpyDtoHAsync"))?;
            buffer.record(stream)
        };
        let lengths: Vec<usize> =
            (0..bytes).step_by(UPLOAD_BYTES).map(|first| UPLOAD_BYTES.min(bytes - first)).collect();
        lengths.first().map_or(Ok(()), |&bytes| queue(0, bytes))?;
        for (index, &bytes) in lengths.iter().enumerate() {
            lengths.get(index + 1).map_or(Ok(()), |&bytes| queue(index + 1, bytes))?;
            let buffer = &self.buffers[index % 2];
            // Work that was queued meanwhile is not waited for.
            buffer.wait()?;
            // SAFETY: the device is done with it.
            take(unsafe { buffer.bytes(bytes) });
        }
        Ok(())
    }

    /// Gives the memory back. All work must have ended.
    pub(super) fn release(&mut self) {
        for buffer in self.buffers.drain(..) {
            // SAFETY: made in `fill`, and used no more. Failures are of no consequence.
            let _ = unsafe { event::destroy(buffer.done) };
            // SAFETY: as above.
            let _ = unsafe { result::free_host(buffer.memory) };
        }
    }
}
