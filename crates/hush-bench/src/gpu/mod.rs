//! `hush-bench gpu-..`: measurements on a GPU, as shares of its highest rates, measured in the same run.
//!
//! With `HUSH_CUDA=emulator` everything runs in the emulator, at a small scale. The figures then say nothing of a GPU. Such a run
//! only shows that a measurement on a GPU will not end early.

use std::{env, error::Error, sync::Arc};

use hush_cuda::{Cuda, device::Device};
use hush_engine::{CUDA_VARIABLE, open_devices, suited_backend};

mod answers;
mod clock;
mod files;
mod floors;
mod kernels;
mod room;
mod scale;
mod steps;
mod thresholds;
mod work;

use clock::device_seconds;
use floors::Floors;
use scale::Scale;
use work::Work;

use super::{
    Args,
    report::{Column, Report, fixed, percent, say, whole},
    row::Row,
};

/// The bytes of a record of the tables.
const RECORD_BYTES: usize = 4096;
/// The bytes of a short record.
const SHORT_RECORD: usize = 2;
/// The bytes of a record in PPIR's tables.
const PPIR_RECORD: usize = 256;

/// The columns of a rate.
pub(super) const RATES: &[Column] = &[
    ("rate", 12, |row| row.rate.as_ref().map(|own| format!("{:.4e}", own.rate))),
    ("unit", 6, |row| row.rate.as_ref().map(|own| own.unit.to_owned())),
];

/// The columns of work on the device.
pub(super) const WORK: &[Column] = &[
    ("protocol", 11, |row| row.protocol.clone()),
    ("GiB", 8, |row| fixed(row.table_bytes.map(|bytes| bytes as f64 / f64::from(1 << 30)), 2)),
    ("B", 4, |row| whole(row.batch)),
    ("GiB moved", 9, |row| fixed(row.bytes.map(|bytes| bytes as f64 / f64::from(1 << 30)), 3)),
    ("ms", 10, |row| fixed(row.seconds.map(|seconds| 1e3 * seconds), 3)),
    ("floor ms", 10, |row| fixed(row.floor_seconds.map(|seconds| 1e3 * seconds), 3)),
    ("bound", 6, |row| row.bound.map(str::to_owned)),
    ("share", 6, |row| percent(row.share)),
    ("streams", 8, |row| row.streams.map(|streams| format!("{streams:.2}x"))),
    ("queries/s", 10, |row| fixed(row.queries_per_second, 0)),
];

/// Runs `hush-bench gpu-floors`.
pub(super) fn floors(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let (devices, scale) = open()?;
    floors::run(&devices[0], &scale, report)
}

/// Runs `hush-bench gpu-steps`.
pub(super) fn steps(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    measure(report, |bench| steps::run(bench, args.size))
}

/// Runs `hush-bench gpu-thresholds`.
pub(super) fn thresholds(report: &mut Report) -> Result<(), Box<dyn Error>> {
    measure(report, thresholds::run)
}

/// Runs `hush-bench gpu-answers`.
pub(super) fn answers(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    measure(report, |bench| answers::run(bench, args))
}

/// The values that measurements share.
struct Bench<'a> {
    cuda: &'a Arc<Cuda>,
    /// The backends of the other GPUs.
    others: &'a [Arc<Cuda>],
    scale: &'a Scale,
    floors: &'a Floors,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Runs a part of the measurements, and returns its result. After an error, a row says why the rest of the part is missing,
    /// and the benchmark goes on: there may not be another run. Once the device is lost, nothing runs any more.
    fn attempt<T>(
        &mut self,
        row: Row,
        part: impl FnOnce(&mut Self) -> Result<T, Box<dyn Error>>,
    ) -> Option<T> {
        if self.cuda.device().lost().is_some() {
            return None;
        }
        let done = part(self);
        self.report.keep(&row, done)
    }

    /// Measures work on the device, and prints its row. Returns its seconds, unless it fails.
    fn row<E: Into<Box<dyn Error>>>(
        &mut self,
        row: Row,
        work: &Work,
        run: impl FnMut() -> Result<(), E>,
    ) -> Option<f64> {
        self.attempt(row.clone(), |bench| {
            let seconds = device_seconds(bench.cuda.device(), bench.scale.runs, run)?;
            bench.report.push(&bench.floors.row(row, work, seconds));
            Ok(seconds)
        })
    }
}

/// Opens the device, measures its floors, and runs a benchmark on it.
fn measure(
    report: &mut Report,
    run: impl FnOnce(&mut Bench<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (devices, scale) = open()?;
    let floors = Floors::measure(&devices[0], &scale, report)?;
    devices[0].release_unused();
    let backends: Vec<_> = devices.into_iter().map(|device| Arc::new(suited_backend(device))).collect();
    let (cuda, others) = backends.split_first().expect("at least one is open");
    run(&mut Bench { cuda, others, scale: &scale, floors: &floors, report })
}

/// Returns the GPUs, at least one, or emulators in their place, and the scale of measurements on them.
fn open() -> Result<(Vec<Device>, Scale), Box<dyn Error>> {
    let devices = open_devices()?;
    if env::var_os(CUDA_VARIABLE).is_none() {
        return Ok((devices, scale::GPU));
    }
    say("note: the emulator, by the host's clock, at a small scale: the figures say nothing of a GPU");
    Ok((devices, scale::EMULATOR))
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use hush_cuda::device::Emulation;

    use super::*;

    /// Runs a benchmark whose second part fails, and loses the device there if `loses`. Returns the error of the report, and how
    /// many parts ran.
    fn parts(loses: bool) -> (String, usize) {
        let cuda = Arc::new(Cuda::new(Device::emulated(Emulation::default())));
        let mut report = Report::new(WORK, true);
        let floors = Floors::measure(cuda.device(), &scale::EMULATOR, &mut report).unwrap();
        let mut bench =
            Bench { cuda: &cuda, others: &[], scale: &scale::EMULATOR, floors: &floors, report: &mut report };
        let mut ran = 0;
        for index in 0..4 {
            bench.attempt(Row::named("part"), |bench| {
                ran += 1;
                bench.row(Row::named("row"), &Work::default(), || match index {
                    0 => Ok(()),
                    1 if loses => {
                        cuda.device().emulate_loss();
                        cuda.device().synchronize().map_err(|_| "part 1".to_owned())
                    }
                    _ => Err(format!("part {index}")),
                });
                Ok(())
            });
        }
        (report.finish().unwrap_err().to_string(), ran)
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
