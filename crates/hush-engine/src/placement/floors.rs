//! The least times of batches on GPUs, by the rates of a data sheet.

use std::ops::Range;

use hush_ops::{path::Step, steps::StepShape};
use hush_protocol::{any_page::TableParams, share::shares};
use serde::{Deserialize, Serialize};

/// The bytes of a word.
const WORD: usize = size_of::<u32>();

/// The peak rates of a device, per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes read.
    pub bytes: f64,
    /// Multiply-adds of an s8 with a word.
    pub multiply_adds: f64,
    /// Products of words modulo a prime.
    pub products: f64,
    /// Butterflies of transforms.
    pub butterflies: f64,
}

impl Rates {
    /// The rates of a GPU by its data sheet: 3.35 TB/s; 990 TOPS of multiply-adds of bytes, of which one with a word takes four;
    /// 132 multiprocessors with 64 products of words a clock. A product modulo a prime, or a butterfly, takes three of these.
    pub const H100: Self =
        Self { bytes: 3.35e12, multiply_adds: 2.47e14, products: 4.8e12, butterflies: 4.8e12 };

    /// Returns the least seconds of a step of this shape for a batch.
    pub fn shape_seconds(&self, shape: &StepShape, batch: usize) -> f64 {
        let work = shape.work(batch);
        let butterflies = shape.ring().map_or(0.0, |ring| {
            let degree = ring.degree();
            (degree / 2) as f64 * f64::from(degree.ilog2())
        });
        let computed = work.products / self.products + work.transforms * butterflies / self.butterflies;
        (work.bytes / self.bytes).max(work.multiply_adds / self.multiply_adds).max(computed)
    }

    /// Returns the least seconds of a step for a batch.
    pub fn step_seconds(&self, step: &Step, batch: usize) -> f64 {
        match step.one_by_one {
            true => batch as f64 * self.shape_seconds(&step.shape, 1),
            false => self.shape_seconds(&step.shape, batch),
        }
    }
}

/// The seconds of batches on several GPUs of one kind.
pub struct SpreadTimes<'a> {
    /// The table.
    pub table: &'a TableParams,
    /// Returns the seconds of a step for a batch on one of the GPUs.
    pub step_seconds: &'a dyn Fn(&Step, usize) -> f64,
    /// The bytes a second that a GPU receives from another.
    pub link: f64,
}

impl SpreadTimes<'_> {
    /// The bytes a second that a GPU receives from another by PCIe 5.0, the slowest link of GPUs for servers.
    pub const PCIE: f64 = 6.4e10;

    /// Returns the seconds of a batch on a GPU that has the whole table.
    pub fn on_one(&self, batch: usize) -> f64 {
        let segments = self.table.segments();
        segments.iter().enumerate().map(|(index, segment)| self.beside(index, &segment.path(), batch)).sum()
    }

    /// Returns the seconds of a batch on GPUs that have shares of these weights: the opening, the longest scan, the exchange, and
    /// the end of the answers, of which each GPU finishes some. GPUs that scan the expansions of all queries expand all of them.
    ///
    /// # Panics
    /// If all weights are 0.
    pub fn on_shares(&self, weights: &[u32], batch: usize) -> f64 {
        let shares = shares(weights, &self.table.scanned());
        let segments = self.table.segments();
        let scan = |units: &Vec<Range<usize>>| -> f64 {
            let own = segments.iter().zip(units).filter(|(_, units)| !units.is_empty());
            own.map(|(segment, units)| self.seconds(&segment.part(units).steps, batch)).sum()
        };
        let scanned = shares.iter().map(scan).fold(0.0, f64::max);
        let finished = batch.div_ceil(weights.len());
        let mut received = 0;
        let mut finishing = 0.0;
        for (number, segment) in segments.iter().enumerate() {
            let parts: Vec<Range<usize>> = shares
                .iter()
                .map(|units| units[number].clone())
                .filter(|units: &Range<usize>| !units.is_empty())
                .collect();
            received += parts.iter().map(|units| segment.part(units).words).sum::<usize>() * WORD * finished;
            finishing += self.seconds(&segment.head(&parts).steps, finished);
        }
        let opened = if self.table.scans_expansions() { batch } else { finished };
        self.seconds(&self.table.base().opening(), opened) + scanned + received as f64 / self.link + finishing
    }

    /// Returns the seconds of the steps of segment `index`. Queries are opened once, for the base.
    fn beside(&self, index: usize, path: &[Step], batch: usize) -> f64 {
        let steps = path.iter().filter(|step| index == 0 || !step.shape.opens_queries());
        steps.map(|step| (self.step_seconds)(step, batch)).sum()
    }

    fn seconds(&self, steps: &[Step], batch: usize) -> f64 {
        steps.iter().map(|step| (self.step_seconds)(step, batch)).sum()
    }
}
