//! Streams, which run work in order, and events, by which one stream waits for another. The context must be current in all calls,
//! and when a stream or an event is dropped.

use std::ffi::c_uint;

use cudarc::driver::{
    result::{event, stream},
    sys,
};

use super::{CudaError, calls::failed};

/// An independent stream: it waits for another stream only if told to.
pub(super) struct Stream(sys::CUstream);

impl Stream {
    /// Creates a stream whose blocks have the highest priority on multiprocessors.
    pub(super) fn first() -> Result<Self, CudaError> {
        Self::of_priority(|(_, greatest)| greatest)
    }

    /// Creates a stream whose blocks have the lowest priority.
    pub(super) fn beside() -> Result<Self, CudaError> {
        Self::of_priority(|(least, _)| least)
    }

    fn of_priority(choose: impl FnOnce((i32, i32)) -> i32) -> Result<Self, CudaError> {
        let range = stream::get_priority_range().map_err(failed("cuCtxGetStreamPriorityRange"))?;
        stream::create_with_priority(stream::StreamKind::NonBlocking, choose(range))
            .map(Self)
            .map_err(failed("cuStreamCreateWithPriority"))
    }

    /// Returns the driver's handle.
    pub(super) fn handle(&self) -> sys::CUstream {
        self.0
    }

    /// Makes all later work wait, on the device, for the work after which `event` was last recorded.
    pub(super) fn wait_event(&self, event: &Event) -> Result<(), CudaError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both exist. The driver reads the event's state now, so it may be recorded again, or destroyed.
        unsafe { stream::wait_event(self.0, event.0, flags) }.map_err(failed("cuStreamWaitEvent"))
    }

    /// Makes all later work wait, on the device, for the work of `other` queued so far. Both belong to the current context.
    pub(super) fn wait_for(&self, other: &Self) -> Result<(), CudaError> {
        self.wait_event(&Event::after(other)?)
    }

    /// Waits for all work queued so far.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the stream exists.
        unsafe { stream::synchronize(self.0) }.map_err(failed("cuStreamSynchronize"))
    }
}

impl Drop for Stream {
    /// Waits for all work, because the memory that it uses is freed next. Failures have no effect.
    fn drop(&mut self) {
        let _ = self.synchronize();
        // SAFETY: it was created here.
        let _ = unsafe { stream::destroy(self.0) };
    }
}

/// An event, which happens when the work that a stream had at the time of recording is done. An event that was never recorded has
/// happened.
pub(super) struct Event(sys::CUevent);

impl Event {
    /// Creates an event that is not recorded yet. A host thread that waits for it sleeps: a scan takes long, and other
    /// threads need the core.
    pub(super) fn new() -> Result<Self, CudaError> {
        use sys::CUevent_flags as F;
        Self::with_flags(F::CU_EVENT_BLOCKING_SYNC as c_uint | F::CU_EVENT_DISABLE_TIMING as c_uint)
    }

    /// Creates an event that records the time.
    pub(super) fn timed() -> Result<Self, CudaError> {
        Self::with_flags(sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint)
    }

    /// Creates an event that happens after all work of `stream` queued so far.
    pub(super) fn after(stream: &Stream) -> Result<Self, CudaError> {
        let event = Self::new()?;
        event.record(stream)?;
        Ok(event)
    }

    fn with_flags(flags: c_uint) -> Result<Self, CudaError> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { sys::cuEventCreate(&mut event, flags) }.result().map_err(failed("cuEventCreate"))?;
        Ok(Self(event))
    }

    /// Returns the driver's handle.
    pub(super) fn handle(&self) -> sys::CUevent {
        self.0
    }

    /// Records the event after all work of `stream` queued so far.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: both exist.
        unsafe { event::record(self.0, stream.0) }.map_err(failed("cuEventRecord"))
    }

    /// Waits for the event on the host.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the event exists.
        unsafe { event::synchronize(self.0) }.map_err(failed("work that was queued"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was created here; streams that wait for it go on waiting. A failure has no effect.
        let _ = unsafe { event::destroy(self.0) };
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests;
