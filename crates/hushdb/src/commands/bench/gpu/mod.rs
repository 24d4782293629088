//! `hushdb bench gpu-..`: measurements on a GPU, as shares of what it does at most, measured in the same run.

use std::error::Error;

use hush_cuda::device::{Device, Stopwatch};

mod answers;
mod floors;
mod row;
mod steps;

use floors::Floors;
use row::Table;

use super::BenchArgs;

/// Fewest runs of which the median counts.
const RUNS: usize = 5;

/// `hushdb bench gpu-floors`.
pub(super) fn floors(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    let device = Device::open(0)?;
    let mut table = Table::new(args.json);
    floors::run(&device, &mut table)
}

/// `hushdb bench gpu-steps`.
pub(super) fn steps(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    let device = Device::open(0)?;
    let floors = Floors::measure(&device)?;
    steps::run(device, &floors, &mut Table::new(args.json))
}

/// `hushdb bench gpu-answers`.
pub(super) fn answers(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    let device = Device::open(0)?;
    let floors = Floors::measure(&device)?;
    answers::run(device, &floors, args, &mut Table::new(args.json))
}

/// The middle of several timings of queued work in seconds, on the device's clock.
fn device_seconds<E: Into<Box<dyn Error>>>(
    device: &Device,
    mut work: impl FnMut() -> Result<(), E>,
) -> Result<f64, Box<dyn Error>> {
    work().map_err(Into::into)?;
    let mut seconds = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let stopwatch = Stopwatch::start(device)?.ok_or("the emulator has no clock")?;
        work().map_err(Into::into)?;
        seconds.push(f64::from(stopwatch.stop()?) / 1e3);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}
