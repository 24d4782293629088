//! The times of steps on a machine: measured there, or lower bounds by the rates of its data sheet.

use std::{fmt, sync::LazyLock};

use hush_he::entities::MatrixStructure;
use hush_ops::{
    path::Step,
    steps::{LweHint, StepShape, Work},
    tiling::Tiling,
};
use hush_protocol::any_page::{SegmentParams, TableParams};
use serde::{Deserialize, Serialize};

/// Seconds that a request takes at least, whatever it asks for.
const REQUEST_SECONDS: f64 = 1e-6;

/// A machine that serves, as far as its times are known.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The version of this program's sizes ([`Machine::VERSION`]) by which it was measured.
    pub version: u32,
    /// The model of its CPU, or of a device.
    pub name: String,
    /// The level of its instructions; empty of a device.
    pub level: String,
    /// Threads that scan; of a device 1.
    pub threads: usize,
    /// The times of steps.
    pub times: Times,
}

/// The times of steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Times {
    /// The measured times, for some shapes of each step.
    Measured(Vec<Timing>),
    /// At least: nothing was measured.
    Floors(Rates),
}

/// A step as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The name of the step ([`StepShape::name`]).
    pub step: String,
    /// The name of its RLWE set; empty without one.
    pub set: String,
    /// How large its shape was: the nominal seconds for one query.
    pub size: f64,
    /// Queries at once.
    pub batch: usize,
    /// Seconds over the nominal seconds of this batch.
    pub ratio: f64,
}

/// The peak rates of a device, per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes that are read.
    pub bytes: f64,
    /// Multiply-adds of an s8 and a word.
    pub multiply_adds: f64,
    /// Products of words modulo a prime.
    pub products: f64,
    /// Butterflies of transforms.
    pub butterflies: f64,
}

/// Rates by which sizes of different steps are made comparable. They cancel out where a step is predicted from
/// one of its own size.
const NOMINAL: Rates = Rates { bytes: 2e10, multiply_adds: 4e11, products: 8e9, butterflies: 1e10 };
/// Bytes of operands a second, of the same kind: they are written too, and laid out anew.
const NOMINAL_OPERANDS: f64 = 2e9;
/// Seconds of a step beside its work.
const NOMINAL_START: f64 = 1e-5;
/// Seconds of a hint by transforms beside them: primes and roots.
const NOMINAL_RING_HINT_START: f64 = 5e-5;
/// Rows that it does together.
const RING_HINT_ROWS: usize = 16;

/// A GPU by its data sheet: 3.35 TB/s; 990 TOPS of multiply-adds of bytes, of which one of a word takes four; 132
/// multiprocessors with 64 products of words a clock, of which one modulo a prime, or a butterfly, takes three.
const H100: Rates = Rates { bytes: 3.35e12, multiply_adds: 2.47e14, products: 4.8e12, butterflies: 4.8e12 };

impl Machine {
    /// The sizes of steps, by which times are told: raised when the nominal seconds of a step change.
    pub const VERSION: u32 = 1;

    /// Returns the machine that is planned for where no other is named: two cores of a server of 2022, measured once
    /// (`docs/explanation/planner.md`).
    pub fn reference() -> &'static Self {
        static REFERENCE: LazyLock<Machine> = LazyLock::new(|| {
            serde_json::from_str(include_str!("reference_machine.json"))
                .expect("a profile that a planner has written")
        });
        &REFERENCE
    }

    /// Returns the machine that a profile says.
    pub fn from_profile(text: &str) -> Result<Self, String> {
        let machine: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if machine.version != Self::VERSION {
            return Err(format!(
                "it has version {}, and this program reads {}",
                machine.version,
                Self::VERSION
            ));
        }
        let is_time = |number: f64| number.is_finite() && number > 0.0;
        let all_are = match &machine.times {
            Times::Measured(timings) => {
                timings.iter().all(|timing| is_time(timing.size) && is_time(timing.ratio) && timing.batch > 0)
            }
            Times::Floors(Rates { bytes, multiply_adds, products, butterflies }) => {
                [bytes, multiply_adds, products, butterflies].into_iter().all(|&rate| is_time(rate))
            }
        };
        if machine.threads == 0 || !all_are {
            return Err("threads, sizes, batches, ratios and rates are above 0".into());
        }
        Ok(machine)
    }

    /// Returns a GPU of which nothing was measured.
    pub fn gpu_floors() -> Self {
        let name = "NVIDIA H100, floors by its data sheet".into();
        let times = Times::Floors(H100);
        Self { version: Self::VERSION, name, level: String::new(), threads: 1, times }
    }

    /// Returns whether times are what it takes at least, and not what was measured.
    pub fn is_floor(&self) -> bool {
        matches!(self.times, Times::Floors(_))
    }

    /// Seconds for a batch of look-ups of a table: all segments, one after another, of which queries are opened once; and no less
    /// than a request takes.
    pub fn answer_seconds(&self, table: &TableParams, batch: usize) -> f64 {
        table
            .segments()
            .iter()
            .enumerate()
            .map(|(index, segment): (usize, &SegmentParams)| -> f64 {
                let path = segment.path();
                let steps = path.iter().filter(|step| index == 0 || !step.shape.opens_queries());
                steps.map(|step| self.step_seconds(step, batch)).sum()
            })
            .sum::<f64>()
            .max(REQUEST_SECONDS)
    }

    /// Seconds of a step for a batch.
    pub fn step_seconds(&self, step: &Step, batch: usize) -> f64 {
        match step.one_by_one {
            true => batch as f64 * self.shape_seconds(&step.shape, 1),
            false => self.shape_seconds(&step.shape, batch),
        }
    }

    fn shape_seconds(&self, shape: &StepShape, batch: usize) -> f64 {
        match &self.times {
            Times::Measured(timings) => nominal_seconds(shape, batch) * ratio(timings, shape, batch),
            Times::Floors(rates) => {
                let work = shape.work(batch);
                let computed =
                    work.products / rates.products + work.transforms * butterflies(shape) / rates.butterflies;
                (work.bytes / rates.bytes).max(work.multiply_adds / rates.multiply_adds).max(computed)
            }
        }
    }
}

