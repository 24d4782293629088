//! The times of steps on a machine: measured there, or lower bounds by the rates of its data sheet.

use std::{fmt, sync::LazyLock};

use hush_engine::{Rates, SpreadTimes};
use hush_he::entities::MatrixStructure;
use hush_ops::{
    path::Step,
    steps::{LweHint, StepShape, Work},
    tiling::Tiling,
};
use hush_protocol::any_page::TableParams;
use serde::{Deserialize, Serialize};

/// The least seconds of a request, whatever it asks for.
const REQUEST_SECONDS: f64 = 1e-6;

/// A machine that serves, with the times of its steps.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The version of the nominal sizes ([`Machine::VERSION`]) with which the machine was measured.
    pub version: u32,
    /// The model of the CPU or of the device.
    pub name: String,
    /// The level of the CPU's instructions; empty for a device.
    pub level: String,
    /// The number of threads that scan; 1 for a device.
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
    /// Lower bounds by peak rates: nothing was measured.
    Floors(Rates),
}

/// The measurement of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The name of the step ([`StepShape::name`]).
    pub step: String,
    /// The name of the step's RLWE set; empty if it has none.
    pub set: String,
    /// The size of the shape: the nominal seconds for one query.
    pub size: f64,
    /// The number of queries in the batch.
    pub batch: usize,
    /// The measured seconds of the batch, divided by its nominal seconds.
    pub ratio: f64,
}

/// The nominal rates, which make sizes of different steps comparable. They cancel out if a step is predicted from a measurement of
/// the same size.
const NOMINAL: Rates = Rates { bytes: 2e10, multiply_adds: 4e11, products: 8e9, butterflies: 1e10 };
/// The nominal bytes of operands a second. It is lower than the rate of reading, because operands are also written and reordered.
const NOMINAL_OPERANDS: f64 = 2e9;
/// The nominal seconds of a step beside its work.
const NOMINAL_START: f64 = 1e-5;
/// The nominal seconds that a hint by transforms takes beside the transforms, for primes and roots.
const NOMINAL_RING_HINT_START: f64 = 5e-5;
/// The rows that a hint by transforms computes together.
const RING_HINT_ROWS: usize = 16;

impl Machine {
    /// The version of the nominal sizes. It is raised when the nominal seconds of a step change.
    pub const VERSION: u32 = 1;

    /// Returns the default machine of the planner: two cores of a server of 2022, measured once
    /// (`docs/explanation/planner.md`).
    pub fn reference() -> &'static Self {
        static REFERENCE: LazyLock<Machine> = LazyLock::new(|| {
            serde_json::from_str(include_str!("reference_machine.json"))
                .expect("a profile that a planner has written")
        });
        &REFERENCE
    }

    /// Parses a machine's profile. Returns an error text if it is malformed, has another version, or has a number not above 0.
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

    /// Returns a GPU with lower bounds by its data sheet: nothing was measured.
    pub fn gpu_floors() -> Self {
        let name = "NVIDIA H100, floors by its data sheet".into();
        let times = Times::Floors(Rates::H100);
        Self { version: Self::VERSION, name, level: String::new(), threads: 1, times }
    }

    /// Returns whether the times are lower bounds, not measurements.
    pub fn is_floor(&self) -> bool {
        matches!(self.times, Times::Floors(_))
    }

    /// Returns the seconds for a batch of look-ups in a table. The segments are scanned one after another, and the queries are
    /// opened once. The result is at least the time of a request.
    pub fn answer_seconds(&self, table: &TableParams, batch: usize) -> f64 {
        self.spread_times(table, SpreadTimes::PCIE, |times| times.on_one(batch)).max(REQUEST_SECONDS)
    }

    /// Computes seconds of batches of a table on several of this machine, each of which receives `link` bytes a second from
    /// another.
    pub fn spread_times(
        &self,
        table: &TableParams,
        link: f64,
        seconds: impl Fn(SpreadTimes<'_>) -> f64,
    ) -> f64 {
        seconds(SpreadTimes { table, step_seconds: &|step, batch| self.step_seconds(step, batch), link })
    }

    /// Returns the seconds of a step for a batch.
    pub fn step_seconds(&self, step: &Step, batch: usize) -> f64 {
        match step.one_by_one {
            true => batch as f64 * self.shape_seconds(&step.shape, 1),
            false => self.shape_seconds(&step.shape, batch),
        }
    }

    fn shape_seconds(&self, shape: &StepShape, batch: usize) -> f64 {
        match &self.times {
            Times::Measured(timings) => nominal_seconds(shape, batch) * ratio(timings, shape, batch),
            Times::Floors(rates) => rates.shape_seconds(shape, batch),
        }
    }
}

impl fmt::Debug for Machine {
    /// Prints a short form with a hash of the times, because it is a part of the identity of builds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = blake3::hash(format!("{:?}", self.times).as_bytes()).to_hex();
        write!(f, "{} {} {} {}", self.name, self.level, self.threads, &times[..16])
    }
}

/// Returns the seconds of a step at [`NOMINAL`] rates.
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

/// Returns the nominal seconds of a hint by a matrix of rings of `degree`: transforms of the columns and of A modulo two primes,
/// the products, and the transforms of all n back.
fn nominal_ring_hint(db: Tiling, n: usize, degree: usize) -> f64 {
    let rows = db.rows().next_multiple_of(RING_HINT_ROWS);
    let blocks = db.cols().div_ceil(degree);
    let elements = n / degree;
    let transforms = 2 * (rows * (blocks + elements) + blocks * elements);
    let products = 2 * rows * blocks * elements * degree;
    let seconds = products as f64 / NOMINAL.products;
    NOMINAL_RING_HINT_START + seconds + transforms as f64 * butterflies_of(degree) / NOMINAL.butterflies
}

/// Returns the butterflies of a transform; 0 if the step has no ring.
fn butterflies(shape: &StepShape) -> f64 {
    shape.ring().map_or(0.0, |ring| butterflies_of(ring.degree()))
}

fn butterflies_of(degree: usize) -> f64 {
    (degree / 2) as f64 * f64::from(degree.ilog2())
}

/// Returns the ratio of a step's seconds to its nominal seconds, interpolated between the nearest measured shapes and batches.
/// For a set that was not measured, returns the mean ratio of all sets; 1 if the step was not measured at all.
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
    // Large batches of large shapes are not measured. Their ratio changes with the batch like that of the shape with most batches.
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

/// Interpolates between points, linearly in log x. Outside the points, returns the value of the nearest one; 1 without points.
fn between(mut points: Vec<(f64, f64)>, x: f64) -> f64 {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = points.partition_point(|&(known, _)| known < x);
    match (at.checked_sub(1).map(|at| points[at]), points.get(at)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x / x0).ln() / (x1 / x0).ln(),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => 1.0,
    }
}
