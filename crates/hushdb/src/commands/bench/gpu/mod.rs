//! `hushdb bench gpu-..`: measurements on a GPU, as shares of what it does at most, measured in the same run.
//!
//! With `HUSH_CUDA=emulator` all of it runs in the emulator, at a small scale: its figures say nothing, but that a measurement on a
//! GPU will not end before its time.

use std::{env, error::Error};

use hush_cuda::{Cuda, device::Device};
use hush_engine::{CUDA_VARIABLE, open_device};

mod answers;
mod clock;
mod floors;
mod room;
mod row;
mod scale;
mod steps;

use clock::device_seconds;
use floors::Floors;
use row::{Row, Table, Work};
use scale::Scale;

use super::BenchArgs;

/// Bytes of a record of the tables.
const RECORD_BYTES: usize = 4096;

/// `hushdb bench gpu-floors`.
pub(super) fn floors(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    let (device, scale) = open()?;
    floors::run(&device, &scale, &mut Table::new(args.json))
}

/// `hushdb bench gpu-steps`.
pub(super) fn steps(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    measure(args, |bench| steps::run(bench, args.size))
}

/// `hushdb bench gpu-answers`.
pub(super) fn answers(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    measure(args, |bench| answers::run(bench, args))
}

/// What measurements share.
struct Bench<'a> {
    cuda: &'a Cuda,
    scale: &'a Scale,
    floors: &'a Floors,
    rows: &'a mut Table,
}

impl Bench<'_> {
    /// Measures work on the device, and returns its row.
    fn row<E: Into<Box<dyn Error>>>(
        &self,
        name: impl Into<String>,
        batch: usize,
        work: Work,
        run: impl FnMut() -> Result<(), E>,
    ) -> Result<Row, Box<dyn Error>> {
        let seconds = device_seconds(self.cuda.device(), self.scale.runs, run)?;
        Ok(Row::new(name, batch, seconds, work, self.floors))
    }
}

fn measure(
    args: &BenchArgs,
    run: impl FnOnce(&mut Bench<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (device, scale) = open()?;
    let floors = Floors::measure(&device, &scale)?;
    device.release_unused();
    let (cuda, mut rows) = (Cuda::new(device), Table::new(args.json));
    run(&mut Bench { cuda: &cuda, scale: &scale, floors: &floors, rows: &mut rows })
}

/// The GPU, or the emulator in its place, and how much is measured there.
fn open() -> Result<(Device, Scale), Box<dyn Error>> {
    let device = open_device()?;
    if env::var_os(CUDA_VARIABLE).is_none() {
        return Ok((device, scale::GPU));
    }
    eprintln!("note: the emulator, by the host's clock, at a small scale: the figures say nothing of a GPU");
    Ok((device, scale::EMULATOR))
}
