//! The time that work takes, by the clock of the GPU, or by the host's if the emulator is in its place.

use std::{error::Error, time::Instant};

use hush_cuda::device::Device;
#[cfg(feature = "cuda")]
use hush_cuda::device::Stopwatch;

use crate::timing::quantile;

/// Returns the median of `runs` timings of queued work in seconds, after a run that does not count. Fails with the first error of
/// `work` or of the device.
pub(super) fn device_seconds<E: Into<Box<dyn Error>>>(
    device: &Device,
    runs: usize,
    mut work: impl FnMut() -> Result<(), E>,
) -> Result<f64, Box<dyn Error>> {
    work().map_err(Into::into)?;
    let seconds = (0..runs).map(|_| clocked(device, &mut work)).collect::<Result<_, _>>()?;
    Ok(quantile(seconds, 0.5))
}

/// Returns the seconds of one run of queued work.
fn clocked<E: Into<Box<dyn Error>>>(
    device: &Device,
    work: &mut impl FnMut() -> Result<(), E>,
) -> Result<f64, Box<dyn Error>> {
    #[cfg(feature = "cuda")]
    if let Some(stopwatch) = Stopwatch::start(device)? {
        work().map_err(Into::into)?;
        return Ok(f64::from(stopwatch.stop()?) / 1e3);
    }
    device.synchronize()?;
    let start = Instant::now();
    work().map_err(Into::into)?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64())
}
