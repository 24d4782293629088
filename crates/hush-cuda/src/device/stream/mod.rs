//! Streams, in which work is done in order, and events, by which one waits for another. The context must be current in all calls,
//! and when they are dropped.

use std::ffi::c_uint;

use cudarc::driver::{
    result::{event, stream},
    sys,
};

use super::{CudaError, calls::failed};

/// A stream of its own: it waits for no other unless it is told to.
pub(super) struct Stream(sys::CUstream);

impl Stream {
    /// Creates a stream whose blocks get a multiprocessor before those of all others.
    pub(super) fn first() -> Result<Self, CudaError> {
        Self::of_priority(|(_, greatest)| greatest)
    }

    /// Creates a stream whose blocks get the room that is left.
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

    /// Has all later work wait for what `event` was recorded after last, on the device.
    pub(super) fn wait_event(&self, event: &Event) -> Result<(), CudaError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both are there. The driver looks at the event now: it may be recorded again, or destroyed.
        unsafe { stream::wait_event(self.0, event.0, flags) }.map_err(failed("cuStreamWaitEvent"))
    }

    /// Has all later work wait for that of `other` until now, on the device. Both are of the current context.
    pub(super) fn wait_for(&self, other: &Self) -> Result<(), CudaError> {
        self.wait_event(&Event::after(other)?)
    }

    /// Waits for all work until now.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: it is there.
        unsafe { stream::synchronize(self.0) }.map_err(failed("cuStreamSynchronize"))
    }
}

impl Drop for Stream {
    /// Waits for all work: what it uses goes next. Failures are of no consequence.
    fn drop(&mut self) {
        let _ = self.synchronize();
        // SAFETY: it was created here.
        let _ = unsafe { stream::destroy(self.0) };
    }
}

/// When the work is done that a stream had when the event was recorded; at once, if it never was.
pub(super) struct Event(sys::CUevent);

impl Event {
    /// Creates an event that was not recorded. The host sleeps while it waits for it: a scan takes long, and other
    /// threads need the core.
    pub(super) fn new() -> Result<Self, CudaError> {
        use sys::CUevent_flags as F;
        Self::with_flags(F::CU_EVENT_BLOCKING_SYNC as c_uint | F::CU_EVENT_DISABLE_TIMING as c_uint)
    }

    /// Creates an event that keeps the time.
    pub(super) fn timed() -> Result<Self, CudaError> {
        Self::with_flags(sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint)
    }

    /// Creates an event after all work of `stream` until now.
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

    /// Has it happen after all work of `stream` until now.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: both are there.
        unsafe { event::record(self.0, stream.0) }.map_err(failed("cuEventRecord"))
    }

    /// Waits for it on the host.
    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: it is there.
        unsafe { event::synchronize(self.0) }.map_err(failed("work that was queued"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was created here; streams that wait for it go on doing so. A failure is of no consequence.
        let _ = unsafe { event::destroy(self.0) };
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests;