impl fmt::Debug for Machine {
    /// Short: it is a part of the identity of builds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = blake3::hash(format!("{:?}", self.times).as_bytes()).to_hex();
        write!(f, "{} {} {} {}", self.name, self.level, self.threads, &times[..16])
    }
}

/// Seconds of a step at [`NOMINAL`] rates.
pub(super) fn nominal_seconds(shape: &StepShape, batch: usize) -> f64 {
    if let StepShape::LweHint(LweHint { db, matrix, .. }) = shape
        && let MatrixStructure::Ring { degree } = matrix.structure()
    {
        return batch as f64 * nominal_ring_hint(*db, matrix.n(), degree);
    }
    let Work { bytes, operand_bytes, multiply_adds, products, transforms, .. } = shape.work(batch);
    NOMINAL_START
        + bytes / NOMINAL.bytes
        + operand_bytes / NOMINAL_OPERANDS
        + multiply_adds / NOMINAL.multiply_adds
        + products / NOMINAL.products
        + transforms * butterflies(shape) / NOMINAL.butterflies
}

/// Returns the nominal seconds of a hint by a matrix of rings of `degree`: by transforms of the columns and of A, of
/// two primes, and back of all n.
fn nominal_ring_hint(db: Tiling, n: usize, degree: usize) -> f64 {
    let rows = db.rows().next_multiple_of(RING_HINT_ROWS);
    let blocks = db.cols().div_ceil(degree);
    let elements = n / degree;
    let transforms = 2 * (rows * (blocks + elements) + blocks * elements);
    let products = 2 * rows * blocks * elements * degree;
    let seconds = products as f64 / NOMINAL.products;
    NOMINAL_RING_HINT_START + seconds + transforms as f64 * butterflies_of(degree) / NOMINAL.butterflies
}

/// Butterflies of a transform.
fn butterflies(shape: &StepShape) -> f64 {
    shape.ring().map_or(0.0, |ring| butterflies_of(ring.degree()))
}

fn butterflies_of(degree: usize) -> f64 {
    (degree / 2) as f64 * f64::from(degree.ilog2())
}

/// By how much more than nominally a step takes: between the measured shapes and batches that are nearest. Of a set that was not
/// measured, as of all that were.
fn ratio(timings: &[Timing], shape: &StepShape, batch: usize) -> f64 {
    let set = shape.ring().map_or("", |ring| ring.name());
    let of_step = |timing: &&Timing| timing.step == shape.name();
    let own: Vec<&Timing> = timings.iter().filter(of_step).filter(|timing| timing.set == set).collect();
    if own.is_empty() {
        let others: Vec<f64> = timings.iter().filter(of_step).map(|timing| timing.ratio).collect();
        return if others.is_empty() { 1.0 } else { others.iter().sum::<f64>() / others.len() as f64 };
    }
    let mut sizes: Vec<f64> = own.iter().map(|timing| timing.size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let points = |size: f64| -> Vec<(f64, f64)> {
        let of_size = own.iter().filter(|timing| timing.size == size);
        of_size.map(|timing| (timing.batch as f64, timing.ratio)).collect()
    };
    // Large batches of large shapes are not measured: these go on as those of a shape of which more were.
    let most = sizes.iter().map(|&size| points(size)).max_by_key(Vec::len).expect("a shape");
    between(
        sizes
            .into_iter()
            .map(|size: f64| {
                let points = points(size);
                let largest = points.iter().map(|&(batch, _)| batch).fold(1.0, f64::max);
                let within = between(points, f64::min(batch as f64, largest));
                let beyond =
                    between(most.clone(), f64::max(batch as f64, largest)) / between(most.clone(), largest);
                (size, within * beyond)
            })
            .collect(),
        nominal_seconds(shape, 1),
    )
}

/// Returns the value at `x` between points, straight over log x; beyond them, that of the last.
fn between(mut points: Vec<(f64, f64)>, x: f64) -> f64 {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = points.partition_point(|&(known, _)| known < x);
    match (at.checked_sub(1).map(|at| points[at]), points.get(at)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x / x0).ln() / (x1 / x0).ln(),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => 1.0,
    }
}
