//! Where a table is, and computes.

use std::fmt;

use hush_cpu::Cpu;
use hush_ops::{contract::Steps, path::Footprint};

/// Where a table is, and computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The CPU.
    Cpu,
    /// The GPU of this number, or the emulator of one.
    Gpu(usize),
    /// In parts on several of them.
    Gpus(GpuSet),
    /// In parts, which are elsewhere.
    Parts,
}

impl Place {
    /// Batches of a table that are worth answering at once. The CPU has enough to do with one; while a GPU computes one, the host
    /// reads the queries of another, or packs its answers; while parts scan one, another is finished.
    pub fn batches_in_flight(self) -> usize {
        match self {
            Self::Cpu => 1,
            Self::Gpu(_) | Self::Gpus(_) | Self::Parts => 2,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(0) => f.write_str("cuda"),
            Self::Gpu(number) => write!(f, "cuda:{number}"),
            Self::Gpus(gpus) => gpus.fmt(f),
            Self::Parts => f.write_str("parts"),
        }
    }
}

/// Some GPUs, in an order that matters: keys that are opened on them are of use to tables on the same ones in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GpuSet {
    count: u8,
    numbers: [u8; GpuSet::MOST],
}

impl GpuSet {
    /// GPUs that a table is on at most: as many as a machine has.
    pub const MOST: usize = 16;

    /// The GPUs of these numbers; `None` if there are more than [`GpuSet::MOST`], or a
    /// number is above 255.
    pub fn new(numbers: &[usize]) -> Option<Self> {
        let mut set = Self { count: u8::try_from(numbers.len()).ok()?, numbers: [0; Self::MOST] };
        for (place, number) in numbers.iter().enumerate() {
            *set.numbers.get_mut(place)? = u8::try_from(*number).ok()?;
        }
        Some(set)
    }

    /// Their numbers.
    pub fn numbers(&self) -> &[u8] {
        &self.numbers[..usize::from(self.count)]
    }
}

impl fmt::Display for GpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.numbers().iter().map(u8::to_string).collect();
        write!(f, "cuda:{}", numbers.join("+"))
    }
}

/// A backend that tables are hosted on.
pub(crate) trait Hosting: Steps + Footprint + 'static {
    /// Why it does nothing any more; `None` as long as all is well.
    fn lost(&self) -> Option<String>;
}

impl Hosting for Cpu {
    fn lost(&self) -> Option<String> {
        None
    }
}
