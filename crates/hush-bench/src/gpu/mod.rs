//! `hush-bench gpu-..`: measurements on a GPU, as shares of what it does at most, measured in the same run.
//!
//! With `HUSH_CUDA=emulator` all of it runs in the emulator, at a small scale: its figures say nothing, but that a measurement on a
//! GPU will not end before its time.

use std::{env, error::Error};

use hush_cuda::{Cuda, device::Device};
use hush_engine::{CUDA_VARIABLE, open_device};

mod answer_work;
mod answers;
mod clock;
mod floors;
mod room;
mod row;
mod scale;
mod steps;
mod table;
mod work;

use clock::device_seconds;
use floors::Floors;
use row::{Row, What};
use scale::Scale;
use table::Table;
use work::Work;

use super::Args;

/// Bytes of a record of the tables.
const RECORD_BYTES: usize = 4096;

/// `hush-bench gpu-floors`.
pub(super) fn floors(args: &Args) -> Result<(), Box<dyn Error>> {
    let ((device, scale), mut rows) = (open()?, Table::new(args.json));
    floors::run(&device, &scale, &mut rows)?;
    rows.finish()
}

/// `hush-bench gpu-steps`.
pub(super) fn steps(args: &Args) -> Result<(), Box<dyn Error>> {
    measure(args, |bench| steps::run(bench, args.size))
}

/// `hush-bench gpu-answers`.
pub(super) fn answers(args: &Args) -> Result<(), Box<dyn Error>> {
    measure(args, |bench| {
        answers::run(bench, args);
        Ok(())
    })
}

/// What measurements share.
struct Bench<'a> {
    cuda: &'a Cuda,
    scale: &'a Scale,
    floors: &'a Floors,
    rows: &'a mut Table,
}

impl Bench<'_> {
    /// A part of the measurements. After an error a row says why there is no more of it, and the benchmark goes on: there may not
    /// be another run. Once the device is lost, nothing is done any more.
    fn attempt(&mut self, what: What, part: impl FnOnce(&mut Self) -> Result<(), Box<dyn Error>>) {
        if self.cuda.device().lost().is_none() {
            let done = part(self);
            self.rows.keep(&what, done);
        }
    }

    /// A row for `work` that takes as many seconds as `measure` says.
    fn timed(&mut self, what: What, work: &Work, measure: impl FnOnce() -> Result<f64, Box<dyn Error>>) {
        self.attempt(what.clone(), |bench| {
            bench.rows.push(&Row::new(what, measure()?, work, bench.floors));
            Ok(())
        });
    }

    /// A row for work on the device.
    fn row<E: Into<Box<dyn Error>>>(&mut self, what: What, work: &Work, run: impl FnMut() -> Result<(), E>) {
        let (device, runs) = (self.cuda.device(), self.scale.runs);
        self.timed(what, work, || device_seconds(device, runs, run));
    }
}

fn measure(
    args: &Args,
    run: impl FnOnce(&mut Bench<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let ((device, scale), mut rows) = (open()?, Table::new(args.json));
    let floors = Floors::measure(&device, &scale, &mut rows)?;
    device.release_unused();
    let cuda = Cuda::new(device);
    run(&mut Bench { cuda: &cuda, scale: &scale, floors: &floors, rows: &mut rows })?;
    rows.finish()
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

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use hush_cuda::device::Emulation;

    use super::*;

    /// What the parts of a benchmark whose second part fails return, and how many ran; the device may be lost there.
    fn parts(loses: bool) -> (String, usize) {
        let (cuda, mut rows) = (Cuda::new(Device::emulated(Emulation::default())), Table::new(true));
        let floors = Floors::measure(cuda.device(), &scale::EMULATOR, &mut rows).unwrap();
        let mut bench = Bench { cuda: &cuda, scale: &scale::EMULATOR, floors: &floors, rows: &mut rows };
        let mut ran = 0;
        for index in 0..4 {
            bench.attempt(What::named("part"), |bench| {
                ran += 1;
                let run = || match index {
                    0 => Ok(()),
                    1 if loses => {
                        cuda.device().emulate_loss();
                        cuda.device().synchronize().map_err(|_| "part 1".to_owned())
                    }
                    _ => Err(format!("part {index}")),
                };
                bench.row(What::named("row"), &Work::default(), run);
                Ok(())
            });
        }
        (rows.finish().unwrap_err().to_string(), ran)
    }

    #[test]
    fn the_rest_is_measured_after_an_error() {
        assert_eq!(parts(false), ("part 1".into(), 4));
    }

    #[test]
    fn nothing_is_measured_on_a_lost_device() {
        assert_eq!(parts(true), ("part 1".into(), 2));
    }
}
