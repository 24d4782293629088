//! Memory of the host that the device accesses directly.

use std::ffi::c_void;

use cudarc::driver::result;

use crate::device::{CudaError, UPLOAD_BYTES, calls::failed};

/// A buffer of [`UPLOAD_BYTES`] bytes. The context must be current when it is created and when it is dropped; at the drop, the
/// device must no longer use it.
pub(in crate::device) struct PinnedBuffer(*mut c_void);

impl PinnedBuffer {
    pub(in crate::device) fn new() -> Result<Self, CudaError> {
        // SAFETY: the context is current. The memory is not write-combined, because downloads read it.
        unsafe { result::malloc_host(UPLOAD_BYTES, 0) }.map(Self).map_err(failed("cuMemHostAlloc"))
    }

    /// Returns the first `bytes` bytes.
    ///
    /// # Safety
    /// Neither the device nor other code may use these bytes meanwhile, and they must be at most [`UPLOAD_BYTES`].
    #[allow(clippy::mut_from_ref, reason = "the memory is not a part of the buffer")]
    pub(in crate::device) unsafe fn bytes(&self, bytes: usize) -> &mut [u8] {
        // SAFETY: the caller guarantees exclusive use and the length.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), bytes) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated here. A failure has no effect.
        let _ = unsafe { result::free_host(self.0) };
    }
}
