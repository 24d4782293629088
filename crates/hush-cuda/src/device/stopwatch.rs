//! The time that work takes, measured on the device.

use cudarc::driver::result::event;

use super::{CudaError, Device, calls::failed, driver::Gpu, runtime::Runtime, stream::Event};

/// Measures the time that work of a device takes, on the device.
pub struct Stopwatch<'a> {
    gpu: &'a Gpu,
    events: [Event; 2],
}

impl<'a> Stopwatch<'a> {
    /// Returns a stopwatch that runs from now on: from when all work until now is done. `None` for the emulator.
    pub fn start(device: &'a Device) -> Result<Option<Self>, CudaError> {
        #[allow(irrefutable_let_patterns, reason = "without the emulator there are GPUs only")]
        let Runtime::Gpu(gpu) = &*device.runtime else { return Ok(None) };
        gpu.enter()?;
        let stopwatch = Self { gpu, events: [Event::timed()?, Event::timed()?] };
        stopwatch.events[0].record(&gpu.main)?;
        Ok(Some(stopwatch))
    }

    /// Milliseconds until all work that was queued before now is done. Waits for that.
    pub fn stop(self) -> Result<f32, CudaError> {
        let [start, end] = &self.events;
        self.gpu.enter()?;
        end.record(&self.gpu.main)?;
        end.synchronize()?;
        // SAFETY: both events have happened.
        unsafe { event::elapsed(start.handle(), end.handle()) }.map_err(failed("cuEventElapsedTime"))
    }
}
