//! Measurement of the time that work takes, on the device.

use cudarc::driver::result::event;

use super::{CudaError, Device, calls::failed, driver::Gpu, runtime::Runtime, stream::Event};

/// A measurement of the time that work takes, by the device's clock.
pub struct Stopwatch<'a> {
    gpu: &'a Gpu,
    events: [Event; 2],
}

impl<'a> Stopwatch<'a> {
    /// Creates a stopwatch that starts when all work queued so far is done. Returns `None` for the emulator. Fails with
    /// [`CudaError`] if the driver cannot create or record an event.
    pub fn start(device: &'a Device) -> Result<Option<Self>, CudaError> {
        #[allow(irrefutable_let_patterns, reason = "without the emulator there are GPUs only")]
        let Runtime::Gpu(gpu) = &*device.runtime else { return Ok(None) };
        gpu.enter()?;
        let stopwatch = Self { gpu, events: [Event::timed()?, Event::timed()?] };
        stopwatch.events[0].record(&gpu.main)?;
        Ok(Some(stopwatch))
    }

    /// Waits for all work queued so far. Returns the milliseconds from the start until that work was done. Fails with [`CudaError`]
    /// if that work or the device fails.
    pub fn stop(self) -> Result<f32, CudaError> {
        let [start, end] = &self.events;
        self.gpu.enter()?;
        end.record(&self.gpu.main)?;
        end.synchronize()?;
        // SAFETY: both events have happened.
        unsafe { event::elapsed(start.handle(), end.handle()) }.map_err(failed("cuEventElapsedTime"))
    }
}
